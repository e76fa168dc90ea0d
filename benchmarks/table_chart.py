"""Draws a table of planners in docs/results/beyond.md as bars, a panel for each world.

python benchmarks/table_chart.py docs/results/beyond.md "planners offline" docs/results/beyond/figures/planners.png
"""

import argparse
import math
import re
import textwrap
from pathlib import Path

from matplotlib.figure import Figure

from uamcts.colours import INK, LINE, PLANNERS

COLOURS = {
    "MCTS in the true world": PLANNERS["true"],
    "MCTS": PLANNERS["corrupted"],
    "UA-MCTS": PLANNERS["combined"],
    "UA-MCTS, tau 10": "#9db8e8",
    "Trust search": PLANNERS["trust"],
}
"""The planners of these tables."""
CELL = re.compile(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]")
Table = dict[str, dict[str, tuple[float, float, float]]]


def read_table(text: str, name: str) -> Table:
    """Mean and interval of every planner in every world: a table between the markers of a page."""
    found = re.search(rf"<!-- table {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    if found is None:
        raise ValueError(f"the page has no table {name!r}")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].strip().splitlines()]
    table: Table = {world: {} for world in lines[0][1:]}
    for planner, *cells in lines[2:]:
        for world, cell in zip(table, cells, strict=True):
            if match := CELL.match(cell):
                table[world][planner] = tuple(map(float, match.groups()))
    return table


def draw(table: Table) -> Figure:
    columns = min(4, len(table)) if len(table) != 5 else 5
    rows = math.ceil(len(table) / columns)
    figure = Figure(figsize=(10, 2.6 * rows + 0.5), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    handles = {}
    for axes, (world, planners) in zip(panels, table.items(), strict=False):
        for place, (planner, (mean, low, high)) in enumerate(planners.items()):
            handles[planner] = axes.bar(place, mean, color=COLOURS[planner], width=0.8)
            axes.errorbar(place, mean, yerr=[[mean - low], [high - mean]], ecolor=INK, linewidth=1)
        axes.set_title(textwrap.fill(world, 22), fontsize=9, color=INK)
        axes.set_xticks([])
        axes.tick_params(labelsize=8, colors=INK, length=0)
        axes.grid(axis="y", color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[:].set_visible(False)
    for axes in panels[len(table) :]:
        axes.set_visible(False)
    figure.supylabel("mean reward, 95% interval", fontsize=9, color=INK)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="docs/results/beyond.md")
    parser.add_argument("name", help="the table, as its marker names it")
    parser.add_argument("picture", type=Path, help="the PNG file to write")
    given = parser.parse_args()
    table = read_table(given.page.read_text(), given.name)
    # The numbers are part of the file, so that a test notices a chart of an older table.
    draw(table).savefig(given.picture, dpi=130, metadata={"Software": None, "Description": str(table)})
