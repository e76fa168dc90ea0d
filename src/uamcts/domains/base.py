"""What a domain is: one game, played by two sets of rules."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from uamcts.arguments import integer, short_repr
from uamcts.domains import pictures
from uamcts.domains.outcomes import Outcomes, certain, distance, draw_outcome
from uamcts.types import PyTree, Transition

RAW = np.iinfo(np.int32).max
"""In place of a value: the feature is passed on unchanged."""


@dataclass(frozen=True, eq=False)
class Domain:
    """A game with a *world* (what is real) and a *model* (what the planner believes).

    Both are the same `step` under different rules. Rules are values, not constants, so they may be traced. A domain is
    a pytree whose leaves are its rules: `jax.vmap` maps over domains.

    To add a domain, subclass this, decorate the subclass with `dataclass(frozen=True, eq=False)`, and define `name`,
    `summary`, `action_names`, `reset`, `step` and `features`; the other methods have defaults. Registration as a pytree
    is automatic. Test it with `uamcts.check_domain`. A domain whose steps are random sets `random = True` and defines
    `outcomes` instead of `step`; its `world` and `model` then draw an outcome with the key that they are given.

    Args:
        world_rules: the rules of the world, a pytree of numbers or arrays.
        model_rules: the rules of the model, of the same structure.

    Example:
        ```python
        @dataclass(frozen=True, eq=False)
        class Walk(uamcts.Domain):
            name = "walk"
            summary = "walk to 10; a step to the right is longer than the model believes"
            action_names = ("left", "right")

            def reset(self, key):
                return jnp.int32(0)

            def step(self, rules, state, action):
                over = state >= 10
                moved = jnp.where(over, state, state + jnp.where(action == 1, rules, -1))
                reached = ~over & (moved >= 10)
                return uamcts.Transition(moved, reached.astype(jnp.float32), over | reached)

            def features(self, state):
                return state[None]

        walk = Walk(world_rules=jnp.int32(2), model_rules=jnp.int32(1))
        ```
    """

    world_rules: Any
    model_rules: Any

    name: ClassVar[str]
    summary: ClassVar[str]
    broken_name: ClassVar[str] = "broken"
    """What a cell is called at which world and model differ, in the legend of a film."""
    action_names: ClassVar[tuple[str, ...]]
    random: ClassVar[bool] = False
    """Whether a step has several outcomes, given by `outcomes`."""
    time_limit: ClassVar[int | None] = None
    """Real steps after which an episode is truncated; `terminal` stays false."""
    channel_names: ClassVar[tuple[str, ...]] = ()
    one_hot: ClassVar[dict[int, tuple[int, int]]] = {}
    """Features that a network gets one-hot: the index of the feature -> its least value and its number of values."""
    glyphs: ClassVar[dict[str, str]] = {}
    """The characters of the text board: a later one is drawn over an earlier one, in pictures too; last, the player."""
    feature_names: ClassVar[tuple[str, ...]] = ()
    """What the first features are called, for people; the others have numbers."""
    player: ClassVar[tuple[int | None, int | None]] = (None, None)
    """The features that hold the player's row and its column on the board; None for what does not change."""

    def __init_subclass__(cls, **options: object) -> None:
        """Makes every domain a pytree, with its class as part of the structure.

        JAX's own `register_dataclass` leaves the class out: two domains of the same form are then equal in structure,
        and now and then a compiled program of the one is taken for the other.
        """
        super().__init_subclass__(**options)
        jax.tree_util.register_pytree_node(
            cls,
            lambda domain: (tuple(getattr(domain, field.name) for field in fields(domain)), None),
            lambda _, leaves: _unflatten(cls, leaves),
        )

    @property
    def num_actions(self) -> int:
        return len(self.action_names)

    def reset(self, key: jax.Array) -> PyTree:
        """A start state."""
        raise NotImplementedError(f"{type(self).__name__} has no reset(key)")

    def step(self, rules: PyTree, state: PyTree, action: jax.Array) -> Transition:
        """One step of the game under `rules`: pure, unbatched. A terminal state does not change and pays nothing."""
        remedy = "its steps are random: ask for outcomes" if self.random else "give it one"
        raise NotImplementedError(f"{type(self).__name__} has no step(rules, state, action); {remedy}")

    def outcomes(self, rules: PyTree, state: PyTree, action: jax.Array) -> Outcomes:
        """Every outcome of a step under `rules`: transitions [K] and their probabilities [K], which sum to 1.

        Slots with probability 0 are no outcomes, and several slots may hold the same one. In a deterministic domain
        the only outcome is that of `step`.
        """
        if self.random:
            raise NotImplementedError(f"{type(self).__name__} is random and has no outcomes(rules, state, action)")
        return certain(self.step(rules, state, action))

    def world(self, state: PyTree, action: int | jax.Array, key: jax.Array | None = None) -> Transition:
        """One step of the real game; in a random domain, an outcome drawn with `key`."""
        if self.random:
            return draw_outcome(self.world_outcomes(state, action), self._key("world", key))
        return _step(self, "world_rules", state, self._action(action))

    def model(self, state: PyTree, action: int | jax.Array, key: jax.Array | None = None) -> Transition:
        """One step as the planner believes it: next state and terminal flag from the model, the reward from the world.

        World and model share the reward function R(s, a), so a believed transition pays what the world would pay. In a
        random domain, an outcome of `model_outcomes` drawn with `key`.
        """
        if self.random:
            return draw_outcome(self.model_outcomes(state, action), self._key("model", key))
        action = self._action(action)
        believed = _step(self, "model_rules", state, action)
        return believed._replace(reward=_step(self, "world_rules", state, action).reward)

    def world_outcomes(self, state: PyTree, action: int | jax.Array) -> Outcomes:
        """Every outcome of a real step: transitions [K] and their probabilities [K]."""
        return self.outcomes(self.world_rules, state, self._action(action))

    def model_outcomes(self, state: PyTree, action: int | jax.Array) -> Outcomes:
        """Every outcome that the planner believes in: transitions [K] and their probabilities [K].

        In a random domain a believed outcome pays what the model's own rules pay for it: a reward belongs to where one
        arrives, which the world may never do.
        """
        if self.random:
            return self.outcomes(self.model_rules, state, self._action(action))
        return certain(self.model(state, action))

    def uncertainty(self, state: PyTree, action: int | jax.Array) -> jax.Array:
        """U(s, a): how far the model is from the world; 0 where it is right.

        The `difference` of the two next states. In a random domain, the `distance` of the two distributions of
        outcomes (domains/outcomes.py): a step is not uncertain for being random, only for being random in another way
        than the planner believes.
        """
        if self.random:
            world, model = self.world_outcomes(state, action), self.model_outcomes(state, action)
            return distance(self.difference, world, model)
        return self.difference(self.world(state, action).state, self.model(state, action).state)

    def with_true_model(self) -> Self:
        """The same world, planned in with its own rules: nothing is wrong any more."""
        return replace(self, model_rules=self.world_rules)

    def features(self, state: PyTree) -> jax.Array:
        """The state as a vector of raw numbers, in the order the paper's uncertainty is defined on."""
        raise NotImplementedError(f"{type(self).__name__} has no features(state)")

    def feature_vector(self, state: PyTree) -> np.ndarray:
        """The features of one concrete state. `features` outside of `jax.jit` compiles each of its operations."""
        return np.asarray(_compiled_features(self, state))

    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest value of every feature."""
        raise NotImplementedError(f"{type(self).__name__} has no feature_bounds()")

    def inputs(self, state: PyTree) -> jax.Array:
        """The state as a network gets it: features in `one_hot` spread over as many 0s and one 1, the others raw."""
        features = self.features(state)
        places, values = [], []
        for place in range(features.size):
            least, count = self.one_hot.get(place, (0, 0))
            places += [place] * max(count, 1)
            values += list(range(least, least + count)) or [RAW]
        picked, wanted = features[np.array(places)], np.array(values)
        return jnp.where(wanted == RAW, picked, picked == wanted).astype(jnp.float32)

    def from_features(self, vector: ArrayLike, terminal: ArrayLike = False) -> PyTree:
        """The state of a feature vector. The vector does not hold the terminal flag: pass it."""
        raise NotImplementedError(f"{type(self).__name__} has no from_features(vector, terminal)")

    def difference(self, first: PyTree, second: PyTree) -> jax.Array:
        """The mean squared difference of two states' features; a domain may offer a faster way to the same number."""
        return jnp.mean(jnp.square((self.features(first) - self.features(second)).astype(jnp.float32)))

    def arrival(self, state: PyTree) -> tuple[jax.Array, jax.Array]:
        """What coming into a state pays, and whether it ends the episode, where this depends on the state alone."""
        raise NotImplementedError(f"{type(self).__name__} has no arrival(state); a learned transition needs it")

    def channels(self, state: PyTree) -> np.ndarray:
        """What is where, as conditions [rows, columns, channels], for pictures of one concrete state."""
        raise NotImplementedError(f"{type(self).__name__} has no channels(state)")

    def wrong_cells(self) -> np.ndarray | None:
        """The cells of the board where world and model differ, conditions [rows, columns]; None if it cannot tell."""
        return None

    def render(self, state: PyTree, scale: int = 16) -> np.ndarray:
        """One concrete state as an RGB picture, `scale` pixels a cell, bytes [rows * scale, columns * scale, 3].

        Cells in which world and model differ are hatched.
        """
        return pictures.rgb(self.board(state), scale)

    def board(self, state: PyTree) -> pictures.Board:
        """What is seen in each cell of one concrete state, in which colours, and which cells are wrong."""
        return pictures.Board.of(self.channels(state), self.channel_names, tuple(self.glyphs), self.wrong_cells())

    def text(self, state: PyTree, marked: np.ndarray | None = None) -> str:
        """One concrete state as a board of characters for a terminal.

        Empty cells that are `marked` look different: conditions, or characters to put there, [rows, columns].
        """
        glyphs = {self.channel_names.index(name): glyph for name, glyph in self.glyphs.items()}
        return pictures.text(self.channels(state), glyphs, marked)

    def _key(self, method: str, key: jax.Array | None) -> jax.Array:
        """`key`, without which a random domain cannot draw."""
        if key is None:
            raise ValueError(
                f"key is missing: the steps of {self.name} are random; call {method}(state, action, key) with a "
                f"jax.random.key, or {method}_outcomes(state, action) for all outcomes"
            )
        return key

    def _action(self, action: int | jax.Array) -> jax.Array:
        """`action` as an array; a concrete one that does not exist is refused, a traced one cannot be looked at."""
        if isinstance(action, jax.core.Tracer):
            return jnp.asarray(action, dtype=jnp.int32)
        number = integer(action)
        if number is None:
            raise ValueError(f"action is {short_repr(action)}; give a whole number from 0 to {self.num_actions - 1}")
        if not 0 <= number < self.num_actions:
            names = ", ".join(f"{index} {name}" for index, name in enumerate(self.action_names))
            raise ValueError(f"action is {action}; {self.name} has the actions {names}")
        return jnp.asarray(number, dtype=jnp.int32)


def _step(domain: Domain, rules: str, state: PyTree, action: jax.Array) -> Transition:
    """A step under the domain's rules of that name: one program, which is traced once by those that call it often."""
    varies = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(domain))
    by_identity = type(domain).__hash__ is object.__hash__  # what was traced is found again for this very domain
    if by_identity and not varies:
        return cast(Transition, _compiled_step(domain, rules, state, action))
    return domain.step(getattr(domain, rules), state, action)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled_step(domain: Domain, rules: str, state: PyTree, action: jax.Array) -> Transition:
    return domain.step(getattr(domain, rules), state, action)


@jax.jit
def _compiled_features(domain: Domain, state: PyTree) -> jax.Array:
    return domain.features(state)


def _unflatten(cls: type[Domain], leaves: Iterable[Any]) -> Domain:
    """Rebuilds a domain without validation: JAX also puts placeholders in the leaves."""
    domain = object.__new__(cls)
    for field, leaf in zip(fields(cls), leaves, strict=True):
        object.__setattr__(domain, field.name, leaf)
    return domain
