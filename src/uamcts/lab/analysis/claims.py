"""The paper's claims, each with a judge that decides whether the measurements agree.

Offline claims are judged on fresh seeds at the chosen c if there are any, else on the sweep at its best c, as in the
paper. Online claims are judged on the second half of each run's episodes. `evidence.py` defines the verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from uamcts.lab.analysis.bandit_evidence import at_most_ucb, below_bounds, linear_beyond_threshold
from uamcts.lab.analysis.evidence import FAR, NEAR, POOR, SELDOM, Evidence, Finding, Margin, Source, about, decide
from uamcts.lab.analysis.groups import group_runs
from uamcts.lab.analysis.statistics import plain, plain_pair
from uamcts.lab.columns import Episodes

RELEASED, BOTH = ("released",), ("released", "pseudocode")
SINGLE = ("backpropagation", "selection", "expansion", "simulation")


@dataclass(frozen=True)
class Claim:
    """One statement of the paper."""

    id: str
    experiment: str
    text: str
    paper: str
    """What the paper says, in its numbers or close to its words."""
    expected: tuple[str, ...]
    """The rule sets for which it held when it was measured; empty also if it was not measured."""
    judge: Callable[[Evidence, str], Finding]


def judge(episodes: Episodes, rules: str, bandit: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Judges every claim for a rule set: text, verdict, the numbers used, the deciding interval and a p-value.

    Bandits have no rule sets: their claims are judged with "released", and with another one only if `bandit` is given.
    """
    evidence = Evidence([group for group in group_runs(episodes) if group.rules == rules], bandit)
    found = []
    for claim in CLAIMS:
        if claim.experiment == "bandit" and rules != "released" and bandit is None:
            continue
        finding = claim.judge(evidence, claim.experiment)
        found.append(
            {
                "id": claim.id,
                "experiment": claim.experiment,
                "rules": rules,
                "text": claim.text,
                "verdict": finding.verdict,
                "expected": rules in claim.expected,
                "numbers": {name: plain(number) for name, number in finding.numbers.items()},
                "interval": None if finding.interval is None else plain_pair(finding.interval),
                "runs": int(finding.runs),
                "p": None if finding.p is None else plain(finding.p),
                "paper": claim.paper,
            }
        )
    return found


def beats(better: Source, worse: Source) -> Margin:
    """The mean of `better` is above that of `worse`."""
    return Margin(f"{better.name} - {worse.name}", ((1.0, better), (-1.0, worse)))


def sooner(better: Source, worse: Source) -> Margin:
    """`better` takes fewer steps than `worse`."""
    return beats(worse, better)


def goes(source: Source, share: float, true: Source, corrupted: Source, sign: int = 1) -> Margin:
    """`source` covers at least `share` of the distance from `corrupted` to `true`; with sign -1 at most, or in steps.

    x - corrupted >= share (true - corrupted), put as x - share true - (1 - share) corrupted >= 0.
    """
    terms = ((1.0, source), (-share, true), (share - 1.0, corrupted))
    return Margin(
        f"{source.name}, {share:g} of the way to {true.name}", tuple((sign * weight, term) for weight, term in terms)
    )


def _offline(algorithm: str, quantity: str = "reward") -> Source:
    return Source("offline", algorithm, quantity)


TRUE, CORRUPTED, COMBINED = _offline("true"), _offline("corrupted"), _offline("combined")
BACKPROPAGATION, SELECTION, EXPANSION, SIMULATION = (_offline(phase) for phase in SINGLE)
ONLINE_COMBINED = Source("online", "combined")
EXPANSION_IS_BEST = decide(*(beats(EXPANSION, _offline(phase)) for phase in SINGLE if phase != "expansion"))

TRUE_STEPS, CORRUPTED_STEPS = (Source("online", algorithm, "steps", "none") for algorithm in ("true", "corrupted"))
COMBINED_STEPS = Source("online", "combined", "steps")
LINEAR, UNITS_8, UNITS_16 = (
    Source("online", "corrupted", "steps", f"transition_{size}") for size in ("linear", "8_units", "16_units")
)
LINEAR_GOAL = Source("online", "corrupted", "goal", "transition_linear")
ICY_GOAL = _offline("combined", "goal")

SPACE_INVADERS_TOLERANCE = (18.4 - 16.3) / 4
"""A quarter of the paper's gap between true and wrong model, so that two means this close to theirs still differ."""
FREEWAY_TOLERANCE = 0.05
"""What the paper's 0.9 is rounded to, and half of what it is short of the true model's 1."""
WITHIN = f"(within {SPACE_INVADERS_TOLERANCE:.3g})"

