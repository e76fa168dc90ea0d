"""The paper's settings, as data: its seven algorithms, its search budgets, its exploration constants.

And what is not the paper's: the algorithm `trust`, with one setting for every domain, searches on graphs, and random
worlds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from uamcts.mcts.config import SearchConfig
from uamcts.names import CORRECTIONS, OURS, PHASES, PLAIN, TABLE, algorithm_key, command_name
from uamcts.uncertainty.schedule import Schedule

if TYPE_CHECKING:
    from uamcts.domains.base import Domain

ALGORITHMS: dict[str, tuple[str, ...]] = {one.key: one.phases for one in TABLE if one.key not in OURS}
"""Which phases are uncertainty-adapted. `true` is plain MCTS that plans in the real world, `corrupted` in the model."""

RULES = ("released", "pseudocode")
"""The rule sets that the paper's experiments are run under."""

TRUST: dict[str, Any] = {"rules": "trust"}
"""The algorithm `trust` (docs/concepts/trust.md): `SearchConfig(rules="trust")` with its defaults, the same in every
domain. An `Agent` of a simulator discounts rewards, which may come for ever there, by 0.99; on trees it has a c of its
own and draws the first action (`uamcts.agent.searching`)."""

EXPLORATION = (0.5, 1.0, 2.0**0.5, 2.0)
"""The values of c that the paper sweeps."""

_GRIDWORLD = {"iterations": 10, "rollouts": 10, "depth": 30}
_RANDOM = {"iterations": 100, "rollouts": 10, "depth": 50}
_GRIDWORLD_PROGRAM = {"deletion_scale": 10.0, "deletion_threshold": 0.1, "root_visits": 1}

BUDGETS: dict[str, dict[str, int]] = {
    "space_invaders": {"iterations": 10, "rollouts": 10, "depth": 20},
    "freeway": {"iterations": 100, "rollouts": 10, "depth": 50},
    "breakout": {"iterations": 100, "rollouts": 10, "depth": 50},
    "two_way": _GRIDWORLD,
    "two_way_icy": _GRIDWORLD,
    "frozen_lake": _RANDOM,
    "cliff": _RANDOM,
    "bridge": _RANDOM,
}
"""N_I, N_S and D_S of each domain."""

DISCOUNTS: dict[str, float] = {"frozen_lake": 0.998, "cliff": 0.996, "bridge": 0.9}
"""gamma of the domains in which published experiments discount; 1 elsewhere."""

_ROOT2 = 2.0**0.5
BEST_C: dict[str, dict[str, float]] = {
    "space_invaders": {"true": _ROOT2, "corrupted": 2.0, "backpropagation": 2.0, "selection": 2.0, "expansion": 1.0,
                       "simulation": 0.5, "combined": _ROOT2},
    "freeway": {"true": 2.0, "corrupted": 0.5, "backpropagation": 2.0, "selection": 2.0, "expansion": _ROOT2,
                "simulation": 2.0, "combined": _ROOT2},
    "breakout": {"true": _ROOT2, "corrupted": 2.0, "backpropagation": 1.0, "selection": 2.0, "expansion": _ROOT2,
                 "simulation": 2.0, "combined": _ROOT2},
    "two_way": {"true": 2.0, "corrupted": _ROOT2, "combined": _ROOT2},
    "two_way_icy": {"true": 0.5, "corrupted": 0.5, "combined": 1.0},
}  # fmt: skip
"""The exploration constant with the best mean reward, as the paper reports it."""


@dataclass(frozen=True)
class OnlineSettings:
    """How an agent learns in a domain: what estimates U, when, with how many minibatches, and for how long."""

    estimator: str = "network"
    schedule: Schedule = field(default_factory=Schedule)
    minibatches: int = 5000
    terminal_copies: int = 1
    """How often a terminal sample is stored."""
    steps: int = 30000
    """Real steps of a run."""
    runs: int = 15


_GRIDWORLD_ONLINE = OnlineSettings("linear", Schedule(interval=300), terminal_copies=10, steps=3000, runs=30)
ONLINE: dict[str, OnlineSettings] = {"two_way": _GRIDWORLD_ONLINE, "two_way_icy": _GRIDWORLD_ONLINE}
"""The online scenario of the domains that have settings of their own; the games use the defaults."""


