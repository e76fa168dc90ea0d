"""Versions of everything that decides a number, kept by hand.

They are part of what a stored result is (`uamcts.lab.run.units`): after a change of behaviour, results of the old
version are computed again instead of passing for new ones. Raise a version whenever the same settings and the same
seed can give another number. A change that leaves all numbers alone, however large, needs none.

`tests/test_versions.py` compares recorded numbers with what the code does today, and fails when they differ although
the version is still the same. After raising a version, record anew with `python tests/record_behaviour.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

ENGINE_VERSIONS = {
    "search": 1,  # what all rule sets share: the tree, the rollouts, the random numbers
    "graph": 1,  # search on a graph, with Bellman backups
    "offline": 1,  # an episode with a known U
    "online": 1,  # the loop of real steps and rounds of training
    "agent": 3,  # uamcts.Agent in a domain: what it corrects, doubts and plans with
    "bandit": 1,  # UCB and UA-UCB, and the sweeps over them
}

RULE_VERSIONS = {"released": 1, "pseudocode": 1, "trust": 1}

LEARNER_VERSIONS = {
    "true": 1, "network": 2, "linear": 1, "two_part": 2, "bayes": 1, "trees": 1, "nearest": 1, "ensemble": 1,
    "dropout": 2, "none": 1,
    "transition": 1, "memory": 1, "cmax": 1, "cmax_plus": 1, "nearest_residual": 1, "unseen": 1,
    "gate": 1, "penalty": 1, "bonus": 1,
}  # fmt: skip
"""Estimators, the other learners, and what may follow any of them behind a plus."""

DOMAIN_VERSIONS = {
    "space_invaders": 1, "freeway": 1, "breakout": 1, "two_way": 1, "two_way_icy": 1, "hidden_obstacles": 1,
    "slippery": 1, "shortcut": 1, "frozen_lake": 1, "cliff": 1, "bridge": 1,
}  # fmt: skip

FIELD_VERSIONS = {
    "field": 1,  # the grids, the tree, and how episodes are played
    "cart_pole": 1,  # cart poles, all planners in them but the agent
    "pole_agent": 4,  # the agent in cart poles: it searches trees there
    "agent": 3, "exact_learner": 1, "ada_mcts": 1, "bamcp": 1, "counts": 1, "mcts": 1, "graph": 1, "rats": 1,
    "total_variation": 1, "chi_square": 1, "wasserstein": 2, "cvar": 1, "mcts_told": 1, "graph_told": 1,
    "rats_told": 1, "pa_mcts": 1,
}  # fmt: skip
"""The field's comparisons, and the planners in them."""


def versions_of(engines: Iterable[str], domain: str, rules: Iterable[str], learner: str | None) -> dict[str, int]:
    """The versions that a result depends on, by name; `learner` is a name like `network+gate+penalty=2`, or None.

    What is not listed above, because somebody added it from outside, has version 0.
    """
    tables = (
        ("engine", ENGINE_VERSIONS, list(engines)),
        ("domain", DOMAIN_VERSIONS, [domain]),
        ("rules", RULE_VERSIONS, list(rules)),
        ("learner", LEARNER_VERSIONS, [] if learner is None else _parts(learner)),
    )
    return {f"{kind} {name}": table.get(name, 0) for kind, table, names in tables for name in names}


def _parts(learner: str) -> list[str]:
    """A learner's parts without their weights; the sizes of learned transition functions share one version."""
    parts = [part.partition("=")[0] for part in learner.split("+")]
    return ["transition" if part.startswith("transition_") else part for part in parts]
