"""One web page from an output folder: what the paper says, what was measured, and how to measure it again.

`build(out)` reads `summary.json` and, where they are, `bandit.json` and `gifs/`; it draws the figures into `figures/`
and writes `index.html`, which needs none of them and can be sent alone. The same data give the same page, to the byte.
Where a command was interrupted before it wrote a summary, the page shows its finished units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uamcts import names
from uamcts.lab.analysis import verdicts
from uamcts.lab.analysis.results import Summary, known, read, shown
from uamcts.lab.report import page, plots
from uamcts.lab.report.families import families_of, family_section, title_of_family
from uamcts.lab.report.page import Cell
from uamcts.lab.report.sections import (
    anchor_of,
    bandit_section,
    entries_of,
    experiment_section,
    in_runs,
    listed,
    title_of,
    worded,
)
from uamcts.runtime.atomic import write_whole

TITLE = "Planning that works even when the simulator is wrong"
SAID = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "too close to call": ("is too close to call", "are too close to call"),
    "not measured": ("was not measured", "were not measured"),
}
"""Each verdict about one claim and about several."""
VERDICTS = {
    "holds": ("✓", "holds"),
    "does not hold": ("✗", "fails"),
    "too close to call": ("≈", "close"),
    "not measured": ("–", "unmeasured"),
}
"""The sign and the look of each verdict, in the order in which they are counted."""
FEW = 15
"""Runs below which the page warns that intervals are wide."""


def build(out: Path) -> Path:
    """Draws the figures of an output folder, writes its page and returns the page's path."""
    out = Path(out)
    found = read(out)
    body = [page.heading(1, TITLE), page.paragraph(_in_words(found), "lead"), _contents(found)]
    families = families_of(found)
    if found.claims or not families:
        body += _claims(found)
    for name, declared in families.items():
        body += family_section(found, name, declared, out / "figures")
    for experiment, domain in found.experiments():
        body += experiment_section(found, experiment, domain, out / "figures")
    if found.bandit or not families:
        body += bandit_section(found, out / "figures")
    body += _footer(found)
    path = out / "index.html"
    write_whole(path, page.document(f"uamcts: {TITLE}", body).encode())
    return path


def _in_words(found: Summary) -> str:
    """The page in one paragraph."""
    counts = Counter(claim["verdict"] for claim in found.claims)
    counted = [f"{counts[v]} {SAID[v][counts[v] > 1]}" for v in VERDICTS if counts[v]]
    said = "UA-MCTS plans in a simulator that is wrong, and avoids the moves it is wrong about. "
    if "interrupted" in found.provenance:
        said = f"This report is not complete: {found.provenance['interrupted']}. "
    if counted:
        claims = f"the {len(found.claims)} claims" if len(found.claims) > 1 else "the one claim"
        said += f"Of {claims} of the paper that were looked at here, {listed(counted)}. "
    scores = [score for pair in found.experiments() if (score := _score(found, *pair))]
    if scores:
        said += "Mean reward of MCTS in the wrong simulator, of UA-MCTS in the same one and of MCTS in the true world: "
        said += "; ".join(scores) + ". "
    runs = [row["runs"] for row in found.rows if known(row["runs"])]
    if runs and min(runs) < FEW:
        said += f"Some numbers here come from {in_runs(min(runs))} only: read their intervals before their means."
    return said.strip()


def _score(found: Summary, experiment: str, domain: str) -> str:
    """What the three planners of an experiment earn under its first rule set; nothing if one of them is missing."""
    rules = found.rule_sets(experiment)[0]
    chosen = shown(entries_of(found.rows, experiment, domain, rules))
    own = {key: [one for one in chosen if one.algorithm == key] for key in ("corrupted", "combined", "true")}
    if not all(own.values()):
        return ""
    wrong, right = (own[key][0].row["mean"] for key in ("corrupted", "true"))
    adapted = " or ".join(
        f"{one.row['mean']:.2f}" + ("" if one.tau is None else f" at tau {one.tau:g}") for one in own["combined"]
    )
    title = title_of(found, experiment, domain)
    return f"{title} {wrong:.2f}, {adapted} and {right:.2f} ({names.rules_title(rules)})"


def _contents(found: Summary) -> str:
    links = [("claims", "Claims")] if found.claims else []
    links += [(plots.slug([name]), title_of_family(name)) for name in families_of(found)]
    links += [(anchor_of(pair[0]), title_of(found, *pair)) for pair in found.experiments()]
    links += [("bandit", "Corrupted bandits")] if found.bandit else []
    links += [("provenance", "Provenance")]
    return "<nav>" + "".join(f'<a href="#{page.escape(to)}">{page.escape(text)}</a>' for to, text in links) + "</nav>"


def _claims(found: Summary) -> Iterator[str]:
    yield page.heading(2, "What the paper claims, and what came of it", "claims")
    if not found.claims:
        yield page.paragraph("No claims were judged here.", "soft")
        return
    rows = []
    for claim in found.claims:
        sign, look = VERDICTS.get(claim["verdict"], ("", ""))
        numbers = ", ".join(f"{key} {_short(value)}" for key, value in _measured(claim["numbers"]).items())
        rows.append(
            [
                Cell(f"{sign} {claim['verdict']}", claim["verdict"], f"verdict {look}"),
                Cell(claim["text"], kind="text"),
                Cell(plots.name(claim["experiment"])),
                Cell(names.rules_title(claim["rules"]), kind="short"),
                Cell(numbers or "–", kind="numbers"),
                page.interval(claim["interval"]),
                page.number(claim["runs"]),
                Cell(claim["paper"] or "–", kind="numbers"),
            ]
        )
    heads = ("verdict", "claim", "experiment", "rules", "measured", "95% interval", "runs", "in the paper")
    yield page.table("claims", heads, rows)
    yield page.paragraph(
        "The interval is that of the margin a claim speaks of: the claim holds where all of it is above 0. Where it "
        "says “about” a number, the interval is that of our mean less the number, and the claim holds where the 90% "
        "interval lies within the tolerance. All numbers are in summary.json. A click on a column's head sorts.",
        "soft",
    )
    if said := verdicts.in_words(found.claims):
        yield page.paragraph(said)


def _measured(numbers: dict[str, Any]) -> dict[str, Any]:
    """The means that a claim compares, by short names; the rest of its numbers is in summary.json."""
    shown = {}
    for key, value in numbers.items():
        words = key.replace("_", " ")
        if words.endswith(", c") or words.startswith(("margin", "paper")):
            continue
        first, _, rest = words.removeprefix("offline ").removeprefix("online ").partition(" ")
        shown[f"{names.title(first)} {rest}".strip()] = value
    return shown


def _short(value: Any) -> str:
    if not known(value):
        return "–" if value is None else str(value)
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _footer(found: Summary) -> Iterator[str]:
    yield "<footer>" + page.heading(3, "Provenance", "provenance")
    plain = {key: value for key, value in found.provenance.items() if key not in ("settings", "command")}
    settings = found.provenance.get("settings")
    general = {k: v for k, v in settings.items() if k != "experiments"} if isinstance(settings, dict) else {}
    yield page.pairs({key: worded(value) for key, value in (plain | general).items()})
    yield page.code(str(found.provenance.get("command", "the command was not recorded")))
    yield page.paragraph(
        "The numbers behind this page are in summary.json, every episode is in episodes.parquet.", "soft"
    )
    yield "</footer>"
