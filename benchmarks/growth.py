"""Draws how a search grows with its iterations.

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
iterations = [row["iterations"] for row in rows]
times = [row["ms_per_move"] for row in rows]

figure, axes = plt.subplots(figsize=(6, 3.6))
axes.loglog(iterations, times, "o-", label="ms a move (one core)")
axes.loglog(iterations, [times[2] * n / iterations[2] for n in iterations], "k:", linewidth=1, label="linear")
axes.loglog(iterations, [row["tree_bytes"] / 1024 for row in rows], "s-", color="tab:green", label="KiB of tree")
axes.set(xlabel="iterations", title="Breakout, combined: growth with the number of iterations")
axes.legend()
axes.grid(alpha=0.3, which="both")
figure.tight_layout()
figure.savefig(target, dpi=110)
