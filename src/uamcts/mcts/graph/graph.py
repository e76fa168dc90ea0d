"""The search graph as a structure of arrays, allocated once.

A node that has been expanded has a row: row i is that of the i-th expansion. Its successors that are new become the
nodes FIRST + i * actions * slots and following, one place for each outcome slot; places of outcomes whose state
already had a node stay unused. So writing new nodes is one contiguous write, and there is no allocator.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.mcts.graph.table import empty_table
from uamcts.types import PyTree

END, ROOT, FIRST = 0, 1, 2
"""The node of every outcome that ends the episode, whose value is 0; the root; the first node that is neither."""
UNEXPANDED, UNUSED = -1, -2
"""The row of a node that has none yet, and that of END and of places without a node."""


class Graph(NamedTuple):
    """Arrays over [nodes], over [rows] and over [rows, actions] or [rows, actions, slots]."""

    state: PyTree
    """The state of a node, [nodes, ...]."""
    doubted: jax.Array
    """Whether a doubtful transition lies on the way to the node: equal states with and without are two nodes. bool."""
    value: jax.Array
    """V: the first estimate of a node without a row, the best Q of one with a row. float."""
    row: jax.Array
    """The row of a node, UNEXPANDED or UNUSED. int32."""
    seen: jax.Array
    """The last descent, counted from 1, that came to the node. int32."""
    owner: jax.Array
    """The node of a row, [rows]. int32."""
    exists: jax.Array
    """Whether the action is legal, [rows, actions]. bool."""
    uncertainty: jax.Array
    """U, [rows, actions]. float."""
    bias: jax.Array
    """How selection corrects the action's score: see `Rules.score`, [rows, actions]. float."""
    keep: jax.Array
    """Which fraction of a value passes through the transition, [rows, actions]. float."""
    prior: jax.Array
    """Prior probabilities, [rows, actions]; [rows, 0] without a prior. float."""
    quality: jax.Array
    """Q(s, a), [rows, actions]. float."""
    visits: jax.Array
    """How often each outcome was followed, [rows, actions, slots]. float."""
    child: jax.Array
    """The node of an outcome, [rows, actions, slots]; END for those of probability 0 too. int32."""
    probability: jax.Array
    """[rows, actions, slots], 0 for actions that do not exist. float."""
    reward: jax.Array
    """[rows, actions, slots]. float."""
    table: jax.Array
    """The node of a state: see `table.py`."""
    rows: jax.Array
    """How many rows are in use. int32, no axis."""
    open: jax.Array
    """How many nodes have no row yet, END aside. At 0 the graph holds everything that can be reached."""

    @property
    def num_actions(self) -> int:
        return self.child.shape[-2]

    @property
    def slots(self) -> int:
        return self.child.shape[-1]


def empty_graph(state: PyTree, rows: int, num_actions: int, slots: int, has_prior: bool) -> Graph:
    """A graph with a root and nothing else."""
    nodes, edges = FIRST + rows * num_actions * slots, (rows, num_actions)
    zeros = jnp.zeros(edges, float)
    return Graph(
        state=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (nodes, *jnp.shape(leaf))), state),
        doubted=jnp.zeros(nodes, bool),
        value=jnp.zeros(nodes, float),
        row=jnp.full(nodes, UNUSED, jnp.int32).at[ROOT].set(UNEXPANDED),
        seen=jnp.zeros(nodes, jnp.int32),
        owner=jnp.zeros(rows, jnp.int32),
        exists=jnp.zeros(edges, bool),
        uncertainty=zeros,
        bias=zeros,
        keep=jnp.ones(edges, float),
        prior=zeros if has_prior else jnp.zeros((rows, 0), float),
        quality=zeros,
        visits=jnp.zeros((*edges, slots), float),
        child=jnp.zeros((*edges, slots), jnp.int32),
        probability=jnp.zeros((*edges, slots), float),
        reward=jnp.zeros((*edges, slots), float),
        table=empty_table(nodes),
        rows=jnp.int32(0),
        open=jnp.int32(1),
    )


def graph_bytes(state: Any, config: Any, num_actions: int, slots: int) -> float:
    """About how much memory a compiled graph search takes: nodes, their table, and a state for every rollout."""
    leaves = jax.tree.leaves(state)
    size = sum(np.prod(np.shape(leaf)) * np.dtype(jax.dtypes.result_type(leaf)).itemsize for leaf in leaves)
    block = num_actions * slots
    lanes = block * max(1, config.rollouts // block)
    node = size + 13 + 16 + 4 * 12  # the node, its edge, and four entries of the table
    return float(
        (config.iterations * block + FIRST) * node + 21 * config.iterations * num_actions + lanes * (size + 16)
    )
