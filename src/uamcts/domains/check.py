"""Checks that a domain keeps the rules that the rest of the package relies on. Run it on your own domains."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains.base import Domain
from uamcts.domains.check_outcomes import DomainError, check_draws, check_slots, fail, shapes
from uamcts.domains.outcomes import Outcomes, certain
from uamcts.types import PyTree, Transition

__all__ = ["DomainError", "DomainReport", "check_domain"]


@dataclass(frozen=True)
class DomainReport:
    """What `check_domain` saw. A zero means that the rule in question was never tested."""

    name: str
    steps: int
    terminals: int
    disagreements: int

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.steps} random steps, {self.terminals} ends of episodes, "
            f"{self.disagreements} transitions in which world and model disagree; all rules kept"
        )


def check_domain(
    domain: Domain, seed: int = 0, batch: int = 64, steps: int = 200, plain: int = 8, *, lanes: int | None = None
) -> DomainReport:
    """Plays a domain at random and checks every rule that a domain must keep.

    These are: names and number of actions; shapes and dtypes; purity; absorbing terminal states; the same results with
    and without `jax.jit` and `jax.vmap`; finite rewards and features; features that round-trip; an uncertainty that is
    the mean squared difference of the features, so zero exactly where world and model agree; legal actions, if offered.
    In a random domain also: probabilities from 0 to 1 that sum to 1, and that a step drawn with a key is one of the
    outcomes.

    Args:
        domain: the domain to check.
        seed: the seed of the random play.
        batch: how many games are played side by side.
        steps: how many steps of each game are played.
        plain: in how many of the states calls without `jax.jit` are compared with compiled ones.
        lanes: the former name of `batch`.

    Returns:
        What was seen: steps, terminal states, and transitions in which world and model disagree.

    Raises:
        DomainError: if a rule is broken; the message says which one and where.

    Example:
        ```python
        print(uamcts.check_domain(MyDomain(world_rules, model_rules)))
        ```
    """
    if lanes is not None:
        warnings.warn("check_domain(lanes=...) is now check_domain(batch=...)", DeprecationWarning, stacklevel=2)
        batch = lanes
    _check_names(domain)
    key = jax.random.key(seed)
    state = domain.reset(key)
    _check_same(domain, "reset(key)", "is called twice with the same key", state, domain.reset(key))
    for name, step in _steps(domain):
        _check_shapes(domain, name, step, state)
    states, actions = _play(domain, key, batch, steps)
    if _random(domain):
        check_draws(domain, states, actions)
    for name, step in _steps(domain):
        _check_plain(domain, name, step, states, actions, plain)
    terminals = _check_transitions(domain, states, actions)
    disagreements = _check_features(domain, states, actions)
    _check_legal(domain, states)
    return DomainReport(getattr(domain, "name", type(domain).__name__), batch * steps, terminals, disagreements)


Step = Callable[[PyTree, jax.Array], Any]


def _random(domain: Domain) -> bool:
    return bool(getattr(domain, "random", False))


def _steps(domain: Domain) -> list[tuple[str, Step]]:
    """What a domain gives for a state and an action, by name: its transitions, or in a random domain its outcomes."""
    names = ("world_outcomes", "model_outcomes") if _random(domain) else ("world", "model")
    return [(name, getattr(domain, name)) for name in names]


def _outcomes(domain: Domain, step: Step) -> Callable[[PyTree, jax.Array], Outcomes]:
    """`step` as one that gives outcomes, in every domain."""
    return step if _random(domain) else lambda state, action: certain(step(state, action))


def _check_names(domain: Domain) -> None:
    for name in ("reset", "world", "model", "features", "difference"):
        if not callable(getattr(domain, name, None)):
            fail(
                domain,
                f"there is no method {name}; subclass uamcts.Domain and give reset, step (or outcomes) and features",
            )
    if _random(domain) and not _offers(domain, "outcomes"):
        fail(domain, "random is True and there is no method outcomes; give outcomes(rules, state, action)")
    if not _random(domain) and _offers(domain, "outcomes"):
        fail(domain, "there is a method outcomes and random is False; set random = True, or give step alone")
    count = getattr(domain, "num_actions", None)
    if not isinstance(count, int) or count < 1:
        fail(domain, f"num_actions is {count!r}; it must be a whole number of at least 1")
    names = getattr(domain, "action_names", ())
    if len(names) != count:
        fail(domain, f"action_names has {len(names)} names for {count} actions")


def _equal(first: PyTree, second: PyTree) -> bool:
    return _agree(first, second, lambda a, b: np.array_equal(a, b))


def _close(first: PyTree, second: PyTree) -> bool:
    """Like `_equal`, with room for rounding in floating-point leaves: a compiler may order sums differently."""

    def close(a: np.ndarray, b: np.ndarray) -> bool:
        floating = np.issubdtype(a.dtype, np.floating)
        return np.allclose(a, b, rtol=1e-5, atol=1e-6) if floating else np.array_equal(a, b)

    return _agree(first, second, close)


def _agree(first: PyTree, second: PyTree, leaves_agree: Callable[[np.ndarray, np.ndarray], bool]) -> bool:
    (a, one), (b, other) = jax.tree.flatten(first), jax.tree.flatten(second)
    return str(one) == str(other) and all(leaves_agree(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True))


def _check_same(domain: Domain, what: str, when: str, first: PyTree, second: PyTree) -> None:
    if not _close(first, second):
        fail(domain, f"{what} gives another result when it {when}; it must be a pure function of its arguments")


def _check_shapes(domain: Domain, name: str, step: Step, state: PyTree) -> None:
    result = jax.eval_shape(step, state, jnp.int32(0))
    if _random(domain):
        result = check_slots(domain, name, result)
    if not isinstance(result, Transition):
        fail(domain, f"{name} returns {type(result).__name__}; return a uamcts.Transition(state, reward, terminal)")
    if shapes(result.state) != shapes(state):
        fail(
            domain,
            f"{name} returns a state of shapes and dtypes {shapes(result.state)}, reset one of {shapes(state)}; "
            "a step must keep them",
        )
    for field, dtype in (("reward", jnp.float32), ("terminal", jnp.bool_)):
        leaf = getattr(result, field)
        if leaf.shape != () or leaf.dtype != dtype:
            fail(domain, f"{name} returns a {field} of shape {leaf.shape} and dtype {leaf.dtype}; "
                          f"it must be a scalar of dtype {jnp.dtype(dtype).name}")  # fmt: skip


def _play(domain: Domain, key: jax.Array, batch: int, steps: int) -> tuple[PyTree, jax.Array]:
    """States and random actions [batch * steps] of random play in the world; a finished game starts again."""

    def step(state: PyTree, key: jax.Array) -> tuple[PyTree, tuple[PyTree, jax.Array]]:
        reset_key, action_key = jax.random.split(key)
        action = jax.random.randint(action_key, (), 0, domain.num_actions)
        drawn_with = (jax.random.fold_in(action_key, 2),) if _random(domain) else ()
        following = domain.world(state, action, *drawn_with)
        start = domain.reset(reset_key)
        kept = jax.tree.map(lambda a, b: jnp.where(following.terminal, a, b), start, following.state)
        return kept, (state, action)

    def episode(key: jax.Array) -> tuple[PyTree, jax.Array]:
        return jax.lax.scan(step, domain.reset(key), jax.random.split(key, steps))[1]

    @jax.jit
    def play(key: jax.Array) -> tuple[PyTree, jax.Array]:
        played = jax.vmap(episode)(jax.random.split(key, batch))
        states, actions = jax.tree.map(lambda leaf: leaf.reshape(batch * steps, *leaf.shape[2:]), played)
        return states, actions

    states, actions = play(key)
    return states, actions


def _check_plain(domain: Domain, name: str, step: Step, states: PyTree, actions: jax.Array, count: int) -> None:
    """Plain, repeated, compiled and batched calls give the same transitions."""
    chosen = np.linspace(0, len(actions) - 1, count).astype(int)
    # Rows are picked by NumPy, and the batch is compiled: each operation outside of a program is compiled by itself.
    some = jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], (states, actions))
    batch, compiled = jax.tree.map(np.asarray, jax.jit(jax.vmap(step))(*some)), jax.jit(step)
    for index in range(count):
        state, action = jax.tree.map(lambda leaf, index=index: jnp.asarray(leaf[index]), some)
        before = jax.tree.map(lambda leaf: np.array(leaf, copy=True), state)
        with jax.disable_jit():
            plain, again = step(state, action), step(state, action)
        if not _equal(before, state):
            fail(domain, f"{name} changes the state it is given; build a new state instead")
        _check_same(domain, name, "is called twice", plain, again)
        _check_same(domain, name, "runs under jax.jit", plain, compiled(state, action))
        row = jax.tree.map(lambda leaf, index=index: leaf[index], batch)
        _check_same(domain, name, "runs under jax.vmap", plain, row)


def _check_transitions(domain: Domain, states: PyTree, actions: jax.Array) -> int:
    """Rewards are finite, terminals absorb. Returns how many terminals were met."""
    met = 0
    every = jnp.arange(domain.num_actions)
    for name, step in _steps(domain):
        outcomes_of = _outcomes(domain, step)
        batch, probabilities = jax.jit(jax.vmap(outcomes_of))(states, actions)
        possible = np.asarray(probabilities) > 0
        if not np.all(np.isfinite(np.asarray(batch.reward)[possible])):
            fail(domain, f"{name} pays a reward that is not a finite number")
        ends = np.argwhere(np.asarray(batch.terminal) & possible)
        met += len(ends)
        if not len(ends):
            continue
        # A fixed number of terminals, so that every domain of these shapes is compiled once.
        rows, slots = np.resize(ends, (64, 2)).T
        final = jax.tree.map(lambda leaf, at=(rows, slots): np.asarray(leaf)[at], batch.state)
        after, probabilities = jax.jit(jax.vmap(jax.vmap(outcomes_of, (None, 0)), (0, None)))(final, every)
        possible = np.asarray(probabilities) > 0
        if not np.all(np.asarray(after.terminal)[possible]):
            fail(domain, f"{name} goes on after the end of an episode; terminal must stay true")
        if np.any(np.asarray(after.reward)[possible] != 0):
            fail(domain, f"{name} pays a reward after the end of an episode; it must be 0")
        kept = jax.tree.map(
            lambda leaf, p=possible: np.broadcast_to(leaf[:, None, None], (*p.shape, *leaf.shape[1:]))[p], final
        )
        if not _equal(jax.tree.map(lambda leaf, p=possible: np.asarray(leaf)[p], after.state), kept):
            fail(domain, f"{name} changes a terminal state; terminals must absorb")
    return met


def _check_features(domain: Domain, states: PyTree, actions: jax.Array) -> int:
    """Features are finite, round-trip and give the uncertainty. Returns how often world and model differ."""
    shape = jax.eval_shape(lambda states: domain.features(jax.tree.map(lambda leaf: leaf[0], states)), states)
    if shape.ndim != 1:
        fail(domain, f"features has shape {shape.shape}; it must be a vector")
    world, model = (_outcomes(domain, step) for _, step in _steps(domain))

    def look(state: PyTree, action: jax.Array) -> tuple[Transition, tuple[jax.Array, jax.Array], jax.Array]:
        (real, chance), (believed, _) = world(state, action), model(state, action)
        # The likeliest real outcome beside a believed one: any two states would do.
        real, believed = (
            jax.tree.map(lambda leaf: leaf[jnp.argmax(chance)], real),
            jax.tree.map(lambda leaf: leaf[-1], believed),
        )
        vectors = domain.features(real.state), domain.features(believed.state)
        return real, vectors, domain.difference(real.state, believed.state)

    real, (first, second), found = jax.jit(jax.vmap(look))(states, actions)
    if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
        fail(domain, "features holds a number that is not finite")
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    expected = np.mean(np.square(difference), axis=1)
    found = np.asarray(found, np.float64)
    if np.any((found == 0) != (expected == 0)):
        fail(domain, "difference is not zero exactly where the features of world and model agree")
    if not np.allclose(found, expected, rtol=1e-5, atol=0):
        fail(domain, "difference is not the mean squared difference of the features")
    if _offers(domain, "from_features"):
        again = jax.jit(jax.vmap(domain.from_features))(first, real.terminal)
        if not _close(again, real.state):
            fail(domain, "from_features(features(state), terminal) is not the state again")
    if _random(domain):
        return int(np.count_nonzero(jax.jit(jax.vmap(domain.uncertainty))(states, actions)))
    return int(np.count_nonzero(expected))


def _offers(domain: Domain, name: str) -> bool:
    """Whether an optional method is there, and not only inherited from `Domain` as a placeholder."""
    method = getattr(type(domain), name, None)
    return method is not None and method is not getattr(Domain, name, None)


def _check_legal(domain: Any, states: PyTree) -> None:
    if not _offers(domain, "legal"):
        return
    masks = jax.jit(jax.vmap(domain.legal))(states)
    if masks.shape[1:] != (domain.num_actions,) or masks.dtype != jnp.bool_:
        fail(domain, f"legal has shape {masks.shape[1:]} and dtype {masks.dtype}; "
                      f"it must be {domain.num_actions} conditions")  # fmt: skip
    if not bool(jnp.all(jnp.any(masks, axis=1))):
        fail(domain, "legal allows no action in a state that is not terminal")
