"""What two JAX simulators must have in common to share compiled programs."""

from __future__ import annotations

from types import MethodType

import jax
import numpy as np

from uamcts.agent.compiled_parameters import ParameterTree
from uamcts.agent.jax_code import Coded
from uamcts.agent.jax_simulator import JaxSimulator, Parametric

FUNCTIONS = ("step", "outcomes", "sample", "terminal", "reward", "features", "inputs", "legal", "identity")
"""The functions of a simulator that are compiled."""


class Form:
    """What the compiled functions of a simulator depend on: all of it but the values of its params.

    Two simulators have the same form if their functions are the same objects, for example if one of them was made by
    `dataclasses.replace(other, params=...)`.
    """

    def __init__(self, simulator: JaxSimulator):
        self.simulator = simulator  # keeps the functions alive, so that their ids remain theirs
        leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, simulator.example))
        example = [(leaf.shape, str(leaf.dtype), leaf.tobytes()) for leaf in leaves]
        places = ParameterTree(simulator.params).places.items()
        functions = [_identity(getattr(simulator, name)) for name in FUNCTIONS]
        params = jax.tree.structure(simulator.params)
        self._key = (simulator.num_actions, structure, params, *example, *places, *functions)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self._key == other._key


def _identity(function: object) -> tuple[object, ...]:
    """What tells a function from others. A bound method is a new object whenever it is looked up."""
    function = function.call if isinstance(function, Parametric) else function
    if isinstance(function, Coded):
        return function.identity
    if isinstance(function, MethodType):
        return id(function.__func__), id(function.__self__)
    return (id(function),)
