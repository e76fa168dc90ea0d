"""Sections of the report about a single experiment: its figures, its tables and its settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from uamcts import names
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.results import Summary
from uamcts.lab.analysis.selection import is_number, offline_results, under_rules
from uamcts.lab.experiments.paper import EXPERIMENTS
from uamcts.lab.report import page, plots, style
from uamcts.lab.report.page import Block, Cell, Fold, Gallery, Heading, Pairs, Paragraph, Table
from uamcts.presets import BEST_C, BUDGETS, DISCOUNTS

PAPER_MEAN = {
    "space_invaders": {"true": 18.4, "corrupted": 16.3, "combined": 23.8},
    "freeway": {"combined": 0.9},
}
"""The mean rewards that the paper states as numbers."""
WORDS = {"true": "U is known", "fresh": "fresh seeds"}
"""Words for what a summary stores as learner and purpose."""


def join_words(words: list[str]) -> str:
    """An enumeration like "one, two and three"."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def count_runs(count: float) -> str:
    """The words "1 run" or "2 runs"."""
    return f"{count:g} run" + ("" if count == 1 else "s")


def select_entries(rows: list[Entry], experiment: str, domain: str, rules: str | None = None) -> list[Entry]:
    """The rows or curves of an experiment, under a rule set if one is given; a curve may lack its domain."""
    own = [e for e in rows if e["experiment"] == experiment and e.get("domain", domain) == domain]
    return own if rules is None else under_rules(own, rules)


def anchor_of(experiment: str) -> str:
    """The anchor of an experiment's section, with which the names of its figures begin."""
    return style.slug([experiment])


def is_papers(experiment: str) -> bool:
    """Whether the paper has this experiment, so that its numbers can be compared with ours."""
    return experiment in EXPERIMENTS


def title_of(found: Summary, experiment: str, domain: str) -> str:
    """The title of an experiment; a user's own is named after its domain and the options that differ."""
    if is_papers(experiment):
        return style.title_of(experiment)
    declared = found.declarations().get(experiment, {})
    changed = {**_pairs(declared.get("options")), **_budget(declared)}
    words = [f"{key} {describe(value)}" for key, value in changed.items()]
    return ", ".join([style.title_of(domain), *words, "own experiment"])


def _pairs(value: object) -> dict[str, Any]:
    """Names and values that JSON stores as a list of pairs."""
    pairs = value if isinstance(value, list) else []
    return {str(pair[0]): pair[1] for pair in pairs if isinstance(pair, list) and len(pair) == 2}


def _budget(declared: Entry) -> dict[str, Any]:
    """The search budget of an experiment where it differs from the paper's."""
    parts = declared.get("offline")
    parts = parts if isinstance(parts, list) else []
    return {k: v for part in parts if isinstance(part, dict) for k, v in _pairs(part.get("budget")).items()}


BROKEN = {
    "space_invaders": "The real cannon jams in some columns; the simulator believes that it fires everywhere.",
    "freeway": "In some rows the real player drifts upwards while it waits; in the simulator it stays.",
    "breakout": "The real paddle has holes in some columns; the simulator believes that it is whole.",
    "two_way": "One of two ways to the goal is blocked; the simulator believes that it is open.",
    "two_way_icy": "One way to the goal is blocked and the other one icy; the simulator knows neither.",
    "hidden_obstacles": "The real grid has obstacles; in the simulator it is empty.",
    "slippery": "On ice every move slips to the right-hand side; the simulator knows no ice.",
    "shortcut": "There is a door in the wall; the simulator takes it for wall.",
    **dict.fromkeys(
        ("frozen_lake", "cliff", "bridge"), "Moves really slip sideways more or less often than the simulator believes."
    ),
}
"""What is broken in each domain."""


