"""Many verdicts at once: how many may be false alarms, and which survive an adjustment for their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uamcts.lab.analysis.evidence import FAILS, HOLDS, MISSING
from uamcts.lab.analysis.statistics import holm

LEVEL = 0.05
"""The largest probability that a single test decides wrongly."""


def adjust(claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The claims with `p_holm` added: their p-values, adjusted for the number of claims tested."""
    tested = [index for index, claim in enumerate(claims) if claim.get("p") is not None]
    adjusted = dict(zip(tested, holm([claims[index]["p"] for index in tested]), strict=True))
    return [{**claim, "p_holm": adjusted.get(index)} for index, claim in enumerate(claims)]


def count_verdicts(claims: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many claims were judged, how many tested, and how many tests decide before and after Holm's adjustment."""
    tested = [claim for claim in adjust(claims) if claim["p_holm"] is not None]
    decided = {word: [claim for claim in tested if claim["verdict"] == word] for word in (HOLDS, FAILS)}
    sure = {word: [claim for claim in found if claim["p_holm"] <= LEVEL] for word, found in decided.items()}
    return {
        "judged": sum(claim["verdict"] != MISSING for claim in claims),
        "tested": len(tested),
        "level": LEVEL,
        "expected_false_alarms": LEVEL * len(tested),
        "hold": len(decided[HOLDS]),
        "hold_after_holm": len(sure[HOLDS]),
        "do_not_hold": len(decided[FAILS]),
        "do_not_hold_after_holm": len(sure[FAILS]),
    }


def in_words(claims: Sequence[Mapping[str, Any]]) -> str:
    """What the number of tests means for the verdicts, in two sentences; an empty string without tests."""
    counts = count_verdicts(claims)
    if not counts["tested"]:
        return ""
    tests = f"{counts['tested']} tests" if counts["tested"] > 1 else "1 test"
    left = [
        f"{counts[f'{key}_after_holm']} of the {counts[key]}{{}} that {words}"
        for key, words in (("hold", "hold still do"), ("do_not_hold", "do not hold still do not"))
        if counts[key]
    ]
    said = ", and ".join(one.format("" if place else " tested claims") for place, one in enumerate(left))
    adjusted = f" Adjusted for their number (Holm, {LEVEL:.0%} for all together), {said}." if left else ""
    return (
        f"The verdicts rest on {tests} at {LEVEL:.0%} each, so up to {counts['expected_false_alarms']:.1f} of them may "
        f"be false alarms.{adjusted}"
    )
