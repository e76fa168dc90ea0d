"""The report's sections: an experiment with its figures and tables, and the corrupted bandits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uamcts import names
from uamcts.lab.analysis.results import Entry, Summary, known, shown, under
from uamcts.lab.experiments.paper import EXPERIMENTS
from uamcts.lab.report import page, plots
from uamcts.lab.report.page import Cell
from uamcts.presets import BEST_C, BUDGETS

PAPER_MEAN = {
    "space_invaders": {"true": 18.4, "corrupted": 16.3, "combined": 23.8},
    "freeway": {"combined": 0.9},
}
"""The mean rewards that the paper gives as numbers."""


def listed(words: list[str]) -> str:
    """One, two and three."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def in_runs(count: float) -> str:
    """1 run, 2 runs."""
    return f"{count:g} run" + ("" if count == 1 else "s")


def entries_of(rows: list[Entry], experiment: str, domain: str, rules: str | None = None) -> list[Entry]:
    """The rows or curves of an experiment; a curve need not name its domain."""
    own = [e for e in rows if e["experiment"] == experiment and e.get("domain", domain) == domain]
    return own if rules is None else under(own, rules)


def anchor_of(experiment: str) -> str:
    """The name of an experiment's section, and the beginning of its figures' names."""
    return plots.slug([experiment])


def is_papers(experiment: str) -> bool:
    """Whether the paper has this experiment, so that its numbers may stand beside ours."""
    return experiment in EXPERIMENTS


def title_of(found: Summary, experiment: str, domain: str) -> str:
    """An experiment in words; a user's own is named after its domain, with what was changed there."""
    if is_papers(experiment):
        return plots.name(experiment)
    declared = found.declared().get(experiment, {})
    changed = {**_pairs(declared.get("options")), **_budget(declared)}
    words = [f"{key} {worded(value)}" for key, value in changed.items()]
    return ", ".join([plots.name(domain), *words, "own experiment"])


def _pairs(value: Any) -> dict[str, Any]:
    """Names and values that JSON keeps as a list of pairs."""
    pairs = value if isinstance(value, list) else []
    return {str(pair[0]): pair[1] for pair in pairs if isinstance(pair, list) and len(pair) == 2}


def _budget(declared: Entry) -> dict[str, Any]:
    """The search budget of an experiment where it is not the paper's."""
    parts = declared.get("offline")
    parts = parts if isinstance(parts, list) else []
    return {k: v for part in parts if isinstance(part, dict) for k, v in _pairs(part.get("budget")).items()}


def experiment_section(found: Summary, experiment: str, domain: str, folder: Path) -> Iterator[str]:
    """Everything about an experiment; its figures are also written into the folder."""
    rows, curves = entries_of(found.rows, experiment, domain), entries_of(found.curves, experiment, domain)
    title = title_of(found, experiment, domain)
    yield page.heading(2, title, anchor_of(experiment))
    absent = _absent(found, experiment, rows, curves)
    if absent:
        yield page.paragraph(f"Not measured here: {listed(absent)}.", "soft")
    for rules in found.rule_sets(experiment):
        own, own_curves = (entries_of(entries, experiment, domain, rules) for entries in (rows, curves))
        if own or own_curves:
            yield page.heading(3, f"Rules: {names.rules_title(rules)}")
            yield from _figures(own, own_curves, experiment, title, rules, folder)
            yield from _results(own, experiment, domain)
    yield from _films(found, experiment)
    if rows:
        yield page.heading(3, "Every row")
        yield _rows(rows, title)
    yield page.heading(3, "Settings and command")
    yield page.pairs(_settings(found, rows, curves, experiment, domain))
    yield page.code(str(found.provenance.get("command", "the command was not recorded")))


def _absent(found: Summary, experiment: str, rows: list[Entry], curves: list[Entry]) -> list[str]:
    """What one of the paper's experiments could have and lacks; an experiment of one's own lacks nothing."""
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
) -> Iterator[str]:
    """The figures of a rule set, in the paper's form."""
    drawn = []

    def draw(figure: Any, kind: str, caption: str) -> None:
        stem = plots.slug([anchor_of(experiment), kind, rules])
        drawn.append(page.drawing(plots.save(figure, folder, stem), stem, caption))

    chosen = shown(rows)
    if chosen:
        caption = (
            "Offline, the uncertainty known: mean reward at the best c, which stands under each bar. "
            "Dashed: planning in the true world and in the wrong simulator."
        )
        if any(one.sweep for one in chosen):
            caption += (
                " Bars: fresh seeds. Diamonds: the maximum of the sweep that chose c, on its own seeds; a maximum "
                "is too high on average."
            )
        draw(plots.offline(rows, title, rules), "offline", caption)
    swept = [(row["algorithm"], row["c"]) for row in rows if row["purpose"] == "sweep" and known(row["c"])]
    if len(set(swept)) > len({algorithm for algorithm, _ in swept}):
        caption = "The whole sweep: mean reward against the exploration constant c."
        draw(plots.against_c(rows, title, rules), "c", caption)
    for quantity, what in (("steps", "steps to the goal, fewer are better"), ("reward", "reward")):
        if any(curve["quantity"] == quantity and curve["episode"] for curve in curves):
            caption = (
                f"Online, the uncertainty learned: {what}; moving average of 50 episodes, mean and standard deviation "
                "over runs. Broken lines across: offline."
            )
            draw(plots.online(curves, rows, title, rules, quantity), f"online_{quantity}", caption)
    if drawn:
        yield '<div class="figures">' + "\n".join(drawn) + "</div>"


