"""Judges of the claims about bandits.

The figures are a dictionary. `cases`: a list of {`id`, `runs`, `steps` [T], `ucb` and `ua_ucb` with mean regret `mean`
[T] and the ends of its 95 % interval, `low` and `high` [T], and the bounds `ucb_bound` and `ua_ucb_bound` [T], None
where Theorem 1 says nothing}. `against_delta`: a list of {`family`, `threshold`, `runs`, `delta` [D], `ucb` and
`ua_ucb` with the power of t at which regret grows, `exponent` [D]}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from uamcts.lab.analysis.evidence import (
    CLOSE,
    FAILS,
    HOLDS,
    NOTHING,
    Evidence,
    Finding,
    p_of_margins,
    verdict_of,
    weakest,
)

LINEAR, NOT_LINEAR = 0.9, 0.5
"""Regret grows as t to a power: linearly if that is at least LINEAR, clearly less so if it is at most NOT_LINEAR."""
_STRATEGIES = ("ucb", "ua_ucb")


def at_most_ucb(case: str) -> Callable[[Evidence, str], Finding]:
    """A judge of the claim that, at the end of a case, UA-UCB's mean regret is at most UCB's.

    The interval of the difference is computed from the ends of both intervals, so it is wider than necessary.
    """

    def judge(evidence: Evidence, experiment: str) -> Finding:
        found = _cases(evidence).get(case)
        if found is None:
            return NOTHING
        plain, adapted = found["ucb"], found["ua_ucb"]
        ends = (plain["low"][-1] - adapted["high"][-1], plain["high"][-1] - adapted["low"][-1])
        numbers = {"UCB": plain["mean"][-1], "UA-UCB": adapted["mean"][-1], "pulls": found["steps"][-1]}
        error = math.hypot(_standard_error(plain, -1), _standard_error(adapted, -1))
        p = p_of_margins([(plain["mean"][-1] - adapted["mean"][-1], error)], found["runs"])
        return Finding(verdict_of(*ends, found["runs"]), numbers, ends, found["runs"], p)

    return judge


def below_bounds(evidence: Evidence, experiment: str) -> Finding:
    """Judges whether each strategy's mean regret is below its bound in every case, always; the smallest gap decides."""
    found, tests = [], []
    for case in _cases(evidence).values():
        for strategy in _STRATEGIES:
            regret, runs = case[strategy], case["runs"]
            for index, bound in enumerate(case[f"{strategy}_bound"]):
                if bound is not None:
                    ends = (bound - regret["high"][index], bound - regret["low"][index])
                    verdict = verdict_of(*ends, runs)
                    found.append((verdict, bound - regret["mean"][index], ends, (case, strategy, index)))
                    tests.append((bound - regret["mean"][index], _standard_error(regret, index)))
    if not found:
        return NOTHING
    verdict, distance, ends = weakest([one[:3] for one in found])
    case, strategy, index = next(one[3] for one in found if one[:3] == (verdict, distance, ends))
    numbers = {
        "regret": case[strategy]["mean"][index],
        "bound": case[f"{strategy}_bound"][index],
        "pulls": case["steps"][index],
    }
    for case in _cases(evidence).values():
        for strategy in _STRATEGIES:
            last = case[f"{strategy}_bound"][-1]
            if last is not None and case[strategy]["mean"][-1] > 0:
                numbers[f"{case['id']}: {strategy}, bound over regret at the end"] = last / case[strategy]["mean"][-1]
    fewest = min(one[3][0]["runs"] for one in found)
    return Finding(verdict, numbers, ends, fewest, p_of_margins(tests, fewest))


def linear_beyond_threshold(*families: str) -> Callable[[Evidence, str], Finding]:
    """A judge of the claim that UA-UCB's regret grows linearly if delta is above the threshold, in all `families`.

    The interval spans the measured powers of t. A power has no interval of its own, so there is no p-value.
    """

    def judge(evidence: Evidence, experiment: str) -> Finding:
        figures = [one for one in (evidence.bandit or {}).get("against_delta", []) if one["family"] in families]
        numbers = {
            f"{one['family']}, delta {delta:g}": exponent
            for one in figures
            for delta, exponent in zip(one["delta"], one["ua_ucb"]["exponent"], strict=True)
            if delta > one["threshold"] and exponent is not None
        }
        if {one["family"] for one in figures} != set(families) or not numbers:
            return NOTHING
        least, greatest = min(numbers.values()), max(numbers.values())
        verdict = HOLDS if least >= LINEAR else FAILS if least <= NOT_LINEAR else CLOSE
        return Finding(verdict, numbers, (least, greatest), min(one["runs"] for one in figures))

    return judge


def _standard_error(regret: Mapping[str, Any], index: int) -> float:
    """The standard error of a mean regret, from its 95% interval."""
    return (regret["high"][index] - regret["low"][index]) / (2 * 1.96)


def _cases(evidence: Evidence) -> Mapping[str, Any]:
    return {case["id"]: case for case in (evidence.bandit or {}).get("cases", [])}
