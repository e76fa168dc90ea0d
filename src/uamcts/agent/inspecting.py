"""Recordings of an agent, and the pages that show them (`uamcts.inspector`)."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from uamcts.agent.backend import Backend, FilePath, Plan, State
from uamcts.agent.seen import seen_transitions
from uamcts.arguments import short_repr, shorten
from uamcts.types import PyTree

if TYPE_CHECKING:
    from uamcts.inspector import Inspection


class Inspecting:
    """The part of an agent that shows what it thought."""

    backend: Backend
    last_plan: Plan
    """What the last search found; `print(agent.explain())` shows it."""
    _model: object = None
    _recording: Recording | None = None
    """The recording that is going on."""
    _recorded: Recording | None = None
    """The latest recording."""

    def record(self, path: FilePath | None = None) -> Recording:
        """Records every move from now on, for `inspect`. Use it with `with`, or call `stop` in the end.

        A recording costs some milliseconds a move. It keeps the latest 3,000 moves.

        Args:
            path: The trace file to write when the recording stops; `uamcts inspect` makes a page of it. By default none
                is written.

        Returns:
            The recording.

        Raises:
            ValueError: The file cannot be written there.

        Example:
            ```python
            with agent.record("trace.uamcts"):
                while not over:
                    action = agent.act(state)
                    ...
            agent.inspect("plan.html")
            ```
        """
        from uamcts.inspector.page import check_file

        if path is not None:
            if not isinstance(path, (str, os.PathLike)):
                raise TypeError(f"path is {short_repr(path)}; give the name of a file, or leave it out")
            check_file(Path(path), "path")
        if self._recording is not None:
            self._recording.stop()
        self._recording = self._recorded = Recording(self, path)
        return self._recording

    def inspect(self, path: FilePath | None = None) -> Inspection:
        """A page that shows what the agent thought, believed and met: in a notebook, or in a file.

        It shows the latest recording (`record`). If there is none, it shows the latest decision, and what came of it if
        that was observed.

        Args:
            path: The HTML file to write. By default none is written.

        Returns:
            The page, which shows itself in a notebook; `save(path)` writes it.

        Raises:
            RuntimeError: There is nothing to show yet.
            ValueError: The file cannot be written there.
        """
        from uamcts.inspector import Inspection

        recording = self._recorded
        if recording is None or not recording.moves:
            if self.last_plan is None:
                raise RuntimeError("inspect was called before act; there is no decision to show yet")
            recording = Recording(self, None)
            recording.decide(self)
            recording.observe_latest(self)
        page = Inspection(recording.trace())
        if path is not None:
            page.save(path)
        return page


@dataclass(frozen=True)
class Decision:
    """A plan of which it is not yet known what came of it."""

    plan: Plan
    record: dict[str, Any]
    """The plan as the trace holds it."""
    action: int
    """The number of the action, or its place among those proposed; -1 for one that was not planned."""
    label: str
    heat: list[list[float]]
    """U over the cells: after the agent has observed, it is another one."""

    def instead(self, action: PyTree) -> Decision:
        """The decision, or what was done instead of it."""
        if self.record["labels"]:
            if np.array_equal(action, self.plan.action):
                return self
            return replace(self, action=-1, label=shorten(str(np.round(action, 3)), 60))
        return self if int(action) == self.action else replace(self, action=int(action), label="", heat=[])


class Recording:
    """Moves of an agent, recorded for the inspector."""

    def __init__(self, agent: Inspecting, path: FilePath | None):
        from uamcts.agent.scenes import make_scene
        from uamcts.inspector.recorder import Recorder, planner_record

        self._agent, self._path = agent, path
        self._scene = make_scene(agent.backend, agent._model)
        name = "Agent" if hasattr(agent.backend, "corrector") else "The paper's agent"
        self._recorder = Recorder(self._scene, [planner_record(name, self._config(agent))])
        self._episode = self._recorder.start_episode()
        self._waiting: Decision | None = None
        """The latest decision, as long as nothing was observed."""
        self._over = False

    @staticmethod
    def _config(agent: Inspecting) -> Any:
        return agent.backend.config

    @property
    def moves(self) -> int:
        """How many moves were recorded."""
        return sum(len(one["moves"]) for one in self._recorder.episodes) + (self._waiting is not None)

    def decide(self, agent: Inspecting) -> None:
        """Takes in what the agent has just planned."""
        from uamcts.inspector.plain_views import view_of
        from uamcts.inspector.recorder import record_plan

        self._flush()
        self._scene.backend = agent.backend
        plan = agent.last_plan
        record = record_plan(plan, self._scene, self._config(agent), agent.backend.note)
        if self._over:
            self._episode, self._over = self._recorder.start_episode(), False
        assert record is not None  # noqa: S101 (there is a plan)
        state = view_of(plan, self._config(agent)).state()
        action = record["action"]
        label = record["labels"][action] if record["labels"] else ""
        self._waiting = Decision(plan, record, action, label, self._scene.heat(state, action))

    def observe(
        self, agent: Inspecting, action: object, following: State, reward: float | None, terminal: bool | None
    ) -> None:
        """Takes in what came of it."""
        if self._waiting is None:
            return
        self._waiting = self._waiting.instead(action)
        self._flush(self._scene.accept(following), reward, terminal)
        self._over = bool(terminal)

    def observe_latest(self, agent: Inspecting) -> None:
        """Takes in the latest transition that the agent has seen, if it came of the latest decision."""
        from uamcts.inspector.plain_views import view_of

        if self._waiting is None or not hasattr(agent.backend, "planner"):
            return
        seen = seen_transitions(agent.backend)
        if not seen:
            return
        waiting = self._waiting
        key, latest = agent.backend.planner.key, seen[-1]
        root = view_of(waiting.plan, self._config(agent)).state()
        if key(latest.state) == key(root) and waiting.instead(latest.action) is waiting:
            self.observe(agent, latest.action, latest.next_state, latest.reward, latest.terminal)

    def _flush(self, real: State = None, reward: float | None = None, terminal: bool | None = None) -> None:
        from uamcts.inspector.plain_views import view_of
        from uamcts.inspector.recorder import Step

        if self._waiting is None:
            return
        made, self._waiting = self._waiting, None
        view = view_of(made.plan, self._config(self._agent))
        state, names = view.state(), self._scene.actions
        label = made.label or (names[made.action] if names else str(made.action))
        believed = [] if made.action < 0 else self._scene.complete(state, made.action, view.outcomes(made.action))
        step = Step(state, made.action, label, believed, real, reward, terminal, made.heat)
        move = self._recorder.add(self._episode, [made.record], step)
        if move["mistake"]:
            self._scene.mark_wrong(state)

    def trace(self) -> dict[str, Any]:
        """Everything that was recorded, as a trace: see docs/guides/inspector.md."""
        waiting = self._waiting
        self._flush()
        found = self._recorder.trace()
        if waiting is not None:  # what comes of it may still be observed
            self._episode["moves"].pop()
            self._waiting = waiting
        return found

    def stop(self) -> None:
        """Ends the recording, and writes its file if there is to be one."""
        from uamcts.inspector.trace import write_trace

        if self._agent._recording is self:
            self._agent._recording = None
            if self._path is not None and self.moves:
                write_trace(self._path, self.trace())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