_SPACE_INVADERS = (
    Claim("space_invaders_true_number", "space_invaders",
          f"MCTS on the true model gets about 18.4 of 24 {WITHIN}",
          "18.4", (), about(TRUE, 18.4, SPACE_INVADERS_TOLERANCE)),
    Claim("space_invaders_corrupted_number", "space_invaders",
          f"MCTS on the wrong model gets about 16.3 of 24 {WITHIN}",
          "16.3", (), about(CORRUPTED, 16.3, SPACE_INVADERS_TOLERANCE)),
    Claim("space_invaders_combined_number", "space_invaders", f"UA-MCTS gets about 23.8 of 24 {WITHIN}",
          "23.8, close to the perfect 24", RELEASED, about(COMBINED, 23.8, SPACE_INVADERS_TOLERANCE)),
    Claim("space_invaders_combined", "space_invaders", "UA-MCTS beats MCTS on the true model",
          "23.8 against 18.4", RELEASED, decide(beats(COMBINED, TRUE))),
    Claim("space_invaders_selection", "space_invaders", "UA-Selection alone beats MCTS on the true model",
          "all but UA-Backpropagation exceed the true model", RELEASED, decide(beats(SELECTION, TRUE))),
    Claim("space_invaders_expansion", "space_invaders", "UA-Expansion alone beats MCTS on the true model",
          "all but UA-Backpropagation exceed the true model", RELEASED, decide(beats(EXPANSION, TRUE))),
    Claim("space_invaders_simulation", "space_invaders", "UA-Simulation alone beats MCTS on the true model",
          "all but UA-Backpropagation exceed the true model", (), decide(beats(SIMULATION, TRUE))),
    Claim("space_invaders_best_single", "space_invaders", "UA-Expansion is the best single phase",
          "as a single modification, UA-Expansion performed best", RELEASED, EXPANSION_IS_BEST),
    Claim("space_invaders_online", "space_invaders", "After learning U, UA-MCTS beats MCTS on the true model",
          "even online, after training, it outperforms the true model", RELEASED, decide(beats(ONLINE_COMBINED, TRUE))),
)  # fmt: skip

_FREEWAY = (
    Claim("freeway_combined_number", "freeway", f"UA-MCTS gets about 0.9 of 1 (within {FREEWAY_TOLERANCE:g})",
          "0.9", RELEASED, about(COMBINED, 0.9, FREEWAY_TOLERANCE)),
    Claim("freeway_combined", "freeway", "UA-MCTS beats MCTS on the wrong model",
          "0.9, outperforms the corrupted model", RELEASED, decide(beats(COMBINED, CORRUPTED))),
    Claim("freeway_single", "freeway", "Each phase alone beats MCTS on the wrong model",
          "each component is better than the corrupted model", (),
          decide(*(beats(_offline(phase), CORRUPTED) for phase in SINGLE))),
    Claim("freeway_best_single", "freeway", "UA-Expansion is the best single phase",
          "UA-Expansion again performing best", RELEASED, EXPANSION_IS_BEST),
    Claim("freeway_online", "freeway", "After learning U, UA-MCTS beats MCTS on the wrong model",
          "online it outperforms the corrupted model", (), decide(beats(ONLINE_COMBINED, CORRUPTED))),
    Claim("freeway_online_limit", "freeway",
          f"After learning U, UA-MCTS still goes less than {NEAR:g} of the way from the wrong model to the true one",
          "online it cannot approach the true model", (),
          decide(goes(ONLINE_COMBINED, NEAR, TRUE, CORRUPTED, sign=-1))),
)  # fmt: skip

_BREAKOUT = (
    Claim("breakout_combined", "breakout", "UA-MCTS beats MCTS on the wrong model",
          "outperformed the corrupted model", BOTH, decide(beats(COMBINED, CORRUPTED))),
    Claim("breakout_almost_true", "breakout",
          f"UA-MCTS goes at least {NEAR:g} of the way from the wrong model to the true one",
          "almost as well as the true model", (), decide(goes(COMBINED, NEAR, TRUE, CORRUPTED))),
    Claim("breakout_good_phases", "breakout",
          f"UA-Selection and UA-Expansion alone go at least {FAR:g} of the way from wrong to true model",
          "UA-Selection and UA-Expansion also performed very well", RELEASED,
          decide(*(goes(phase, FAR, TRUE, CORRUPTED) for phase in (SELECTION, EXPANSION)))),
    Claim("breakout_poor_phases", "breakout",
          f"UA-Backpropagation and UA-Simulation alone go at most {POOR:g} of the way from wrong to true model",
          "UA-Backpropagation and UA-Simulation performed poorly", RELEASED,
          decide(*(goes(phase, POOR, TRUE, CORRUPTED, sign=-1) for phase in (BACKPROPAGATION, SIMULATION)))),
    Claim("breakout_online_drop", "breakout", "UA-MCTS with a learned U gets less than with the true U",
          "a performance drop online", (), decide(beats(COMBINED, ONLINE_COMBINED))),
    Claim("breakout_online", "breakout", "After learning U, UA-MCTS beats MCTS on the wrong model",
          "online still better than the corrupted model", (), decide(beats(ONLINE_COMBINED, CORRUPTED))),
)  # fmt: skip

