"""What one thread does in each of the kernels of a search: see `tree_kernel`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SETTINGS, SearchConfig
from uamcts.mcts.growth import Growth, Leaf
from uamcts.mcts.kernels.lanes import Program, Spec
from uamcts.mcts.kernels.scalarize import Value
from uamcts.mcts.kernels.table import DType, Entries, Table, fill
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
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import Family, choose_child
from uamcts.mcts.tree import VISITS, Tree
from uamcts.types import Number, PyTree

Grow: TypeAlias = Callable[[jax.Array, Leaf, jax.Array, jax.Array | None], Growth]
"""What an iteration adds below a leaf: a function of the number of the iteration, the leaf, whether there is room below
it, and U of its actions, if that is known beforehand."""
Limit: TypeAlias = Callable[[jax.Array], Number]
"""The most transitions of the path of an iteration, from its number."""
ARRIVAL = ("length", "place", "terminal", "visits", "doubted", "room")
"""What selection passes on to expansion, besides the state of the leaf."""


class TreePrograms:
    """The programs of a search's kernels, each for one lane.

    Args:
        tree: the tree before the first iteration.
        config: the settings of the search.
        grow: what an iteration adds below a leaf.
        longest: the most transitions of a path.
        limit: as many, or fewer, for the iteration with a given number.
        knows_doubt: whether `grow` is told U.
    """

    def __init__(
        self,
        tree: Tree,
        config: SearchConfig,
        grow: Grow,
        longest: int,
        limit: Limit,
        knows_doubt: bool,
    ) -> None:
        self.tree: Any = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)
        self.config, self.longest, rules = config, longest, find_rules(config.rules)
        self.follows_doubt, self.pieces = rules.follows_doubt, len(rules.pieces(0.0, 1.0, config))
        whole, flag, number = scalars(jnp.int32, bool, tree.stats.dtype)
        row: Any = drop_axes(self.tree, 1)
        family = Family(row.exists, row.stats, row.reward, row.bias, row.keep)
        self.choose = trace(lambda family, visits: choose_child(family, visits, config), family, number)
        self.limit = trace(lambda index: jnp.asarray(limit(index), jnp.int32), whole)
        self.changed: list[str] = []

        def flat_grow(index: jax.Array, leaf: Leaf, room: jax.Array, doubt: jax.Array | None) -> Any:
            growth = grow(index, leaf, room, doubt)
            self.children: Any = jax.tree.structure(growth.children)
            self.changed = [name for name in SETTINGS if getattr(growth.below, name) is not getattr(config, name)]
            below = [getattr(growth.below, name) for name in self.changed]
            return growth.children, growth.grows, growth.place, growth.flags, growth.over, growth.state, below

        leaf = Leaf(drop_axes(self.tree.state, 2), flag, number, None, flag)
        self.grow = trace(flat_grow, whole, leaf, flag, row.uncertainty if knows_doubt else None)

        def onward(values: list[jax.Array], reward: jax.Array, keep: jax.Array) -> list[jax.Array]:
            pieces = zip(values, rules.pieces(reward, keep, config), strict=True)
            return [jnp.asarray(slope * value + offset, value.dtype) for value, (slope, offset) in pieces]

        def credit(values: list[jax.Array], keep: jax.Array) -> Number:
            return rules.credit(functools.reduce(jnp.minimum, values), keep)

        self.onward = trace(onward, [number] * self.pieces, number, number)
        self.credit = trace(credit, [number] * self.pieces, number)

    @property
    def descending(self) -> tuple[Function, ...]:
        return self.choose, self.limit

    @property
    def growing(self) -> tuple[Function, ...]:
        return *self.descending, self.grow

    @property
    def climbing(self) -> tuple[Function, ...]:
        return self.onward, self.credit

    def arrival_types(self) -> tuple[DType, ...]:
        """The types of what `ARRIVAL` names."""
        return jnp.int32, jnp.int32, jnp.bool_, self.tree.stats.dtype, jnp.bool_, jnp.bool_

    def _growth_specs(self) -> tuple[Spec, ...]:
        """What is known of new children."""
        outputs = [Spec(tuple(out.aval.shape), out.aval.dtype) for out in self.grow.jaxpr.outvars]
        whole, flag = Spec((), jnp.int32), Spec((), jnp.bool_)
        return whole, whole, whole, flag, flag, *outputs[self.children.num_leaves + 4 :]

    def _tables(self, changed: list[Table]) -> TreeTables:
        leaves, structure = jax.tree.flatten(self.tree)
        tables = [table._replace(dtype=leaf.dtype) for table, leaf in zip(changed, leaves, strict=True)]
        return jax.tree.unflatten(structure, tables)

    def grow_program(self) -> Program:
        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            index, block, *constants = arguments
            choose, limit, grow = deal(constants, self.growing)
            tree = self._tables(changed)
            arrival, state = self._descend_lane(tree, (index, block), results[0], choose, limit)
            self._write_lane(tree, (index, block), (arrival, state, []), grow, results)

        return Program(body, (Spec((self.longest + 2,), jnp.int32), *self._growth_specs()), "uamcts_grow")

    def descend_program(self) -> Program:
        """The first half of the program above."""

        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            index, block, *constants = arguments
            choose, limit = deal(constants, self.descending)
            arrival, state = self._descend_lane(self._tables(changed), (index, block), results[0], choose, limit)
            for table, value in zip(results[1:], [*arrival, *state], strict=True):
                table.put_all(value)

        state = [Spec(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(drop_axes(self.tree.state, 2))]
        arrived = [Spec((), dtype) for dtype in self.arrival_types()]
        return Program(body, (Spec((self.longest + 2,), jnp.int32), *arrived, *state), "uamcts_descend")

    def write_program(self) -> Program:
        """The second half; it also changes the path."""

        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            count = len(jax.tree.leaves(self.tree.state))
            index, block, *leaf = arguments[: 2 + len(ARRIVAL) + count]
            doubt, *constants = arguments[2 + len(ARRIVAL) + count :]
            (grow,) = deal(constants, (self.grow,))
            known = (leaf[: len(ARRIVAL)], leaf[len(ARRIVAL) :], [doubt])
            self._write_lane(self._tables(changed[1:]), (index, block), known, grow, [changed[0], *results])

        return Program(body, self._growth_specs(), "uamcts_write")

    def _descend_lane(
        self, tree: TreeTables, numbers: tuple[Any, Any], places: Table, choose: Function, limit: Function
    ) -> tuple[list[Entries], list[Entries]]:
        """Selection in one search: what `ARRIVAL` names, and the state of the leaf; `numbers` as in `_write_lane`."""
        index, block = numbers
        most = limit(index)[0][()]
        end = descend(tree, places, choose, most, self.follows_doubt)
        place, visits = end.place, tree.stats.get(end.place * 3 + VISITS)
        state = [table.entry(place) for table in jax.tree.leaves(tree.state, is_leaf=_is_table)]
        room = (end.length <= most) & (block[()] < tree.exists.shape[0] - 1)
        arrival = (end.length, place, tree.terminal.get(place), visits, end.doubted, room)
        return [fill((), value) for value in arrival], state

    def _write_lane(
        self,
        tree: TreeTables,
        numbers: tuple[Any, Any],
        leaf: tuple[list[Any], list[Any], list[Any]],
        grow: Function,
        results: list[Table],
    ) -> None:
        """Expansion in one search; `numbers` are those of the iteration and of the new block."""
        places, length_out, leaf_out, flags_out, over_out, revisited_out, *rest = results
        (length, place, *known), state, doubt = leaf
        length, place, visits, block = length[()], place[()], known[1][()], numbers[1][()]
        found = grow(numbers[0], state, known, doubt)
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
            table.put_all(value)

    def climb_program(self) -> Program:
        def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
            del results
            read = len(PathTables._fields)
            onward, credit = deal(arguments[read:], self.climbing)
            path: Any = arguments[:read]
            climb(PathTables(*path), changed[0], self.pieces, onward, credit)

        return Program(body, (), "uamcts_backpropagate")


def scalars(*dtypes: DType) -> Any:
    """The types of numbers."""
    return [jax.ShapeDtypeStruct((), dtype) for dtype in dtypes]


def drop_axes(tree: PyTree, number: int) -> PyTree:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[number:], leaf.dtype), tree)


def _is_table(value: object) -> bool:
    return isinstance(value, Table)
