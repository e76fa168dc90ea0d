"""What an agent does in your own loop: it plans, observes and learns, whatever stands behind it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uamcts.agent.alarm import SlowMoves
from uamcts.agent.backend import FilePath, Sample, State
from uamcts.agent.inspecting import Inspecting
from uamcts.agent.report import Report
from uamcts.agent.seen import SeenTransition, seen_transitions
from uamcts.agent.turns import Turns, in_turn
from uamcts.arguments import short_repr, switch, whole
from uamcts.corrections.delays import Delays

if TYPE_CHECKING:
    from uamcts.uncertainty import Estimator


class AgentLoop(Inspecting):
    """The methods of `uamcts.Agent`."""

    _make: Callable[[Any], tuple[Any, Any]] | None
    """Makes a backend for another simulator with the same settings."""
    _ended: Callable[..., bool] | None
    """Says whether a transition ended its episode, where a domain can tell."""
    _turns: Turns
    _slow_moves: SlowMoves

    @property
    def estimator(self) -> Estimator | None:
        """The estimator of U; None until a simulator was wrong for the first time."""
        return self.backend.estimator

    @property
    def tau(self) -> float:
        """The uncertainty factor of the next search: the config's, or the schedule's present value."""
        return self.backend.tau

    @property
    def steps(self) -> int:
        """The number of real transitions observed."""
        return self.backend.steps

    @property
    def loss(self) -> float | None:
        """The mean loss of the last round of training; None before the first round, and for simulators."""
        return self.backend.loss

    @in_turn
    def act(self, state: State, steps_left: int | None = None) -> Any:
        """Searches for the best action.

        Args:
            state: The present state, as the model takes it. For a Gymnasium environment, also the environment that you
                act in.
            steps_left: How many steps the episode has left, this one included; nothing after them counts. By default
                there is no limit. `Agent.paper` does not read it.

        Returns:
            The action to take: its number, or, if actions are continuous, the action itself.

        Raises:
            SimulatorError: The simulator did something that cannot be planned with.
            ValueError: `state` is not a state of the model, or `steps_left` is not a whole number of at least 1.
        """
        start = time.perf_counter()
        self.last_plan = self.backend.act(state, steps_left)
        continuous = getattr(self.last_plan, "actions", None) is not None
        action = self.last_plan.action if continuous else int(self.last_plan.action)
        self._slow_moves.add(time.perf_counter() - start, self.backend.name, self.backend.config.iterations)
        if self._recording is not None:
            self._recording.decide(self)
        return action

    @in_turn
    def observe(
        self,
        state: State,
        action: int,
        next_state: State,
        reward: float | None = None,
        terminal: bool | None = None,
    ) -> bool:
        """Takes in a real transition. States are copied, so your world may change its own.

        Args:
            state: The state before the step. If your world changes it in place, make a copy before the step; of a
                Gymnasium environment, keep `simulator.read(env)`.
            action: The action taken.
            next_state: The state after the step.
            reward: The reward of the step, if known.
            terminal: Whether the episode ended, if known. A domain works it out by itself.

        Returns:
            Whether the agent learned something: a round of training was due.

        Raises:
            ValueError: An argument is not a legal value, or `state` has changed since `act` was given it.
            SimulatorError: The simulator did something that cannot be planned with.

        Where the simulator was wrong about the next state, and `reward` or `terminal` is not given, the transition is
        doubtful from then on, but not remembered as a fact.
        """
        if terminal is None and self._ended is not None and isinstance(action, (int, np.integer)):
            terminal = self._ended(state, int(action), next_state)
        learned = self.backend.observe(state, action, next_state, reward, terminal)
        late = None if self._make is None else self.backend.relabel()  # type: ignore[attr-defined]
        if late is not None:
            self._start_anew(self._model, *late)
        if self._recording is not None:
            self._recording.observe(self, action, next_state, reward, terminal)
        return learned

    @in_turn
    def learn(self) -> bool:
        """Trains now on everything that was observed.

        Returns:
            Whether it trained; False if the schedule says that there is nothing more to learn.
        """
        return self.backend.learn()

    @in_turn
    def preload(self, samples: Iterable[Sample]) -> int:
        """Takes in real transitions that are known already, for example from a log. They count like observed ones.

        Args:
            samples: Tuples `(state, action, next_state)`, followed by `reward` and `terminal` where they are known.

        Returns:
            The number of samples.

        Raises:
            ValueError: A sample is not legal; the message names it. Nothing is then taken in.
        """
        return self.backend.preload(samples)

    def seed(self, samples: Iterable[Sample]) -> int:
        """Deprecated: use `preload`."""
        warnings.warn("Agent.seed is deprecated; use Agent.preload", DeprecationWarning, stacklevel=2)
        return self.preload(samples)

    @property
    def experience(self) -> list[SeenTransition]:
        """The latest real transitions, each (state, action) once, the oldest first; at most 2,048 are kept."""
        return seen_transitions(self.backend)

    @in_turn
    def forget(self, which: Callable[[SeenTransition], bool] | None = None) -> int:
        """Drops part of the experience and learns anew from the rest, which counts as seen once.

        Args:
            which: Says of a transition whether it is to be dropped. By default all are.

        Returns:
            The number of transitions that were dropped.
        """
        if which is not None and not callable(which):
            raise TypeError(f"which is {short_repr(which)}; give a function of a transition, or leave it out")
        held = self.experience if which is None else self._whole_experience()
        kept = [] if which is None else [one for one in held if not which(one)]
        self._start_anew(self._model, kept, None if which is None else self._delays)
        return len(held) - len(kept)

    @in_turn
    def replace(self, simulator: object, keep: bool = True) -> None:
        """Replaces the simulator, for example by one that was corrected by hand.

        A `JaxSimulator` with the functions of the last one and other params (`dataclasses.replace(simulator,
        params=...)`) uses the programs that were compiled for that one.

        Args:
            simulator: What to plan in from now on. Its states and actions must mean the same.
            keep: Whether to keep what was seen, compare it with the new simulator, and learn from it. Pass False if the
                world has changed, so that what was seen no longer holds.
        """
        keep = switch("keep", keep)
        self._start_anew(simulator, self._whole_experience() if keep else [], self._delays if keep else None)

    @property
    def _delays(self) -> Delays | None:
        """What is known about delays; the paper's agent knows nothing."""
        found: Delays | None = getattr(self.backend, "delays", None)
        return found if found is None else found.alone()

    def _whole_experience(self) -> list[SeenTransition]:
        """The experience; an error if states of a file that was loaded are missing from it."""
        held, count = self.experience, self.backend.experience.count  # type: ignore[attr-defined]
        if len(held) < count:
            raise ValueError(
                f"the states of {count - len(held)} of {count} transitions could not be rebuilt from the file that was "
                "loaded: their classes are known once act or observe was given such a state, so call act(state) first; "
                "to drop all transitions, call forget() or replace(simulator, keep=False)"
            )
        return held

    def _start_anew(self, model: object, kept: Sequence[Sample], delays: Delays | None) -> None:
        """Replaces the backend by a new one that has seen these transitions, with the actions that took effect."""
        if self._make is None:
            raise TypeError("the paper's agent keeps no transitions to learn anew from; use uamcts.Agent")
        backend, ended = self._make(model)
        backend.delays = Delays() if delays is None else delays
        backend.preload([one[:5] for one in kept])
        backend.steps, backend.acts = self.backend.steps, self.backend.acts  # type: ignore[attr-defined]
        self._model, self.backend, self._ended, self.last_plan = model, backend, ended, None

    @in_turn
    def report(self, most: int = 10) -> Report:
        """Reports where the model was wrong.

        Args:
            most: How many transitions to list, those with the largest U first.

        Returns:
            A report to print, or to iterate over.
        """
        return self.backend.report(whole("most", most, 0))

    @in_turn
    def explain(self) -> str:
        """Explains the last action: visits, value and uncertainty of every action, and which ones were deleted.

        Where the agent has decided by itself whether equal states share a node, the last line says so, and why.

        Raises:
            RuntimeError: `act` was not called yet.
        """
        if self.last_plan is None:
            raise RuntimeError("explain was called before act; there is no plan to explain yet")
        note = self.backend.note
        words: str = self.last_plan.explain(self.backend.action_names)
        return f"{words}\n{note}" if note else words

    @in_turn
    def save(self, path: FilePath) -> None:
        """Writes everything that was learned to one file of arrays and JSON. An older file is replaced atomically.

        Args:
            path: The file to write.
        """
        self.backend.save(path)

    @in_turn
    def load(self, path: FilePath) -> None:
        """Restores what an agent with the same model and estimator has saved. On any error nothing changes.

        Args:
            path: A file that `save` wrote.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is damaged, or was written by an agent of another kind.

        Remembered states that are named tuples, dataclasses or other objects are rebuilt with the classes of the states
        that this agent meets: they are planned with from the first `act` or `observe` on.
        """
        self.backend.load(path)
        self.last_plan = None
