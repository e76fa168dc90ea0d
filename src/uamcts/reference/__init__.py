"""UA-MCTS on plain Python objects, to read beside the paper, and to plan with any Python simulator.

A model is any object with `num_actions` and one of these; the first that it has is used:

- `outcomes(state, action)`: every outcome, a list of `(probability, (state, reward, terminal))`
- `sample(state, action, rng)`: a draw of `(state, reward, terminal)` from `rng`, a `numpy.random.Generator`, alone
- `step(state, action)`: what happens in a deterministic model, `(state, reward, terminal)`

It may also offer `legal_actions(state)`, a sequence of actions (none: a dead end); `identity(state)`, a hashable object
that is equal for equal states (by default states, arrays, lists and dicts are taken by their contents); and, if it is
deterministic, `step_batch(states, actions)` for rollouts in lockstep. States may be anything; none of these functions
may change the state it is given. Nothing here copies states. A model with continuous actions has `num_actions = None`
and `action_space`, the bounds (low, high), or `actions(state, rng)`, which proposes one.

The same search, compiled and for JAX models, is `uamcts.search`; with the same random draws both build the same tree.
"""

from uamcts.reference.engine import search
from uamcts.reference.graph import Graph, GraphNode
from uamcts.reference.tree import Draws, Node, PythonModel, Result

__all__ = ["Draws", "Graph", "GraphNode", "Node", "PythonModel", "Result", "search"]
