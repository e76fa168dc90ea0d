"""Reuse: what an earlier search knows about the states that can still be reached.

The nodes that can be reached from the new root move into a graph of fixed size, with their visits and values. Rows that
find no room, the last made first, are dropped: their nodes keep their values and may be expanded again.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from uamcts.arguments import short_repr
from uamcts.mcts.graph.graph import END, FIRST, ROOT, UNEXPANDED, UNUSED, Graph
from uamcts.mcts.graph.table import enter_many, key_words, look_up
from uamcts.types import PyTree


def check_fit(previous: PyTree, fresh: Graph) -> None:
    """Refuses what is not a graph of the same problem; the model itself cannot be compared."""
    if not isinstance(previous, Graph):
        raise ValueError(
            f"tree is {short_repr(previous)}; with graph=True give the result of an earlier search with graph=True, or "
            "None"
        )
    kinds = [jax.tree.map(lambda leaf: (leaf.shape[1:], leaf.dtype.name), graph.state) for graph in (previous, fresh)]
    found = (
        ("actions", previous.num_actions, fresh.num_actions),
        ("outcomes per action", previous.slots, fresh.slots),
        ("prior probabilities", previous.prior.shape[1], fresh.prior.shape[1]),
        ("states", *kinds),
    )
    for what, old, new in found:
        if old != new:
            raise ValueError(
                f"tree has other {what} than this search: {short_repr(old)} instead of {short_repr(new)}; give the "
                "result of a search in the same model, or leave tree out"
            )


def move_root(previous: Graph, fresh: Graph, state: PyTree, keep: int) -> Graph:
    """`fresh`, a graph of the root alone, with at most `keep` rows of `previous` that can be reached from `state`.

    A state that is not in the previous graph leaves `fresh` as it is, and so do other settings.
    """
    check_fit(previous, fresh)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
    certain, wanted = jnp.array([False]), jnp.array([True])
    found = look_up(previous.table, previous.state, previous.doubted, one, certain, wanted)
    moved = _compact(previous, fresh, found.node[0], min(keep, previous.owner.size))
    usable = found.known[0] & same_settings(previous, fresh)
    chosen: Graph = jax.tree.map(lambda new, old: jnp.where(usable, new, old), moved, fresh)
    return chosen


def same_settings(previous: Graph, fresh: Graph) -> Bool[Array, ""]:
    """Whether the values of both graphs depend on the same settings."""
    return jnp.all(previous.settings == fresh.settings)


def reachable(graph: Graph, start: jax.Array) -> jax.Array:
    """Which nodes can be reached from `start`, conditions [nodes]."""
    used = jnp.arange(graph.owner.size) < graph.rows

    def spread(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        marked, _ = carry
        rows = used & marked[graph.owner]
        children = jnp.where(rows[:, None, None], graph.child, END)
        further = marked.at[children.reshape(-1)].set(True)
        return further, jnp.any(further != marked)

    marked = jnp.zeros(graph.row.size, bool).at[start].set(True)
    return jax.lax.while_loop(lambda carry: carry[1], spread, (marked, jnp.bool_(True)))[0]


def _compact(previous: Graph, fresh: Graph, root: jax.Array, keep: int) -> Graph:
    """The graph below `root`, whose row becomes the first, in the arrays of `fresh`."""
    numbers, nodes = jnp.arange(previous.owner.size), previous.row.size
    kept = (numbers < previous.rows) & reachable(previous, root)[previous.owner]
    kept = kept & (previous.row[previous.owner] == numbers)
    rank = jnp.where(kept, jnp.where(numbers == previous.row[root], -1, numbers), numbers.size)
    old = jnp.argsort(rank)[:keep]
    count = jnp.minimum(jnp.sum(kept), keep).astype(jnp.int32)
    valid = jnp.arange(keep) < count
    new_row = jnp.full(numbers.size + 1, UNEXPANDED).at[jnp.where(valid, old, numbers.size)].set(jnp.arange(keep))
    new_row = new_row.at[-1].set(UNEXPANDED)

    # A node moves to the first place, in the order of the new rows, from which it is a successor.
    child = jnp.where(valid[:, None, None], previous.child[old], END)
    flat, places = child.reshape(-1), FIRST + jnp.arange(child.size, dtype=jnp.int32)
    home = jnp.full(nodes, fresh.row.size, jnp.int32).at[flat].min(places).at[END].set(END).at[root].set(ROOT)
    source = jnp.concatenate([jnp.array([END]), root[None], flat])
    lives = home[source] == jnp.arange(source.size)
    lives = lives & (source != END)
    rows = jnp.where(lives, new_row[previous.row[source]], UNUSED)  # UNEXPANDED, -1, finds the last entry
    open_ = lives & (rows == UNEXPANDED)

    def fill(empty: jax.Array, part: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice_in_dim(empty, part.astype(empty.dtype), 0, 0)

    edges = ("exists", "uncertainty", "bias", "keep", "prior", "quality", "probability", "reward")
    fields = {name: fill(getattr(fresh, name), getattr(previous, name)[old]) for name in edges}
    visits = jnp.where(valid[:, None, None], previous.visits[old], 0.0)  # rows to come begin with none
    doubted = previous.doubted[source]
    states = jax.tree.map(lambda leaf: leaf[source], previous.state)
    prints, _ = jax.vmap(key_words)(states, doubted)
    return fresh._replace(
        state=jax.tree.map(fill, fresh.state, states),
        doubted=fill(fresh.doubted, doubted),
        value=fill(fresh.value, previous.value[source]),
        row=fill(fresh.row, rows),
        owner=fill(fresh.owner, jnp.where(valid, home[previous.owner[old]], 0)),
        visits=fill(fresh.visits, visits),
        child=fill(fresh.child, home[child]),
        table=enter_many(jnp.zeros_like(fresh.table), prints, jnp.arange(source.size), lives),
        rows=count,
        open=jnp.sum(open_).astype(jnp.int32),
        **fields,
    )
