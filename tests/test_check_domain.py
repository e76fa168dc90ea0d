"""The public check rejects domains that break a rule, with a sentence that says which."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

import uamcts


class Place(NamedTuple):
    x: jax.Array


@dataclass(frozen=True, eq=False)
class Corridor(uamcts.Domain):
    """Walk along ten cells to the last one; rules: the cell from which a step to the right does not succeed."""

    world_rules: int = 3
    model_rules: int = -1
    name = "corridor"
    summary = "a correct domain of one's own"
    action_names = ("left", "right")

    def reset(self, key):
        return Place(jax.random.randint(key, (), 0, 5))

    def step(self, rules, state, action):
        blocked = (action == 1) & (state.x == rules)
        x = jnp.clip(state.x + jnp.where(blocked, 0, 2 * action - 1), 0, 9)
        ended = state.x == 9
        x = jnp.where(ended, state.x, x)
        return uamcts.Transition(Place(x), jnp.where((x == 9) & ~ended, 1.0, 0.0), x == 9)

    def features(self, state):
        return jnp.stack([state.x, state.x**2])

    def from_features(self, vector, terminal=False):
        return Place(vector[0])


def test_a_domain_of_ones_own_passes():
    report = uamcts.check_domain(Corridor())
    assert "all rules kept" in str(report)
    assert report.disagreements > 0


calls = iter(range(10**9))


class Impure(Corridor):
    def step(self, rules, state, action):
        after = super().step(rules, state, action)
        return after._replace(reward=after.reward + next(calls))


class MutatesItsState(Corridor):
    """Keeps its state in a dictionary and writes into it."""

    def reset(self, key):
        return {"x": jnp.int32(0)}

    def step(self, rules, state, action):
        state["x"] = state["x"] + 1
        return uamcts.Transition(state, jnp.float32(0), jnp.bool_(False))

    def features(self, state):
        return state["x"][None]


class RandomReset(Corridor):
    def reset(self, key):
        return Place(jnp.int32(next(calls) % 5))


class GoesOn(Corridor):
    def step(self, rules, state, action):
        return super().step(rules, Place(jnp.where(state.x == 9, 8, state.x)), action)


class PaysTwice(Corridor):
    def step(self, rules, state, action):
        after = super().step(rules, state, action)
        return after._replace(reward=jnp.where(after.terminal, 1.0, 0.0))


class MovesAtTheEnd(Corridor):
    def step(self, rules, state, action):
        after = super().step(rules, state, action)
        x = jnp.where(state.x >= 9, state.x + 1, after.state.x)
        return after._replace(state=Place(x), terminal=x >= 9)


class WrongDtype(Corridor):
    def step(self, rules, state, action):
        after = super().step(rules, state, action)
        return after._replace(state=Place(after.state.x.astype(jnp.float32)))


class WholeReward(Corridor):
    def step(self, rules, state, action):
        after = super().step(rules, state, action)
        return after._replace(reward=after.reward.astype(jnp.int32))


class PlainTuple(Corridor):
    def step(self, rules, state, action):
        return tuple(super().step(rules, state, action))

    def model(self, state, action):
        return self.world(state, action)


class NaNReward(Corridor):
    def step(self, rules, state, action):
        after = super().step(rules, state, action)
        return after._replace(reward=jnp.where(state.x == 4, jnp.nan, after.reward))


class NaNFeatures(Corridor):
    def features(self, state):
        return jnp.log(state.x - 1.0)[None]


class LosesTheState(Corridor):
    def from_features(self, vector, terminal=False):
        return Place(jnp.minimum(vector[0], 7))


class BlindDifference(Corridor):
    def difference(self, first, second):
        return jnp.float32(0)


class WrongScale(Corridor):
    def difference(self, first, second):
        return 2 * super().difference(first, second)


class MatrixFeatures(Corridor):
    def features(self, state):
        return jnp.zeros((2, 2))


class NothingLegal(Corridor):
    def legal(self, state):
        return jnp.stack([state.x > 0, state.x > 1])


class LegalOfWrongShape(Corridor):
    def legal(self, state):
        return jnp.ones(3, bool)


class TooFewNames(Corridor):
    action_names = ()


class TracedByValue(Corridor):
    """Rounds differently inside a compiled program: looks at whether it is traced."""

    def step(self, rules, state, action):
        traced = isinstance(state.x, jax.core.Tracer)
        after = super().step(rules, state, action)
        return after._replace(reward=after.reward + (1.0 if traced else 0.0))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (Impure, "world gives another result when it is called twice"),
        (MutatesItsState, "world changes the state it is given"),
        (RandomReset, r"reset\(key\) gives another result"),
        (GoesOn, "terminal must stay true|goes on after the end"),
        (PaysTwice, "pays a reward after the end"),
        (MovesAtTheEnd, "changes a terminal state"),
        (WrongDtype, "a step must keep them"),
        (WholeReward, "reward of shape .* and dtype int32; it must be a scalar of dtype float32"),
        (PlainTuple, "returns tuple; return a uamcts.Transition"),
        (NaNReward, "reward that is not a finite number"),
        (NaNFeatures, "not finite"),
        (LosesTheState, "is not the state again"),
        (BlindDifference, "not zero exactly where"),
        (WrongScale, "not the mean squared difference"),
        (MatrixFeatures, "it must be a vector"),
        (NothingLegal, "allows no action"),
        (LegalOfWrongShape, "it must be 2 conditions"),
        (TooFewNames, "num_actions is 0"),
        (TracedByValue, "when it runs under jax.jit"),
    ],
)
def test_wrong_domains_are_rejected(wrong, sentence):
    wrong = dataclass(frozen=True, eq=False)(type(wrong.__name__, (wrong,), {}))
    with pytest.raises(uamcts.DomainError, match=sentence):
        uamcts.check_domain(wrong(), batch=16, steps=60, plain=4)


def test_something_else_entirely_is_rejected():
    with pytest.raises(uamcts.DomainError, match=r"no method reset; subclass uamcts\.Domain"):
        uamcts.check_domain(object())
