"""The part of a backend that takes another action than the best one, to see what nobody has seen."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.backend import Plan, State
from uamcts.agent.corrector import Corrector
from uamcts.agent.curiosity import ENOUGH, Curiosity, Residual
from uamcts.agent.experience import Experience, Row
from uamcts.agent.way_out import PACED, find_way_out, is_denied, is_hopeless

SAME = 1e-6
"""Rewards that differ by no more than this, relative to their size, are equal."""
SMALLEST = 0.01
"""An error that is smaller than this share of the spread of rewards is no reason to try anything."""


class Instead(NamedTuple):
    """An action that is taken instead of the best one, and why."""

    action: int | None = None
    why: str = ""

    def describe(self) -> list[str]:
        return [self.why] if self.why else []


class Exploring:
    """Looks for a way out where nothing leads on, and tries actions that may pay more than is believed."""

    planner: Any
    experience: Experience
    corrector: Corrector
    action_names: tuple[str, ...]
    steps: int
    paced: int = 0
    """Known steps in a row; once there were so many that the agent may be pacing about, it stays suspected."""
    curiosity: Curiosity = Curiosity()
    _instead: Instead = Instead()
    _known_errors: dict[int, tuple[tuple[int, Any, int], tuple[int, float]]] = {}  # replaced, never changed
    """Mean errors of actions, by what they depend on."""

    def _explore(self, state: State, found: Plan) -> Plan:
        """A plan, with another action where that is worth a try."""
        self._instead = self._find_way_out(state, found)
        if self._instead.action is None:
            self._instead = self._try_action(state, found)
        action = self._instead.action
        return found if action is None else found._replace(action=np.int32(action))

    def _find_way_out(self, state: State, found: Plan) -> Instead:
        """An action that leads to what was never tried, if the agent paces about."""
        facts, scales = self.planner.patched, self.experience.scales
        if facts is None or self.paced < PACED or not is_denied(facts) or not is_hopeless(found, scales.reward):
            return Instead()
        action = find_way_out(self.planner, facts.facts, state, self.experience.mean_reward, scales.reward)
        why = "nothing that is known leads on: this leads to an action that was never tried"
        return Instead() if action is None else Instead(action, why)

    def _try_action(self, state: State, found: Plan) -> Instead:
        """Another action than the best one, if one that was hardly ever tried may pay more than is believed."""
        curiosity, most = self.curiosity, (SMALLEST * self.experience.scales.reward) ** 2
        if self.planner.num_actions is None or curiosity.variance <= most or self.corrector.in_use == "drift":
            return Instead()
        best, numbers = int(found.action), np.asarray(found.values, float).tolist()
        values = {action: value for action, value in enumerate(numbers) if math.isfinite(value)}
        unknown = {action for action in values if not curiosity.is_known(action)} - {best}
        if best not in values or not unknown or not self._is_corrected(state, values):
            return Instead()
        chosen, worse = curiosity.choose(values, {a: self._paid(state, a) for a in values}, best, self.steps)
        self.curiosity = curiosity._replace(spent=curiosity.spent + worse)
        if chosen == best:
            return Instead()
        times = curiosity.tries[chosen].times if chosen in curiosity.tries else 0
        name = self.action_names[chosen] if self.action_names else f"action {chosen}"
        often = f"{times} time{'' if times == 1 else 's'}"
        return Instead(chosen, f"{name} may pay more than is believed; it was taken {often} so far")

    def _is_corrected(self, state: State, actions: Iterable[int]) -> bool:
        """Whether any action is known to pay something else than the simulator alone predicts."""
        for action in actions:
            mean, alone = (self.planner.reward_moments(state, action, by)[0] for by in ("facts", "simulator"))
            if abs(mean - alone) > SAME * max(1.0, abs(alone)):
                return True
        return False

    def _paid(self, state: State, action: int) -> Residual:
        """What an action paid so far, relative to what corrections predict at present, and what facts say about it."""
        planner, facts = self.planner, self.planner.patched
        if facts is not None and planner.deterministic and facts.knows(state, action):
            return Residual(certain=True)
        times, mean = self._mean_error(action)
        known, alone = (planner.reward_moments(state, action, by)[0] for by in ("facts", "corrections"))
        return Residual(times, mean, False, known - alone)

    def _mean_error(self, action: int) -> tuple[int, float]:
        """How often an action was taken in the latest places, and what it paid there relative to the corrected model.

        That is kept until it is taken again or the model is another one.
        """
        rows, facts, times, total = self.experience, self.planner.patched, 0, 0.0
        since = 0 if self.planner.deterministic else self.corrector.since  # else it was paid in another world
        places = np.flatnonzero((rows.column("action") == action) & (rows.column("last") > since))[-ENOUGH:]
        latest = int(rows.column("last")[places].max()) if places.size else 0
        key = latest, self.corrector.variant(), getattr(facts, "renewals", 0)
        if action in self._known_errors and self._known_errors[action][0] == key:
            return self._known_errors[action][1]
        for place in places.tolist():
            if rows.raw[place]:  # a file may lack states
                here = rows.raw[place][0]
                fact = None if facts is None else facts.facts.get((self.planner.key(here), action))
                reward = float(rows.column("real_reward")[place])
                seen = [] if math.isnan(reward) else [(1, reward)]
                if fact is not None:
                    seen = [(one.times, one.reward) for one in fact.outcomes.values()]
                mean = self.planner.reward_moments(here, action, "corrections")[0]
                times, total = times + sum(n for n, _ in seen), total + sum(n * (paid - mean) for n, paid in seen)
        found = times, total / max(times, 1)
        self._known_errors = {**self._known_errors, action: (key, found)}
        return found

    def _count_try(self, row: Row, known: bool) -> None:
        """Takes note of a transition before it becomes a fact."""
        self.paced = min(self.paced + 1, PACED) if known or self.paced >= PACED else 0
        planner, curiosity, reward = self.planner, self.curiosity, row.real.reward
        if planner.num_actions is None or reward is None or not self.corrector.allowed:
            return
        if not (planner.deterministic or planner.lists_outcomes or planner.draws_quickly):
            return
        if curiosity.is_closed(row.number):
            self.curiosity = curiosity.repeat(row.number)
        else:
            mean, variance = row.used.reward, 0.0
            if mean is None or not planner.deterministic or planner.plans_effects:
                mean, variance = planner.reward_moments(row.state, row.number, "corrections")
            self.curiosity = curiosity.add(row.number, float(reward - mean), float(variance))
