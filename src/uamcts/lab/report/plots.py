"""The paper's figures, drawn again from what was measured.

Every function returns a `Figure` and leaves Matplotlib's state alone. `save` writes a figure as PNG and SVG, the same
bytes for the same numbers. A figure has three colours of its own besides those of its data, INK, PAPER and LINE; a page
that shows the SVG puts its own in their places.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from uamcts import names
from uamcts.lab.analysis.results import Entry, known, once_a_tau, shown, shown_tau
from uamcts.lab.experiments.paper import IN_WORDS
from uamcts.presets import EXPLORATION
from uamcts.runtime.atomic import write_whole

INK, PAPER, LINE = "#222222", "#ffffff", "#d9d9d9"
COLOURS = {
    "true": "#009e73",
    "corrupted": "#d55e00",
    "backpropagation": "#cc79a7",
    "selection": "#e69f00",
    "expansion": "#56b4e9",
    "simulation": "#8a8a8a",
    "combined": "#2a7fbf",
    "trust": "#9467bd",
}
"""Okabe and Ito's palette, told apart also by the colour-blind; its blue a little lighter, for dark pages."""
OTHERS = ("#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a", "#b59f00", "#7f5539")
MARKERS = {
    "true": "s",
    "corrupted": "X",
    "backpropagation": "v",
    "selection": "^",
    "expansion": "D",
    "simulation": "P",
    "combined": "o",
    "trust": "*",
}
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (4, 1.2, 1, 1.2)))
SIZE = (5.2, 3.4)
POINTS = 400
"""Points of a line, at most: more cannot be seen."""


def name(experiment: str) -> str:
    """An experiment or a domain in words."""
    return IN_WORDS.get(experiment, experiment.replace("_", " "))


def exploration(c: Any) -> str:
    """c as it is written: √2 and not 1.4142."""
    if not known(c):
        return "?"
    return "√2" if math.isclose(c, math.sqrt(2.0), rel_tol=1e-4) else f"{c:g}"


def who(algorithm: str, learner: str) -> str:
    """Who is planning, in a figure of several planners."""
    return names.planner_title(algorithm, learner)


def save(figure: Figure, folder: Path, stem: str) -> str:
    """Writes `stem`.png and `stem`.svg into the folder and returns the SVG."""
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": stem}):
        drawn = {}
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            nothing = ("Software",) if kind == "png" else ("Date", "Creator", "Format", "Type")
            figure.savefig(buffer, format=kind, dpi=150, metadata=dict.fromkeys(nothing))
            drawn[kind] = buffer.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in drawn.items():
        write_whole(folder / f"{stem}.{kind}", content)
    return drawn["svg"].decode()


def _axes(title: str, xlabel: str, ylabel: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    axes = figure.add_subplot(facecolor=PAPER)
    axes.set_title(title, color=INK, fontsize=11, loc="left", pad=9, parse_math=False, wrap=True)
    axes.set_xlabel(xlabel, color=INK, fontsize=10)
    axes.set_ylabel(ylabel, color=INK, fontsize=10)
    axes.tick_params(colors=INK, labelsize=9.5)
    axes.grid(axis="y", color=LINE, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    return figure, axes


def _legend(axes: Axes, **options: Any) -> None:
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        settings: dict[str, Any] = {"fontsize": 8.5, "frameon": False, "labelcolor": INK, **options}
        axes.legend(**settings)


def _below(axes: Axes, columns: int = 2) -> None:
    """The legend under the figure, where it hides no line."""
    _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)


def _distance(row: Entry) -> list[list[float]]:
    """The 95% interval as lengths below and above the mean, [2, 1]; nothing where there is none."""
    if not row["ci95"] or not all(map(known, row["ci95"])):
        return [[0.0], [0.0]]
    low, high = row["ci95"]
    return [[max(row["mean"] - low, 0.0)], [max(high - row["mean"], 0.0)]]


def offline(rows: Sequence[Entry], title: str, rules: str) -> Figure:
    """The paper's offline figure: a bar an algorithm at its best c, and the two baselines as dashed lines.

    Bars show fresh seeds where there are any; the sweep's maximum, which chose c, is a small mark beside them.
    """
    chosen = shown(rows)
    size = (max(SIZE[0], 0.74 * len(chosen)), SIZE[1])
    figure, axes = _axes(f"{title}, offline, {names.rules_title(rules)}", "", "mean reward, 95% interval", size)
    label: str | None = "bars: fresh seeds; diamonds: maximum of the sweep that chose c"
    highest = max((abs(one.row["mean"]) for one in chosen), default=0.0)
    for place, one in enumerate(chosen):
        colour, mean = COLOURS.get(one.algorithm, OTHERS[3]), one.row["mean"]
        axes.bar(place, mean, width=0.66, color=colour)
        axes.errorbar(place, mean, yerr=_distance(one.row), color=INK, capsize=4, linewidth=1.2)
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
    _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.24))
    return figure


