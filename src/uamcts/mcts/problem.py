"""What a search plans in: a model in one of its three forms, and what people bring to the search.

| form       | call                       | returns                                         |
|------------|----------------------------|-------------------------------------------------|
| `step`     | `step(state, action)`      | a `Transition`                                  |
| `outcomes` | `outcomes(state, action)`  | a `Transition` over [K], probabilities [K]      |
| `sample`   | `sample(state, action, key)` | a `Transition`, drawn with the key            |

The phases of a search do not ask which form a model has: expansion calls `Problem.outcomes_of`, rollouts call
`Problem.choose` and `Problem.advance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.arguments import action_count, short_repr
from uamcts.randomness import GOLDEN, hash_word, pick, randint, uniform
from uamcts.types import (
    AnyModel,
    BatchedUncertainty,
    Legal,
    Model,
    Policy,
    Prior,
    PyTree,
    Transition,
    Uncertainty,
    Value,
)

_OUTCOME = np.uint32(0x51ED270B)
"""Tells the random word of an outcome from that of an action, which come from the same word of a rollout's stream."""


class Problem(NamedTuple):
    """A model, what is uncertain about it, which actions there are, and what guides the search."""

    model: Model | None
    """The model's `step`. None if it is random."""
    uncertainty: Uncertainty | BatchedUncertainty
    num_actions: int
    legal: Legal | None = None
    outcomes: Callable[[PyTree, jax.Array], tuple[Transition, jax.Array]] | None = None
    sample: Callable[[PyTree, jax.Array, jax.Array], Transition] | None = None
    samples: int = 8
    """How many outcomes of an action are drawn in an expansion, for a model that can only `sample`."""
    policy: Policy | None = None
    """The rollout policy: (state, key) -> an action, or probabilities [num_actions]. None: uniform."""
    value: Value | None = None
    """The value of a state, instead of rollouts or mixed with them."""
    prior: Prior | None = None

    @property
    def is_random(self) -> bool:
        """Whether an action may have more than one outcome."""
        return self.outcomes is not None or self.sample is not None

    def slots(self, state: PyTree) -> int:
        """How many outcomes `outcomes_of` gives, without computing them."""
        shapes = jax.eval_shape(self.outcomes_of, state, jnp.int32(0), jnp.zeros(2, jnp.uint32), jnp.int32(0))
        return int(shapes[1].shape[0])

    def outcomes_of(
        self, state: PyTree, action: jax.Array, seed: jax.Array, counter: jax.Array
    ) -> tuple[Transition, jax.Array]:
        """The outcomes of an action, a `Transition` over [C], and their probabilities [C].

        C is 1 for a deterministic model, K for one that lists its outcomes, and `samples` for one that only draws them;
        those drawn are equally likely. `counter` numbers the calls of one search: equal ones draw the same.
        """
        if self.outcomes is not None:
            after, probabilities = self.outcomes(state, action)
            probabilities = jnp.asarray(probabilities, float)
            if probabilities.ndim != 1 or probabilities.shape[0] == 0:
                raise ValueError(
                    f"outcomes(state, action) returned probabilities of shape {probabilities.shape}; return a "
                    "Transition whose leaves have a leading axis [K] of at least one outcome, and probabilities [K]"
                )
            return Transition(*after), probabilities
        if self.sample is not None:
            words = jax.random.wrap_key_data(seed, impl="threefry2x32")
            numbers = counter.astype(jnp.uint32) * self.samples + jnp.arange(self.samples, dtype=jnp.uint32)
            keys = jax.vmap(jax.random.fold_in, (None, 0))(words, numbers)
            after = jax.vmap(self.sample, (None, None, 0))(state, action, keys)
            return Transition(*after), jnp.full(self.samples, 1.0 / self.samples, float)
        after = cast(Model, self.model)(state, action)
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], after), jnp.ones(1, float)

    def advance(self, state: PyTree, action: jax.Array, bits: jax.Array) -> Transition:
        """One step of a rollout. The outcome is drawn with a word of its own, made from `bits`."""
        if self.outcomes is not None:
            after, probabilities = self.outcomes(state, action)
            running = jnp.cumsum(jnp.asarray(probabilities, float))
            place = uniform(hash_word(bits ^ _OUTCOME)) * running[-1]
            slot = jnp.sum(running <= place)
            return cast(Transition, jax.tree.map(lambda leaf: leaf[slot], Transition(*after)))
        if self.sample is not None:
            return Transition(*self.sample(state, action, key_of(bits ^ _OUTCOME)))
        return cast(Model, self.model)(state, action)

    def choose(self, state: PyTree, bits: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """The action of a rollout, and whether there is none to take (None: there always is one).

        What a policy suggests counts where it is legal; where nothing of it is, a legal action is drawn.
        """
        allowed = None if self.legal is None else self.legal(state)
        uniform_choice = randint(bits, self.num_actions) if allowed is None else pick(bits, allowed)
        stuck = None if allowed is None else ~jnp.any(allowed)
        if self.policy is None:
            return uniform_choice, stuck
        suggestion = jnp.asarray(self.policy(state, key_of(bits)))
        legal = jnp.ones(self.num_actions, bool) if allowed is None else allowed
        if suggestion.ndim == 0:
            action = suggestion.astype(jnp.int32)
            good = (action >= 0) & (action < self.num_actions) & legal[jnp.clip(action, 0, self.num_actions - 1)]
            return jnp.where(good, action, uniform_choice), stuck
        running = jnp.cumsum(jnp.where(legal & (suggestion > 0), suggestion, 0.0))
        slot = jnp.sum(running <= uniform(bits) * running[-1]).astype(jnp.int32)
        return jnp.where((running[-1] > 0) & (running[-1] < jnp.inf), slot, uniform_choice), stuck


def key_of(bits: jax.Array) -> jax.Array:
    """A key of two words made from one."""
    words = jnp.stack([hash_word(bits), hash_word(bits + GOLDEN)])
    return cast(jax.Array, jax.random.wrap_key_data(words, impl="threefry2x32"))


def make_problem(
    model: AnyModel,
    uncertainty: Uncertainty | BatchedUncertainty,
    num_actions: int | None = None,
    legal: Legal | None = None,
    **fields: Any,
) -> Problem:
    """A problem out of a model, which is planned in by `outcomes` if it has that, else by `sample`, else by `step`.

    The number of actions, and which of them are legal, are the model's own unless they are given. `domain.model` of a
    domain with a random world is planned in by `domain.model_outcomes`. `fields` are other fields of `Problem`.
    """
    if hasattr(uncertainty, "glance") and not isinstance(uncertainty, BatchedUncertainty):
        raise TypeError(
            f"uncertainty is {short_repr(uncertainty)}, with the methods memory, glance and many; rename them to "
            "empty_cache, lookup and predict_batch"
        )
    owner = getattr(model, "__self__", model)
    num_actions = getattr(owner, "num_actions", None) if num_actions is None else num_actions
    if num_actions is None:
        raise ValueError("num_actions is not given and the model does not have it; pass num_actions=...")
    legal = getattr(owner, "legal", None) if legal is None else legal
    return Problem(
        uncertainty=uncertainty, num_actions=action_count(num_actions), legal=legal, **_form_of(model), **fields
    )


def _form_of(model: AnyModel) -> dict[str, Any]:
    owner = getattr(model, "__self__", None)
    if owner is not None and getattr(owner, "random", False) is True:
        exact = getattr(owner, f"{getattr(model, '__name__', '')}_outcomes", None)
        if exact is not None:
            return {"model": None, "outcomes": exact}
    for form in ("outcomes", "sample"):
        if callable(getattr(model, form, None)):
            return {"model": None, form: getattr(model, form)}
    step = model if callable(model) else getattr(model, "step", None)
    if not callable(step):
        raise TypeError(
            f"model is {short_repr(model)}; give a function (state, action) -> Transition, or an object with "
            "`outcomes`, `sample` or `step`"
        )
    return {"model": step}
