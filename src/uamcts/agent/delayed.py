"""The part of a backend that notices if actions take effect later than believed (`uamcts.corrections.delays`)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np

from uamcts.agent.backend import State
from uamcts.agent.chance import RealOutcome
from uamcts.agent.comparing import Comparing
from uamcts.agent.progress_files import latest_place
from uamcts.agent.returns import Returns
from uamcts.agent.searching import Compared
from uamcts.corrections.delays import Delays, Trial, relabel
from uamcts.corrections.trials import WORST
from uamcts.errors import SimulatorError

Action: TypeAlias = Any
"""An action as it was given to `observe`: its number, once that is checked."""
LOGGED = 256
"""Transitions, the latest ones, that are learned from anew once actions turn out to be late."""


class Delayed(Comparing):
    """A backend whose simulator may believe that actions take effect too early."""

    returns: Returns
    resumes: bool
    delays: Delays
    log: tuple[tuple[Any, ...], ...]
    """The latest transitions with the actions that were taken, and whether each began an episode."""
    _weighed: tuple[Trial, ...] = ()
    """The comparisons that were examined last; examining them again would give the same answer."""

    def _resume(self) -> None:
        """Goes on in the episode that an agent was in when it was saved."""
        if self.resumes:
            self.planner.read_raw(self.experience)
            place = latest_place(self)
            self.returns.place, self.delays, self.resumes = place, self.delays._replace(place=place), False

    def _where_it_acts(self, state: State, horizon: int | None) -> tuple[State, int | None]:
        """The state in which an action chosen now takes effect, and the steps that are left from there on."""
        if not self.delays.delay:
            return state, horizon
        self._resume()
        here, left = state, horizon
        try:
            for action in self.delays.at(self.planner.key(state)).pending:
                here, said = self.planner.predict(here, action, RealOutcome(here, None, None), self.corrector.variant())
                left = None if left is None else max(left - 1, 1)
                if said.terminal:
                    return state, horizon
        except SimulatorError:
            return state, horizon
        return here, left

    def _effective(self, state: State, action: Action) -> Action:
        """The action that takes effect when one is taken in a state; None if that is not known."""
        if not self.delays.delay:
            return action
        place = self.planner.key(self._accept_state(state, "state"))
        self._resume()
        began = self.delays.at(place)
        return began.effective(self._split(action)[0])

    def _follow(self, sample: Compared, action: Action, here: Hashable, there: Hashable) -> None:
        """Goes on in the episode after an action, and compares delays by what it led to."""
        if not (self.planner.num_actions and self.planner.deterministic and self.corrector.allowed):
            return
        row, over, taken = sample.row, sample.paid[1], int(action)
        began = self.delays.at(here)
        self.log = (*self.log, (row.state, taken, row.following, *row.real[1:], not began.actions))[-LOGGED:]
        errors = [self.measure.error(row.real, row.believed, self.experience.scales, row.own[0])] * 2
        if row.used is not row.believed and not self.planner.plans_effects:
            errors[1] = self.measure.error(row.real, row.used, self.experience.scales, row.own[1])
        if len(began.actions) < began.delay:
            began = began.begin(self._explain(sample))
        found = began.watch(errors[1] > 0)
        if found.is_due:
            found = found.compare(self._test(sample, taken, began, errors))
        self.delays = found.follow(taken, None if over else there)

    def _test(self, sample: Compared, taken: int, began: Delays, errors: list[float]) -> Trial:
        """How well each delay predicts a transition; `errors` are those of the effective action."""
        actions = (taken, *reversed(began.actions))
        known = {sample.row.number: errors}
        for action in actions:
            if action not in known:
                known[action] = self._errors(sample, action)
        floor = self.corrector.floor
        scores = [[math.log(min(error, WORST) + floor) for error in known[action]] for action in actions]
        here = sample.row.here
        whole = bool(np.all(here == np.round(here)))
        return Trial(actions, np.array(scores), math.log(floor) + 1e-6 if whole else -math.inf)

    def _explain(self, sample: Compared) -> list[int]:
        """The actions with which the corrected model predicts a transition exactly."""
        return [action for action in range(self.planner.num_actions or 0) if not self._errors(sample, action)[1]]

    def _errors(self, sample: Compared, action: int) -> list[float]:
        """Errors of predictions with another action: by the simulator, and by the corrected one."""
        row, found = sample.row, []
        for variant in [None] if self.corrector.in_use == "none" else [None, self.corrector.variant()]:
            try:
                after, said = self.planner.predict(row.state, action, sample.actual, variant)
                own = self.measure.own_error(row.following, after)
                found.append(self.measure.error(row.real, said, self.experience.scales, own))
            except SimulatorError:
                found.append(WORST)
        return [found[0], found[-1]]

    def relabel(self) -> tuple[list[tuple[Any, ...]], Delays] | None:
        """If actions turn out to take effect later or earlier: what was seen, with effective actions, and that."""
        tests = self.delays.tests
        delay = None if tests is self._weighed else self.delays.better()
        self._weighed = tests
        return None if delay is None else (relabel(self.log, delay), self.delays.alone(delay))
