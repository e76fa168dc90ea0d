"""Models of all three kinds behind one interface: every outcome, draws, or deterministic steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from uamcts.arguments import action_count, legal_actions, short_repr
from uamcts.reference.tree import Draws, check_reward

Outcome = tuple[Any, float, bool]
"""A state, a reward, and whether the episode is over."""
TOLERANCE = 1e-6
"""How far from 1 the sum of an action's probabilities may be."""
TRIALS = 4
"""How often each action of the root is sampled twice with equal generators, to find samplers with hidden state."""


class Dynamics:
    """A model given as `outcomes`, `sample` or `step`, in this order of preference.

    `drawn` is how many outcomes of an action are drawn where a model can only `sample`.
    """

    def __init__(self, model: Any, draws: Draws, drawn: int):
        self.model, self.drawn = model, drawn
        self.kind = next((name for name in ("outcomes", "sample", "step") if callable(getattr(model, name, None))), "")
        if not self.kind:
            raise TypeError(
                f"model is {short_repr(model)}, which has none of outcomes(state, action), sample(state, action, rng) "
                "and step(state, action); give it one of them"
            )
        self.random = self.kind != "step"
        self.continuous = model.num_actions is None
        self.num_actions = 1 if self.continuous else action_count(model.num_actions)
        self.actions = range(self.num_actions)
        self.propose: Callable[[Any], Any] | None = None  # draws continuous actions
        self.generator = draws.generator() if self.kind == "sample" else None
        allowed = getattr(model, "legal_actions", None)
        self.legal: Callable[[Any], list[int]] | None = None
        if getattr(allowed, "checked", False):  # an agent's model has looked at the answer itself
            self.legal = allowed
        elif allowed is not None:
            self.legal = lambda state: legal_actions(allowed(state), self.num_actions)

    def legal_actions(self, state: object) -> Any:
        """The legal actions of a state, in order."""
        return self.actions if self.legal is None else self.legal(state)

    def outcomes(self, state: object, action: Any) -> list[tuple[float, Outcome]]:
        """The outcomes of an action with their probabilities; draws with equal shares where it can only `sample`."""
        if self.kind == "step":
            return [(1.0, self.model.step(state, action))]
        if self.kind == "outcomes":
            found = self.model.outcomes(state, action)
            check_probabilities(found, state, action)
            return found
        return [(1.0 / self.drawn, self.sample(state, action)) for _ in range(self.drawn)]

    def sample(self, state: object, action: Any) -> Outcome:
        """A draw from a model that can `sample`."""
        return self.model.sample(state, action, self.generator)

    def stepper(self, chance: Callable[[], float] | None) -> Callable[[Any, int], Outcome]:
        """A function that takes a step of a rollout; `chance` draws numbers in [0, 1) for a random model.

        A model that lists outcomes may offer `outcome_at(state, action, place)` as well, which does what `draw` does
        without making the list, or `chance_stepper(chance)`, which returns a function like this one.
        """
        if chance is None:
            return self.model.step
        if self.kind == "sample":
            return self.sample
        if hasattr(self.model, "chance_stepper"):
            return self.model.chance_stepper(chance)
        draw = getattr(self.model, "outcome_at", self.draw)
        return lambda state, action: draw(state, action, chance())

    def draw(self, state: object, action: int, place: float) -> Outcome:
        """The outcome at `place` in [0, 1) of the probabilities laid end to end.

        Rollouts spend most of their time here: probabilities are checked on the way.
        """
        found, drawn, total = self.model.outcomes(state, action), None, 0.0
        try:
            for pair in found:
                probability, _ = pair
                if not probability >= 0.0:
                    total = -1.0
                    break
                total += probability
                if drawn is None:
                    place -= probability
                    if place < 0.0:
                        drawn = pair
        except (TypeError, ValueError):
            total = -1.0
        if not 1.0 - TOLERANCE <= total <= 1.0 + TOLERANCE:
            check_probabilities(found, state, action)
        if drawn is None:
            drawn = next(pair for pair in reversed(found) if pair[0] > 0.0)
        return drawn[1]

    def refuse_hidden_state(self, state: object) -> None:
        """Refuses a sampler that does not repeat itself with an equal generator."""
        if self.kind != "sample":
            return
        for action in self.legal_actions(state) if self.propose is None else [self.propose(state)]:
            for seed in range(TRIALS):
                one, two = (self.model.sample(state, action, np.random.default_rng(seed)) for _ in range(2))
                if not same_outcome(one, two):
                    what = f"sample(state, {short_repr(action)}, rng)"
                    raise ValueError(
                        f"{what} gave {short_repr(one)} and then {short_repr(two)} for two generators with the same "
                        "seed; draw from `rng` alone, not from a generator of the model or a global one"
                    )


