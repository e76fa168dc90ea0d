"""The paper's offline scenario in one file: seven algorithms, one game, many runs, one compiled program.

python examples/offline.py space_invaders --runs 100
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from drawing import draw_domain

import uamcts
from uamcts.domains.heat import UncertaintyMap
from uamcts.episodes.offline import play
from uamcts.names import ALGORITHM_NAMES, OURS
from uamcts.presets import planning_domain, search_config

NAMES = [name for name in ALGORITHM_NAMES if name not in OURS]  # trust has its own rule set and needs another program

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("domain", nargs="?", default="space_invaders", choices=list(uamcts.DOMAINS))
parser.add_argument("--runs", type=int, default=100)
parser.add_argument("--rules", default="released", choices=["released", "pseudocode"])
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--algorithms", nargs="+", default=NAMES, choices=NAMES)
parser.add_argument("--quick", action="store_true", help="a small version: 2 runs of two algorithms")
arguments = parser.parse_args()
if arguments.quick:
    arguments.runs, arguments.algorithms = 2, ["mcts", "ua-mcts"]

domain = uamcts.make(arguments.domain)
start = domain.reset(jax.random.key(arguments.seed))
known = UncertaintyMap(domain)(start)
if known is not None:
    draw_domain(domain, start, known, "the world, and the U that the planners know, of the worst action in each cell")
chosen = [algorithm for algorithm in arguments.algorithms for _ in range(arguments.runs)]
worlds = [planning_domain(domain, algorithm) for algorithm in chosen]
configs = [search_config(domain, algorithm, rules=arguments.rules) for algorithm in chosen]
keys = jnp.tile(jax.random.split(jax.random.key(arguments.seed), arguments.runs), len(arguments.algorithms))

# Algorithms and runs form one batch: stack them, then vmap.
worlds, configs = (jax.tree.map(lambda *leaves: np.stack(leaves), *batch) for batch in (worlds, configs))
scores = jax.jit(jax.vmap(play))(keys, worlds, configs)
uamcts.raise_flags(scores)

print(f"{arguments.domain}, {arguments.rules} rules, {arguments.runs} runs, reward: mean and standard error")
for index, algorithm in enumerate(arguments.algorithms):
    runs = slice(index * arguments.runs, (index + 1) * arguments.runs)
    reward, steps = np.asarray(scores.reward[runs]), np.asarray(scores.steps[runs])
    error = reward.std(ddof=1) / np.sqrt(len(reward))
    print(f"  {algorithm:18} {reward.mean():6.2f} +- {error:.2f}   in {steps.mean():5.1f} steps")
