"""CMAX, CMAX++ and A-CMAX++ on gridworlds whose model is wrong: real steps to the goal, repetition by repetition.

python examples/cmax.py hidden_obstacles --size 100 --worlds 10 --expansions 50
"""

import argparse

import jax
import numpy as np
from drawing import draw_domain

import uamcts
from uamcts.baselines import AdaptiveCmaxPlus, Cmax, CmaxPlus, PlainAstar, Problem, repetitions

WORLDS = ("two_way", "two_way_icy", "hidden_obstacles", "slippery", "shortcut")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("domain", nargs="?", default="hidden_obstacles", choices=WORLDS)
parser.add_argument("--size", type=int, default=12, help="size of the grid; the first two worlds have a fixed size")
parser.add_argument("--worlds", type=int, default=10, help="number of seeds, for worlds that are drawn at random")
parser.add_argument("--repetitions", type=int, default=20)
parser.add_argument("--expansions", type=int, default=10, help="expansions per search")
parser.add_argument("--limit", type=int, default=2000, help="real steps after which a repetition is cut off")
parser.add_argument("--quick", action="store_true", help="a small version: 2 worlds, 3 repetitions")
arguments = parser.parse_args()
if arguments.quick:
    arguments.worlds, arguments.repetitions = 2, 3

if arguments.domain.startswith("two_way"):
    domains = [uamcts.make(arguments.domain)]
elif arguments.domain == "shortcut":
    domains = [uamcts.make(arguments.domain, size=arguments.size)]
else:
    domains = [uamcts.make(arguments.domain, size=arguments.size, seed=seed) for seed in range(arguments.worlds)]
problems = [Problem.of(domain) for domain in domains]
agents = {
    "A* in the model": PlainAstar,
    "CMAX": lambda problem: Cmax(problem, arguments.expansions),
    "CMAX++": lambda problem: CmaxPlus(problem, arguments.expansions),
    "A-CMAX++": lambda problem: AdaptiveCmaxPlus(problem, arguments.expansions),
}

optimum = np.mean([problem.optimum() for problem in problems])
print(f"{arguments.domain}, {len(problems)} world(s), {arguments.expansions} expansions a step, optimum {optimum:.1f}")
print(f"{'mean steps in repetition':24} {'first':>8} {'middle':>8} {'last':>8} {'all':>8}   reached the goal")
seen = {}
for name, make_agent in agents.items():
    count = 1 if make_agent is PlainAstar else arguments.repetitions  # it never learns
    made = [make_agent(problem) for problem in problems]
    done = [repetitions(agent, problem, count, arguments.limit) for agent, problem in zip(made, problems, strict=True)]
    seen[name] = made[0]
    steps = np.array([[one.steps for one in each] for each in done])
    reached = np.mean([[one.reached for one in each] for each in done])
    first, middle, last = (steps[:, place].mean() for place in (0, count // 2, -1))
    print(f"{name:24} {first:8.1f} {middle:8.1f} {last:8.1f} {steps.mean():8.1f}   {reached:.0%} of {steps.size}")

(domain, *_), learned = domains, seen["CMAX"].wrong
start = domain.reset(jax.random.key(0))
shape = domain.channels(start).shape[:2]
if max(shape) <= 40:
    found = np.bincount([state for state, _ in learned], minlength=shape[0] * shape[1]).reshape(shape)
    draw_domain(domain, start, found, "the first world, and how many actions CMAX found wrong in each cell")