def _below_bar(algorithm: str, tau: float | None, c: Any) -> str:
    """What stands under a bar."""
    settings = [f"c = {exploration(c)}", *([] if tau is None else [f"tau = {tau:g}"])]
    return "\n".join([names.short_title(algorithm), *settings])


def against_c(rows: Sequence[Entry], title: str, rules: str) -> Figure:
    """Reward against c in the sweep, a line an algorithm and tau."""
    words = f"{title}, reward against c, {names.rules_title(rules)}"
    figure, axes = _axes(words, "c", "mean reward", (SIZE[0], 3.9))
    swept = [
        row
        for row in once_a_tau(rows)
        if row["scenario"] == "offline" and row["purpose"] == "sweep" and known(row["mean"]) and known(row["c"])
    ]
    dashes: dict[str, int] = {}
    for one in shown(swept):
        same = [r for r in swept if (r["algorithm"], shown_tau(r)) == (one.algorithm, shown_tau(one.row))]
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
    _below(axes)
    return figure


def against_level(points: dict[float, dict[str, Entry]], title: str, axis: str, logarithmic: bool) -> Figure:
    """Reward against a level, a line a planner; `points` holds the row of each planner at each level."""
    figure, axes = _axes(title, axis, "mean reward, 95% interval", (SIZE[0], 3.9))
    for planner in dict.fromkeys(planner for found in points.values() for planner in found):
        rows = {level: found[planner] for level, found in points.items() if planner in found}
        mean = [row["mean"] for row in rows.values()]
        lengths = np.array([_distance(row) for row in rows.values()])[:, :, 0].T
        _band(
            axes, list(rows), mean, mean - lengths[0], mean + lengths[1], color=COLOURS.get(planner, OTHERS[3]),
            marker=MARKERS.get(planner, "o"), markersize=6, label=who(planner, "true"),
        )  # fmt: skip
    if logarithmic:
        axes.set_xscale("log")
        _logarithmic(axes.xaxis)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    _below(axes)
    return figure


