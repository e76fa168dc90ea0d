"""A cart pole that has changed, planned for in the old model: steps upright next to ns-gym's MCTS; prints JSON.

python benchmarks/drifting_cart_pole.py                # exploration constant 1.44
python benchmarks/drifting_cart_pole.py --c 15

At the first step of an episode the pole's mass or gravity changes; the planner is not told and goes on planning with
the old ones. For ns-gym world and planning environment are its own (`NSClassicControlWrapper`, `get_planning_env`). All
search with as many simulations a move, one random rollout of at most `--depth` steps each, and once more with as many
as they can do in ns-gym's time for a move: that of the faster of its two ways, on the bare environment or on its
wrapper. 50 simulations to a depth of 15, c 1.44 and gamma 0.999 are what ns-gym's own example of a cart pole has.
"""

import argparse
import json
import random
import sys
from pathlib import Path

from cart_pole_planners import (
    CHANGES,
    NORMAL,
    OFF,
    cart_pole,
    compiled,
    fitting,
    gymnasium_cart_pole,
    plain,
    settings,
    trusting,
)
from peer import FOLDER, PEER, peer_python, rate, run_with_peer

from uamcts.bench.timing import use_one_core

# ns-gym, in its own virtual environment


def theirs(change, chosen):
    """Steps upright of ns-gym's MCTS, told of the change or not."""
    import gymnasium
    import ns_gym
    import numpy
    from ns_gym.benchmark_algorithms import MCTS

    at_once, told = ns_gym.schedulers.DiscreteScheduler({0}), chosen.told
    updates = {
        name: ns_gym.update_functions.IncrementUpdate(at_once, value - NORMAL[name]) for name, value in change.items()
    }
    world = ns_gym.wrappers.NSClassicControlWrapper(
        gymnasium.make("CartPole-v1"), updates, change_notification=told, delta_change_notification=told
    )
    rewards = []
    for seed in range(chosen.seed, chosen.seed + chosen.episodes):
        random.seed(seed)
        numpy.random.seed(seed)  # noqa: NPY002 (it is where ns-gym draws from)
        observation, _ = world.reset(seed=seed)
        total, over = 0.0, False
        while not over and total < chosen.longest:
            plan = world.get_planning_env()
            action, _ = MCTS(plan, observation, chosen.depth, chosen.simulations, chosen.c, chosen.gamma).search()
            observation, reward, over, _, _ = world.step(int(action))
            total += reward
        rewards.append(total)
    really = {name: float(getattr(world.unwrapped, name)) for name in NORMAL}
    planned = {name: float(getattr(plan.unwrapped, name)) for name in NORMAL}
    return {"rewards": rewards, "world": really, "model": planned}


def their_rates(chosen):
    """Simulations a second of ns-gym's MCTS on the bare environment and inside of its wrapper."""
    import gymnasium
    import ns_gym
    from ns_gym.benchmark_algorithms import MCTS

    never = ns_gym.update_functions.NoUpdate(scheduler=ns_gym.schedulers.ContinuousScheduler())
    bare, inner = gymnasium.make("CartPole-v1"), gymnasium.make("CartPole-v1")
    wrapped = ns_gym.wrappers.NSClassicControlWrapper(inner, tunable_params={"masspole": never})
    found = {}
    for kind, env in (("bare", bare), ("wrapped", wrapped)):
        observation, _ = env.reset(seed=chosen.seed)

        def search(number, env=env, observation=observation):
            MCTS(env, observation, chosen.depth, chosen.simulations, chosen.c, chosen.gamma).search()

        found[kind] = rate(search, chosen.simulations, chosen.seconds)
    return found


# all rows


def summary(rewards):
    import numpy as np

    rewards = np.asarray(rewards, float)
    error = rewards.std(ddof=1) / len(rewards) ** 0.5 if len(rewards) > 1 else float("nan")
    return {"mean": round(float(rewards.mean()), 1), "error": round(float(error), 1), "episodes": len(rewards)}


