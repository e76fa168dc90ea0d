"""A slippery lake: every step slides to either side of where it should go with probability 1/3 each.

python examples/slippery_lake.py

Gymnasium's FrozenLake as it is, 4 x 4 with 100 steps. The agent plans in the environment's own table of outcomes; it is
told how many steps are left. Beside it: a search on a tree of paths with the same budget, and the exact optimum.
"""

import argparse

import gymnasium
import numpy as np

import uamcts.gym

STEPS = 100


def optimum(table, steps):
    """The best probability of reaching the goal, by backward induction."""
    values = np.zeros(len(table))
    for _ in range(steps):
        worth = [[sum(p * (r + values[s] * (not end)) for p, s, r, end in row) for row in table[state].values()]
                 for state in range(len(table))]  # fmt: skip
        values = np.max(worth, axis=1)
    return values[0]


def play(env, agent, simulator, episodes):
    """The share of episodes that reach the goal."""
    reached = []
    for episode in range(episodes):
        env.reset(seed=episode)
        state, over, left = simulator.read(env), False, STEPS
        while not over:
            action = agent.act(state, steps_left=left)
            _, reward, terminated, truncated, _ = env.step(action)
            after = simulator.read(env)
            agent.observe(state, action, after, reward=reward, terminal=terminated)
            state, over, left = after, terminated or truncated, left - 1
        reached.append(reward)
    return float(np.mean(reached))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="10 episodes only")
    chosen = parser.parse_args(arguments)
    episodes = 10 if chosen.quick else chosen.episodes
    env = gymnasium.make("FrozenLake-v1")
    simulator = uamcts.gym.Simulator(env)
    budget = {"iterations": chosen.iterations, "rollouts": 2, "depth": 30, "gamma": 1.0}
    shares = {}
    for name, settings in (("graph (default)", {}), ("tree", {"graph": False})):
        agent = uamcts.Agent(simulator, **budget, **settings, memory=False)
        shares[name] = play(env, agent, simulator, episodes)
        print(f"{name:16} {shares[name]:.1%} of {episodes} episodes reach the goal", flush=True)
    shares["optimum"] = float(optimum(env.unwrapped.P, STEPS))
    error = np.sqrt(shares["optimum"] * (1 - shares["optimum"]) / episodes)
    print(f"{'optimum':16} {shares['optimum']:.1%} (standard error of {episodes} episodes: {error:.1%})")
    graph, tree = shares["graph (default)"], shares["tree"]
    print(
        f"On a graph, where all paths to a cell share what was learned about it, {chosen.iterations} iterations reach "
        f"the goal in {graph:.1%} of the episodes; on a tree in {tree:.1%}."
    )
    return shares


if __name__ == "__main__":
    main()
