"""`uamcts.gym.NsGymAgent` as one of NS-Gym's agents, beside NS-Gym's MCTS, in NS-Gym's own worlds; prints Markdown.

    python -m venv ns_gym_venv
    ns_gym_venv/bin/pip install ns_gym==1.0.12 "uamcts[gym] @ ."
    ns_gym_venv/bin/python benchmarks/ns_gym_field.py
    ns_gym_venv/bin/python benchmarks/ns_gym_field.py --worlds FrozenLake --episodes 3

Wrappers, schedulers, update functions and levels of notification are NS-Gym's. An agent lives through all episodes
of a world and a level. Both have the same number of simulations for a move, and NS-Gym's MCTS the settings of its own
example: rollouts of 15 steps, c 1.44, gamma 0.999.

The measures are those of NS-Gym's competition (AAMAS 2026), written from the definitions of its template, which is not
part of the package. p(t) is how good the present state is, from 0 to 1: on FrozenLake its optimal value in the present
world; on CartPole 1 - angle^2 - 0.01 |speed| - 0.005 |turn|, scaled from [-2, 1]. The template has none for the other
worlds; here it is the optimal value, scaled between the worst and the best state.

reward       of an episode, not discounted
ms           of CPU time for a decision, the median
resilience   (1 - p at the first change) times the share of the time after it until p is at least 0.9 for five steps;
             smaller is better
adapts       the share of episodes in which, after the change, p is at least 0.8 in 90 % of some ten steps
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings

LEVELS = {"nothing": (False, False), "that it changed": (True, False), "how it changed": (True, True)}
SETTINGS = {"depth": 15, "c": 1.44, "gamma": 0.999}
OLD_MODEL = "uamcts.Agent, old model"
"""The agent if it learns nothing: it plans in the world as it was at first."""
AGENTS = ("uamcts.Agent", OLD_MODEL, "NS-Gym's MCTS")


def make_world(name, level, steps):
    """One of NS-Gym's worlds, at a level of notification."""
    import gymnasium
    import ns_gym
    from ns_gym import schedulers, update_functions, wrappers

    del ns_gym  # registers its environments
    told, how = LEVELS[level]
    options = {"change_notification": told, "delta_change_notification": how}
    lose = update_functions.DistributionDecrementUpdate
    if name == "FrozenLake":
        env = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=steps)
        return wrappers.NSFrozenLakeWrapper(env, {"P": lose(schedulers.ContinuousScheduler(), k=0.025)}, **options)
    if name == "CliffWalking":
        env = gymnasium.make("CliffWalking-v1", max_episode_steps=steps)
        return wrappers.NSCliffWalkingWrapper(env, {"P": lose(schedulers.DiscreteScheduler({3}), k=0.3)}, **options)
    if name == "Bridge":
        env = gymnasium.make("ns_gym/Bridge-v0", max_episode_steps=steps)
        return wrappers.NSBridgeWrapper(env, {"P": lose(schedulers.PeriodicScheduler(3), k=0.1)}, **options)
    gain = update_functions.IncrementUpdate(schedulers.ContinuousScheduler(), k=0.1)
    env = gymnasium.make("CartPole-v1", max_episode_steps=steps)
    return wrappers.NSClassicControlWrapper(env, {"masspole": gain}, **options)


WORLDS = {"FrozenLake": 100, "Bridge": 50, "CartPole": 300, "CliffWalking": 60}
"""The time limit of each world."""


class PeerAgent:
    """NS-Gym's MCTS with the interface of its competition."""

    def __init__(self, simulations):
        self.simulations = simulations

    def get_action(self, obs, planning_env):
        from ns_gym.benchmark_algorithms import MCTS

        search = MCTS(planning_env, obs, SETTINGS["depth"], self.simulations, SETTINGS["c"], SETTINGS["gamma"])
        return int(search.search()[0])


def make_agent(name, simulations):
    if name == "NS-Gym's MCTS":
        return PeerAgent(simulations)
    import uamcts.gym

    fixed = {"corrections": (), "estimator": "none"} if name == OLD_MODEL else {}
    return uamcts.gym.NsGymAgent(iterations=simulations, rollouts=1, gamma=SETTINGS["gamma"], **fixed)


def values_of(table, sweeps=1000, gamma=0.99):
    """The optimal values of states, by value iteration."""
    import numpy as np

    values = np.zeros(len(table))
    for _ in range(sweeps):
        after = np.array(
            [
                max(
                    sum(p * (r + gamma * values[s] * (not over)) for p, s, r, over in outcomes)
                    for outcomes in moves.values()
                )
                for _, moves in sorted(table.items())
            ]
        )
        if np.abs(after - values).max() < 1e-6:
            break
        values = after
    return values


