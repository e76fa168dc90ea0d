"""Planning with other people's simulators: simulations a second next to ns-gym's MCTS; prints one JSON object.

python benchmarks/own_simulator.py

Both search from a start of FrozenLake (not slippery) and CartPole with as many simulations, one random rollout of at
most as many steps each. ns-gym gets a virtual environment of its own (--peer-venv, made and kept where there is none:
it brings PyTorch along) and is measured once on Gymnasium's environments as they are and once inside of its own
wrappers; ratios are to the faster. Everything runs on one core, in turns; a figure is the median of five stretches, and
seconds are those that the process had the core to itself.
"""

import argparse
import json
from pathlib import Path

from peer import FOLDER, PEER, peer_python, rate, run_with_peer

from uamcts.bench.timing import use_one_core

ENVIRONMENTS = {"FrozenLake": ("FrozenLake-v1", {"is_slippery": False}), "CartPole": ("CartPole-v1", {})}
C = 1.44


def theirs_on(name, simulations, depth, seconds):
    """In ns-gym's environment: its MCTS on Gymnasium's environment as it is, and inside of its own wrapper."""
    import warnings

    warnings.simplefilter("ignore")
    import gymnasium
    import ns_gym
    from ns_gym.benchmark_algorithms import MCTS

    identifier, options = ENVIRONMENTS[name]
    every_step = ns_gym.schedulers.ContinuousScheduler()
    if name == "FrozenLake":
        never = ns_gym.update_functions.DistributionNoUpdate(scheduler=every_step)
        wrapper, parameter = ns_gym.wrappers.NSFrozenLakeWrapper, "P"
    else:
        never = ns_gym.update_functions.NoUpdate(scheduler=every_step)
        wrapper, parameter = ns_gym.wrappers.NSClassicControlWrapper, "masspole"
    bare = gymnasium.make(identifier, **options)
    wrapped = wrapper(gymnasium.make(identifier, **options), tunable_params={parameter: never})
    found = {}
    for kind, env in (("bare", bare), ("wrapped", wrapped)):
        observation, _ = env.reset(seed=0)

        def search(number, env=env, observation=observation):
            MCTS(env, observation, depth, simulations, C, 1.0).search()

        found[kind] = rate(search, simulations, seconds)
    return found


def settings(simulations, depth):
    import uamcts

    off = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)
    return uamcts.SearchConfig(iterations=simulations, rollouts=1, depth=depth, c=C, **off)


def plain(name, simulations, depth, seconds):
    """Our plain engine on the same environment."""
    import gymnasium

    import uamcts.gym

    identifier, options = ENVIRONMENTS[name]
    simulator = uamcts.gym.Simulator(gymnasium.make(identifier, **options))
    state, config = simulator.reset(seed=0), settings(simulations, depth)
    return rate(lambda n: uamcts.reference.search(n, state, simulator, None, config), simulations, seconds)


def compiled(simulations, depth, seconds, batch):
    """The compiled search on gymnax's CartPole: one search, and a batch of them.

    Its arrays for a path are as long as `tree_depth`. No path here comes near 64, so that the result is the same.
    """

    from dataclasses import replace

    import gymnax
    import jax
    import numpy as np

    import uamcts.gym

    env, params = gymnax.make("CartPole-v1")
    simulator, config = uamcts.gym.from_gymnax(env, params), settings(simulations, depth)

    def compile_search(config):
        def one(key):
            found = uamcts.search(
                key, simulator.example, simulator.step, None, config, num_actions=simulator.num_actions
            )
            return found.visits

        return jax.jit(one)

    one, free = compile_search(replace(config, tree_depth=64)), compile_search(config)
    if any(np.any(one(key) != free(key)) for key in jax.random.split(jax.random.key(1), 5)):
        raise RuntimeError("a path is longer than 64: raise tree_depth")
    many = jax.jit(jax.vmap(one))
    single = rate(lambda n: jax.block_until_ready(one(jax.random.key(n))), simulations, seconds)
    keys = [jax.random.split(jax.random.key(n), batch) for n in range(8)]
    together = rate(lambda n: jax.block_until_ready(many(keys[n % 8])), simulations * batch, seconds)
    return single, together


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    parser.add_argument("--batch", type=int, default=128, help="compiled searches in a batch")
    parser.add_argument("--peer-venv", type=Path, default=FOLDER, help="where ns-gym is or shall be installed")
    parser.add_argument("--peer", choices=list(ENVIRONMENTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = (arguments.simulations, arguments.depth, arguments.seconds)
    use_one_core()
    if arguments.peer:
        print(json.dumps(theirs_on(arguments.peer, *size)))
        return
    python = peer_python(arguments.peer_venv)
    from uamcts.runtime.jax_setup import prepare_jax

    prepare_jax()
    rows = []
    for name in ENVIRONMENTS:
        given = [f"--{key}={value}" for key, value in zip(("simulations", "depth", "seconds"), size, strict=True)]
        theirs = run_with_peer(python, __file__, "--peer", name, *given)
        best = max(theirs.values())
        figures = {"plain engine": plain(name, *size)}
        if name == "CartPole":
            single, together = compiled(*size, arguments.batch)
            figures |= {"compiled": single, f"compiled, {arguments.batch} in a batch": together}
        rows.append(
            {
                "environment": name,
                "ns-gym, simulations a second": {kind: round(figure) for kind, figure in theirs.items()},
                "ours, simulations a second": {kind: round(figure) for kind, figure in figures.items()},
                "times the faster of ns-gym's": {kind: round(figure / best, 1) for kind, figure in figures.items()},
            }
        )
    about = {"peer": PEER, "simulations": arguments.simulations, "depth": arguments.depth, "seconds": arguments.seconds}
    print(json.dumps({**about, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
