"""`rules="trust"`: what lies beyond a doubtful transition counts less, once.

doubtful(s, a) = U(s, a) > doubt_threshold
keep(s, a)     = 1 - rho where (s, a) is the first doubtful transition on the way from the root, else 1
P(V, keep)     = min(V, keep V + (1 - keep) V_min)   the worst case over a total-variation ball around the model
selection        x_i = r_i + gamma P(value(v_i), keep_i);  score_i <- score_i - penalty where the child is doubtful;
                 where all x_i are equal, and among children never visited, only the certain ones are candidates
simulation       g = r_1 + ... + gamma^(d-1) r_d + gamma^d P(return after step d, keep_d), d the first doubtful step;
                 the mean of g
backpropagation  value <- r(v) + gamma P(value, keep(v))
the move         of the most visited the one with the best value
With `follow`, the search looks for the best sequence of actions, and the move begins it: see `mcts.best_sequence`.
Below the first doubtful transition, and everywhere else, this is plain MCTS: no child is deleted, and tau is not used.
V_min is `worst`, or the worst return of random rollouts from the root (`simulate.worst_return`), at most 0. It is an
estimate, so P takes the minimum: a transition never gains by being doubtful. docs/concepts/trust.md says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float

from uamcts.mcts.rules.base import SWITCHES, Edges, PlainEdges, Rules
from uamcts.runtime.lazy_jax import is_array, jnp
from uamcts.types import Array, Number, Switch

if TYPE_CHECKING:
    from uamcts.mcts.config import SearchConfig


class Trust(Rules):
    """Trust search: a rule set of our own. `bias` is the penalty of a doubtful child, else 0."""

    name = "trust"
    title = "trust"
    reads = SWITCHES | {"root_visits", "rho", "penalty", "doubt_threshold", "worst", "follow"}
    default_c = 4.0
    allows_graph = True
    weighs_rollouts = True
    follows_doubt = True
    breaks_ties_by_value = True

    def pieces(self, reward: Number, keep: Number, config: SearchConfig) -> tuple[tuple[Number, Number], ...]:
        gamma = config.gamma
        return (gamma, reward), (gamma * keep, reward + gamma * (1.0 - keep) * config.v_min)

    def child_value(self, value: Number, reward: Number, keep: Number, config: SearchConfig) -> Number:
        return least(*(slope * value + offset for slope, offset in self.pieces(reward, keep, config)))

    def score(self, value: Number, exploration: Number, bias: Number) -> Number:
        return value + exploration - bias

    def doubts(self, uncertainty: Number, config: SearchConfig) -> Switch:
        return uncertainty > config.threshold

    def rollout_return(self, before: Number, after: Number, discount: Number, config: SearchConfig) -> Number:
        rho = config.rho * (discount > 0)
        return before + least(after, (1.0 - rho) * after + rho * discount * config.v_min)

    def below_doubt(self, config: SearchConfig, doubted: Switch) -> SearchConfig:
        """Beyond the first doubtful transition a second one takes nothing more."""
        if isinstance(doubted, bool):
            return replace(config, rho=0.0, penalty=0.0) if doubted else config
        rho, penalty = (jnp.where(doubted, 0.0, number) for number in (config.rho, config.penalty))
        return replace(config, rho=rho, penalty=penalty)

    def edges(
        self, uncertainty: Float[Array, " actions"], exists: Bool[Array, " actions"], config: SearchConfig
    ) -> Edges:
        del exists
        doubtful = self.doubts(uncertainty, config)
        bias = jnp.where(config.selection & doubtful, config.penalty, 0.0)
        keep = jnp.where(config.backpropagation & doubtful, 1.0 - config.rho, 1.0)
        return Edges(bias, keep)

    def plain_edges(self, uncertainty: Sequence[float], config: SearchConfig) -> PlainEdges:
        doubtful = [self.doubts(u, config) for u in uncertainty]
        bias = [config.penalty if config.selection and doubt else 0.0 for doubt in doubtful]
        keep = [1.0 - config.rho if config.backpropagation and doubt else 1.0 for doubt in doubtful]
        return PlainEdges(bias, keep)

    def first_choice(self, exists: Bool[Array, " actions"], bias: Float[Array, " actions"]) -> Bool[Array, " actions"]:
        """The certain ones, or all: those with the least penalty."""
        from uamcts.mcts.tree import reduce_actions

        return exists & (bias == reduce_actions(jnp.minimum, jnp.where(exists, bias, jnp.inf)))

    def plain_first_choice(self, bias: Sequence[float]) -> list[int]:
        smallest = min(bias)
        return [place for place, penalty in enumerate(bias) if penalty == smallest]

    def candidates(
        self, exists: Bool[Array, " actions"], values: Float[Array, " actions"], bias: Float[Array, " actions"]
    ) -> Bool[Array, " actions"]:
        from uamcts.mcts.tree import reduce_actions

        low = reduce_actions(jnp.minimum, jnp.where(exists, values, jnp.inf))
        equal = low == reduce_actions(jnp.maximum, jnp.where(exists, values, -jnp.inf))
        return exists & (~equal | self.first_choice(exists, bias))

    def plain_candidates(self, values: Sequence[float], bias: Sequence[float]) -> list[int]:
        equal = min(values) == max(values)
        return self.plain_first_choice(bias) if equal else list(range(len(values)))


def least(first: Number, second: Number) -> Number:
    """The lesser of two floats, or of the entries of two arrays."""
    if is_array(first) or is_array(second):
        return jnp.minimum(first, second)
    return min(first, second)