def how_good(world, name, obs, known):
    """p(t): how good the present state is, from 0 to 1; `known` keeps what was computed for a table."""
    import numpy as np

    inner = world.unwrapped
    if name == "CartPole":
        _, speed, angle, turn = map(float, obs["state"])
        return float(np.clip((3.0 - angle**2 - 0.01 * abs(speed) - 0.005 * abs(turn)) / 3.0, 0.0, 1.0))
    table = inner.transition_matrix if name == "Bridge" else inner.P
    key = str(table[0]) + str(table[len(table) // 2])
    if key not in known:
        known[key] = values_of(table)
    values = known[key]
    if name == "FrozenLake":
        return float(np.clip(values[int(obs["state"])], 0.0, 1.0))
    return float((values[int(obs["state"])] - values.min()) / max(values.max() - values.min(), 1e-9))


def live(world, name, agent, seed, known):
    """One episode: rewards, seconds of decisions, p(t), and the step of the first change."""
    obs, _ = world.reset(seed=seed)
    rewards, seconds, goods, changed, over, reward = [], [], [], None, False, None
    while not over:
        goods.append(how_good(world, name, obs, known))
        planning = world.get_planning_env()
        start = time.process_time()
        action = agent.get_action(obs, planning) if reward is None else _next(agent, obs, planning, reward)
        seconds.append(time.process_time() - start)
        obs, reward, ended, cut, info = world.step(action)
        over = ended or cut
        if changed is None and any(info["Ground Truth Env Change"].values()):
            changed = len(rewards)
        rewards.append(float(reward))
    if hasattr(agent, "finish"):
        agent.finish(obs, reward, ended)
    return rewards, seconds, goods, changed


def _next(agent, obs, planning, reward):
    return agent.get_action(obs, planning) if isinstance(agent, PeerAgent) else agent.get_action(obs, planning, reward)


def resilience(goods, changed, threshold=0.9, window=5):
    """The drop at the change times the time of recovery, each from 0 to 1; 1 if there was no change."""
    if changed is None or changed >= len(goods):
        return 1.0
    after = goods[changed:]
    recovered = (i for i in range(len(after) - window + 1) if min(after[i : i + window]) >= threshold)
    return (1 - after[0]) * next(recovered, len(after)) / len(after)


def adapts(goods, changed, threshold=0.8, window=10, share=0.9):
    """Whether the state is good for most of some ten steps after the change."""
    after = [] if changed is None else goods[changed:]
    return any(
        sum(one >= threshold for one in after[i : i + window]) >= share * window for i in range(len(after) - window + 1)
    )


def measure(name, level, agent_name, chosen):
    """The row of an agent at a level of notification: means over episodes."""
    import numpy as np

    steps = min(WORLDS[name], chosen.steps or WORLDS[name])
    world, known = make_world(name, level, steps), {}
    agent = make_agent(agent_name, chosen.simulations)
    lives = []
    for seed in range(chosen.seed, chosen.seed + chosen.episodes):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (it is where NS-Gym draws from)
        lives.append(live(world, name, agent, seed, known))
    totals = np.array([sum(one[0]) for one in lives])
    return {
        "reward": f"{totals.mean():.2f} ± {totals.std(ddof=1) / len(totals) ** 0.5:.2f}",
        "ms": f"{1000 * np.median([second for one in lives for second in one[1]]):.1f}",
        "resilience": f"{np.mean([resilience(*one[2:]) for one in lives]):.3f}",
        "adapts": f"{np.mean([adapts(*one[2:]) for one in lives]):.2f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=WORLDS)
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), choices=AGENTS)
    parser.add_argument("--levels", nargs="+", default=list(LEVELS), choices=LEVELS)
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--simulations", type=int, default=25, help="for a move")
    parser.add_argument("--steps", type=int, help="the time limit, if it is less than the world's")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    heads = ("reward", "ms", "resilience", "adapts")
    print("| world, the agent is told | agent | " + " | ".join(heads) + " |\n| --- | --- |" + " --- |" * len(heads))
    for name in chosen.worlds:
        for level in chosen.levels:
            for agent in chosen.agents:
                start = time.time()
                row = measure(name, level, agent, chosen)
                print(f"| {name}, {level} | {agent} | " + " | ".join(row[head] for head in heads) + " |", flush=True)
                print(f"{time.time() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