def experiment_section(found: Summary, experiment: str, domain: str, folder: Path) -> Iterator[Block]:
    """The section of an experiment. Its figures are also written into `folder`."""
    rows, curves = select_entries(found.rows, experiment, domain), select_entries(found.curves, experiment, domain)
    title = title_of(found, experiment, domain)
    yield Heading(2, title, anchor_of(experiment))
    if domain in BROKEN:
        yield Paragraph(BROKEN[domain])
    absent = _missing_parts(found, experiment, rows, curves)
    if absent:
        yield Paragraph(f"Not measured here: {join_words(absent)}.", "soft")
    films = _films(found, experiment)
    tables: list[Block] = []
    shown = found.rule_sets(experiment)
    for rules in shown:
        own, own_curves = (select_entries(entries, experiment, domain, rules) for entries in (rows, curves))
        if own or own_curves:
            if len(shown) > 1:
                yield Heading(3, f"Rules: {names.rules_title(rules)}")
            first, more = _figures(own, own_curves, experiment, title, rules, folder)
            if first or films:
                yield Gallery("figures", [*first[:1], *films, *first[1:]])
            films = []
            tables += [Gallery("figures", more)] if more else []
            tables += _results(own, experiment, domain, rules)
    tables += [Heading(3, "All rows"), _rows(rows, title)] if rows else []
    yield Fold(
        "Sweep, tables and settings" if rows else "Settings",
        [*tables, Pairs(_settings(found, rows, curves, experiment, domain))],
    )


def _missing_parts(found: Summary, experiment: str, rows: list[Entry], curves: list[Entry]) -> list[str]:
    """What an experiment of the paper has and this folder lacks; nothing for a user's own experiment."""
    if not is_papers(experiment):
        return []
    scenarios = {row["scenario"] for row in rows} | ({"online"} if curves else set())
    absent = [f"the {scenario} scenario" for scenario in ("offline", "online") if scenario not in scenarios]
    titles = {"released": "the rules of the authors' program", "pseudocode": "the rules as printed"}
    absent += [title for rules, title in titles.items() if rules not in found.rule_sets(experiment)]
    purposes = {row["purpose"] for row in rows}
    return absent + (["fresh seeds at the chosen c"] if "sweep" in purposes and "fresh" not in purposes else [])


def _figures(
    rows: list[Entry], curves: list[Entry], experiment: str, title: str, rules: str, folder: Path
) -> tuple[list[page.Picture], list[page.Picture]]:
    """The figures of a rule set, like the paper's, and those that a reader opens."""
    drawn: list[page.Picture] = []
    more: list[page.Picture] = []

    def draw(figure: Figure, kind: str, caption: str, where: list[page.Picture] = drawn) -> None:
        stem = style.slug([anchor_of(experiment), kind, rules])
        where.append(page.drawing(style.save(figure, folder, stem), stem, caption))

    chosen = offline_results(rows)
    if chosen:
        caption = (
            "Offline, with known uncertainty: mean reward at the best c, which is printed below each bar. "
            "Dashed: planning in the true world and in the wrong simulator."
        )
        if any(one.sweep for one in chosen):
            caption += (
                " Bars: fresh seeds. Diamonds: the maximum of the sweep that chose c, on its own seeds; a maximum "
                "is too high on average."
            )
        draw(plots.offline(rows, title, rules), "offline", caption)
    swept = [(row["algorithm"], row["c"]) for row in rows if row["purpose"] == "sweep" and is_number(row["c"])]
    if len(set(swept)) > len({algorithm for algorithm, _ in swept}):
        caption = "The whole sweep: mean reward against the exploration constant c."
        draw(plots.against_c(rows, title, rules), "c", caption, more)
    for quantity, what in (("steps", "steps to the goal, fewer are better"), ("reward", "reward")):
        if any(curve["quantity"] == quantity and curve["episode"] for curve in curves):
            caption = (
                f"Online, with learned uncertainty: {what}; moving average of 50 episodes, mean and standard deviation "
                "over runs. Dashed horizontal lines: offline."
            )
            draw(plots.online(curves, rows, title, rules, quantity), f"online_{quantity}", caption)
    return drawn, more


def _results(rows: list[Entry], experiment: str, domain: str, rules: str) -> Iterator[Block]:
    """Our numbers at the best c, next to the paper's if it has the experiment."""
    chosen = offline_results(rows)
    if not chosen:
        return
    papers = is_papers(experiment)
    heads = ["algorithm", "mean reward", "95% interval", "c", "runs", "sweep's maximum"]
    heads += ["the paper's mean", "the paper's c"] if papers else []
    lines = []
    for one in chosen:
        line = [Cell(one.title), page.number(one.row["mean"]), page.interval(one.row["ci95"]), _c(one.row["c"])]
        line += [page.number(one.row["runs"]), page.number(one.sweep["mean"] if one.sweep else None)]
        if papers:
            line += [page.number(PAPER_MEAN.get(experiment, {}).get(one.algorithm), 1)]
            line += [_c(BEST_C.get(domain, {}).get(one.algorithm))]
        lines.append(line)
    title = f"Results, {names.rules_title(rules)}" + (", next to the paper's" if papers else "")
    yield Heading(3, title)
    yield Table(title, heads, lines)


