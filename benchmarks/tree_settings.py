"""What the settings of trees that an agent changes do to the search, in the right model; prints Markdown.

    python benchmarks/tree_settings.py                                  # cart poles: steps upright, at most 1,000
    python benchmarks/tree_settings.py --worlds boat,quadrotor,pendulum_mass,sine_wind

With few iterations, what a search knows of a node far from the root is what follows its first action. If that is
always action 0, it is what follows pushes to the left. "drawn" takes another first action in every search. With
"follow", rollouts follow the best sequence of actions, the move begins it, and the next search goes on from the rest of
it. An `uamcts.Agent` does both. Worlds are those of `agent_worlds.py`, planned in as they really are, without learning.
"""

from __future__ import annotations

import argparse
import functools

import numpy as np

POLES = {"gravity_9.8": {}, "gravity_50": {"gravity": 50.0}, "gains_mass": {"gain": 0.1}}
MEANS = {"follow": 0.0}
ROWS = {
    "action 0, c 4": {"first": 0, "c": 4.0, **MEANS},
    "drawn, c 4": {"c": 4.0, **MEANS},
    "drawn, c 8": {"c": 8.0, **MEANS},
    "drawn, c 16": {"c": 16.0, **MEANS},
    "drawn, c 8, follow 0.9": {"c": 8.0, "follow": 0.9},
    "the same without carrying it on": {"c": 8.0, "follow": 0.9, "reuse": False},
}


def balance(change, settings, episodes, seed):
    """Steps upright, of all episodes at once; the planner knows the pole of every step."""
    import jax
    import jax.numpy as jnp

    from uamcts import SearchConfig
    from uamcts.field import Change, draw_starts
    from uamcts.field.cart_pole import push
    from uamcts.mcts.api import no_uncertainty, run_search
    from uamcts.mcts.following import steps_ahead
    from uamcts.mcts.problem import make_problem

    real = Change(**change)

    goes_on = bool(settings.get("follow")) and settings.get("reuse", True)
    settings = {name: value for name, value in settings.items() if name != "reuse"}

    def move(key, carry):
        state, _, count, before = carry
        own = jax.random.fold_in(key, count)
        first = settings.get("first", jax.random.randint(own, (), 0, 2))
        chosen = {**settings, "first": first}
        config = SearchConfig(rules="trust", iterations=100, rollouts=1, depth=50, tree_depth=64, gamma=0.999, **chosen)
        pole = real.pole(count)
        model = lambda state, action: push(state, action, pole)  # noqa: E731
        problem = make_problem(model, no_uncertainty, 2)
        found = run_search(own, state, problem, config, previous=before if goes_on else None)
        after = push(state, found.action, pole)
        return after.state, after.terminal, count + 1, before if found.sequence is None else found.sequence

    def episode(key, start):
        steps = steps_ahead(SearchConfig(iterations=100, depth=50), 2)
        begin = (start, jnp.asarray(False), jnp.asarray(0), jnp.full(steps, -1, jnp.int32))
        going = lambda carry: ~carry[1] & (carry[2] < 1000)  # noqa: E731
        return jax.lax.while_loop(going, functools.partial(move, key), begin)[2]

    keys = jax.random.split(jax.random.key(seed), episodes)
    return np.asarray(jax.jit(jax.vmap(episode))(keys, draw_starts(seed, 0, episodes)))


def live(name, settings, agents, seed):
    """The reward of agents that learn nothing, the mean of two episodes each."""
    from agent_worlds import play
    from worlds import ZOO

    import uamcts

    entry, rewards = ZOO[name], []
    for own in range(seed, seed + agents):
        made = entry.make()
        agent = uamcts.Agent(made.trues[-1], "none", seed=own, corrections=(), **settings, **entry.budget)
        episodes = [play(agent, made.worlds[-1], entry, 1000 * own + number, [], []) for number in range(2)]
        rewards.append(np.mean(episodes))
    return np.array(rewards)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="", help="worlds of agent_worlds.py, separated by commas; else cart poles")
    parser.add_argument("--poles", nargs="+", default=list(POLES), choices=POLES)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--episodes", type=int, default=40, help="episodes, or agents of two episodes (40)")
    parser.add_argument("--seed", type=int, default=77_000)
    chosen = parser.parse_args()
    worlds = [name for name in chosen.worlds.split(",") if name]
    columns = worlds or chosen.poles
    print("| settings | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1))
    for row in chosen.rows:
        cells = []
        for name in columns:
            given = (ROWS[row], chosen.episodes, chosen.seed)
            found = live(name, *given) if worlds else balance(POLES[name], *given)
            error = found.std(ddof=1) / len(found) ** 0.5
            cells.append(f"{found.mean():.2f} ± {error:.2f}" if worlds else f"{found.mean():.0f} ± {error:.0f}")
        print(f"| {row} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