_GRIDWORLDS = (
    Claim("two_way_far_better", "two_way",
          f"In steps, UA-MCTS goes at least {FAR:g} of the way from the wrong model to the true one",
          "much better than the corrupted model", RELEASED,
          decide(goes(COMBINED_STEPS, FAR, TRUE_STEPS, CORRUPTED_STEPS, sign=-1))),
    Claim("two_way_close_to_true", "two_way",
          f"In steps, UA-MCTS goes at least {NEAR:g} of the way from the wrong model to the true one",
          "close to the true model", (), decide(goes(COMBINED_STEPS, NEAR, TRUE_STEPS, CORRUPTED_STEPS, sign=-1))),
    Claim("two_way_linear_never", "two_way",
          f"With a linear learned transition the goal is found in fewer than {SELDOM:.0%} of episodes",
          "with the same capacity the agents could not find a path to the goal at all", RELEASED,
          decide(Margin(f"{SELDOM:g} - {LINEAR_GOAL.name}", ((-1.0, LINEAR_GOAL),), SELDOM))),
    Claim("two_way_capacity", "two_way",
          "MCTS on a learned transition of 8 units needs fewer steps than on a linear one, on one of 16 fewer yet",
          "the agent improves as the capacity increases", RELEASED,
          decide(sooner(UNITS_8, LINEAR), sooner(UNITS_16, UNITS_8))),
    Claim("two_way_beats_linear", "two_way", "UA-MCTS needs fewer steps than MCTS on a linear learned transition",
          "not able to outperform UA-MCTS", RELEASED, decide(sooner(COMBINED_STEPS, LINEAR))),
    Claim("two_way_beats_8", "two_way", "UA-MCTS needs fewer steps than MCTS on a learned transition of 8 units",
          "not able to outperform UA-MCTS", RELEASED, decide(sooner(COMBINED_STEPS, UNITS_8))),
    Claim("two_way_beats_16", "two_way", "UA-MCTS needs fewer steps than MCTS on a learned transition of 16 units",
          "not able to outperform UA-MCTS with 16 units", (), decide(sooner(COMBINED_STEPS, UNITS_16))),
    Claim("icy_reaches_goal", "icy",
          f"Over an icy cell on the only path, at tau 10, UA-MCTS finds the goal in more than {SELDOM:.0%} of runs",
          "UA-MCTS does find a path to the goal although it contains uncertainty", BOTH,
          decide(Margin(f"{ICY_GOAL.name} - {SELDOM:g}", ((1.0, ICY_GOAL),), -SELDOM))),
)  # fmt: skip

_BANDIT = (
    Claim("bandit_regret", "bandit", "Where the other arms look better than they are, UA-UCB's regret is at most UCB's",
          "uncertainty information can enhance UCB", BOTH, at_most_ucb("wins")),
    Claim("bandit_regret_best_arm", "bandit",
          "Also where the best arm is the one that looks worse than it is, UA-UCB's regret is at most UCB's",
          "a tighter bound than UCB's", (), at_most_ucb("loses")),
    Claim("bandit_bound", "bandit", "Regret of UCB and of UA-UCB is below Theorem 1's bounds",
          "Theorem 1", BOTH, below_bounds),
    Claim("bandit_linear", "bandit", "With delta above 1 - sqrt(1 / (2 c^2)) UA-UCB's regret is linear",
          "linear beyond the threshold", (), linear_beyond_threshold("shifted", "misleading")),
    Claim("bandit_linear_misleading", "bandit",
          "With delta above 1 - sqrt(1 / (2 c^2)), where the wrong arm then looks best, UA-UCB's regret is linear",
          "linear beyond the threshold", BOTH, linear_beyond_threshold("misleading")),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (*_SPACE_INVADERS, *_FREEWAY, *_BREAKOUT, *_GRIDWORLDS, *_BANDIT)
