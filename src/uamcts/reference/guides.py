"""What people bring to a search: a policy for rollouts, a value function for leaves, prior probabilities of actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uamcts.arguments import function, integer, real, short_repr
from uamcts.errors import GuideError


class Guides:
    """The policy, value function and prior of a search, with checked answers. Each may be None."""

    def __init__(self, policy: Callable | None, value: Callable | None, prior: Callable | None, num_actions: int):
        function("policy", policy, "(state, rng) -> an action, or a probability for each action")
        function("value", value, "(state) -> a number")
        function("prior", prior, "(state) -> a probability for each action")
        self.policy, self.value, self.prior, self.num_actions = policy, value, prior, num_actions

    def leaf_value(self, state: object) -> float:
        """What the value function says of a state."""
        assert self.value is not None  # noqa: S101 (the caller has looked)
        return real("value(state)", _ask("value(state)", self.value, state))

    def action(self, state: object, allowed: Sequence[int], rng: np.random.Generator) -> int:
        """What the policy does in a state; a draw among the legal actions where it wants none of them."""
        assert self.policy is not None  # noqa: S101 (the caller has looked)
        answer = _ask("policy(state, rng)", self.policy, state, rng)
        number = integer(answer)
        if number is None:
            shares = self.shares("policy", answer, allowed)
            if sum(shares) > 0.0:
                place = rng.random() * sum(shares)
                for action, share in zip(allowed, shares, strict=True):
                    place -= share
                    if place < 0.0:
                        return action
        elif not 0 <= number < self.num_actions:
            raise ValueError(f"policy(state, rng) gave the action {number}; actions are 0 to {self.num_actions - 1}")
        elif number in allowed:
            return number
        return allowed[int(rng.random() * len(allowed))]

    def priors(self, state: object, allowed: Sequence[int]) -> list[float]:
        """The prior probabilities of the legal actions, which sum to 1."""
        assert self.prior is not None  # noqa: S101 (the caller has looked)
        shares = self.shares("prior", _ask("prior(state)", self.prior, state), allowed)
        total = sum(shares)
        if not total > 0.0:
            raise ValueError(
                f"prior({short_repr(state)}) gives no legal action a probability above 0 (legal: "
                f"{short_repr(list(allowed))}); give at least one of them some"
            )
        return [share / total for share in shares]

    def shares(self, name: str, answer: Any, allowed: Sequence[int]) -> list[float]:
        """The numbers that a function gave for the legal actions."""
        try:
            numbers = [float(number) for number in answer]
        except (TypeError, ValueError):
            numbers = []
        if len(numbers) != self.num_actions or not all(0.0 <= number < np.inf for number in numbers):
            raise ValueError(
                f"{name} gave {short_repr(answer)}; it must give {'an action, or ' * (name == 'policy')}a finite "
                f"number of at least 0 for each of the {self.num_actions} actions"
            )
        return [numbers[action] for action in allowed]


def _ask(name: str, call: Callable, state: object, *rest: object) -> Any:
    """What a function of the user's says about a state; what it raises is passed on with its name and the state."""
    try:
        return call(state, *rest)
    except Exception as error:
        raise GuideError(f"{name} raised {type(error).__name__}: {error}, for state {short_repr(state)}") from error
