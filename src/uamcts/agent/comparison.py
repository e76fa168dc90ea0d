"""Real transitions beside what the simulator and the corrected model predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from uamcts.agent.backend import State
from uamcts.agent.chance import RealOutcome
from uamcts.agent.experience import Row
from uamcts.agent.measure import Outcome
from uamcts.arguments import action_number, flag, real, short_repr

if TYPE_CHECKING:
    from uamcts.agent.simulator_backend import SimulatorBackend


class Compared(NamedTuple):
    """A real transition beside what the simulator predicts."""

    row: Row
    actual: RealOutcome
    paid: tuple[float, bool]
    """Reward and end, as predicted where they are unknown."""
    whole: bool
    """Whether reward and end are known: given, or predicted together with the very state that followed."""


def accept_state(backend: SimulatorBackend, state: State, argument: str) -> State:
    """A state of the simulator, with as many numbers as the states that were seen."""
    state = backend.planner.accept(state, argument)
    names = ("features", "inputs") if backend.planner.num_actions is not None else ("features",)
    known = {name: backend.experience.rows[name].shape[1] for name in names if backend.experience.count}
    for name, size in {**backend.planner.sizes(), **known}.items():
        found = getattr(backend.planner, name)(state).size
        if found != size:
            raise ValueError(
                f"{argument} is {short_repr(state)}, which has {found} {name}; those that this agent has seen, or "
                f"loaded from a file, have {size}, and {backend.name} must give as many for every state"
            )
    return state


def compare_transition(
    backend: SimulatorBackend, state: State, action: Any, following: State, reward: object, terminal: object
) -> Compared:
    """Compares a transition with what the simulator predicts."""
    number, part = _split(backend, action)
    paid = None if reward is None else real("reward", reward, "it must be a finite number, or None if not known")
    over = None if terminal is None else flag("terminal", terminal, "it must be True, False, or None if not known")
    state, following = accept_state(backend, state, "state"), accept_state(backend, following, "next_state")
    backend.planner.probe(state, backend.config)
    given = action if part.size else number
    actual = RealOutcome(following, paid, over)
    after, believed = backend.planner.predict(state, given, actual)
    assert believed.reward is not None and believed.terminal is not None  # noqa: S101, PT018 (it says both)
    used, own = believed, (backend.measure.own_error(following, after),) * 2
    if backend.corrector.in_use != "none":
        corrected, used = backend.planner.predict(state, given, actual, backend.corrector.variant())
        own = own[0], backend.measure.own_error(following, corrected)
    complete = paid is not None and over is not None
    real_outcome = Outcome(backend.planner.features(following), paid, over)
    row = Row(
        state, given, following, backend.planner.features(state), np.concatenate([backend.planner.inputs(state), part]),
        number, real_outcome, believed, used, own,
    )  # fmt: skip
    return Compared(
        row, actual, (believed.reward if paid is None else paid, believed.terminal if over is None else over),
        complete or backend.planner.key(following) == backend.planner.key(after),
    )  # fmt: skip


def _split(backend: SimulatorBackend, action: Any) -> tuple[int, np.ndarray]:
    """The number of an action, and what it adds to the inputs of U: a continuous action has the number 0."""
    if backend.planner.num_actions is not None:
        return action_number(action, backend.planner.num_actions, backend.name), np.zeros(0, np.float32)
    try:
        part = np.asarray(action, np.float32).reshape(-1)
    except (TypeError, ValueError):
        part = np.array([np.nan])
    if not np.all(np.isfinite(part)):
        raise ValueError(f"action is {short_repr(action)}; give an action of {backend.name}, finite numbers")
    return 0, part
