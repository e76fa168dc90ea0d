"""UCB and UA-UCB on corrupted bandits: over time, against delta, where UA-UCB loses, and the worst case.

python examples/bandits.py
"""

import argparse

import jax
import numpy as np
from drawing import draw_arms

from uamcts import bandits

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--runs", type=int, default=2_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=10_000, help="pulls per run; ten times as many where delta varies")
parser.add_argument("--quick", action="store_true", help="a small version: 40 runs of 1,000 pulls")
arguments = parser.parse_args()
key = jax.random.key(arguments.seed)
steps, runs = (1_000, 40) if arguments.quick else (arguments.steps, arguments.runs)

for title, figure in (("over time", bandits.regret_over_time), ("the losing case", bandits.losing_case)):
    case = figure(key, steps, runs)
    print(f"{title}: observed {np.round(case.bandit.observed, 3)}, real {np.round(case.bandit.real, 3)}")
    draw_arms(case.bandit)
    for name, regret, above in (
        ("UCB", case.ucb, case.ucb_bound),
        ("UA-UCB, delta known", case.ua_ucb, case.ua_ucb_bound),
        ("UA-UCB, delta from 20 pairs", case.estimated, None),
    ):
        half = (regret.interval()[1] - regret.mean)[-1]
        limit = "" if above is None else f", bound {above[-1]:.0f}"
        print(f"  {name:28} {regret.mean[-1]:8.1f} +- {half:.1f}{limit}")

for family in ("shifted", "misleading"):
    print(f"against delta, {family}, c = 1, threshold {bandits.threshold(1.0):.3f}: regret, fit, exponent")
    deltas = [0.0, 0.1, 0.2, 0.25, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8]
    for delta, case in zip(
        deltas, bandits.regret_against_delta(key, deltas, family, 10 * steps, runs // 4), strict=True
    ):
        line = f"  {delta:4.2f}"
        for name, regret in (("UCB", case.ucb), ("UA-UCB", case.ua_ucb)):
            late = regret.checkpoints >= regret.checkpoints[-1] / 10
            fit = bandits.growth(regret.checkpoints[late], regret.mean[late])
            line += f"   {name} {regret.mean[-1]:8.1f} {fit.kind:11} {fit.exponent:4.2f}"
        print(line)

print("the worst of four corruptions of one arm: regret, exponent, bound")
for row in bandits.worst_case(key, [0.05, 0.2, 0.4], steps=steps, runs=runs // 10):
    print(
        f"  K {row.arms:2} gap {row.gap:.1f} c {row.c:.2f} delta {row.delta:.2f} {row.algorithm:6} {row.corrupted:18} "
        f"{row.regret:7.1f} {row.exponent:5.2f} {row.bound:8.0f}"
    )
