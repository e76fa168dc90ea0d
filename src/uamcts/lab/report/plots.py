"""The paper's figures, drawn from a summary. Every function returns a `Figure` and leaves Matplotlib's state alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from uamcts import names
from uamcts.colours import INK, OTHERS, PAPER, PLANNERS
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.selection import drop_repeated_taus, is_number, offline_results, tau_of
from uamcts.lab.report.style import (
    DASHES,
    MARKERS,
    SIZE,
    add_points,
    add_tips,
    describe_row,
    draw_band,
    dress,
    error_lengths,
    exploration,
    legend_below,
    new_axes,
    possible,
    use_log_scale,
)
from uamcts.presets import EXPLORATION


def offline(rows: Sequence[Entry], title: str, rules: str) -> Figure:
    """The paper's offline figure: a bar for each algorithm at its best c, and the two baselines as dashed lines.

    Bars show fresh seeds if there are any; a small mark next to them shows the maximum of the sweep that chose c.
    """
    chosen = offline_results(rows)
    size = (max(SIZE[0], 0.82 * len(chosen)), SIZE[1])
    figure, axes = new_axes(f"{title}, offline, {names.rules_title(rules)}", "", "mean reward, 95% interval", size)
    fresh = any(one.sweep is not None for one in chosen)
    for place, one in enumerate(chosen):
        colour, mean = PLANNERS.get(one.algorithm, OTHERS[3]), one.row["mean"]
        (bar,) = axes.bar(place, mean, width=0.66, color=colour)
        add_tips(bar, [f"{one.title}: {describe_row(one.row)}"])
        lengths = error_lengths(one.row)
        axes.errorbar(place, mean, yerr=lengths, color=INK, capsize=4, linewidth=1.2)
        above = max(mean + lengths[1][0], one.sweep["mean"] if one.sweep else mean)
        axes.annotate(
            f"{mean:.{2 if abs(mean) < 10 else 1}f}" if mean else "0", (place, above), (0, 4),
            textcoords="offset points", ha="center", color=INK, fontsize=8.5, zorder=4,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip
        if one.algorithm in names.PLAIN:
            axes.axhline(mean, color=colour, linestyle=(0, (5, 3)), linewidth=1.2, zorder=1.5)
        if one.sweep is not None:
            axes.plot(
                place + 0.24, one.sweep["mean"], color=INK, marker="D", markersize=4, markerfacecolor=PAPER,
                linestyle="none", label="_", zorder=3, clip_on=False,
            )  # fmt: skip
    axes.set_xticks(range(len(chosen)), [_below_bar(one.algorithm, one.tau, one.row["c"]) for one in chosen])
    axes.tick_params(axis="x", length=0, labelsize=8 if len(chosen) < 6 else 7.5)
    axes.margins(y=0.09)
    if fresh:
        mark = Line2D([], [], color=INK, marker="D", markersize=4, markerfacecolor=PAPER, linestyle="none")
        labels = ("fresh seeds", "maximum of the sweep that chose c")
        legend_below(axes, 2, [Patch(color=OTHERS[3]), mark], labels)
    return figure


def _below_bar(algorithm: str, tau: float | None, c: object) -> str:
    """The label below a bar."""
    settings = [f"c = {exploration(c)}", *([] if tau is None else [f"tau = {tau:g}"])]
    return "\n".join([names.short_title(algorithm), *settings])


def against_c(rows: Sequence[Entry], title: str, rules: str) -> Figure:
    """Reward against c in the sweep, with a line for each algorithm and tau."""
    words = f"{title}, reward against c, {names.rules_title(rules)}"
    figure, axes = new_axes(words, "c", "mean reward", (SIZE[0], 3.9))
    swept = [
        row
        for row in drop_repeated_taus(rows)
        if row["scenario"] == "offline" and row["purpose"] == "sweep" and is_number(row["mean"]) and is_number(row["c"])
    ]
    dashes: dict[str, int] = {}
    for one in offline_results(swept):
        same = [r for r in swept if (r["algorithm"], tau_of(r)) == (one.algorithm, tau_of(one.row))]
        x, y = zip(*sorted({(row["c"], row["mean"]) for row in same}), strict=True)
        number = dashes[one.algorithm] = dashes.get(one.algorithm, -1) + 1
        strong = one.algorithm == "combined" and number == 0
        add_points(axes, x, y, [f"{one.title}: {mean:.2f} at c {exploration(c)}" for c, mean in zip(x, y, strict=True)])
        axes.plot(
            x, y, color=PLANNERS.get(one.algorithm, OTHERS[3]), marker=MARKERS.get(one.algorithm, "o"), label=one.title,
            linestyle=(0, (5, 2)) if one.algorithm in names.PLAIN else DASHES[number % len(DASHES)],
            linewidth=2.2 if strong else 1.4, markersize=6, zorder=3 if strong else 2,
        )  # fmt: skip
    axes.set_xscale("log")
    values = sorted({row["c"] for row in swept} or set(EXPLORATION))
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exploration(value)))
    legend_below(axes)
    return figure


Levels = dict[float, dict[str, Entry]]
"""The row of each planner, by level and planner."""


def heading_of(title: str, worlds: Mapping[str, Levels]) -> str:
    """The title of a figure, with what its rows were measured under. Trust search always has rules of its own."""
    rows = [row for points in worlds.values() for found in points.values() for row in found.values()]
    scenarios = sorted({row["scenario"] for row in rows})
    rules = [names.rules_title(one) for one in dict.fromkeys(row["rules"] for row in rows) if one != "trust"]
    return ", ".join([title, " and ".join(scenarios), *rules])


def against_level(
    worlds: Mapping[str, Levels], axis: str, logarithmic: bool, legend: bool = True, heading: str = ""
) -> Figure:
    """Reward against a level, with a panel for each world, by its title, a heading and one legend for all."""
    columns = min(len(worlds), 2)
    lines = -(-len(worlds) // columns)
    size = (SIZE[0], 3.9) if columns == 1 else (8.2, 2.9 * lines + 0.5)
    size = (size[0], size[1] + 0.4 * bool(heading))
    figure = Figure(figsize=size if legend else (size[0], size[1] - 0.5), layout="constrained", facecolor=PAPER)
    if engine := figure.get_layout_engine():
        engine.set(h_pad=0.1, w_pad=0.1)  # type: ignore[call-arg]
    if heading:
        figure.suptitle(heading, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK, parse_math=False)
    grid = figure.subplots(lines, columns, squeeze=False)
    for place, (title, points) in enumerate(worlds.items()):
        panel = grid[place // columns, place % columns]
        below = place + columns >= len(worlds)
        dress(panel, title, axis if below else "", "mean reward, 95% interval" if place % columns == 0 else "")
        _draw_levels(panel, points, logarithmic)
    for panel in grid.flat[len(worlds) :]:
        panel.set_visible(False)
    if legend:
        found = {
            label: handle
            for panel in grid.flat
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            list(found.values()), list(found), loc="outside lower center", ncols=min(4, 2 * columns), fontsize=8.5,
            frameon=False, labelcolor=INK,
        )  # fmt: skip
    return figure


def _draw_levels(axes: Axes, points: Levels, logarithmic: bool) -> None:
    for planner in dict.fromkeys(planner for found in points.values() for planner in found):
        rows = {level: found[planner] for level, found in points.items() if planner in found}
        mean = [row["mean"] for row in rows.values()]
        lengths = np.array([error_lengths(row) for row in rows.values()])[:, :, 0].T
        draw_band(
            axes, list(rows), mean, mean - lengths[0], mean + lengths[1], color=PLANNERS.get(planner, OTHERS[3]),
            marker=MARKERS.get(planner, "o"), markersize=6, label=names.planner_title(planner, "true"),
        )  # fmt: skip
    if logarithmic:
        axes.set_xscale("log")
        use_log_scale(axes.xaxis)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def online(curves: Sequence[Entry], rows: Sequence[Entry], title: str, rules: str, quantity: str) -> Figure:
    """Learning curves: reward or steps to the goal, mean and standard deviation, with offline baselines.

    They are drawn over real steps, of which all runs have the same number; over episodes if the steps are not stored.
    """
    chosen = [curve for curve in curves if curve["quantity"] == quantity and curve["episode"]]
    what = "reward" if quantity == "reward" else "steps to the goal"
    known = all(curve.get("real_steps") for curve in chosen)
    height = SIZE[1] + 0.17 * (len(chosen) // 2) + 0.2
    figure, axes = new_axes(
        f"{title}, online, {names.rules_title(rules)}", "real steps" if known else "episode", what, (SIZE[0], height)
    )
    others, dashes, taken = itertools.cycle(OTHERS), itertools.cycle(DASHES[1:]), set()
    least, most = possible(rows[0]["domain"] if rows else "", quantity)
    for curve in chosen:
        algorithm = curve["algorithm"]
        plain = curve["learner"].startswith("transition_") or algorithm in taken or algorithm not in PLANNERS
        colour = next(others) if plain else PLANNERS[algorithm]
        taken |= set() if plain else {algorithm}
        mean, std = np.asarray(curve["mean"], np.float64), np.asarray(curve["std"], np.float64)
        low, high = np.clip(mean - std, max(least, 0.0), most), np.clip(mean + std, least, most)
        label = names.planner_title(algorithm, curve["learner"])
        dash, x = next(dashes) if plain else "-", curve["real_steps" if known else "episode"]
        draw_band(axes, x, mean, low, high, color=colour, label=label, linestyle=dash)
    for one in offline_results(rows):
        value = one.row["mean"] if quantity == "reward" else one.row["steps"]
        if one.algorithm in (*names.PLAIN, "combined") and is_number(value):
            dash = (0, (1, 1.5)) if one.algorithm == "combined" else (0, (6, 3))
            label = f"{one.title}, offline"
            axes.axhline(value, color=PLANNERS[one.algorithm], linestyle=dash, linewidth=1.3, label=label)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    legend_below(axes)
    return figure
