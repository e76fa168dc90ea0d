"""The paper's figures, drawn from a summary. Every function returns a `Figure` and leaves Matplotlib's state alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from uamcts import names
from uamcts.colours import OTHERS
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.selection import drop_repeated_taus, is_number, offline_results, tau_of
from uamcts.lab.report.style import (
    COLOURS,
    DASHES,
    INK,
    MARKERS,
    PAPER,
    SIZE,
    add_legend,
    draw_band,
    error_lengths,
    exploration,
    legend_below,
    new_axes,
    use_log_scale,
)
from uamcts.presets import EXPLORATION


def offline(rows: Sequence[Entry], title: str, rules: str) -> Figure:
    """The paper's offline figure: a bar for each algorithm at its best c, and the two baselines as dashed lines.

    Bars show fresh seeds if there are any; a small mark next to them shows the maximum of the sweep that chose c.
    """
    chosen = offline_results(rows)
    size = (max(SIZE[0], 0.74 * len(chosen)), SIZE[1])
    figure, axes = new_axes(f"{title}, offline, {names.rules_title(rules)}", "", "mean reward, 95% interval", size)
    label: str | None = "bars: fresh seeds; diamonds: maximum of the sweep that chose c"
    highest = max((abs(one.row["mean"]) for one in chosen), default=0.0)
    for place, one in enumerate(chosen):
        colour, mean = COLOURS.get(one.algorithm, OTHERS[3]), one.row["mean"]
        axes.bar(place, mean, width=0.66, color=colour)
        axes.errorbar(place, mean, yerr=error_lengths(one.row), color=INK, capsize=4, linewidth=1.2)
        if abs(mean) <= 0.02 * highest:  # a bar that cannot be seen
            axes.annotate(f"{mean:.2g}", (place, mean), (0, 4), textcoords="offset points", ha="center", color=INK)
        if one.algorithm in names.PLAIN:
            axes.axhline(mean, color=colour, linestyle=(0, (5, 3)), linewidth=1.2, zorder=1.5)
        if one.sweep is not None:
            axes.plot(
                place + 0.22, one.sweep["mean"], color=INK, marker="D", markersize=4, markerfacecolor=PAPER,
                linestyle="none", label=label, zorder=3,
            )  # fmt: skip
            label = None
    axes.set_xticks(range(len(chosen)), [_below_bar(one.algorithm, one.tau, one.row["c"]) for one in chosen])
    axes.tick_params(axis="x", length=0, labelsize=8 if len(chosen) < 6 else 7)
    add_legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.24))
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
        axes.plot(
            x, y, color=COLOURS.get(one.algorithm, OTHERS[3]), marker=MARKERS.get(one.algorithm, "o"), label=one.title,
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


def against_level(points: dict[float, dict[str, Entry]], title: str, axis: str, logarithmic: bool) -> Figure:
    """Reward against a level, with a line for each planner; `points` holds the row of each planner at each level."""
    figure, axes = new_axes(title, axis, "mean reward, 95% interval", (SIZE[0], 3.9))
    for planner in dict.fromkeys(planner for found in points.values() for planner in found):
        rows = {level: found[planner] for level, found in points.items() if planner in found}
        mean = [row["mean"] for row in rows.values()]
        lengths = np.array([error_lengths(row) for row in rows.values()])[:, :, 0].T
        draw_band(
            axes, list(rows), mean, mean - lengths[0], mean + lengths[1], color=COLOURS.get(planner, OTHERS[3]),
            marker=MARKERS.get(planner, "o"), markersize=6, label=names.planner_title(planner, "true"),
        )  # fmt: skip
    if logarithmic:
        axes.set_xscale("log")
        use_log_scale(axes.xaxis)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    legend_below(axes)
    return figure


def online(curves: Sequence[Entry], rows: Sequence[Entry], title: str, rules: str, quantity: str) -> Figure:
    """Learning curves: reward or steps to the goal over episodes, mean and standard deviation, with baselines."""
    chosen = [curve for curve in curves if curve["quantity"] == quantity and curve["episode"]]
    what = "reward" if quantity == "reward" else "steps to the goal"
    height = SIZE[1] + 0.17 * (len(chosen) // 2) + 0.2
    figure, axes = new_axes(f"{title}, online, {names.rules_title(rules)}", "episode", what, (SIZE[0], height))
    others, dashes, taken = itertools.cycle(OTHERS), itertools.cycle(DASHES[1:]), set()
    for curve in chosen:
        algorithm = curve["algorithm"]
        plain = curve["learner"].startswith("transition_") or algorithm in taken or algorithm not in COLOURS
        colour = next(others) if plain else COLOURS[algorithm]
        taken |= set() if plain else {algorithm}
        mean, std = np.asarray(curve["mean"], np.float64), np.asarray(curve["std"], np.float64)
        low = np.maximum(mean - std, 0.0)
        label = names.planner_title(algorithm, curve["learner"])
        dash = next(dashes) if plain else "-"
        draw_band(axes, curve["episode"], mean, low, mean + std, color=colour, label=label, linestyle=dash)
    for one in offline_results(rows):
        value = one.row["mean"] if quantity == "reward" else one.row["steps"]
        if one.algorithm in (*names.PLAIN, "combined") and is_number(value):
            dash = (0, (1, 1.5)) if one.algorithm == "combined" else (0, (6, 3))
            label = f"{one.title}, offline"
            axes.axhline(value, color=COLOURS[one.algorithm], linestyle=dash, linewidth=1.3, label=label)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    legend_below(axes)
    return figure
