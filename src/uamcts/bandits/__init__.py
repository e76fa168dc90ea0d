"""UCB and UA-UCB for corrupted K-armed bandits: rewards are seen from a wrong model, regret is counted in the real one.

Thousands of runs are one batch of a compiled program. See docs/results/bandits.md.
"""

from uamcts.bandits.arms import Bandit, bernoulli, beta, from_rewards
from uamcts.bandits.runs import (
    Regret,
    arms_pulled,
    delta_from_pairs,
    estimate_delta,
    play,
    score,
    ua_ucb,
    ucb,
)
from uamcts.bandits.sweeps import (
    Case,
    Growth,
    SweepRow,
    compare,
    growth,
    losing_case,
    regret_against_delta,
    regret_over_time,
    worst_case,
)
from uamcts.bandits.theorem import bound, exploration_weights, linear_rate, threshold

__all__ = [
    "Bandit",
    "Case",
    "Growth",
    "Regret",
    "SweepRow",
    "arms_pulled",
    "bernoulli",
    "beta",
    "bound",
    "compare",
    "delta_from_pairs",
    "estimate_delta",
    "exploration_weights",
    "from_rewards",
    "growth",
    "linear_rate",
    "losing_case",
    "play",
    "regret_against_delta",
    "regret_over_time",
    "score",
    "threshold",
    "ua_ucb",
    "ucb",
    "worst_case",
]
