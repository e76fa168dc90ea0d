"""UA-MCTS on plain Python objects, to read beside the paper, and to plan with any Python simulator.

A model is any object with `step(state, action) -> (state, reward, terminal)` and `num_actions`. It may also offer
`legal_actions(state)`, a sequence of actions (none: a dead end), and `step_batch(states, actions)` for rollouts in
lockstep. States may be anything; a step must not change the state it is given. Nothing here copies states.

The same search, compiled and for JAX models, is `uamcts.search`; with the same random draws both build the same tree.
"""

from uamcts.reference.engine import search
from uamcts.reference.tree import Draws, Node, PythonModel, Result

__all__ = ["Draws", "Node", "PythonModel", "Result", "search"]
