"""What a rule set decides: the base class, which is plain MCTS.

The phases (`select`, `expand`, `simulate`, `backpropagate`) and the plain engine (`uamcts.reference`) read like the
algorithm and ask a rule set wherever published versions of it differ. A rule set is a stateless object, looked up once
while the search is traced, so asking it costs nothing.

Both engines share the arithmetic of the first group of methods: these use only operators, so that they work on Python's
floats and on arrays alike. What is done differently for an array over siblings and for a list of them comes in pairs:
a method for the compiled engine and one named `plain_...` for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from jaxtyping import Bool, Float

from uamcts.runtime.lazy_jax import jnp
from uamcts.types import Array, Number, Switch

if TYPE_CHECKING:
    from uamcts.mcts.config import SearchConfig

SWITCHES = frozenset({"selection", "expansion", "simulation", "backpropagation"})


class Edges(NamedTuple):
    """What a rule set notes about the transitions into siblings, [actions] each."""

    bias: Float[Array, " actions"]
    """How selection corrects the score of a child: see `Rules.score`."""
    keep: Float[Array, " actions"]
    """Which fraction of a value passes through the transition: see `Rules.pieces` and `Rules.credit`."""


class PlainEdges(NamedTuple):
    """The same as lists, for the plain engine."""

    bias: Sequence[float]
    keep: Sequence[float]


class Rules:
    """A rule set. The base class adapts nothing: it is plain MCTS, in which uncertainty has no effect."""

    name: str = "plain"
    title: str = "Plain MCTS"
    """How figures and tables call the rule set."""
    reads: frozenset[str] = SWITCHES
    """The settings it reads, beside budgets, c and gamma. `SearchConfig` refuses to set others."""
    default_c: float = 2.0**0.5
    expands_root: bool = True
    """Whether the root is expanded before the first iteration, or like any leaf."""
    normalizes: bool = True
    """Whether selection scales the values of siblings to [0, 1]."""
    deletion_scale: float | None = None
    """UA-Expansion deletes a child with probability 1 - tau / deletion_scale; None: it never does."""
    allows_graph: bool = False
    """Whether values may be Bellman backups on a graph in which equal states share a node."""
    weighs_rollouts: bool = False
    """Whether the return of a rollout depends on where it was first doubtful."""
    follows_doubt: bool = False
    """Whether settings change below a transition whose `keep` is less than 1: see `below_doubt`."""
    picks_at_random: bool = False
    """Whether the child that is rolled out after an expansion is drawn; else it is the first of `first_choice`."""
    breaks_ties_by_value: bool = False
    """Whether the best of the most visited moves is made; else one of them is drawn."""

    # Arithmetic, for floats and arrays alike.

    def value(self, visits: Number, total: Number, weight: Number) -> Number:
        """The value of a visited node, without the reward of the transition into it: Q / N."""
        del weight
        return total / visits

    def pieces(self, reward: Number, keep: Number, config: SearchConfig) -> tuple[tuple[Number, Number], ...]:
        """How a value changes on its way up through a transition: the least of slope * value + offset over the pieces.

        Slopes are at least 0. At most one transition of a path may have pieces that differ.
        """
        del keep
        return ((config.gamma, reward),)

    def child_value(self, value: Number, reward: Number, keep: Number, config: SearchConfig) -> Number:
        """x, by which selection and the final move compare siblings: r + gamma value."""
        del keep
        return reward + config.gamma * value

    def score(self, value: Number, exploration: Number, bias: Number) -> Number:
        """The score of a child from its (scaled) value and its exploration term."""
        del bias
        return value + exploration

    def credit(self, value: Number, keep: Number) -> Number:
        """What is added to Q of a node when `value` reaches it."""
        del keep
        return value

    def rollout_return(self, before: Number, after: Number, discount: Number, config: SearchConfig) -> Number:
        """The return of a rollout that collected `before` up to its first doubtful step and `after` beyond it.

        `discount` is that of the step after the doubtful one, and 0 if no step was doubtful. Called only if
        `weighs_rollouts`.
        """
        del discount, config
        return before + after

    def doubts(self, uncertainty: Number, config: SearchConfig) -> Switch:
        """Whether a transition counts as doubtful. Called only if `weighs_rollouts`."""
        raise NotImplementedError

    def below_doubt(self, config: SearchConfig, doubted: Switch) -> SearchConfig:
        """The settings that hold below a transition. Called only if `follows_doubt`."""
        del doubted
        return config

    # Pairs: for arrays over siblings, and for lists of them.

    def edges(
        self, uncertainty: Float[Array, " actions"], exists: Bool[Array, " actions"], config: SearchConfig
    ) -> Edges:
        """What is noted about the transitions into new siblings."""
        del exists, config
        return Edges(jnp.ones_like(uncertainty), jnp.ones_like(uncertainty))

    def plain_edges(self, uncertainty: Sequence[float], config: SearchConfig) -> PlainEdges:
        del config
        return PlainEdges([1.0] * len(uncertainty), [1.0] * len(uncertainty))

    def first_choice(self, exists: Bool[Array, " actions"], bias: Float[Array, " actions"]) -> Bool[Array, " actions"]:
        """Which children come first among those that `exists` and were never visited."""
        del bias
        return exists

    def plain_first_choice(self, bias: Sequence[float]) -> list[int]:
        """Their places, in action order."""
        return list(range(len(bias)))

    def candidates(
        self, exists: Bool[Array, " actions"], values: Float[Array, " actions"], bias: Float[Array, " actions"]
    ) -> Bool[Array, " actions"]:
        """Which siblings selection chooses among."""
        del values, bias
        return exists

    def plain_candidates(self, values: Sequence[float], bias: Sequence[float]) -> list[int]:
        del bias
        return list(range(len(values)))

    def leaf_value(
        self, returns: Float[Array, " rollouts"], uncertainty: Float[Array, " rollouts"], config: SearchConfig
    ) -> Float[Array, ""]:
        """G, the value of a leaf from the returns and uncertainties of its rollouts."""
        del uncertainty, config
        return jnp.mean(returns)

    def plain_leaf_value(self, returns: Sequence[float], uncertainty: Sequence[float], config: SearchConfig) -> float:
        del uncertainty, config
        return sum(returns) / len(returns)
