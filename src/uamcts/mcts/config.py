"""The settings of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, fields, replace
from typing import Any, Self

import numpy as np

from uamcts.arguments import short_repr
from uamcts.mcts.rules import RULES
from uamcts.mcts.rules.base import SWITCHES
from uamcts.runtime.lazy_jax import is_array, is_traced, jax, jnp, when_loaded
from uamcts.types import Number, Switch


@dataclass(frozen=True)
class SearchConfig:
    """The settings of a search.

    A pytree: all settings but the first seven may be traced, and may be arrays with one entry per search of a batch. A
    setting that the rule set does not read must be left at its default. A config knows which settings were given
    (`given`): an `Agent` takes those and uses its own defaults for the rest. None stands for the default everywhere.

    Args:
        iterations: how many times the search selects, expands, simulates and backpropagates; the paper's N_I.
        rollouts: random rollouts per iteration; the paper's N_S.
        depth: the most steps of a rollout; the paper's D_S.
        rules: the rule set. "released" does what the authors' program does, "pseudocode" what the paper prints
            (docs/results/rules.md); "trust" is our own (docs/concepts/trust.md). None: "released", or "trust" with
            `graph`.
        tree_depth: the longest path in the tree: a node at its end is rolled out but not expanded. It has no effect
            with fewer than 256 iterations.
        graph: let equal states share one node, and back up values by the Bellman equation instead of averaging
            (docs/concepts/graph.md).
        outcomes: the most outcomes per action that are drawn from a model that can only `sample`.
        c: how much to explore. None: the rule set's own default, 4 for trust and sqrt 2 for the others.
        tau: the uncertainty factor. Differences of U much smaller than this do not matter, much larger ones decide.
        gamma: the discount per step.
        value_weight: the weight of a `value` function at a leaf; rollouts have the rest. 1: no rollouts.
        follow: trust, on trees: how likely a step of a rollout repeats the action of the best sequence found so far,
            instead of a random one. Above 0, every second iteration rolls out from the root, all iterations look
            equally far ahead, rewards far ahead count less, and the move is the first action of the best sequence. It
            has no effect in a random model. An `Agent` sets it unless you bring a policy, a value or a prior
            (docs/concepts/graph.md).
        selection: use UA-Selection. With all four of these switches off the search is plain MCTS.
        expansion: use UA-Expansion.
        simulation: use UA-Simulation.
        backpropagation: use UA-Backpropagation.
        deletion_scale: UA-Expansion deletes a child with probability 1 - tau / deletion_scale. None: 1 if released, 10
            if pseudocode.
        deletion_threshold: UA-Expansion deletes only if the uncertainties of the children sum to more than this.
        root_visits: the initial visit count of the root, for rule sets that expand it first (all but pseudocode).
        rho: trust: the share of what lies beyond the first doubtful transition that does not count.
        penalty: trust: how much UA-Selection lowers the score of a doubtful child, unless there was doubt on the way
            to it.
        doubt_threshold: trust: a transition is doubtful if its uncertainty is above this. None: 0. An `Agent` treats a
            learned U as 0 if it does not stand out from what the estimator predicts for transitions known to be right.
        first: the action that is tried first at a node where none was tried; the others follow in their order, and
            after the last one those before it. None: action 0. With few iterations the first action is most of what a
            search knows of the nodes far from the root, so an `Agent` of a simulator draws it anew for every search.
        worst: trust: V_min, the return expected beyond a doubtful transition. None: the worst return of a few random
            rollouts from the root, at most 0. An `Agent` of a simulator uses the worst return seen.
        unset: internal, for `dataclasses.replace`: the settings that were not given, with the values they got.

    Raises:
        ValueError: if a setting is out of range, or if the rule set does not read it.

    Example:
        ```python
        config = uamcts.SearchConfig(iterations=100, rollouts=10, depth=50, tau=0.1)
        plain = uamcts.SearchConfig(selection=False, expansion=False, simulation=False, backpropagation=False)
        ```
    """

    iterations: int = 100
    rollouts: int = 10
    depth: int = 50
    rules: str = None  # type: ignore[assignment]  # settled in __post_init__
    tree_depth: int = 256
    graph: bool = False
    outcomes: int = 8

    c: Number = None
    tau: Number = 0.1
    gamma: Number = 1.0
    value_weight: Number = 1.0
    follow: Number = 0.0
    selection: Switch = True
    expansion: Switch = True
    simulation: Switch = True
    backpropagation: Switch = True
    deletion_scale: Number | None = None
    deletion_threshold: Number = 0.0
    root_visits: Number = 0
    rho: Number = 0.99
    penalty: Number = 0.75
    doubt_threshold: Number | None = None
    worst: Number | None = None
    first: Number | None = None
    unset: InitVar[Mapping[str, Any] | None] = None
    """Not a setting: left out of comparisons, hashes and the pytree. None if JAX has rebuilt the config."""

    def __new__(cls, *values: object, **named: Any) -> Self:
        """Notes which settings the caller has named: after `__init__`, nobody can tell any more."""
        names, before = [field.name for field in fields(cls)], named.get("unset") or {}
        told = {**dict(zip(names, values, strict=False)), **named}
        # `replace` names all settings, and passes on the same objects where nothing is to change
        unset = [name for name in names if told.get(name) is None or told[name] is before.get(name)]
        config = super().__new__(cls)
        config.__dict__["unset"] = dict.fromkeys(unset)
        return config

    def __post_init__(self, unset: Mapping[str, Any] | None) -> None:
        del unset
        self._settle()
        self.__dict__["unset"] = {name: getattr(self, name) for name in self.__dict__["unset"]}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restores a copy or a pickled config. `replace` knows settings that were not given by their objects."""
        self.__dict__.update(state)
        if "unset" in state:
            self.__dict__["unset"] = {name: getattr(self, name) for name in state["unset"]}

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were given and are not None, by name; the others have their defaults."""
        unset = self.__dict__.get("unset", ())
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in unset}

    def _settle(self) -> None:
        """Chooses the defaults that depend on other settings, and refuses illegal values."""
        for name in ("iterations", "rollouts", "depth", "tree_depth", "outcomes"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 1 <= value < 2**31:
                raise ValueError(
                    f"{name} is {short_repr(value)}; it must be a whole number of at least 1 and below 2^31"
                )
        if not isinstance(self.graph, (bool, np.bool_)):
            raise ValueError(f"graph is {short_repr(self.graph)}; it must be True or False")
        if self.rules is None:
            object.__setattr__(self, "rules", "trust" if self.graph else "released")
        if not isinstance(self.rules, str) or self.rules not in RULES:
            raise ValueError(f"rules is {short_repr(self.rules)}; there are {', '.join(map(repr, RULES))}")
        if self.graph and not RULES[self.rules].allows_graph:
            raise ValueError(
                f"rules is {self.rules!r}, which is defined on trees; with graph=True leave rules out, or take 'trust' "
                "(without an uncertainty it is plain MCTS)"
            )
        if self.c is None:
            object.__setattr__(self, "c", RULES[self.rules].default_c)
        _number(self, "c", lambda c: 0 <= c < np.inf, "it must be a finite number of at least 0")
        _number(self, "tau", lambda tau: tau > 0, "it must be above 0 (infinity turns the adaptation off)")
        _number(self, "gamma", lambda gamma: 0 <= gamma <= 1, "it must lie in [0, 1]")
        _number(self, "value_weight", lambda weight: 0 <= weight <= 1, "it must lie in [0, 1] (1: no rollouts)")
        _number(self, "follow", lambda chance: 0 <= chance <= 1, "it must lie in [0, 1] (0: random rollouts)")
        _number(self, "deletion_scale", lambda scale: scale > 0, "it must be above 0")
        _number(self, "deletion_threshold", lambda limit: limit >= 0, "it must be at least 0")
        for name in SWITCHES:
            _number(self, name, lambda switch: switch in (0, 1), "it must be True or False")
        _number(self, "root_visits", lambda visits: visits >= 0, "it must be at least 0")
        _number(self, "rho", lambda rho: 0 <= rho <= 1, "it must lie in [0, 1] (0 believes every transition)")
        _number(self, "penalty", lambda penalty: 0 <= penalty < np.inf, "it must be a finite number of at least 0")
        _number(self, "worst", lambda worst: -np.inf < worst < np.inf, "it must be a finite number")
        _number(
            self, "first", lambda first: first >= 0 and first == int(first), "it must be a whole number of at least 0"
        )
        _number(self, "doubt_threshold", lambda limit: limit >= 0, "it must be at least 0 (infinity doubts nothing)")
        for name in ADAPTATION - RULES[self.rules].reads:
            _refuse_unread(self, name)
        if self.graph and not is_traced(self.follow) and np.any(np.asarray(self.follow) != 0):
            raise ValueError(
                f"follow is {short_repr(self.follow)}, which is for trees: on a graph values are Bellman backups, "
                "which hold the best return already; leave follow out, or give graph=False"
            )

    def with_tau(self, tau: Number) -> SearchConfig:
        """The same settings at another tau; no change for a rule set that does not read it."""
        return replace(self, tau=tau) if self.reads("tau") else self

    def reads(self, name: str) -> bool:
        """Whether the rule set reads one of the settings that not all of them do."""
        return name in RULES[self.rules].reads

    def identity(self) -> dict[str, Any]:
        """The settings by name, for telling searches apart in records.

        Settings that came with later versions are left out at their defaults: records from before stay valid.
        """
        later = ("graph", "outcomes", "value_weight", "follow", "first")
        settings = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, usual) in settings.items() if name not in later or value != usual}

    @property
    def follows(self) -> bool:
        """Whether rollouts follow the best sequence of actions, or may do so where `follow` is not known yet."""
        return not isinstance(self.follow, (int, float)) or self.follow > 0

    @property
    def v_min(self) -> Number:
        """trust: V_min, 0 where `worst` is None."""
        return 0.0 if self.worst is None else self.worst

    @property
    def threshold(self) -> Number:
        """trust: the uncertainty above which a transition is doubtful, 0 where `doubt_threshold` is None."""
        return 0.0 if self.doubt_threshold is None else self.doubt_threshold


_READ = [rules.reads for rules in RULES.values()]
ADAPTATION = frozenset.union(*_READ) - frozenset.intersection(*_READ)
"""The settings that some rule sets read and others do not."""
STATIC_FIELDS = ("iterations", "rollouts", "depth", "rules", "tree_depth", "graph", "outcomes")
"""The settings that decide the shape of a search; the others are leaves of the pytree."""
SETTINGS = tuple(field.name for field in fields(SearchConfig))
"""The names of all settings."""
_LEAVES = tuple(name for name in SETTINGS if name not in STATIC_FIELDS)


def _unflatten(static: tuple[Any, ...], leaves: tuple[Any, ...]) -> SearchConfig:
    """Rebuilds a config without validation: JAX also puts axes, specifications and placeholders in the leaves."""
    config = object.__new__(SearchConfig)
    for name, value in (*zip(STATIC_FIELDS, static, strict=True), *zip(_LEAVES, leaves, strict=True)):
        object.__setattr__(config, name, value)
    return config


def _flatten(config: SearchConfig) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return tuple(getattr(config, name) for name in _LEAVES), tuple(getattr(config, name) for name in STATIC_FIELDS)


when_loaded(lambda: jax.tree_util.register_pytree_node(SearchConfig, _flatten, _unflatten))


def longest_path(config: SearchConfig, num_actions: int, masked: bool) -> int:
    """How many levels the tree may have: no more than `iterations` can reach, and no more than `tree_depth`.

    All children of a node are visited before one of them gets children of its own, so that every level takes as many
    iterations as a node has children: all actions but one that was deleted, if no action is illegal.
    """
    fewest = 1 if masked else max(1, num_actions - 1)
    return min(config.iterations // fewest + 2, config.tree_depth)


def most_growths(config: SearchConfig, num_actions: int, masked: bool, slots: int) -> int:
    """How many places of a tree, each with `slots` outcomes per action, a search from scratch can expand.

    All a children of a place are visited before a place below one of them is expanded: one of them when their parent is
    expanded, the others in a - 1 iterations that expand nothing. So at most a * slots of a * slots + a - 1 iterations
    expand. Nor are there more places than `tree_depth` has room for.
    """
    deletes = RULES[config.rules].deletion_scale is not None and config.expansion is not False
    fewest = 1 if masked else max(1, num_actions - deletes)
    growths = min(config.iterations, 1 + -(-config.iterations * fewest * slots // (fewest * slots + fewest - 1)))
    room = 0
    for level in range(longest_path(config, num_actions, masked)):
        room += (num_actions * slots) ** level
        if room >= growths:
            break
    return min(growths, room)


def _number(config: SearchConfig, name: str, good: Callable[[Any], bool], remedy: str) -> None:
    """Refuses a concrete value, or an array with any entry, that is not good. A traced one cannot be checked."""
    value = getattr(config, name)
    optional = ("deletion_scale", "worst", "doubt_threshold", "first")
    if is_traced(value) or (value is None and name in optional):
        return
    if isinstance(value, (list, tuple)):
        raise ValueError(f"{name} is {short_repr(value)}; {remedy} (for one per search of a batch, give an array)")
    if not isinstance(value, (bool, int, float, np.ndarray, np.generic)) and not is_array(value):
        raise ValueError(f"{name} is {short_repr(value)}; {remedy}")
    if isinstance(value, (bool, np.bool_)) and name not in SWITCHES:
        raise ValueError(f"{name} is {short_repr(value)}; {remedy}")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" and (array.dtype == object or not jnp.issubdtype(array.dtype, np.number)):
        raise ValueError(f"{name} is {short_repr(value)}; {remedy}")
    if array.dtype.kind == "c":
        raise ValueError(f"{name} is {short_repr(value)}, a complex number; {remedy}")
    for number in np.ravel(array).tolist():
        if not good(number):
            raise ValueError(f"{name} is {number!r}; {remedy}")


def _refuse_unread(config: SearchConfig, name: str) -> None:
    """Refuses a concrete value that the rule set would ignore."""
    value, default = getattr(config, name), SearchConfig.__dataclass_fields__[name].default
    if value is default or is_traced(value):
        return
    if default is None or np.any(np.asarray(value) != default):
        reading = ", ".join(repr(rules.name) for rules in RULES.values() if name in rules.reads)
        raise ValueError(
            f"{name} is {short_repr(value)}, but rules={config.rules!r} does not read it; leave it out, or choose "
            f"rules that do: {reading}"
        )