def check_probabilities(outcomes: Any, state: object, action: int) -> None:
    """Refuses outcomes whose probabilities are negative or do not sum to 1."""
    try:
        chances = [chance for chance, _ in outcomes]
        if min(chances, default=-1.0) >= 0.0 and 1.0 - TOLERANCE <= sum(chances) <= 1.0 + TOLERANCE:
            return
    except (TypeError, ValueError):
        chances = None
    what = f"outcomes({short_repr(state)}, {short_repr(action)})"
    if chances is None:
        raise TypeError(
            f"{what} gave {short_repr(outcomes)}; it must give a list of (probability, (state, reward, terminal))"
        )
    if not chances:
        raise ValueError(
            f"{what} gave an empty list; give at least one outcome, or leave the action out of legal_actions(state)"
        )
    for chance in chances:
        if not chance >= 0.0:
            raise ValueError(f"{what} has a probability of {chance!r}; probabilities must be numbers of at least 0")
    raise ValueError(
        f"the probabilities of {what} sum to {sum(chances)!r}; they must sum to 1: divide them by their sum"
    )


def same_outcome(one: Outcome, two: Outcome) -> bool:
    """Whether two outcomes are equal. States that cannot be compared count as equal."""
    if check_reward(one[1]) != check_reward(two[1]) or bool(one[2]) != bool(two[2]):
        return False
    try:
        return state_key(one[0]) == state_key(two[0])
    except (TypeError, ValueError):
        return True


def state_key(state: object) -> Hashable:
    """Something hashable that is equal for equal states; a TypeError if there is no such thing.

    Arrays, lists, dicts and sets are taken by their contents.
    """
    kind = type(state)
    if kind.__hash__ is object.__hash__:
        raise TypeError(f"two {kind.__name__} objects with the same contents are not equal")
    try:
        hash(state)
        return state
    except TypeError:
        pass
    if isinstance(state, np.ndarray) and state.dtype != object:
        return state.dtype.str, state.shape, state.tobytes()
    if isinstance(state, (list, tuple)):
        return kind.__name__, tuple(map(state_key, state))
    if isinstance(state, dict):
        return "dict", frozenset((key, state_key(value)) for key, value in state.items())
    if isinstance(state, (set, bytearray)):
        return kind.__name__, frozenset(state) if isinstance(state, set) else bytes(state)
    raise TypeError(f"a {kind.__name__} has no key")


def identity_of(model: object) -> Callable[[Any], Hashable]:
    """What tells states apart: the model's `identity`, or `state_key`."""
    identity = getattr(model, "identity", None)

    def key(state: object) -> Hashable:
        try:
            found = state_key(state) if identity is None else identity(state)
            hash(found)
        except TypeError as error:
            what = short_repr(state) if identity is None else f"identity({short_repr(state)}) = {short_repr(found)}"
            raise TypeError(
                f"{what} cannot be hashed ({error}), so equal states cannot be recognised; give the model "
                "`identity(state)`, which returns something hashable, or search with graph=False"
            ) from error
        return found

    return key