def _results(rows: list[Entry], experiment: str, domain: str) -> Iterator[str]:
    """Our numbers at the best c, and the paper's beside them where it has the experiment."""
    chosen = shown(rows)
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
    yield page.table("beside the paper" if papers else "results", heads, lines)


def _c(value: Any) -> Cell:
    return Cell(plots.exploration(value), float(value), "number") if known(value) else page.number(None)


def _films(found: Summary, experiment: str) -> Iterator[str]:
    captions = {
        "corrupted": "A typical episode of MCTS in the wrong simulator",
        "combined": "A typical episode of UA-MCTS in the same simulator",
    }
    films = [
        page.film(found.gifs[f"{experiment}_{algorithm}"], caption)
        for algorithm, caption in captions.items()
        if f"{experiment}_{algorithm}" in found.gifs
    ]
    if films:
        yield page.heading(3, "To watch")
        yield '<div class="films">' + "\n".join(films) + "</div>"


def _rows(rows: list[Entry], label: str) -> str:
    heads = ("scenario", "algorithm", "learner", "rules", "c", "tau", "purpose", "runs", "episodes", "mean",
             "95% interval", "std", "IQM", "IQM 95% interval", "steps", "goal share", "best c")  # fmt: skip
    lines = [
        [
            Cell(row["scenario"], kind="short"),
            Cell(names.title(row["algorithm"]), kind="short"),
            Cell(row["learner"], kind="short"),
            Cell(names.rules_title(row["rules"]), kind="short"),
            _c(row["c"]),
            Cell(f"{row['tau']:g}", row["tau"], "number") if known(row["tau"]) else page.number(None),
            Cell(row["purpose"]),
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
    return page.table(f"{label}: every row", heads, lines, kind="rows")


def _settings(found: Summary, rows: list[Entry], curves: list[Entry], experiment: str, domain: str) -> dict[str, str]:
    """How an experiment was run: from its rows, and what the command recorded about it."""
    declared = found.declared().get(experiment, {})
    settings = {"domain": domain, "rule sets": ", ".join(map(names.rules_title, found.rule_sets(experiment)))}
    budget = {**BUDGETS.get(domain, {}), **_budget(declared)}
    if {"iterations", "rollouts", "depth"} <= budget.keys():
        settings["budget"] = f"N_I {budget['iterations']}, N_S {budget['rollouts']}, D_S {budget['depth']}, gamma 1"
    options = _pairs(declared.get("options"))
    if options:
        settings["options of the domain"] = worded(options)
    for scenario in ("offline", "online"):
        of = [row for row in rows if row["scenario"] == scenario]
        if of:
            runs = sorted({row["runs"] for row in of if known(row["runs"])})
            c = sorted({row["c"] for row in of if known(row["c"])})
            tau = sorted({row["tau"] for row in of if known(row["tau"])})
            settings[scenario] = "; ".join(
                [
                    "runs " + ", ".join(f"{value:g}" for value in runs),
                    "c " + ", ".join(map(plots.exploration, c)),
                    ("tau " if scenario == "offline" else "tau at the end ") + ", ".join(f"{value:g}" for value in tau),
                ]
            )
    learners = dict.fromkeys(entry["learner"] for entry in (*rows, *curves) if entry["learner"] not in ("true", "none"))
    if learners:
        settings["learners"] = ", ".join(learners)
    return settings


def worded(value: Any) -> str:
    """A recorded setting as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {worded(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(worded, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def bandit_section(found: Summary, folder: Path) -> Iterator[str]:
    """Regret over time, with the bounds, and against delta; its figures are also written into the folder."""
    yield page.heading(2, "Corrupted bandits", "bandit")
    if not found.bandit:
        yield page.paragraph("Not measured here.", "soft")
        return
    drawn = []
    for case in found.bandit["cases"]:
        stem = plots.slug(["bandit", case["id"]])
        caption = f"{case['text']} c = {plots.exploration(case['c'])}, {in_runs(case['runs'])}; mean and 95% interval."
        drawn.append(page.drawing(plots.save(plots.bandit_case(case), folder, stem), stem, caption))
    for one in found.bandit["against_delta"]:
        stem = plots.slug(["bandit_against_delta", one["family"]])
        caption = (
            "Filled points: regret grew linearly; open ones: logarithmically. Broken line: the threshold "
            f"1 - sqrt(1 / (2 c^2)). c = {plots.exploration(one['c'])}, {in_runs(one['runs'])}; mean and 95% interval."
        )
        drawn.append(page.drawing(plots.save(plots.bandit_against_delta(one), folder, stem), stem, caption))
    yield '<div class="figures">' + "\n".join(drawn) + "</div>"
    yield page.heading(3, "At the end of each figure")
    yield _regrets(found.bandit["cases"])
    yield page.code(str(found.provenance.get("command", "the command was not recorded")))


def _regrets(cases: list[Entry]) -> str:
    lines = []
    for case in cases:
        for kind, label in (("ucb", "UCB"), ("ua_ucb", "UA-UCB"), ("estimated", "UA-UCB, delta estimated")):
            if case[kind]:
                ends = [case[kind][field][-1] for field in ("mean", "low", "high")]
                bound = case.get(f"{kind}_bound") or [None]
                lines.append(
                    [Cell(case["title"]), Cell(label), page.number(ends[0], 1), page.interval(ends[1:], 1),
                     page.number(bound[-1], 1), page.number(case["runs"])]
                )  # fmt: skip
    return page.table("regret", ("case", "algorithm", "regret", "95% interval", "bound", "runs"), lines)
