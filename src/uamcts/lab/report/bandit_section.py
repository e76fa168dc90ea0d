"""The section of the report about the corrupted bandits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from uamcts.lab.analysis.forms import Entry
from uamcts.lab.report import bandit_plots, page, style
from uamcts.lab.report.page import Block, Cell, Gallery, Heading, Paragraph, Table
from uamcts.lab.report.sections import count_runs


def bandit_section(bandit: Entry, folder: Path) -> Iterator[Block]:
    """The section of the bandits. Its figures are also written into `folder`."""
    yield Heading(2, "Corrupted bandits", "bandit")
    yield Paragraph("Arms pay less or more than they seem to: what one observes is off by up to delta.")
    drawn = []
    for case in bandit["cases"]:
        stem = style.slug(["bandit", case["id"]])
        caption = f"{case['text']} {_conditions(case)}"
        drawn.append(page.drawing(style.save(bandit_plots.regret_over_time(case), folder, stem), stem, caption))
    for one in bandit["against_delta"]:
        stem = style.slug(["bandit_against_delta", one["family"]])
        caption = (
            "Filled points: regret grew linearly; open ones: logarithmically. Dashed line: the threshold "
            f"1 - sqrt(1 / (2 c^2)). {_conditions(one)}"
        )
        drawn.append(page.drawing(style.save(bandit_plots.regret_against_delta(one), folder, stem), stem, caption))
    yield Gallery("figures", drawn)
    yield Heading(3, "Regret at the end of each figure")
    yield _regrets(bandit["cases"])


def _conditions(one: Entry) -> str:
    return f"c = {style.exploration(one['c'])}, {count_runs(one['runs'])}; mean and 95% interval."


def _regrets(cases: list[Entry]) -> Table:
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
    return Table("regret", ("case", "algorithm", "regret", "95% interval", "bound", "runs"), lines)
