"""Draws the README's bar chart: one world for each kind of error, from the table in docs/concepts/corrections.md.

python benchmarks/kinds_of_error.py docs/concepts/corrections.md docs/kinds_of_error.png
"""

import argparse
import re
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from uamcts.colours import INK, LINE, PLANNERS

KINDS = {
    "pole_gravity": "a number is off\n(a cart pole's gravity)",
    "slippery_lake_40": "a probability is off\n(a slippery lake)",
    "pole_worn": "a worn motor,\nwhich no number explains",
    "warehouse": "pallets in the way\n(a warehouse)",
    "unknown_end": "ends that\nnobody predicted",
    "swapped_grid": "left and right\nare swapped",
    "other_mark": "rewards are paid\nsomewhere else",
    "street_closes": "the world changes:\na street closes",
    "current_drifts": "the world drifts:\na current grows",
    "demand": "a whole table is off\n(a shop's demand)",
}
"""Worlds of `agent_worlds.py`, and what is wrong in them."""
SIDES = {"wrong simulator": PLANNERS["corrupted"], "agent": PLANNERS["agent"], "true simulator": PLANNERS["true"]}
CELL = re.compile(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]")


def read_table(text: str) -> dict[str, tuple[str, ...]]:
    """The three results of every world that the chart shows, as the page writes them: `3.22 [2.85, 3.60]`."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    found = {cells[0]: tuple(cells[2:5]) for cells in lines if cells[0] in KINDS and len(cells) == 6}
    if missing := KINDS.keys() - found.keys():
        raise ValueError(f"the table has no row for {sorted(missing)}")
    return {name: found[name] for name in KINDS}


def draw(table: dict[str, tuple[str, ...]]) -> Figure:
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for axes, (name, cells) in zip(figure.subplots(2, 5).flat, table.items(), strict=True):
        numbers = [tuple(map(float, CELL.fullmatch(cell).groups())) for cell in cells]
        errors = [[mean - low for mean, low, _ in numbers], [high - mean for mean, _, high in numbers]]
        axes.bar(range(3), [mean for mean, _, _ in numbers], yerr=errors, color=SIDES.values(), ecolor=INK, width=0.8,
                 error_kw={"linewidth": 1})  # fmt: skip
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_title(KINDS[name], fontsize=9, color=INK)
        axes.set_xticks([])
        axes.tick_params(labelsize=8, colors=INK, length=0)
        axes.grid(axis="y", color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[:].set_visible(False)
    figure.supylabel("reward of an episode", fontsize=9, color=INK)
    handles = figure.axes[0].containers[1].patches
    figure.legend(handles, SIDES, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="docs/concepts/corrections.md")
    parser.add_argument("picture", type=Path, help="the PNG file to write; an SVG is written beside it")
    given = parser.parse_args()
    table = read_table(given.page.read_text())
    # The numbers are part of the file, so that a test notices a chart of an older table.
    draw(table).savefig(given.picture, dpi=200, metadata={"Software": None, "Description": str(table)})
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "kinds of error"}):
        draw(table).savefig(given.picture.with_suffix(".svg"), metadata=dict.fromkeys(("Date", "Creator")))
