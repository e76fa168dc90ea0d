"""The report's sections: an experiment with its figures and tables, and the corrupted bandits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uamcts.lab import page, plots
from uamcts.lab.findings import Entry, Findings, best_rows, known, shown_rows, under
from uamcts.lab.page import Cell
from uamcts.paper import BEST_C, BUDGETS

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


def anchor_of(experiment: str, domain: str) -> str:
    """The name of an experiment's section, and the beginning of its figures' names."""
    return plots.slug([experiment, domain if experiment == "run" else ""])


def title_of(experiment: str, domain: str) -> str:
    """An experiment in words; a user's own grid is named after its domain."""
    return plots.name(domain) + ", own grid" if experiment == "run" else plots.name(experiment)


def experiment_section(found: Findings, experiment: str, domain: str, folder: Path) -> Iterator[str]:
    """Everything about an experiment; its figures are also written into the folder."""
    rows, curves = entries_of(found.rows, experiment, domain), entries_of(found.curves, experiment, domain)
    title, anchor = title_of(experiment, domain), anchor_of(experiment, domain)
    yield page.heading(2, title, anchor)
    absent = _absent(found, experiment, rows, curves)
    if absent:
        yield page.paragraph(f"Not measured here: {listed(absent)}.", "soft")
    for rules in found.rule_sets(experiment):
        of_rules = (
            under(rows, rules),
            under(curves, rules),
        )
        if any(of_rules):
            yield page.heading(3, f"{rules.capitalize()} rules")
            yield from _figures(*of_rules, experiment, domain, rules, folder)
            yield from _beside_the_paper(of_rules[0], experiment, domain)
    yield from _films(found, experiment, anchor)
    if rows:
        yield page.heading(3, "Every row")
        yield _rows(rows, title)
    yield page.heading(3, "Settings and command")
    yield page.pairs(_settings(found, rows, curves, experiment, domain))
    yield page.code(str(found.provenance.get("command", "the command was not recorded")))


def _absent(found: Findings, experiment: str, rows: list[Entry], curves: list[Entry]) -> list[str]:
    """What this experiment could have and lacks."""
    scenarios = {row["scenario"] for row in rows} | ({"online"} if curves else set())
    absent = [f"the {scenario} scenario" for scenario in ("offline", "online") if scenario not in scenarios]
    absent += [f"the {rules} rules" for rules in ("released", "pseudocode") if rules not in found.rule_sets(experiment)]
    purposes = {row["purpose"] for row in rows}
    return absent + (["fresh seeds at the chosen c"] if "sweep" in purposes and "fresh" not in purposes else [])


def _figures(
    rows: list[Entry], curves: list[Entry], experiment: str, domain: str, rules: str, folder: Path
) -> Iterator[str]:
    """The figures of a rule set, in the paper's form."""
    subject = domain if experiment == "run" else experiment
    drawn = []

    def draw(figure: Any, kind: str, caption: str) -> None:
        stem = plots.slug([anchor_of(experiment, domain), kind, rules])
        drawn.append(page.drawing(plots.save(figure, folder, stem), stem, caption))

    chosen = shown_rows(rows)
    if chosen:
        fresh = bool(best_rows(rows)) and bool(best_rows(rows, "fresh"))
        caption = (
            "Offline, the uncertainty known: mean reward at the best c, which stands under each bar. "
            "Dashed: planning in the true model and in the wrong one."
        )
        caption += " Diamonds: the same c on fresh seeds, on which it was not chosen." if fresh else ""
        draw(plots.offline(rows, subject, rules), "offline", caption)
    swept = [(row["algorithm"], row["c"]) for row in rows if row["purpose"] == "sweep" and known(row["c"])]
    if len(set(swept)) > len({algorithm for algorithm, _ in swept}):
        draw(
            plots.against_c(rows, subject, rules),
            "c",
            "The whole sweep: mean reward against the exploration constant c.",
        )
    for quantity, what in (("steps", "steps to the goal, fewer are better"), ("reward", "reward")):
        if any(curve["quantity"] == quantity and curve["episode"] for curve in curves):
            caption = (
                f"Online, the uncertainty learned: {what}; moving average of 50 episodes, mean and standard deviation "
                "over runs. Broken lines across: offline."
            )
            draw(plots.online(curves, rows, subject, rules, quantity), f"online_{quantity}", caption)
    if drawn:
        yield '<div class="figures">' + "\n".join(drawn) + "</div>"


def _beside_the_paper(rows: list[Entry], experiment: str, domain: str) -> Iterator[str]:
    """Our numbers at the best c, and the paper's."""
    chosen, fresh = shown_rows(rows), best_rows(rows, "fresh")
    paper_c = BEST_C.get(domain, {}) if experiment != "run" else {}
    paper_mean = PAPER_MEAN.get(experiment, {})
    lines = []
    for algorithm, row in chosen.items():
        again = fresh.get(algorithm, {})
        lines.append(
            [
                Cell(algorithm),
                page.number(row["mean"]),
                page.interval(row["ci95"]),
                page.number(again.get("mean")),
                page.number(paper_mean.get(algorithm), 1),
                _c(row["c"]),
                _c(paper_c.get(algorithm)),
                page.number(row["runs"]),
            ]
        )
    if lines:
        heads = (
            "algorithm",
            "mean reward",
            "95% interval",
            "fresh seeds",
            "the paper's",
            "best c",
            "the paper's c",
            "runs",
        )
        yield page.table("beside the paper", heads, lines)


def _c(value: Any) -> Cell:
    return Cell(plots.exploration(value), float(value), "number") if known(value) else page.number(None)


def _films(found: Findings, experiment: str, anchor: str) -> Iterator[str]:
    captions = {
        "corrupted": "A typical episode of MCTS in the wrong model",
        "combined": "A typical episode of UA-MCTS in the same model",
    }
    shown = [
        page.film(found.gifs[f"{stem}_{algorithm}"], caption)
        for algorithm, caption in captions.items()
        for stem in dict.fromkeys((anchor, experiment))
        if f"{stem}_{algorithm}" in found.gifs
    ]
    if shown:
        yield page.heading(3, "To watch")
        yield '<div class="films">' + "\n".join(shown) + "</div>"


def _rows(rows: list[Entry], label: str) -> str:
    heads = ("scenario", "algorithm", "learner", "rules", "c", "tau", "purpose", "runs", "episodes", "mean",
             "95% interval", "std", "IQM", "IQM 95% interval", "steps", "goal share", "best c")  # fmt: skip
    lines = [
        [
            *(Cell(row[field], kind="short") for field in ("scenario", "algorithm", "learner", "rules")),
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


def _settings(found: Findings, rows: list[Entry], curves: list[Entry], experiment: str, domain: str) -> dict[str, str]:
    """How an experiment was run: from its rows, and what the command recorded about it."""
    recorded = found.provenance.get("settings")
    recorded = recorded if isinstance(recorded, dict) else {}
    own = recorded.get(experiment)
    settings = {"domain": domain, "rule sets": ", ".join(found.rule_sets(experiment))}
    if domain in BUDGETS and not isinstance(own, dict):
        budget = BUDGETS[domain]
        settings["the paper's budget"] = (
            f"N_I {budget['iterations']}, N_S {budget['rollouts']}, D_S {budget['depth']}, gamma 1"
        )
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
    return settings | ({str(key): worded(value) for key, value in own.items()} if isinstance(own, dict) else {})


def worded(value: Any) -> str:
    """A recorded setting as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {worded(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(worded, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def bandit_section(found: Findings, folder: Path) -> Iterator[str]:
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
