"""The section of the report about the paper's claims: a bar of verdicts, a forest plot, and the table behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from uamcts import names
from uamcts.lab.analysis import verdicts
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.results import Summary
from uamcts.lab.analysis.selection import is_number
from uamcts.lab.report import page, style
from uamcts.lab.report.page import Block, Cell, Estimate, Fold, Forest, Heading, Paragraph, Table, Tally
from uamcts.lab.report.sections import join_words

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
WIDEST = 4.0
"""A margin of so many half intervals is at the edge of the forest plot."""


def claims_section(found: Summary) -> Iterator[Block]:
    """The section of the claims; nothing if none was judged."""
    if not found.claims:
        return
    yield Heading(2, "What the paper claims, and what was measured", "claims")
    counts = Counter(claim["verdict"] for claim in found.claims)
    counted = [f"{counts[v]} {VERDICT_PHRASES[v][counts[v] > 1]}" for v in VERDICTS if counts[v]]
    claims = f"the {len(found.claims)} claims" if len(found.claims) > 1 else "the one claim"
    yield Paragraph(f"Of {claims} of the paper that were checked here, {join_words(counted)}.")
    yield Tally([(_label(v, counts[v]), look, counts[v]) for v, (_, look) in VERDICTS.items() if counts[v]])
    rows = [estimate for claim in found.claims if (estimate := _estimate(claim, len(_rules(found)) > 1))]
    if rows:
        yield Forest(rows)
    if said := verdicts.in_words(found.claims):
        yield Paragraph(said, "soft")
    note = (
        "The interval is that of the claim's margin: the claim holds if all of it is above 0. If a claim says “about” "
        "a number, the interval is that of our mean minus the number, and the claim holds if the 90% interval lies "
        "within the tolerance. Click on a column's head to sort."
    )
    yield Fold("All claims as a table", [_table(found), Paragraph(note, "soft")])


def _rules(found: Summary) -> set[str]:
    return {claim["rules"] for claim in found.claims}


def _label(verdict: str, count: int) -> str:
    """A verdict behind the number of its claims: `26 hold`, `2 do not hold`, `6 too close to call`."""
    words = VERDICT_PHRASES[verdict][count > 1]
    return words.split(" ", 1)[1] if words.startswith(("is ", "are ", "was ", "were ")) else words


def _estimate(claim: Entry, several_rules: bool) -> Estimate | None:
    """A claim's line in the forest plot, in half widths of its interval; None if it has no interval."""
    if not claim["interval"] or not all(map(is_number, claim["interval"])):
        return None
    low, high = claim["interval"]
    half, middle = (high - low) / 2, (high + low) / 2
    tolerance = claim["numbers"].get("margin: tolerance")
    unit = WIDEST * (half or abs(middle) / 3 or 1.0)
    if is_number(tolerance):  # what counts here is the distance from 0, and the tolerance is to be seen
        unit = 1.15 * max(abs(low), abs(high), tolerance)
    place = max(-1 + half / unit, min(1 - half / unit, middle / unit))
    sign, look = VERDICTS.get(claim["verdict"], ("", ""))
    where = style.title_of(claim["experiment"]) + (f", {names.rules_title(claim['rules'])}" if several_rules else "")
    words = f"{claim['verdict']}: margin {_short(middle)} [{_short(low)}, {_short(high)}]"
    words += f", tolerance {_short(tolerance)}" if is_number(tolerance) else ""
    words += f", {claim['runs']:,g} runs" if is_number(claim["runs"]) else ""
    band = min(1.0, tolerance / unit) if is_number(tolerance) else 0.0
    return Estimate(claim["text"], where, sign, look, words, place, half / unit, band)


def _table(found: Summary) -> Table:
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
    return Table("claims", heads, rows, filtered=True)


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
