"""The search graph as a structure of arrays, allocated once.

A node that has been expanded has a row: row i is that of the i-th expansion. Its successors that are new become the
nodes FIRST + i * actions * slots and following, one place for each outcome slot; places of outcomes whose state
already had a node stay unused. So writing new nodes is one contiguous write, and there is no allocator.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from uamcts.arguments import state_bytes
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.table import empty_table
from uamcts.mcts.rules import RULES
from uamcts.types import PyTree

END, ROOT, FIRST = 0, 1, 2
"""The node of every outcome that ends the episode, whose value is 0; the root; the first node that is neither."""
UNEXPANDED, UNUSED = -1, -2
"""The row of a node that has none yet, and that of END and of places without a node."""


class Graph(NamedTuple):
    """Arrays over [nodes], over [rows] and over [rows, actions] or [rows, actions, slots]."""

    state: PyTree
    """The state of a node, [nodes, ...]."""
    doubted: Bool[Array, " nodes"]
    """Whether a doubtful transition lies on the way to the node: equal states with and without are two nodes. bool."""
    value: Float[Array, " nodes"]
    """V: the first estimate of a node without a row, the best Q of one with a row. float."""
    row: Int[Array, " nodes"]
    """The row of a node, UNEXPANDED or UNUSED. int32."""
    seen: Int[Array, " nodes"]
    """The last descent, counted from 1, that came to the node. int32."""
    owner: Int[Array, " rows"]
    """The node of a row, [rows]. int32."""
    exists: Bool[Array, "rows actions"]
    """Whether the action is legal, [rows, actions]. bool."""
    uncertainty: Float[Array, "rows actions"]
    """U, [rows, actions]. float."""
    bias: Float[Array, "rows actions"]
    """How selection corrects the action's score: see `Rules.score`, [rows, actions]. float."""
    keep: Float[Array, "rows actions"]
    """Which fraction of a value passes through the transition, [rows, actions]. float."""
    prior: Float[Array, "rows prior"]
    """Prior probabilities, [rows, actions]; [rows, 0] without a prior. float."""
    quality: Float[Array, "rows actions"]
    """Q(s, a), [rows, actions]. float."""
    visits: Float[Array, "rows actions slots"]
    """How often each outcome was followed, [rows, actions, slots]. float."""
    child: Int[Array, "rows actions slots"]
    """The node of an outcome, [rows, actions, slots]; END for those of probability 0 too. int32."""
    probability: Float[Array, "rows actions slots"]
    """[rows, actions, slots], 0 for actions that do not exist. float."""
    reward: Float[Array, "rows actions slots"]
    """[rows, actions, slots]. float."""
    table: UInt32[Array, "table_rows entries"]
    """The node of a state: see `table.py`."""
    rows: Int[Array, ""]
    """How many rows are in use. int32, no axis."""
    open: Int[Array, ""]
    """How many nodes have no row yet, END aside. At 0 the graph holds everything that can be reached."""
    settings: Float[Array, " settings"]
    """The settings that its values depend on: see `settings_of`."""

    @property
    def num_actions(self) -> int:
        return self.child.shape[-2]

    @property
    def slots(self) -> int:
        return self.child.shape[-1]


def settings_of(config: SearchConfig) -> Float[Array, " settings"]:
    """Numbers that are equal for searches of which one may continue the graph of the other."""
    numbers = (config.gamma, config.rho, config.penalty, config.threshold)
    switches = (config.selection, config.simulation, config.backpropagation)
    return jnp.stack([jnp.asarray(part, float) for part in (list(RULES).index(config.rules), *numbers, *switches)])


def empty_graph(state: PyTree, config: SearchConfig, rows: int, num_actions: int, slots: int, has_prior: bool) -> Graph:
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
        settings=settings_of(config),
    )


compiled_empty_graph = jax.jit(empty_graph, static_argnums=(2, 3, 4, 5))
"""For use outside of programs, where each of the arrays would be compiled by itself."""


def graph_bytes(state: PyTree, config: SearchConfig, num_actions: int, slots: int) -> float:
    """About how much memory a compiled graph search takes: nodes, their table, and a state for every rollout."""
    size = state_bytes(state)
    block = num_actions * slots
    lanes = block * max(1, config.rollouts // block)
    node = size + 13 + 16 + 4 * 12  # the node, its edge, and four entries of the table
    return float(
        (config.iterations * block + FIRST) * node + 21 * config.iterations * num_actions + lanes * (size + 16)
    )
