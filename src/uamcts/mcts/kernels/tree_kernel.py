"""An iteration's work on the tree as two GPU kernels: selection with expansion, and backpropagation.

The compiler makes some eighty small kernels of it, and a thread of a GPU is fast enough to do it alone. Every thread
has a search of its own: it walks down its tree in memory, writes the new children, and later walks up again. An
uncertainty that is evaluated in batches, such as a network's, is evaluated for the leaves of all searches at once
between selection and expansion, which are then a kernel each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.expand import doubt_of_actions
from uamcts.mcts.kernels import lanes
from uamcts.mcts.kernels.lanes import Arrays, Program, storable
from uamcts.mcts.kernels.tree_lanes import Function
from uamcts.mcts.kernels.tree_programs import ARRIVAL, Grow, Limit, TreePrograms, drop_axes, scalars
from uamcts.mcts.problem import Problem
from uamcts.mcts.select import Path
from uamcts.mcts.tree import Tree
from uamcts.types import BatchedUncertainty, PyTree

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


Doubt: TypeAlias = Callable[[PyTree], jax.Array]
"""U of all actions in a state."""


def find(
    tree: Tree,
    config: SearchConfig,
    grow: Grow,
    longest: int,
    limit: Limit,
    problem: Problem,
) -> TreeKernels | None:
    """The kernels of a search, or None where it has to do without: no GPU, or something that they cannot do.

    The arguments are those of `TreeKernels`; a problem's U is evaluated outside of them if it is evaluated in batches.
    """
    if not available() or problem.is_random or problem.prior is not None:
        return None
    if not all(jnp.issubdtype(leaf.dtype, jnp.number) or leaf.dtype == bool for leaf in jax.tree.leaves(tree)):
        return None
    try:
        kernels = TreeKernels(tree, config, grow, longest, limit, _batched_doubt(problem))
        kernels.lower()
    except Exception:  # whatever stops it, the plain program does the same work
        return None
    return kernels


def _batched_doubt(problem: Problem) -> Doubt | None:
    """U of all actions in a state, if it is evaluated in batches."""
    if not isinstance(problem.uncertainty, BatchedUncertainty) or isinstance(problem.uncertainty, Charged):
        return None
    return lambda state: doubt_of_actions(state, problem, None, jnp.ones(problem.num_actions, bool))[0].astype(float)


StoredTree: TypeAlias = Any
"""A `Tree` as the kernels keep it: conditions are integers."""


def store(tree: Tree) -> StoredTree:
    """The tree as the kernels keep it."""
    return jax.tree.map(lambda leaf: leaf.astype(storable(leaf.dtype)), tree)


def restore(tree: StoredTree, like: Tree) -> Tree:
    """The tree as everybody else knows it."""
    restored: Tree = jax.tree.map(lambda leaf, old: leaf.astype(old.dtype), tree, like)
    return restored


class TreeKernels(TreePrograms):
    """The kernels of a search: two, or three if U is evaluated outside of them.

    `doubt` is U, if it is evaluated outside of them; the other arguments are those of `TreePrograms`.
    """

    def __init__(
        self, tree: Tree, config: SearchConfig, grow: Grow, longest: int, limit: Limit, doubt: Doubt | None = None
    ) -> None:
        super().__init__(tree, config, grow, longest, limit, doubt is not None)
        self.doubt = doubt

    def grow_tree(self, stored: StoredTree, index: Int[Array, ""], block: Int[Array, ""]) -> tuple[StoredTree, Grown]:
        """Selects a leaf and writes its children as block number `block`."""
        leaves, structure = jax.tree.flatten(stored)
        numbers = [jnp.asarray(index, jnp.int32), jnp.asarray(block, jnp.int32)]
        if self.doubt is None:
            arguments = numbers + _constants(self.growing)
            after, (places, *found) = lanes.call(self.grow_program(), arguments, leaves, INTERPRET)
        else:
            arguments = numbers + _constants(self.descending)
            after, (places, *leaf) = lanes.call(self.descend_program(), arguments, leaves, INTERPRET)
            states: Any = jax.tree.structure(self.tree.state)
            doubt = self.doubt(jax.tree.unflatten(states, leaf[len(ARRIVAL) :])).astype(stored.uncertainty.dtype)
            arguments = [*numbers, *leaf, doubt, *_constants((self.grow,))]
            (places, *after), found = lanes.call(self.write_program(), arguments, [places, *after], INTERPRET)
        return jax.tree.unflatten(structure, after), self._read_growth(places, found)

    def _read_growth(self, places: Int[Array, " longest"], found: Arrays) -> Grown:
        """What the first kernel or kernels found."""
        length, leaf, flags, over, revisited, *rest = found
        states: Any = jax.tree.structure(self.tree.state)
        state = jax.tree.unflatten(states, rest[: states.num_leaves])
        below = _with_settings(self.config, dict(zip(self.changed, rest[states.num_leaves :], strict=True)))
        return Grown(Path(places, length, leaf), state, over, below, flags, revisited)

    def backpropagate(
        self, stored: StoredTree, path: Path, value: Float[Array, ""], revisited: Bool[Array, ""]
    ) -> StoredTree:
        """Lets the value of the leaf travel up to the root."""
        read = [stored.reward, stored.keep, path.places, path.length, value.astype(stored.stats.dtype), revisited]
        after, _ = lanes.call(self.climb_program(), read + _constants(self.climbing), [stored.stats], INTERPRET)
        return stored._replace(stats=after[0])

    def lower(self) -> None:
        """Builds the kernels for one lane, without running them; raises an error if that is impossible."""
        whole, flag, number = scalars(jnp.int32, bool, self.tree.stats.dtype)
        places: Any = jax.ShapeDtypeStruct((self.longest + 2,), jnp.int32)
        leaves = jax.tree.leaves(self.tree)
        if self.doubt is None:
            _lower(self.grow_program(), [whole, whole, *_constants(self.growing)], leaves)
        else:
            _lower(self.descend_program(), [whole, whole, *_constants(self.descending)], leaves)
            state = jax.tree.leaves(drop_axes(self.tree.state, 2))
            arrived: list[Any] = [jax.ShapeDtypeStruct((), dtype) for dtype in self.arrival_types()]
            arguments = [whole, whole, *arrived, *state, drop_axes(self.tree.uncertainty, 1)]
            _lower(self.write_program(), arguments + _constants((self.grow,)), [places, *leaves])
        read = [self.tree.reward, self.tree.keep, places, whole, number, flag]
        _lower(self.climb_program(), read + _constants(self.climbing), [self.tree.stats])


def _lower(program: Program, arguments: Arrays, changed: Arrays) -> None:
    """Builds a kernel for one lane."""

    def run(arguments: Arrays, changed: Arrays) -> Any:
        return lanes.run(program, arguments, (lanes.ALL,) * len(arguments), changed)

    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in arguments]
    stored = [jax.ShapeDtypeStruct((1, *leaf.shape), storable(leaf.dtype)) for leaf in changed]
    jax.jit(run).trace(shapes, stored).lower(lowering_platforms=("cuda",))


def _constants(functions: tuple[Function, ...]) -> Arrays:
    return [constant for function in functions for constant in function.constants]


def _with_settings(config: SearchConfig, changed: dict[str, Any]) -> SearchConfig:
    """The settings with some of them changed, without checking them again."""
    copy: SearchConfig = jax.tree.map(lambda leaf: leaf, config)
    for name, value in changed.items():
        object.__setattr__(copy, name, value)
    return copy
