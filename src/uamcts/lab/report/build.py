"""Builds the web page of a results folder: what the paper says, what was measured, and how to measure it again.

`build(out)` reads `summary.json` and, if they exist, `bandit.json` and `gifs/`; it draws the figures into `figures/`
and writes `index.html`, which stands alone. The same data give the same page, to the byte. If a command was interrupted
before it wrote a summary, the page shows its finished units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uamcts import names
from uamcts.lab.analysis import verdicts
from uamcts.lab.analysis.results import Summary, read
from uamcts.lab.analysis.selection import is_number, offline_results
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.report import page, style
from uamcts.lab.report.bandit_section import bandit_section
from uamcts.lab.report.families import families_of, family_section, title_of_family
from uamcts.lab.report.field_section import field_overview, field_section
from uamcts.lab.report.page import Block, Cell, Code, Footer, Heading, Links, Pairs, Paragraph, Table
from uamcts.lab.report.sections import (
    anchor_of,
    count_runs,
    describe,
    experiment_section,
    join_words,
    select_entries,
    title_of,
)
from uamcts.runtime.atomic import write_whole

TITLE = "Planning that works even when the simulator is wrong"
VERDICT_PHRASES = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "too close to call": ("is too close to call", "are too close to call"),
    "not measured": ("was not measured", "were not measured"),
}
"""Each verdict as the predicate of one claim, and of several."""
VERDICTS = {
    "holds": ("✓", "holds"),
    "does not hold": ("✗", "fails"),
    "too close to call": ("≈", "close"),
    "not measured": ("–", "unmeasured"),
}
"""The sign and the CSS class of each verdict, in the order in which they are counted."""
FEW = 15
"""With fewer runs the page warns that intervals are wide."""


def build(out: Path) -> Path:
    """Draws the figures of a results folder, writes its page and returns the page's path.

    Raises:
        ValueError: If the folder has no results, or a file in it is damaged.
        ModuleNotFoundError: If Jinja2 is not installed. The figures are drawn nevertheless.
    """
    out = Path(out)
    found = read(out)
    body: list[Block] = [Heading(1, TITLE), Paragraph(_lead(found), "lead"), _contents(found)]
    families = families_of(found)
    if found.claims or not families:
        body += _claims(found)
    if families.keys() & FIELD.keys():
        body += field_overview(found, out / "figures")
    for name, declared in families.items():
        section = field_section if name in FIELD else family_section
        body += section(found, name, declared, out / "figures")
    for experiment, domain in found.experiments():
        body += experiment_section(found, experiment, domain, out / "figures")
    if found.bandit or not families:
        body += bandit_section(found, out / "figures")
    body.append(_footer(found))
    path = out / "index.html"
    write_whole(path, page.render(f"uamcts: {TITLE}", body).encode())
    return path


def write_report(out: Path) -> str:
    """Builds the page and returns a sentence that says where it is, or why it was not written."""
    try:
        return f"the report is {build(out).resolve().as_uri()}"
    except ModuleNotFoundError as missing:
        if missing.name != "jinja2":
            raise
        return (
            "the results are stored, but the page was not written because Jinja2 is not installed: "
            f"pip install 'uamcts[lab]', then run `uamcts report {out}`"
        )


def _lead(found: Summary) -> str:
    """The page in one paragraph."""
    counts = Counter(claim["verdict"] for claim in found.claims)
    counted = [f"{counts[v]} {VERDICT_PHRASES[v][counts[v] > 1]}" for v in VERDICTS if counts[v]]
    said = "UA-MCTS plans in a simulator that is wrong, and avoids the moves it is wrong about. "
    if "interrupted" in found.provenance:
        said = f"This report is not complete: {found.provenance['interrupted']}. "
    if counted:
        claims = f"the {len(found.claims)} claims" if len(found.claims) > 1 else "the one claim"
        said += f"Of {claims} of the paper that were checked here, {join_words(counted)}. "
    scores = [score for pair in found.experiments() if (score := _score(found, *pair))]
    if scores:
        said += "Mean reward of MCTS in the wrong simulator, of UA-MCTS in the same one and of MCTS in the true world: "
        said += "; ".join(scores) + ". "
    runs = [row["runs"] for row in found.rows if is_number(row["runs"])]
    if runs and min(runs) < FEW:
        said += f"Some numbers here come from {count_runs(min(runs))} only: read their intervals before their means."
    return said.strip()


def _score(found: Summary, experiment: str, domain: str) -> str:
    """What the three planners of an experiment earn under its first rule set; nothing if one of them is missing."""
    rules = found.rule_sets(experiment)[0]
    chosen = offline_results(select_entries(found.rows, experiment, domain, rules))
    own = {key: [one for one in chosen if one.algorithm == key] for key in ("corrupted", "combined", "true")}
    if not all(own.values()):
        return ""
    wrong, right = (own[key][0].row["mean"] for key in ("corrupted", "true"))
    adapted = " or ".join(
        f"{one.row['mean']:.2f}" + ("" if one.tau is None else f" at tau {one.tau:g}") for one in own["combined"]
    )
    title = title_of(found, experiment, domain)
    return f"{title} {wrong:.2f}, {adapted} and {right:.2f} ({names.rules_title(rules)})"


def _contents(found: Summary) -> Links:
    links = [("claims", "Claims")] if found.claims else []
    links += [(style.slug([name]), title_of_family(name)) for name in families_of(found)]
    links += [(anchor_of(pair[0]), title_of(found, *pair)) for pair in found.experiments()]
    links += [("bandit", "Corrupted bandits")] if found.bandit else []
    links += [("provenance", "Provenance")]
    return Links(links)


def _claims(found: Summary) -> Iterator[Block]:
    yield Heading(2, "What the paper claims, and what was measured", "claims")
    if not found.claims:
        yield Paragraph("No claims were judged here.", "soft")
        return
    rows = []
    for claim in found.claims:
        sign, look = VERDICTS.get(claim["verdict"], ("", ""))
        numbers = ", ".join(f"{key} {_short(value)}" for key, value in _compared_means(claim["numbers"]).items())
        rows.append(
            [
                Cell(f"{sign} {claim['verdict']}", claim["verdict"], f"verdict {look}"),
                Cell(claim["text"], kind="text"),
                Cell(style.title_of(claim["experiment"])),
                Cell(names.rules_title(claim["rules"]), kind="short"),
                Cell(numbers or "–", kind="numbers"),
                page.interval(claim["interval"]),
                page.number(claim["runs"]),
                Cell(claim["paper"] or "–", kind="numbers"),
            ]
        )
    heads = ("verdict", "claim", "experiment", "rules", "measured", "95% interval", "runs", "in the paper")
    yield Table("claims", heads, rows)
    yield Paragraph(
        "The interval is that of the claim's margin: the claim holds if all of it is above 0. If a claim says “about” "
        "a number, the interval is that of our mean minus the number, and the claim holds if the 90% interval lies "
        "within the tolerance. All numbers are in summary.json. Click on a column's head to sort.",
        "soft",
    )
    if said := verdicts.in_words(found.claims):
        yield Paragraph(said)


def _compared_means(numbers: dict[str, Any]) -> dict[str, Any]:
    """The means that a claim compares, by short names; its other numbers are in summary.json."""
    means = {}
    for key, value in numbers.items():
        words = key.replace("_", " ")
        if words.endswith(", c") or words.startswith(("margin", "paper")):
            continue
        first, _, rest = words.removeprefix("offline ").removeprefix("online ").partition(" ")
        means[f"{names.title(first)} {rest}".strip()] = value
    return means


def _short(value: object) -> str:
    if not is_number(value):
        return "–" if value is None else str(value)
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _footer(found: Summary) -> Footer:
    plain = {key: value for key, value in found.provenance.items() if key not in ("settings", "command")}
    settings = found.provenance.get("settings")
    general = {k: v for k, v in settings.items() if k != "experiments"} if isinstance(settings, dict) else {}
    return Footer(
        (
            Heading(3, "Provenance", "provenance"),
            Pairs({key: describe(value) for key, value in (plain | general).items()}),
            Code(str(found.provenance.get("command", "the command was not recorded"))),
            Paragraph(
                "The numbers behind this page are in summary.json; every episode is in episodes.parquet.", "soft"
            ),
        )
    )
