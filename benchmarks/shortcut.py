"""A door where the planner sees nothing but wall, the wall that it sees, and a trap in the door's place: who finds out?

Steps in the first and in the second half of each run's episodes, rewards in the second, the share of the second that
was shorter than the way around the wall, and in how many runs there were such: these went through the door.

python benchmarks/shortcut.py --learner none --learner memory --learner unseen+bonus=0.1+memory
"""

import argparse

from uamcts.runtime.jax_setup import prepare_jax

prepare_jax()  # before JAX starts: a CPU then runs rollouts as one function, on one thread

import jax
import numpy as np

import uamcts
from uamcts.episodes.online import Run, online, over_runs
from uamcts.lab.experiments.learners import make_learner
from uamcts.presets import search_config
from uamcts.uncertainty.schedule import Schedule

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--learner", action="append", help="see docs/results/baselines.md; give several")
parser.add_argument("--world", action="append", choices=["door", "wall", "trap"], help="default: all of them")
parser.add_argument("--size", type=int, default=12, help="rows and columns of the world")
parser.add_argument("--runs", type=int, default=4)
parser.add_argument("--rounds", type=int, default=10, help="of 300 real steps each")
arguments = parser.parse_args()

worlds = {"door": {}, "wall": {"door": False}, "trap": {"trap": True}}
schedule, steps = Schedule(interval=300), 300 * arguments.rounds
options = {"capacity": steps, "minibatches": 500, "most_copies": 1}
keys = jax.random.split(jax.random.key(0), arguments.runs)
around = 2 * (arguments.size - 1 - arguments.size // 2) + arguments.size - 1
print(f"{arguments.runs} runs of {steps} steps; around the wall: {around} steps")
print(f"{'world':6} {'learner':28} {'steps':>12} {'reward':>12}   shorter than around")
for world in arguments.world or worlds:
    domain = uamcts.make("shortcut", size=arguments.size, **worlds[world])
    config = search_config(domain, "corrupted")
    for name in arguments.learner or ["none"]:

        def run(key, name=name, domain=domain, config=config):
            learner = make_learner(name, key, domain, options)
            return online(Run.fresh(key, domain, learner, schedule), domain, config, schedule, arguments.rounds)[1]

        said = jax.tree.map(np.asarray, jax.jit(over_runs(run))(keys))
        rows = []
        for reward, length, ended in zip(said.reward, said.length, said.ended, strict=True):
            first, second = np.array_split(np.flatnonzero(ended), 2)
            rows.append([length[first].mean(), length[second].mean(), reward[second].mean(),
                         (length[second] < around).mean()])  # fmt: skip
        before, after, reward, short = np.mean(rows, axis=0)
        found = np.count_nonzero(np.array(rows)[:, -1])
        print(f"{world:6} {name:28} {before:5.1f}, {after:5.1f} {reward:12.2f}   {short:.0%}, in {found} runs")