def refuse_random(domain: Domain) -> None:
    """Refuses to learn in a domain whose steps are random: a real step does not show whether the model is wrong."""
    if domain.random:
        raise ValueError(
            f"domain is {domain.name}, whose steps are random; U is learned in deterministic domains only: give "
            "--algorithm agent, or --scenario offline, or plan with uamcts.search and uamcts.true_uncertainty"
        )


def online_settings(domain: Domain, algorithm: str = "combined") -> OnlineSettings:
    """How an agent learns in this domain: as the paper's do, or, with `trust`, as docs/results/beyond.md found best.

    `agent` is `uamcts.Agent`, which corrects the model and does not train.
    """
    algorithm, settings = algorithm_key(algorithm), ONLINE.get(domain.name, OnlineSettings())
    often = replace(settings.schedule, interval=500)
    if algorithm == "agent":
        return replace(settings, estimator=CORRECTIONS, schedule=often)
    refuse_random(domain)
    if algorithm != "trust":
        return settings
    return replace(settings, estimator="two_part+memory", schedule=often, minibatches=1000)


def switches(algorithm: str) -> dict[str, bool]:
    """The four switches of an algorithm, by any of its names."""
    adapted = {**ALGORITHMS, **dict.fromkeys(OURS, PHASES)}[algorithm_key(algorithm)]
    return {phase: phase in adapted for phase in PHASES}


def rules_of(algorithm: str, rules: str, graph: bool = False) -> str:
    """The rule set that an algorithm is searched by where `rules` are asked for: `trust` and graphs have their own."""
    return TRUST["rules"] if graph or algorithm in OURS else rules


def usual_c(name: str, algorithm: str, graph: bool = False) -> float:
    """The exploration constant of an algorithm in a domain: the paper's best, or sqrt 2 where it gives none.

    `trust`, `agent` and searches on graphs have one for every domain.
    """
    algorithm = algorithm_key(algorithm)
    if graph or algorithm in OURS:
        return float(SearchConfig(**TRUST).c)
    return BEST_C.get(name, {}).get(algorithm, _ROOT2)


def search_config(domain: Domain, algorithm: str = "combined", **settings: object) -> SearchConfig:
    """The paper's settings for an algorithm in a domain; `settings` replace some of them.

    `trust` is not the paper's: it keeps rules of its own, whichever of the paper's `settings` ask for, and has no tau.
    So do `corrupted` and `true` with `graph=True`: all phases off, these rules are plain MCTS.

    Raises:
        ValueError: if `graph` is asked for with an algorithm that is defined on trees, or for `agent`, which is more
            than a search.
    """
    algorithm, graph = algorithm_key(algorithm), bool(settings.get("graph", False))
    if algorithm == "agent":
        raise ValueError(
            "algorithm is agent, which learns while it acts; give --scenario online to uamcts run, or use "
            "uamcts.Agent(domain) in Python"
        )
    adapted = switches(algorithm)
    usual = {**BUDGETS.get(domain.name, {}), "gamma": DISCOUNTS.get(domain.name, 1.0), **adapted}
    if graph and algorithm not in (*PLAIN, "trust"):
        raise ValueError(
            f"algorithm is {command_name(algorithm)}, which is defined on trees; with --graph give --algorithm trust "
            "(or mcts, mcts-true), or leave --graph out"
        )
    if graph or algorithm == "trust":
        settings = {name: value for name, value in settings.items() if name not in ("rules", "tau")}
        return SearchConfig(**{**usual, **TRUST, **settings})
    rules = settings.get("rules", "released")
    program: dict[str, Any] = (
        _GRIDWORLD_PROGRAM if domain.name in ("two_way", "two_way_icy") and rules == "released" else {}
    )
    c = usual_c(domain.name, algorithm)
    defaults: dict[str, Any] = {**usual, **program, "c": c}
    return SearchConfig(**{**defaults, **settings})


def planning_domain(domain: Domain, algorithm: str) -> Domain:
    """The domain as the algorithm plans in it: `true` knows the real rules."""
    return domain.with_true_model() if algorithm_key(algorithm) == "true" else domain