def _band(axes: Axes, x: Any, middle: Any, low: Any, high: Any, **line: Any) -> None:
    """A line and, around it, its band."""
    every = slice(None, None, max(1, len(x) // POINTS))
    x, middle, low, high = (np.asarray(part, np.float64)[every] for part in (x, middle, low, high))
    axes.plot(x, middle, **{"linewidth": 1.8, **line})
    axes.fill_between(x, low, high, color=line["color"], alpha=0.18, linewidth=0)


def online(curves: Sequence[Entry], rows: Sequence[Entry], title: str, rules: str, quantity: str) -> Figure:
    """Learning: reward (or steps to the goal) over episodes, mean and standard deviation, beside offline baselines."""
    chosen = [curve for curve in curves if curve["quantity"] == quantity and curve["episode"]]
    what = "reward" if quantity == "reward" else "steps to the goal"
    height = SIZE[1] + 0.17 * (len(chosen) // 2) + 0.2
    figure, axes = _axes(f"{title}, online, {names.rules_title(rules)}", "episode", what, (SIZE[0], height))
    others, dashes, taken = itertools.cycle(OTHERS), itertools.cycle(DASHES[1:]), set()
    for curve in chosen:
        algorithm = curve["algorithm"]
        plain = curve["learner"].startswith("transition_") or algorithm in taken or algorithm not in COLOURS
        colour = next(others) if plain else COLOURS[algorithm]
        taken |= set() if plain else {algorithm}
        mean, std = np.asarray(curve["mean"], np.float64), np.asarray(curve["std"], np.float64)
        low = np.maximum(mean - std, 0.0)
        label = who(algorithm, curve["learner"])
        dash = next(dashes) if plain else "-"
        _band(axes, curve["episode"], mean, low, mean + std, color=colour, label=label, linestyle=dash)
    for one in shown(rows):
        value = one.row["mean"] if quantity == "reward" else one.row["steps"]
        if one.algorithm in (*names.PLAIN, "combined") and known(value):
            dash = (0, (1, 1.5)) if one.algorithm == "combined" else (0, (6, 3))
            label = f"{one.title}, offline"
            axes.axhline(value, color=COLOURS[one.algorithm], linestyle=dash, linewidth=1.3, label=label)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    _below(axes)
    return figure


def _logarithmic(axis: Any) -> None:
    low, high = axis.get_view_interval()
    steps = (1.0,) if high > 300 * low > 0 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def bandit_case(case: Entry) -> Figure:
    """Regret over time with its intervals, and Theorem 1's bounds, both axes logarithmic."""
    figure, axes = _axes(case["title"], "pulls", "regret in real means", (SIZE[0], 3.8))
    kinds = (
        ("ucb", "UCB", "corrupted"),
        ("ua_ucb", "UA-UCB", "combined"),
        ("estimated", "UA-UCB, delta estimated", "expansion"),
    )
    for kind, label, colour in kinds:
        if case[kind]:
            found = case[kind]
            _band(axes, case["steps"], found["mean"], found["low"], found["high"], color=COLOURS[colour], label=label)
    for bound, label, colour in (
        ("ucb_bound", "UCB's bound", "corrupted"),
        ("ua_ucb_bound", "UA-UCB's bound", "combined"),
    ):
        points = [(n, value) for n, value in zip(case["steps"], case[bound], strict=False) if known(value)]
        if points:
            dash = (0, (5, 3)) if bound == "ucb_bound" else (0, (1, 1.5))
            axes.plot(*zip(*points, strict=True), color=COLOURS[colour], linestyle=dash, linewidth=1.6, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _logarithmic(axes.xaxis)
    _logarithmic(axes.yaxis)
    _below(axes)
    return figure


def bandit_against_delta(found: Entry) -> Figure:
    """Regret against delta; the theorem's threshold marked, filled points where regret grew linearly."""
    title = f"Regret after {found['steps']:,} pulls against delta, {found['family']} arms"
    figure, axes = _axes(title, "delta", "regret in real means", (SIZE[0], 3.8))
    for kind, label, colour in (("ucb", "UCB", "corrupted"), ("ua_ucb", "UA-UCB", "combined")):
        one, marker = found[kind], "s" if kind == "ucb" else "o"
        _band(axes, found["delta"], one["mean"], one["low"], one["high"], color=COLOURS[colour], label=label)
        for delta, mean, growth in zip(found["delta"], one["mean"], one.get("kind", []), strict=False):
            face = COLOURS[colour] if growth == "linear" else PAPER
            axes.plot(delta, mean, marker=marker, color=COLOURS[colour], markerfacecolor=face, markersize=6)
    if known(found["threshold"]):
        label = f"threshold {found['threshold']:.3f}"
        axes.axvline(found["threshold"], color=INK, linestyle=(0, (5, 3)), linewidth=1.2, label=label)
    axes.set_yscale("log")
    _logarithmic(axes.yaxis)
    _below(axes)
    return figure


def slug(parts: Iterable[str]) -> str:
    """A file's name made of words."""
    return "_".join("".join(letter if letter.isalnum() else "_" for letter in part) for part in parts if part)
