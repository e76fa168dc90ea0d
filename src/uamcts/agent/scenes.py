"""The world of an agent as the inspector shows it: a domain's board, or what the user's `render` draws, or numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.backend import Backend, State
from uamcts.agent.cells import PlayerCells
from uamcts.agent.chance import RealOutcome
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.agent.measure import Outcome
from uamcts.agent.paper_backend import PaperBackend
from uamcts.agent.plain_planner import PlainPlanner
from uamcts.agent.plain_uncertainty import CachedUncertainty
from uamcts.agent.simulator_backend import SimulatorBackend
from uamcts.domains.base import Domain
from uamcts.inspector.domain_scene import DomainScene
from uamcts.inspector.pictures import Artist
from uamcts.inspector.recorder import Scene
from uamcts.inspector.trace import Record
from uamcts.inspector.views import BelievedOutcome


class AgentScene(Scene, Protocol):
    """A scene in which an agent acts."""

    backend: Any
    """The agent's: it has another one after `forget` and `replace`."""

    def accept(self, state: State) -> State:
        """Turns what the user gave into a state."""
        ...

    def complete(self, state: State, action: int, outcomes: list[BelievedOutcome]) -> list[BelievedOutcome]:
        """What a search believed, with the states that it did not keep."""
        ...

    def mark_wrong(self, state: State) -> None:
        """Takes in that the model was wrong about a step from here."""
        ...


def make_scene(backend: Backend, model: object) -> AgentScene:
    """The scene of an agent's backend; `model` is what the agent was given."""
    if isinstance(backend, PaperBackend):
        return PaperScene(backend)
    assert isinstance(backend, SimulatorBackend)  # noqa: S101 (there are two kinds)
    return DomainAgentScene(backend, model) if isinstance(model, Domain) else SimulatorScene(backend)


class PaperScene(DomainScene):
    """The domain of the paper's agent, with its learned U."""

    def __init__(self, backend: PaperBackend):
        super().__init__(backend.domain, self._learned)
        self.backend = backend

    def _learned(self, vectors: np.ndarray) -> jax.Array:
        estimator, actions = self.backend._planning_estimator, jnp.arange(self.domain.num_actions)

        def learned(vector: jax.Array) -> jax.Array:
            return jax.vmap(estimator.predict, (None, 0))(self.domain.from_features(vector), actions)

        return jax.vmap(learned)(jnp.asarray(vectors))

    def accept(self, state: State) -> State:
        return state

    def mark_wrong(self, state: State) -> None:
        pass  # a domain says itself where it is broken

    def complete(self, state: State, action: int, outcomes: list[BelievedOutcome]) -> list[BelievedOutcome]:
        return self.believe(state, action) if any(one.state is None for one in outcomes) else outcomes


def _fill_end(
    backend: SimulatorBackend, state: State, action: int, outcomes: list[BelievedOutcome]
) -> list[BelievedOutcome]:
    """Outcomes with the state in which the episode ends, which graphs do not keep."""
    if len(outcomes) != 1 or outcomes[0].state is not None:
        return outcomes
    planner = backend.planner
    fact = None if planner.patched is None else planner.patched.plans_with(state, action)
    if isinstance(fact, tuple) and len(fact) == 3:
        return [replace(outcomes[0], state=fact[0])]
    after, _ = planner.predict(state, action, RealOutcome(state, None, None), backend.corrector.variant())
    return [replace(outcomes[0], state=after)]


class DomainAgentScene(DomainScene):
    """A domain with what an agent has learned about it."""

    def __init__(self, backend: SimulatorBackend, domain: Domain):
        super().__init__(domain, self._learned)
        self.backend = backend

    def _learned(self, vectors: np.ndarray) -> np.ndarray | jax.Array:
        fitted, count = self.backend.uncertainty, self.domain.num_actions
        if fitted is None:
            return np.zeros((len(vectors), count))
        each = jax.vmap(fitted, (None, 0))
        return jax.vmap(each, (0, None))(jnp.asarray(vectors, jnp.float32), jnp.arange(count))

    def accept(self, state: State) -> State:
        return self.backend.planner.accept(state, "next_state")

    def mark_wrong(self, state: State) -> None:
        pass

    def complete(self, state: State, action: int, outcomes: list[BelievedOutcome]) -> list[BelievedOutcome]:
        return _fill_end(self.backend, state, action, outcomes)


class SimulatorScene:
    """The simulator of an agent: pictures by its `render(state)`, if it has one, and the numbers of states."""

    summary = ""

    def __init__(self, backend: SimulatorBackend):
        self.backend = backend
        planner = backend.planner
        self.title = planner.name
        self.actions: Sequence[str] = planner.action_names
        self.chance = not planner.deterministic
        if not self.actions and planner.num_actions is not None:
            self.actions = [f"action {number}" for number in range(planner.num_actions)]
        simulator = planner.simulator
        owner = simulator if isinstance(simulator, JaxSimulator) else simulator.owner
        self._artist = Artist(planner.name, find_render(owner))
        self._every_state = getattr(owner, "every_state", ())
        self._cells, self._wrong = PlayerCells(), set[int]()

    def board(self) -> Record | None:
        board = self._artist.board()
        return None if board is None else {**board, "broken": sorted(self._wrong)}

    def frame(self, state: State) -> Record | None:
        frame = self._artist.frame(state)
        if frame is not None and "cells" in frame and self._artist.shape is not None:
            self._cells.see(self.vector(state), frame["cells"], self._artist.shape)
        return frame

    def mark_wrong(self, state: State) -> None:
        cell = self._cells.cell_of(self.vector(state))
        if cell is not None:
            self._wrong.add(cell)

    def vector(self, state: State) -> np.ndarray:
        return self.backend.planner.features(state)

    def features(self, state: State) -> Sequence[str]:
        names = self.backend.planner.feature_names(state)
        return names or [f"feature {place}" for place in range(self.vector(state).size)]

    def difference(self, real: State, believed: State) -> float:
        backend = self.backend
        actual, predicted = (Outcome(self.vector(state), None, None) for state in (real, believed))
        own = backend.measure.own_error(real, believed)
        return backend.measure.error(actual, predicted, backend.experience.scales, own)

    def heat(self, state: State, action: object) -> list[list[float]]:
        """U of an action from each cell, if it is clear which numbers of a state are a cell of the board."""
        planner = self.backend.planner
        if not isinstance(planner, PlainPlanner) or not isinstance(action, (int, np.integer)):
            return []
        doubt = planner.uncertainty
        if doubt is None:
            return []
        found = self._cells.states(state, self.vector, self._every_state)
        states, number = list(found.values()), int(action)
        if isinstance(doubt, CachedUncertainty):
            levels = doubt.many(states, [number] * len(states))
        else:
            levels = [doubt(one, number) for one in states]
        return [[cell, float(level)] for cell, level in zip(found, levels, strict=True) if level > 0]

    def accept(self, state: State) -> State:
        return self.backend.planner.accept(state, "next_state")

    def complete(self, state: State, action: int, outcomes: list[BelievedOutcome]) -> list[BelievedOutcome]:
        return _fill_end(self.backend, state, action, outcomes)


def find_render(owner: object) -> Callable[[Any], object] | None:
    """The `render(state)` of a simulator; None if it has none, or one that takes no state."""
    render = getattr(owner, "render", None)
    if not callable(render):
        return None
    try:
        inspect.signature(render).bind(None)
    except TypeError:
        return None
    except ValueError:  # a builtin that does not say
        pass
    return render  # type: ignore[no-any-return]
