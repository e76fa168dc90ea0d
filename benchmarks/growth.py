"""Draws how a search grows with its iterations, its actions and its states.

uamcts bench --only growth --json > growth.json && python benchmarks/growth.py growth.json benchmarks/growth.png
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

source, target = map(Path, sys.argv[1:3])
rows = json.loads(source.read_text())["results"]["growth"]["rows"]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
for name, label in (("plain", "plain MCTS"), ("combined", "all four phases")):
    own = [row for row in rows if row["search"] == name]
    iterations, times = [row["iterations"] for row in own], [row["ms_per_move"] for row in own]
    left.loglog(iterations, times, "o-", label=f"ms a move, {label}")
left.loglog(iterations, [times[2] * n / iterations[2] for n in iterations], "k:", linewidth=1, label="linear")
left.loglog(iterations, [row["tree_bytes"] / 1024 for row in own], "s-", color="tab:green", label="KiB of tree")
left.set(xlabel="iterations", title="Breakout: growth with iterations")

walks = [row for row in rows if row["search"] == "walk"]
for key, label, other in (
    ("actions", "actions", "state_bytes"),
    ("state_bytes", "bytes of a state, 10 actions", "actions"),
):
    least = min(row[other] for row in walks)
    own = [row for row in walks if row[other] == least]
    right.loglog([row[key] for row in own], [row["ms_per_move"] for row in own], "o-", label=f"ms a move, by {label}")
    right.loglog(
        [row[key] for row in own], [row["tree_bytes"] / 2**20 for row in own], "s--", label=f"MiB of tree, by {label}"
    )
right.set(xlabel="actions, or bytes of a state", title="A walk, 1,000 iterations")

for axes in (left, right):
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3, which="both")
figure.tight_layout()
figure.savefig(target, dpi=110)