def _c(value: object) -> Cell:
    return Cell(style.exploration(value), float(value), "number") if is_number(value) else page.number(None)


def _films(found: Summary, experiment: str) -> list[page.Picture]:
    captions = {
        "corrupted": "A typical episode of MCTS in the wrong simulator.",
        "combined": "A typical episode of UA-MCTS in the same simulator.",
    }
    return [
        page.film(found.gifs[f"{experiment}_{algorithm}"], caption)
        for algorithm, caption in captions.items()
        if f"{experiment}_{algorithm}" in found.gifs
    ]


def _word(stored: str) -> str:
    return WORDS.get(stored) or stored.replace("_", " ")


def _rows(rows: list[Entry], label: str) -> Table:
    heads = ("scenario", "algorithm", "learner", "rules", "c", "tau", "purpose", "runs", "episodes", "mean",
             "95% interval", "std", "IQM", "IQM 95% interval", "steps", "goal share", "best c")  # fmt: skip
    lines = [
        [
            Cell(row["scenario"], kind="short"),
            Cell(names.title(row["algorithm"]), kind="short"),
            Cell(_word(row["learner"]), kind="short"),
            Cell(names.rules_title(row["rules"]), kind="short"),
            _c(row["c"]),
            Cell(f"{row['tau']:g}", row["tau"], "number") if is_number(row["tau"]) else page.number(None),
            Cell(_word(row["purpose"])),
            *(page.number(row[field]) for field in ("runs", "episodes", "mean")),
            page.interval(row["ci95"]),
            *(page.number(row[field]) for field in ("std", "iqm")),
            page.interval(row["iqm_ci95"]),
            page.number(row["steps"], 1),
            page.number(row["goal_share"]),
            Cell("★" if row["best"] else "", int(bool(row["best"]))),
        ]
        for row in rows
    ]
    return Table(f"{label}: every row", heads, lines, kind="rows")


def _settings(found: Summary, rows: list[Entry], curves: list[Entry], experiment: str, domain: str) -> dict[str, str]:
    """The settings of an experiment, from its rows and from what the command recorded."""
    declared = found.declarations().get(experiment, {})
    settings = {
        "domain": style.title_of(domain),
        "rule sets": ", ".join(map(names.rules_title, found.rule_sets(experiment))),
    }
    budget = {"gamma": DISCOUNTS.get(domain, 1), **BUDGETS.get(domain, {}), **_budget(declared)}
    if {"iterations", "rollouts", "depth"} <= budget.keys():
        settings["budget"] = f"N_I {budget['iterations']}, N_S {budget['rollouts']}, D_S {budget['depth']}"
        settings["budget"] += f", gamma {budget['gamma']:g}{', on graphs' * bool(budget.get('graph'))}"
    options = _pairs(declared.get("options"))
    if options:
        settings["options of the domain"] = describe(options)
    for scenario in ("offline", "online"):
        of = [row for row in rows if row["scenario"] == scenario]
        if of:
            runs = sorted({row["runs"] for row in of if is_number(row["runs"])})
            c = sorted({row["c"] for row in of if is_number(row["c"])})
            tau = sorted({row["tau"] for row in of if is_number(row["tau"])})
            settings[scenario] = "; ".join(
                [
                    "runs " + ", ".join(f"{value:g}" for value in runs),
                    "c " + ", ".join(map(style.exploration, c)),
                    ("tau " if scenario == "offline" else "tau at the end ") + ", ".join(f"{value:g}" for value in tau),
                ]
            )
    learners = dict.fromkeys(entry["learner"] for entry in (*rows, *curves) if entry["learner"] not in ("true", "none"))
    if learners:
        settings["learners"] = ", ".join(learner.replace("_", " ") for learner in learners)
    return settings


def describe(value: object) -> str:
    """A recorded setting as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {describe(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(describe, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
