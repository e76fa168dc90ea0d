"""Bellman backups along a path, after every iteration.

Q(s, a) = sum over outcomes of p [r + gamma P(V(s'))],  V(s) = max over the actions that exist, 0 if there are none
P is the identity but for doubtful transitions: see `Rules.child_value`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.descend import Descent, look
from uamcts.mcts.graph.equations import best
from uamcts.mcts.graph.graph import END, Graph
from uamcts.mcts.loops import masked_while
from uamcts.mcts.rules import find_rules
from uamcts.mcts.tree import put


class _Climb(NamedTuple):
    place: Int[Array, ""]
    row: Int[Array, ""]
    quality: Float[Array, " actions"]
    """Q of the row, [actions], not yet written."""
    value: Float[Array, " nodes"]
    qualities: Float[Array, "rows actions"]
    visits: Float[Array, " visits"]
    """Flat."""


def back_up(graph: Graph, path: Descent, config: SearchConfig) -> Graph:
    """The graph after a backup of every node on the path, from its end up to the root, and a visit of its outcomes.

    A round of the loop writes what the round before found: so what finds it is computed once.
    """
    rules, outcomes = find_rules(config.rules), graph.num_actions * graph.slots

    def step(climb: _Climb) -> _Climb:
        writes = (climb.place >= 0) & (climb.place < path.length)
        owner = jnp.where(writes, graph.owner[climb.row], END)
        value = put(climb.value, owner, jnp.where(writes, best(climb.quality, graph.exists[climb.row]), 0.0))
        qualities = put(climb.qualities, climb.row, climb.quality)

        going, step = climb.place > 0, path.steps[jnp.maximum(climb.place - 1, 0)]
        row, outcome = step // (outcomes + 1), step % (outcomes + 1)
        worth = rules.child_value(look(value, graph.child[row]), graph.reward[row], graph.keep[row][:, None], config)
        quality = jnp.sum(graph.probability[row] * worth, axis=-1)
        place = row * outcomes + jnp.minimum(outcome, outcomes - 1)
        visits = put(climb.visits, place, climb.visits[place] + (going & (outcome < outcomes)))
        row, quality = jnp.where(going, row, climb.row), jnp.where(going, quality, climb.quality)
        return _Climb(climb.place - 1, row, quality, value, qualities, visits)

    # The first round writes the root's Q as it is: there is none before it.
    place = jnp.where(path.length > 0, path.length, -1)
    start = _Climb(place, jnp.int32(0), graph.quality[0], graph.value, graph.quality, graph.visits.reshape(-1))
    end = masked_while(lambda climb: climb.place >= 0, step, start)
    return graph._replace(value=end.value, quality=end.qualities, visits=end.visits.reshape(graph.visits.shape))