def measure(name, chosen, python, budget, most):
    """All rows of one change of the world; `most` are the simulations that there is time for."""
    import jax.numpy as jnp

    import uamcts

    change, few, many = CHANGES[name], chosen.episodes, chosen.cheap_episodes
    old, new, old_gym, new_gym = (make(**given) for make in (cart_pole, gymnasium_cart_pole) for given in ({}, change))
    same = settings(chosen, "pseudocode", chosen.simulations, **OFF)

    def row(algorithm, simulations, rewards, seconds=None):
        found = {"world": name, "algorithm": algorithm, "simulations": simulations, **summary(rewards)}
        found |= {} if seconds is None else {"ms a move": round(1000 * seconds, 1)}
        print(json.dumps(found), file=sys.stderr, flush=True)
        rows.append(found)

    rows = []
    for label, flags in (("old model", ()), ("true model", ("--told",))):
        if "peer" in chosen.rows:
            found = run_with_peer(python, __file__, "--peer", name, *passed_on(chosen), *flags)
            if found["world"] != {**NORMAL, **change} or found["model"] != (found["world"] if flags else NORMAL):
                raise RuntimeError(f"ns-gym's world or model is another one: {found}")
            row(f"ns-gym, {label}", chosen.simulations, found["rewards"])
    if "equal" in chosen.rows:
        row("plain engine, old model", chosen.simulations, plain(chosen, old_gym, new_gym, same, many))
        row("compiled, old model", chosen.simulations, compiled(chosen, old, new, same, many))
        row("compiled, true model", chosen.simulations, compiled(chosen, new, new, same, many))
        scaled = settings(chosen, "released", chosen.simulations, **OFF)
        row("compiled, old model, values scaled", chosen.simulations, compiled(chosen, old, new, scaled, many))
    if "time" in chosen.rows:
        number = most["compiled"]
        faster = settings(chosen, "pseudocode", number, **OFF)
        row("compiled, old model, equal time", number, compiled(chosen, old, new, faster, few))
        row("compiled, true model, equal time", number, compiled(chosen, new, new, faster, few))
        number = most["plain engine"]
        faster = settings(chosen, "pseudocode", number, **OFF)
        row("plain engine, old model, equal time", number, plain(chosen, old_gym, new_gym, faster, few))
    if "trust" in chosen.rows:
        simulator = uamcts.JaxSimulator(old, 2, jnp.zeros(4), name="cart pole", action_names=("left", "right"))
        simulations = chosen.simulations
        for label in ("", ", equal time"):
            lives, seconds = trusting(chosen, simulator, new, settings(chosen, "trust", simulations))
            row(f"trust, first episode{label}", simulations, lives[:, 0], seconds)
            row(f"trust, second episode{label}", simulations, lives[:, 1], seconds)
            simulations = max(1, int(simulations * budget / seconds))
    return rows


PASSED_ON = ("simulations", "depth", "c", "gamma", "longest", "episodes", "seed", "seconds")
ROWS = ("peer", "equal", "time", "trust")


def passed_on(chosen):
    """The options that ns-gym's process is given too."""
    return [f"--{key}={getattr(chosen, key)}" for key in PASSED_ON]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", default="gravity6", help=f"some of {','.join(CHANGES)}")
    parser.add_argument("--simulations", type=int, default=50)
    parser.add_argument("--depth", type=int, default=15, help="of a rollout")
    parser.add_argument("--c", type=float, default=1.44, help="how much to explore; values are not scaled")
    parser.add_argument("--gamma", type=float, default=0.999)
    parser.add_argument("--longest", type=int, default=200, help="steps after which an episode is cut")
    parser.add_argument("--episodes", type=int, default=20, help="of ns-gym, of trust, and in equal time")
    parser.add_argument("--cheap-episodes", type=int, default=100, help="of the others")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode; the next has the next number")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement of speed")
    parser.add_argument("--rows", default=",".join(ROWS), help="ns-gym's, as many simulations, as much time, trust")
    parser.add_argument("--peer-venv", type=Path, default=FOLDER, help="where ns-gym is or shall be installed")
    parser.add_argument("--peer", choices=["rates", *CHANGES], help=argparse.SUPPRESS)
    parser.add_argument("--told", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    use_one_core()
    if chosen.peer:
        print(json.dumps(their_rates(chosen) if chosen.peer == "rates" else theirs(CHANGES[chosen.peer], chosen)))
        return
    python = peer_python(chosen.peer_venv)
    from uamcts.runtime.jax_setup import prepare_jax

    prepare_jax()
    speeds = run_with_peer(python, __file__, "--peer", "rates", *passed_on(chosen))
    budget = chosen.simulations / max(speeds.values())
    most = fitting(chosen, budget) if "time" in chosen.rows else {}
    about = {"peer": PEER, **{key: getattr(chosen, key) for key in PASSED_ON}, "ms a move": round(1000 * budget, 1)}
    about["ns-gym, simulations a second"] = {kind: round(speed) for kind, speed in speeds.items()}
    about["simulations in equal time"] = most
    print(json.dumps(about), file=sys.stderr, flush=True)
    rows = [row for name in chosen.changes.split(",") for row in measure(name, chosen, python, budget, most)]
    print(json.dumps({**about, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
