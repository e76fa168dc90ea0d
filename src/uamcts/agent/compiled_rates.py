"""The outcomes that a JAX simulator lists: which of them has happened, and with other rates than listed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uamcts.agent.chance import RealOutcome, nearest_outcome
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.corrections.outcome_rates import LEAST, OutcomeRates
from uamcts.corrections.outcome_tilt import Seen
from uamcts.types import PyTree, Transition

Outcomes: TypeAlias = Callable[[PyTree, jax.Array], tuple[Transition, jax.Array]]
"""All outcomes of a step with their probabilities."""


def rated_outcomes(outcomes: Outcomes, rates: Float[Array, "actions outcomes"] | np.ndarray) -> Outcomes:
    """Outcomes whose probabilities are corrected as `OutcomeRates.tilt` does; as listed where all rates are 1."""

    def rated(state: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
        after, listed = outcomes(state, action)
        chances, rate = jnp.asarray(listed, jnp.float32), jnp.asarray(rates)[action]
        tilted = jnp.maximum(chances, jnp.where(rate > 1.0, LEAST, 0.0)) * rate
        return after, jnp.where(jnp.all(rate == 1.0), chances, tilted / jnp.sum(tilted))

    return rated


def count_outcomes(simulator: JaxSimulator) -> int:
    """How many outcomes a simulator lists."""
    call: Any = simulator.call("outcomes", simulator.params)
    return int(jax.eval_shape(call, simulator.example, jnp.int32(0))[1].shape[0])


class ListedOutcomes:
    """The part of a planner that knows about the outcomes that its simulator lists."""

    simulator: JaxSimulator
    variant: Callable[..., Any]
    """The simulator with other parameters and the like; as it is given without any."""
    _answer: Callable[..., Any]
    _look: Callable[..., Any]

    @property
    def lists_outcomes(self) -> bool:
        """Whether the simulator lists outcomes, so that one can tell which of them has happened."""
        return self.simulator.kind == "outcomes"

    def listed(self, state: PyTree, action: PyTree, real: RealOutcome) -> tuple[list[float], list[bool]] | None:
        """The probabilities that the simulator lists, and which outcomes are what happened; None if it lists none.

        An unlisted outcome counts as the nearest listed one.
        """
        if not self.lists_outcomes:
            return None
        said, there = self._answer(state, action, self.variant({}, None)), self._look(real.following)
        matches = [
            key == there.key
            and (real.terminal is None or bool(end) == real.terminal)
            and (real.reward is None or bool(abs(paid - real.reward) <= 1e-6 * max(1.0, abs(paid))))
            for key, paid, end in zip(said.keys, said.rewards.tolist(), said.ends.tolist(), strict=True)
        ]
        if not any(matches):
            found = list(zip(range(len(matches)), said.rewards.tolist(), said.ends.tolist(), strict=True))
            features, keys = [*said.features, there.features], [*said.keys, there.key]
            here = RealOutcome(len(matches), real.reward, real.terminal)
            nearest = nearest_outcome(here, found, features.__getitem__, keys.__getitem__)
            matches = [place == nearest for place in range(len(matches))]
        return said.chances.tolist(), matches

    def seen_outcomes(self, most: int) -> list[Seen]:
        """None: outcomes of JAX simulators are corrected only by their places in the list."""
        del most
        return []

    def seen_outcome(self, *transition: object) -> None:
        """None, for the same reason."""

    def planned_chances(self, *transition: object) -> None:
        """None: changes of random JAX simulators are not noticed by their facts."""

    def recent_trials(self, *seen: object) -> None:
        """Nothing: transitions are not kept in their order here."""

    def expected_surprise(self, state: PyTree, action: PyTree, variant: object) -> tuple[float, float]:
        """Mean and variance of the surprise, in nats, that a variant that lists outcomes expects."""
        said, chances = self._answer(state, action, variant), Counter[Hashable]()
        for chance, key, paid, end in zip(said.chances.tolist(), said.keys, said.rewards, said.ends, strict=True):
            chances[key, float(paid), bool(end)] += chance
        nats = [(chance, -math.log(chance)) for chance in chances.values() if chance > 0.0]
        mean = sum(chance * one for chance, one in nats)
        return mean, sum(chance * (one - mean) ** 2 for chance, one in nats)

    def _rates(self, rates: OutcomeRates | None = None) -> np.ndarray | None:
        """The rate of every outcome of every action, [actions, outcomes]; None if the simulator lists none.

        Rates of 1 are an array too, so that searches are not compiled again when others are in use.
        """
        if not self.lists_outcomes:
            return None
        actions, count = self.simulator.num_actions, count_outcomes(self.simulator)
        found = [[1.0] * count if rates is None else rates.rates(count, action) for action in range(actions)]
        return np.array(found, np.float32)
