"""A real transition beside what a simulator predicts: what an agent accepts, and what it makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from uamcts.agent.backend import State
from uamcts.agent.chance import RealOutcome
from uamcts.agent.corrector import Corrector
from uamcts.agent.experience import Experience, Row
from uamcts.agent.identity import own_copy
from uamcts.agent.measure import Measure, Outcome
from uamcts.agent.plain_planner import PlainPlanner
from uamcts.agent.plain_uncertainty import Fitted
from uamcts.agent.searching import Compared
from uamcts.arguments import action_number, flag, real, short_repr
from uamcts.corrections.python_facts import Change
from uamcts.errors import SimulatorError
from uamcts.mcts.config import SearchConfig
from uamcts.runtime.lazy_jax import jnp

if TYPE_CHECKING:
    from uamcts.agent.compiled_planner import CompiledPlanner

Planner: TypeAlias = "PlainPlanner | CompiledPlanner"


class Comparing:
    """The part of a backend that compares transitions with its simulator."""

    planner: Planner
    experience: Experience
    corrector: Corrector
    measure: Measure
    config: SearchConfig
    name: str
    uncertainty: Fitted | None
    _asked: tuple[Any, Any] | None = None
    """What `act` was given last, and the key that it had then, if it may change."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Transitions of the real world that are no longer what they were, the latest ones."""
        return () if self.planner.patched is None or self.planner.plans_effects else self.planner.patched.changes

    def _withdraw_corrections(self) -> bool:
        """Plans in the simulator alone from now on."""
        raise NotImplementedError

    def _accept_state(self, state: State, argument: str) -> State:
        """A state of the simulator, with as many numbers as the states that were seen."""
        state = self.planner.accept(state, argument)
        names = ("features", "inputs") if self.planner.num_actions is not None else ("features",)
        known = {name: self.experience.rows[name].shape[1] for name in names if self.experience.count}
        for name, size in {**self.planner.sizes(), **known}.items():
            found = getattr(self.planner, name)(state).size
            if found != size:
                raise ValueError(
                    f"{argument} is {short_repr(state)}, which has {found} {name}; those that this agent has seen, or "
                    f"loaded from a file, have {size}, and {self.name} must give as many for every state"
                )
        return state

    def _remember_asked(self, given: State, state: State) -> State:
        """Remembers what `act` was given; returns the state that it stands for."""
        lasting = isinstance(given, (int, float, str, tuple, frozenset)) or not isinstance(self.planner, PlainPlanner)
        self._asked = None if lasting else (given, self.planner.key(state))
        return state

    def _refuse_changed(self, given: State, state: State) -> None:
        """Refuses a state that has changed since `act` was given it: an environment, or a list that a step changed."""
        if self._asked is not None and self._asked[0] is given and self._asked[1] != self.planner.key(state):
            raise ValueError(
                f"state is {short_repr(given)}, which has changed since act was given it; keep the state from before "
                "the step: a copy of it, or simulator.read(env) of an environment"
            )

    def _compare(
        self, state: State, action: int, following: State, reward: float | None, terminal: bool | None
    ) -> Compared:
        """Compares a transition with what the simulator predicts."""
        number, part = self._split(action)
        paid = None if reward is None else real("reward", reward, "it must be a finite number, or None if not known")
        over = None if terminal is None else flag("terminal", terminal, "it must be True, False, or None if not known")
        given_state, state = state, self._accept_state(state, "state")
        self._refuse_changed(given_state, state)
        self.planner.probe(state, self.config)
        following = self._accept_state(following, "next_state")
        if isinstance(self.planner, PlainPlanner):  # the world may go on to change them in place
            state, following = own_copy(state), own_copy(following)
        given = action if part.size else number
        actual = RealOutcome(following, paid, over)
        after, believed = self.planner.predict(state, given, actual)
        assert believed.reward is not None and believed.terminal is not None  # noqa: S101, PT018 (it says both)
        used, own = believed, (self.measure.own_error(following, after),) * 2
        if self.corrector.in_use != "none":
            try:
                corrected, used = self.planner.predict(state, given, actual, self.corrector.variant())
                own = own[0], self.measure.own_error(following, corrected)
            except SimulatorError:
                self._withdraw_corrections()
        if (effect := self.planner.predict_effect(state, given, actual)) is not None:
            used, own = effect[1], (own[0], self.measure.own_error(following, effect[0]))
        complete = paid is not None and over is not None
        real_outcome = Outcome(self.planner.features(following), paid, over)
        row = Row(
            state, given, following, self.planner.features(state), np.concatenate([self.planner.inputs(state), part]),
            number, real_outcome, believed, used, own,
        )  # fmt: skip
        return Compared(
            row, actual, (believed.reward if paid is None else paid, believed.terminal if over is None else over),
            complete or self.planner.key(following) == self.planner.key(after),
        )  # fmt: skip

    def _show(self, place: int) -> tuple[str, str, str] | None:
        """The states of a transition that was seen, and what is predicted, in words; None where numbers say it."""
        raw = self.experience.raw[place]
        if not raw or not isinstance(self.planner, PlainPlanner) or not self.planner.shows_states(raw[0]):
            return None
        said, _ = self.planner.predict(raw[0], raw[1], RealOutcome(raw[2], None, None), self.corrector.variant())
        return short_repr(raw[0]), short_repr(said), short_repr(raw[2])

    def _remembers(self, place: int) -> bool:
        """Whether a transition that was seen is planned with as a fact."""
        raw, facts = self.experience.raw[place], self.planner.patched
        return bool(raw) and facts is not None and facts.knows(raw[0], int(self.experience.rows["action"][place]))

    def _predict(self, places: np.ndarray) -> np.ndarray:
        """U-hat of some of the transitions."""
        if self.uncertainty is None:
            return np.zeros(len(places))
        inputs, actions = self.experience.rows["inputs"], self.experience.rows["action"]
        return np.array([float(self.uncertainty(jnp.asarray(inputs[p]), jnp.int32(actions[p]))) for p in places])

    def _split(self, action: Any) -> tuple[int, np.ndarray]:
        """The number of an action, and what it adds to the inputs of U: a continuous action has the number 0."""
        if self.planner.num_actions is not None:
            return action_number(action, self.planner.num_actions, self.name), np.zeros(0, np.float32)
        try:
            part = np.asarray(action, np.float32).reshape(-1)
        except (TypeError, ValueError):
            part = np.array([np.nan])
        if not np.all(np.isfinite(part)):
            raise ValueError(f"action is {short_repr(action)}; give an action of {self.name}, finite numbers")
        return 0, part
