"""Figures of the corrupted bandits: regret over time and against delta."""

from __future__ import annotations

from matplotlib.figure import Figure

from uamcts.colours import INK, PAPER, PLANNERS
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.selection import is_number
from uamcts.lab.report.style import SIZE, draw_band, legend_below, new_axes, use_log_scale


def regret_over_time(case: Entry) -> Figure:
    """Regret over time with its intervals and Theorem 1's bounds; both axes are logarithmic."""
    figure, axes = new_axes(case["title"], "pulls", "regret in real means", (SIZE[0], 3.8))
    kinds = (
        ("ucb", "UCB", "corrupted"),
        ("ua_ucb", "UA-UCB", "combined"),
        ("estimated", "UA-UCB, delta estimated", "expansion"),
    )
    for kind, label, colour in kinds:
        if case[kind]:
            found = case[kind]
            draw_band(
                axes, case["steps"], found["mean"], found["low"], found["high"], color=PLANNERS[colour], label=label
            )
    for bound, label, colour in (
        ("ucb_bound", "UCB's bound", "corrupted"),
        ("ua_ucb_bound", "UA-UCB's bound", "combined"),
    ):
        points = [(n, value) for n, value in zip(case["steps"], case[bound], strict=False) if is_number(value)]
        if points:
            dash = (0, (5, 3)) if bound == "ucb_bound" else (0, (1, 1.5))
            axes.plot(*zip(*points, strict=True), color=PLANNERS[colour], linestyle=dash, linewidth=1.6, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    use_log_scale(axes.xaxis)
    use_log_scale(axes.yaxis)
    legend_below(axes)
    return figure


def regret_against_delta(found: Entry) -> Figure:
    """Regret against delta, with the theorem's threshold; points are filled where regret grew linearly."""
    title = f"Regret after {found['steps']:,} pulls against delta, {found['family']} arms"
    figure, axes = new_axes(title, "delta", "regret in real means", (SIZE[0], 3.8))
    for kind, label, colour in (("ucb", "UCB", "corrupted"), ("ua_ucb", "UA-UCB", "combined")):
        one, marker = found[kind], "s" if kind == "ucb" else "o"
        wide = {"linewidth": 4.5, "alpha": 0.55} if kind == "ucb" else {}  # it may lie under the other one
        draw_band(
            axes, found["delta"], one["mean"], one["low"], one["high"], color=PLANNERS[colour], label=label, **wide
        )
        for delta, mean, growth in zip(found["delta"], one["mean"], one.get("kind", []), strict=False):
            face = PLANNERS[colour] if growth == "linear" else PAPER
            axes.plot(delta, mean, marker=marker, color=PLANNERS[colour], markerfacecolor=face, markersize=6)
    if is_number(found["threshold"]):
        label = f"threshold {found['threshold']:.3f}"
        axes.axvline(found["threshold"], color=INK, linestyle=(0, (5, 3)), linewidth=1.2, label=label)
    axes.set_yscale("log")
    use_log_scale(axes.yaxis)
    legend_below(axes)
    return figure
