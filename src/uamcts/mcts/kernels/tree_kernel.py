"""An iteration's work on the tree as two GPU kernels: selection with expansion, and backpropagation.

The compiler makes some eighty small kernels of it, and a thread of a GPU is fast enough to do it alone. Every thread has
a search of its own: it walks down its tree in memory, writes the new children, and later walks up again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.config import SETTINGS, SearchConfig
from uamcts.mcts.expand import Children
from uamcts.mcts.growth import Growth, Leaf
from uamcts.mcts.kernels import lanes
from uamcts.mcts.kernels.lanes import Arrays, Program, Spec, storable
from uamcts.mcts.kernels.scalarize import Value, any_lane, evaluate
from uamcts.mcts.kernels.table import Entries, Table, fill
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import Family, Path, choose_child
from uamcts.mcts.tree import ROOT, UNEXPANDED, VISITS, Tree
from uamcts.types import Number, PyTree

GrowLeaf = Callable[[Leaf, jax.Array], Growth]
"""A function of a leaf and of whether there is room below it."""


class Grown(NamedTuple):
    """What the first kernel passes on to the simulation and to the second one."""

    path: Path
    state: PyTree
    over: Bool[Array, ""]
    below: SearchConfig
    flags: Int[Array, ""]
    revisited: Bool[Array, ""]
    """Whether the node of the leaf had been visited before and the leaf did not grow."""


class _Inner(NamedTuple):
    """An unbatched function as a jaxpr, and the arrays that it closes over."""

    jaxpr: Any
    constants: list[jax.Array]

    def __call__(self, constants: Sequence[Value], *arguments: PyTree) -> list[Value]:
        return evaluate(self.jaxpr, constants, jax.tree.leaves(arguments, is_leaf=lambda leaf: isinstance(leaf, np.ndarray)))


def _trace(function: Callable[..., Any], *shapes: PyTree) -> _Inner:
    closed = jax.make_jaxpr(function)(*shapes)
    return _Inner(closed.jaxpr, [jnp.asarray(constant) for constant in closed.consts])


def store(tree: Tree) -> Tree:
    """The tree as the kernels keep it: conditions are integers."""
    return jax.tree.map(lambda leaf: leaf.astype(storable(leaf.dtype)), tree)


def restore(tree: Tree, like: Tree) -> Tree:
    """The tree as everybody else knows it."""
    return jax.tree.map(lambda leaf, old: leaf.astype(old.dtype), tree, like)


def _specs(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


INTERPRET = False
"""Emulate the kernels, on any device: for tests."""


def available() -> bool:
    """Whether this process computes on a device that the kernels are written for."""
    return INTERPRET or jax.default_backend() == "gpu"


def find(
    tree: Tree,
    config: SearchConfig,
    below_leaf: Callable[..., tuple[Growth, PyTree]],
    longest: int,
    limit: Number,
    problem: Problem,
) -> TreeKernels | None:
    """The kernels of a search, or None where it has to do without: no GPU, or something that they cannot do."""
    if not available() or problem.is_random or problem.prior is not None or problem.value is not None:
        return None
    if not all(jnp.issubdtype(leaf.dtype, jnp.number) or leaf.dtype == bool for leaf in jax.tree.leaves(tree)):
        return None
    try:
        kernels = TreeKernels(tree, config, lambda *leaf: below_leaf(*leaf)[0], longest, limit, INTERPRET)
        kernels.lower()
    except Exception:  # whatever stops it, the plain program does the same work
        return None
    return kernels


class TreeKernels:
    """The two kernels of a search.

    Args:
        tree: the tree before the first iteration, as it is and not as it is stored.
        config: the settings of the search.
        grow: what an iteration adds below a leaf: a function of the number of the iteration, the number of the new
            block, the leaf, and whether there is room below it.
        longest: the most transitions of a path.
        limit: as many, or as many as there are steps left.
        interpret: emulate the kernels.
    """

    def __init__(
        self,
        tree: Tree,
        config: SearchConfig,
        grow: Callable[[jax.Array, jax.Array, Leaf, jax.Array], Growth],
        longest: int,
        limit: Number,
        interpret: bool = False,
    ) -> None:
        self.tree, self.config, self.longest, self.interpret = _specs(tree), config, longest, interpret
        self.rules = find_rules(config.rules)
        number, flag, whole = (jax.ShapeDtypeStruct((), dtype) for dtype in (float, bool, jnp.int32))
        number = jax.ShapeDtypeStruct((), tree.stats.dtype)
        row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.tree)
        family = Family(row.exists, row.stats, row.reward, row.bias, row.keep)
        self.choose = _trace(lambda family, visits: choose_child(family, visits, config), family, number)
        self.limit = _trace(lambda: jnp.asarray(limit, jnp.int32))
        state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), self.tree.state)
        leaf = Leaf(state, flag, number, None, flag)
        kept: list[Any] = []

        def flat_grow(index: jax.Array, block: jax.Array, leaf: Leaf, room: jax.Array) -> Any:
            growth = grow(index, block, leaf, room)
            pairs = ((name, getattr(growth.below, name), getattr(config, name)) for name in SETTINGS)
            changed = {name: own for name, own, usual in pairs if own is not usual}
            kept.append((jax.tree.structure(growth.children), sorted(changed)))
            rest = (growth.grows, growth.place, growth.flags, growth.over)
            return jax.tree.leaves(growth.children), rest, jax.tree.leaves(growth.state), [changed[n] for n in sorted(changed)]

        self.grow = _trace(flat_grow, whole, whole, leaf, flag)
        self.children, self.changed_settings = kept[0]
        self.pieces = len(self.rules.pieces(0.0, 1.0, config))
        self.climb = _trace(self._climb, [number] * self.pieces, number, number)
        self.credit = _trace(lambda values, keep: self.rules.credit(functools.reduce(jnp.minimum, values), keep),
                             [number] * self.pieces, number)

    def _climb(self, values: list[jax.Array], reward: jax.Array, keep: jax.Array) -> list[jax.Array]:
        """The values above a transition, one for each piece."""
        pieces = self.rules.pieces(reward, keep, self.config)
        return [jnp.asarray(slope * value + offset, value.dtype) for value, (slope, offset) in zip(values, pieces, strict=True)]

    def lower(self) -> None:
        """Builds both kernels for one lane, without running them; raises an error if that is impossible."""

        def spec(leaf: Any) -> Any:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)

        def lower(program: Program, arguments: Arrays, changed: Arrays) -> None:
            def run(arguments: Arrays, changed: Arrays) -> Any:
                return lanes.run(program, arguments, [False] * len(arguments), changed)

            shapes = [jax.ShapeDtypeStruct((1, *leaf.shape), storable(leaf.dtype)) for leaf in changed]
            traced = jax.jit(run).trace([spec(leaf) for leaf in arguments], shapes)
            traced.lower(lowering_platforms=("cuda",))

        whole = jax.ShapeDtypeStruct((), jnp.int32)
        lower(self._grow_program(), [whole, whole, *self._constants(self._growing)], jax.tree.leaves(self.tree))
        tree, number = self.tree, jax.ShapeDtypeStruct((), self.tree.stats.dtype)
        places = jax.ShapeDtypeStruct((self.longest + 2,), jnp.int32)
        arguments = [tree.reward, tree.keep, places, whole, number, jax.ShapeDtypeStruct((), bool)]
        lower(self._climb_program(), arguments + self._constants(self._climbing), [tree.stats])

    @property
    def _growing(self) -> tuple[_Inner, ...]:
        return self.choose, self.limit, self.grow

    @property
    def _climbing(self) -> tuple[_Inner, ...]:
        return self.climb, self.credit

    def _constants(self, parts: tuple[_Inner, ...]) -> Arrays:
        return [constant for part in parts for constant in part.constants]

    def _grow_program(self) -> Program:
        leaves, structure = jax.tree.flatten(self.tree)
        whole, flag = Spec((), jnp.int32), Spec((), jnp.bool_)
        outputs = [out.aval for out in self.grow.jaxpr.outvars]
        settings = outputs[len(outputs) - len(self.changed_settings) :]
        results = (
            Spec((self.longest + 2,), jnp.int32), whole, whole, whole, flag, flag,
            *(Spec(leaf.shape[2:], leaf.dtype) for leaf in jax.tree.leaves(self.tree.state)),
            *(Spec(tuple(aval.shape), aval.dtype) for aval in settings),
        )  # fmt: skip

        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            tables = [table._replace(dtype=leaf.dtype) for table, leaf in zip(changed, leaves, strict=True)]
            index, block, *rest = arguments
            constants = _deal(rest, self._growing)
            self._grow_lane(jax.tree.unflatten(structure, tables), index[()], block[()], constants, results)

        return Program(body, results, "uamcts_grow")

    def _climb_program(self) -> Program:
        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            del results
            self._climb_lane(arguments[:6], changed[0], _deal(arguments[6:], self._climbing))

        return Program(body, (), "uamcts_backpropagate")

    def grow_tree(self, stored: Tree, index: Int[Array, ""], block: Int[Array, ""]) -> tuple[Tree, Grown]:
        """Selects a leaf and writes its children as block number `block`."""
        leaves, structure = jax.tree.flatten(stored)
        arguments = [jnp.asarray(index, jnp.int32), jnp.asarray(block, jnp.int32), *self._constants(self._growing)]
        after, found = lanes.call(self._grow_program(), arguments, leaves, self.interpret)
        places, length, leaf, flags, over, revisited, *rest = found
        states = jax.tree.structure(self.tree.state)
        state = jax.tree.unflatten(states, rest[: states.num_leaves])
        below = _with_settings(self.config, dict(zip(self.changed_settings, rest[states.num_leaves :], strict=True)))
        grown = Grown(Path(places, length, leaf), state, over, below, flags, revisited)
        return jax.tree.unflatten(structure, after), grown

    def _grow_lane(
        self, tree: Any, index: Any, block: Any, constants: Sequence[Sequence[Value]], results: list[Table]
    ) -> None:
        choose, limits, grow = constants
        (limit,) = self.limit(limits)
        shape = tree.children.lanes
        zero = jnp.zeros(shape, jnp.int32)
        places, length_out, leaf_out, flags_out, over_out, revisited_out, *rest = results
        places.put(0, zero)
        actions = tree.exists.shape[1]
        limit_entry = limit[()]

        def look(place: jax.Array, length: jax.Array) -> tuple[jax.Array, jax.Array]:
            below = tree.children.get(place)
            return below, (below != UNEXPANDED) & (length <= limit_entry)

        def descend(carry: Any) -> Any:
            place, length, below, active, doubted = carry
            family = Family(*(field.row(below) for field in (tree.exists, tree.stats, tree.reward, tree.bias, tree.keep)))
            visits = fill((), tree.stats.get(place * 3 + VISITS))
            (chosen,) = self.choose(choose, *family, visits)
            child = jnp.where(active, below * actions + chosen[()], place)
            places.put(length, child, active)
            length = length + active.astype(jnp.int32)
            if self.rules.follows_doubt:
                doubted = doubted | (active & (tree.keep.get(child) < 1.0))
            below, active = look(child, length)
            return child, length, below, active, doubted

        start = (zero + ROOT, zero + 1)
        first = (*start, *look(*start), jnp.zeros(shape, jnp.bool_))
        place, length, _, _, doubted = jax.lax.while_loop(lambda carry: any_lane(carry[3]), descend, first)

        state = [entry_at(table, place) for table in jax.tree.leaves(tree.state, is_leaf=_is_table)]
        visits = tree.stats.get(place * 3 + VISITS)
        terminal, room = tree.terminal.get(place), length <= limit_entry
        values = [fill((), value) for value in (index, block)] + state
        values += [fill((), value) for value in (terminal, visits, doubted, room)]
        found = [_load(value) for value in evaluate(self.grow.jaxpr, grow, values)]
        count = self.children.num_leaves
        children = jax.tree.unflatten(self.children, found[:count])
        grows, chosen, flags, over = (value[()] for value in found[count : count + 4])
        for name in ("exists", "terminal", "reward", "uncertainty", "bias", "keep"):
            getattr(tree, name).put_row(block, getattr(children, name))
        for table, row in zip(_tables(tree.state), _arrays(children.state), strict=True):
            table.put_row(block, row)
        tree.children.put(place, block, grows)
        new = block * actions + chosen
        places.put(length, new, grows)
        leaf_out.put(0, jnp.where(grows, new, place))
        length_out.put(0, length + jnp.broadcast_to(grows, shape).astype(jnp.int32))
        flags_out.put(0, flags)
        over_out.put(0, over)
        revisited_out.put(0, (visits > 0) & ~grows)
        for table, value in zip(rest, found[count + 4 :], strict=True):
            for number, entry in enumerate(value.ravel()):
                table.put(number, entry)

    def backpropagate(self, stored: Tree, path: Path, value: Float[Array, ""], revisited: Bool[Array, ""]) -> Tree:
        """Lets the value of the leaf travel up to the root."""
        arguments = [stored.reward, stored.keep, path.places, path.length, value.astype(stored.stats.dtype), revisited]
        arguments = arguments + self._constants(self._climbing)
        after, _ = lanes.call(self._climb_program(), arguments, [stored.stats], self.interpret)
        return stored._replace(stats=after[0])

    def _climb_lane(self, arguments: Sequence[Any], stats: Table, constants: Sequence[Sequence[Value]]) -> None:
        reward, keep, places, length, value, revisited = arguments
        climb, credit = constants
        shape = stats.lanes
        last = jnp.broadcast_to(length[()], shape) - 1
        values = [jnp.broadcast_to(value[()], shape)] * self.pieces
        below = jnp.where(revisited[()], 1.0, 0.0).astype(stats.dtype)

        def step(carry: Any) -> Any:
            level, values, below = carry
            active = level >= 0
            node = places.get(jnp.maximum(level, 0))
            node = jnp.where(active, node, 0)
            kept, paid = keep.get(node), reward.get(node)
            entries = [fill((), value) for value in values]
            (added,) = self.credit(credit, *entries, fill((), kept))
            for number, amount in enumerate((1.0, added[()], below)):
                place = node * 3 + number
                stats.put(place, stats.get(place) + amount, active)
            onward = self.climb(climb, *entries, fill((), paid), fill((), kept))
            return level - 1, [jnp.broadcast_to(value[()], shape) for value in onward], kept

        carry = (last, values, jnp.broadcast_to(below, shape))
        jax.lax.while_loop(lambda carry: any_lane(carry[0] >= 0), step, carry)


def _deal(values: Sequence[Value], parts: Sequence[_Inner]) -> list[Sequence[Value]]:
    """The constants of each part, from those of all of them."""
    ends = np.cumsum([len(part.constants) for part in parts])
    return [values[end - len(part.constants) : end] for end, part in zip(ends, parts, strict=True)]


def entry_at(table: Table, place: jax.Array) -> Entries:
    """The entry of a place, from an array over [blocks, places, ...]."""
    shape = table.shape[2:]
    width = int(np.prod(shape, dtype=np.int64))
    result = np.empty(width, object)
    for number in range(width):
        result[number] = table.get(place * width + number)
    return result.reshape(shape)


def _with_settings(config: SearchConfig, changed: dict[str, Any]) -> SearchConfig:
    """The settings with some of them changed, without checking them again."""
    copy = jax.tree.map(lambda leaf: leaf, config)
    for name, value in changed.items():
        object.__setattr__(copy, name, value)
    return copy


def _is_table(value: object) -> bool:
    return isinstance(value, Table)


def _tables(tree: PyTree) -> list[Table]:
    return cast(list[Table], jax.tree.leaves(tree, is_leaf=_is_table))


def _arrays(tree: PyTree) -> list[Entries]:
    return jax.tree.leaves(tree, is_leaf=lambda leaf: isinstance(leaf, np.ndarray))


def _load(value: Value) -> Entries:
    return value.load() if isinstance(value, Table) else value
