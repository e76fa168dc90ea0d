"""An iteration's work on the tree as two GPU kernels: selection with expansion, and backpropagation.

The compiler makes some eighty small kernels of it, and a thread of a GPU is fast enough to do it alone. Every thread
has a search of its own: it walks down its tree in memory, writes the new children, and later walks up again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.config import SETTINGS, SearchConfig
from uamcts.mcts.growth import Growth, Leaf
from uamcts.mcts.kernels import lanes
from uamcts.mcts.kernels.lanes import Arrays, Program, Spec, storable
from uamcts.mcts.kernels.scalarize import Value
from uamcts.mcts.kernels.table import DType, Table, fill
from uamcts.mcts.kernels.tree_lanes import (
    Function,
    PathTables,
    TreeTables,
    climb,
    deal,
    descend,
    trace,
    write_children,
)
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import Family, Path, choose_child
from uamcts.mcts.tree import VISITS, Tree
from uamcts.types import Number, PyTree

INTERPRET = False
"""Emulate the kernels, on any device: for tests."""


class Grown(NamedTuple):
    """What the first kernel passes on to the simulation and to the second one."""

    path: Path
    state: PyTree
    over: Bool[Array, ""]
    below: SearchConfig
    flags: Int[Array, ""]
    revisited: Bool[Array, ""]
    """Whether the node of the leaf had been visited before and the leaf did not grow."""


def available() -> bool:
    """Whether this process computes on a device that the kernels are written for."""
    return INTERPRET or jax.default_backend() == "gpu"


def find(
    tree: Tree,
    config: SearchConfig,
    grow: Callable[[jax.Array, Leaf, jax.Array], Growth],
    longest: int,
    limit: Number,
    problem: Problem,
) -> TreeKernels | None:
    """The kernels of a search, or None where it has to do without: no GPU, or something that they cannot do.

    The arguments are those of `TreeKernels`.
    """
    if not available() or problem.is_random or problem.prior is not None:
        return None
    if not all(jnp.issubdtype(leaf.dtype, jnp.number) or leaf.dtype == bool for leaf in jax.tree.leaves(tree)):
        return None
    try:
        kernels = TreeKernels(tree, config, grow, longest, limit)
        kernels.lower()
    except Exception:  # whatever stops it, the plain program does the same work
        return None
    return kernels


StoredTree: TypeAlias = Any
"""A `Tree` as the kernels keep it: conditions are integers."""


def store(tree: Tree) -> StoredTree:
    """The tree as the kernels keep it."""
    return jax.tree.map(lambda leaf: leaf.astype(storable(leaf.dtype)), tree)


def restore(tree: StoredTree, like: Tree) -> Tree:
    """The tree as everybody else knows it."""
    restored: Tree = jax.tree.map(lambda leaf, old: leaf.astype(old.dtype), tree, like)
    return restored


class TreeKernels:
    """The two kernels of a search.

    Args:
        tree: the tree before the first iteration.
        config: the settings of the search.
        grow: what an iteration adds below a leaf: a function of the number of the iteration, the leaf, and whether
            there is room below it.
        longest: the most transitions of a path.
        limit: as many, or as many as there are steps left.
    """

    def __init__(
        self,
        tree: Tree,
        config: SearchConfig,
        grow: Callable[[jax.Array, Leaf, jax.Array], Growth],
        longest: int,
        limit: Number,
    ) -> None:
        self.tree: Any = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)
        self.config, self.longest, rules = config, longest, find_rules(config.rules)
        self.follows_doubt, self.pieces = rules.follows_doubt, len(rules.pieces(0.0, 1.0, config))
        whole, flag, number = _scalars(jnp.int32, bool, tree.stats.dtype)
        row: Any = _drop_axes(self.tree, 1)
        family = Family(row.exists, row.stats, row.reward, row.bias, row.keep)
        self.choose = trace(lambda family, visits: choose_child(family, visits, config), family, number)
        self.limit = trace(lambda: jnp.asarray(limit, jnp.int32))
        self.changed: list[str] = []

        def flat_grow(index: jax.Array, leaf: Leaf, room: jax.Array) -> Any:
            growth = grow(index, leaf, room)
            self.children: Any = jax.tree.structure(growth.children)
            self.changed = [name for name in SETTINGS if getattr(growth.below, name) is not getattr(config, name)]
            below = [getattr(growth.below, name) for name in self.changed]
            return growth.children, growth.grows, growth.place, growth.flags, growth.over, growth.state, below

        leaf = Leaf(_drop_axes(self.tree.state, 2), flag, number, None, flag)
        self.grow = trace(flat_grow, whole, leaf, flag)

        def onward(values: list[jax.Array], reward: jax.Array, keep: jax.Array) -> list[jax.Array]:
            pieces = zip(values, rules.pieces(reward, keep, config), strict=True)
            return [jnp.asarray(slope * value + offset, value.dtype) for value, (slope, offset) in pieces]

        def credit(values: list[jax.Array], keep: jax.Array) -> Number:
            return rules.credit(functools.reduce(jnp.minimum, values), keep)

        self.onward = trace(onward, [number] * self.pieces, number, number)
        self.credit = trace(credit, [number] * self.pieces, number)

    def grow_tree(self, stored: StoredTree, index: Int[Array, ""], block: Int[Array, ""]) -> tuple[StoredTree, Grown]:
        """Selects a leaf and writes its children as block number `block`."""
        leaves, structure = jax.tree.flatten(stored)
        arguments = [jnp.asarray(index, jnp.int32), jnp.asarray(block, jnp.int32), *_constants(self._growing)]
        after, found = lanes.call(self._grow_program(), arguments, leaves, INTERPRET)
        places, length, leaf, flags, over, revisited, *rest = found
        states: Any = jax.tree.structure(self.tree.state)
        state = jax.tree.unflatten(states, rest[: states.num_leaves])
        below = _with_settings(self.config, dict(zip(self.changed, rest[states.num_leaves :], strict=True)))
        grown = Grown(Path(places, length, leaf), state, over, below, flags, revisited)
        return jax.tree.unflatten(structure, after), grown

    def backpropagate(
        self, stored: StoredTree, path: Path, value: Float[Array, ""], revisited: Bool[Array, ""]
    ) -> StoredTree:
        """Lets the value of the leaf travel up to the root."""
        read = [stored.reward, stored.keep, path.places, path.length, value.astype(stored.stats.dtype), revisited]
        after, _ = lanes.call(self._climb_program(), read + _constants(self._climbing), [stored.stats], INTERPRET)
        return stored._replace(stats=after[0])

    def lower(self) -> None:
        """Builds both kernels for one lane, without running them; raises an error if that is impossible."""
        whole, flag, number = _scalars(jnp.int32, bool, self.tree.stats.dtype)
        _lower(self._grow_program(), [whole, whole, *_constants(self._growing)], jax.tree.leaves(self.tree))
        places = jax.ShapeDtypeStruct((self.longest + 2,), jnp.int32)
        read = [self.tree.reward, self.tree.keep, places, whole, number, flag]
        _lower(self._climb_program(), read + _constants(self._climbing), [self.tree.stats])

    @property
    def _growing(self) -> tuple[Function, ...]:
        return self.choose, self.limit, self.grow

    @property
    def _climbing(self) -> tuple[Function, ...]:
        return self.onward, self.credit

    def _grow_program(self) -> Program:
        leaves, structure = jax.tree.flatten(self.tree)
        outputs = [Spec(tuple(out.aval.shape), out.aval.dtype) for out in self.grow.jaxpr.outvars]
        places, whole, flag = Spec((self.longest + 2,), jnp.int32), Spec((), jnp.int32), Spec((), jnp.bool_)
        results = (places, whole, whole, whole, flag, flag, *outputs[self.children.num_leaves + 4 :])

        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            tables = [table._replace(dtype=leaf.dtype) for table, leaf in zip(changed, leaves, strict=True)]
            index, block, *constants = arguments
            functions = deal(constants, self._growing)
            self._grow_lane(jax.tree.unflatten(structure, tables), (index, block), functions, results)

        return Program(body, results, "uamcts_grow")

    def _grow_lane(
        self, tree: TreeTables, numbers: tuple[Any, Any], functions: list[Function], results: list[Table]
    ) -> None:
        """One iteration of one search; `numbers` are those of the iteration and of the new block."""
        choose, limit, grow = functions
        places, length_out, leaf_out, flags_out, over_out, revisited_out, *rest = results
        most, block = limit()[0][()], numbers[1][()]
        end = descend(tree, places, choose, most, self.follows_doubt)
        place, length, visits = end.place, end.length, tree.stats.get(end.place * 3 + VISITS)
        state = [table.entry(place) for table in jax.tree.leaves(tree.state, is_leaf=_is_table)]
        room = (length <= most) & (block < tree.exists.shape[0] - 1)
        known = [fill((), value) for value in (tree.terminal.get(place), visits, end.doubted, room)]
        found = grow(numbers[0], state, known)
        count = self.children.num_leaves
        grows, chosen, flags, over = (value[()] for value in found[count : count + 4])
        write_children(tree, block, jax.tree.unflatten(self.children, found[:count]))
        tree.children.put(place, block, grows)
        child = block * tree.exists.shape[1] + chosen
        places.put(length, child, grows)
        length_out.put(0, length + jnp.asarray(grows).astype(jnp.int32))
        leaf_out.put(0, jnp.where(grows, child, place))
        flags_out.put(0, flags)
        over_out.put(0, over)
        revisited_out.put(0, (visits > 0) & ~grows)
        for table, value in zip(rest, found[count + 4 :], strict=True):
            for number, entry in enumerate(value.ravel()):
                table.put(number, entry)

    def _climb_program(self) -> Program:
        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            del results
            read = len(PathTables._fields)
            onward, credit = deal(arguments[read:], self._climbing)
            path: Any = arguments[:read]
            climb(PathTables(*path), changed[0], self.pieces, onward, credit)

        return Program(body, (), "uamcts_backpropagate")


def _lower(program: Program, arguments: Arrays, changed: Arrays) -> None:
    """Builds a kernel for one lane."""

    def run(arguments: Arrays, changed: Arrays) -> Any:
        return lanes.run(program, arguments, (lanes.ALL,) * len(arguments), changed)

    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in arguments]
    stored = [jax.ShapeDtypeStruct((1, *leaf.shape), storable(leaf.dtype)) for leaf in changed]
    jax.jit(run).trace(shapes, stored).lower(lowering_platforms=("cuda",))


def _constants(functions: tuple[Function, ...]) -> Arrays:
    return [constant for function in functions for constant in function.constants]


def _scalars(*dtypes: DType) -> Any:
    """The types of numbers."""
    return [jax.ShapeDtypeStruct((), dtype) for dtype in dtypes]


def _drop_axes(tree: PyTree, number: int) -> PyTree:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[number:], leaf.dtype), tree)


def _with_settings(config: SearchConfig, changed: dict[str, Any]) -> SearchConfig:
    """The settings with some of them changed, without checking them again."""
    copy: SearchConfig = jax.tree.map(lambda leaf: leaf, config)
    for name, value in changed.items():
        object.__setattr__(copy, name, value)
    return copy


def _is_table(value: object) -> bool:
    return isinstance(value, Table)
