"""What residuals are fitted to: the latest transitions beside what the simulator predicts of them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.corrected_planner import CorrectedPlanner
from uamcts.agent.experience import Experience
from uamcts.agent.measure import Scales
from uamcts.corrections.referee import LARGEST
from uamcts.corrections.residual import Residual, wrap_differences
from uamcts.corrections.residual_border import FEWEST_WRONG, PURITY
from uamcts.errors import SimulatorError

COMPARED = 300
"""Transitions, the latest ones, by which the two kinds of residuals are compared."""
CORRECTIONS, SETTLED, REACHED, MOST_MISSED = 12, 1e-3, 0.02, 0.1
"""How often a shift before the step is corrected to lead to what was seen; the share of a difference that is left of it
when it is no longer corrected, and that may be left at the end; and the share of transitions that need not get there,
because there is a wall in the way."""


CLEARLY = 0.5
"""Nats per transition by which one must be ahead of the other in spite of more large errors, such as wrong ends."""


STATES, MOST_TRIED, ALIKE = 8, 32, 0.75
"""To see what actions do, all of them are tried in so many states, unless there are more actions than the second
number. The last one is the share of these states in which an action must do the same."""


class Rows(NamedTuple):
    """Real transitions, in the order of time."""

    raw: list[Any]
    features: np.ndarray
    actions: np.ndarray
    real: list[np.ndarray]
    """Features of the next state, rewards and ends; NaN where one is not known."""

    def differences(self, said: list[np.ndarray]) -> np.ndarray:
        """Real - predicted features, angles wrapped."""
        return wrap_differences(self.real[0] - said[0], self.features, self.real[0])

    def unpaid(self, said: list[np.ndarray]) -> np.ndarray:
        """Real - predicted rewards. What is paid for an end that does not come says nothing: later it may come."""
        paid = np.nan_to_num(self.real[1] - said[1])
        return np.where((np.abs(paid) <= 1e-6 * np.abs(said[1])) | ((said[2] == 1) & (self.real[2] == 0)), 0.0, paid)

    def errors(self, said: list[np.ndarray], scales: Scales) -> np.ndarray:
        """Squared errors of predictions, as `Measure` has them."""
        missed = np.nan_to_num((self.real[1] - said[1]) / scales.reward) ** 2
        ends = np.isfinite(self.real[2]) & (said[2] != self.real[2])
        return np.asarray(np.mean((self.differences(said) / scales.features) ** 2, axis=1) + missed + ends)


def fit_residuals(
    planner: CorrectedPlanner, experience: Experience, rows: np.ndarray, values: dict[str, float] | None, floor: float
) -> dict[str, Residual]:
    """Residuals of the simulator, and of the simulator with these parameters, by the candidates that they belong to.

    A candidate whose residual would explain nothing is left out. `floor`: an error up to this is as good as none.
    """
    seen = _rows(experience, rows)
    believed = _outcomes(experience, rows, "believed")
    predicted: dict[str, tuple[dict[str, float], list[np.ndarray]]] = {"residual": ({}, believed)}
    if values is not None:
        with contextlib.suppress(SimulatorError):  # it may fail with these values
            predicted["both"] = values, list(planner.predict_next(seen.raw, planner.variant(values, None)))
    found = {}
    for name, (chosen, said) in predicted.items():
        fit = _fit(planner, seen, seen.differences(said), said, effects_of_actions(planner, seen, chosen))
        if fit is not None and planner.can_shift_early:
            fit = _better_residual(planner, seen, fit, chosen, said, experience.scales, floor)
        if fit is not None:
            found[name] = fit
    return found


def find_newly_exact(
    planner: CorrectedPlanner, experience: Experience, rows: np.ndarray, values: dict[str, float] | None,
    before: Mapping[str, Residual], after: Mapping[str, Residual], floor: float,
) -> set[str]:  # fmt: skip
    """The candidates whose new residuals, unlike those before, explain exactly what was seen, by constants alone.

    A constant that is exactly right again and again is no coincidence: the scores of the residual before are dropped.
    """
    latest, scales = _rows(experience, rows[-COMPARED:]), experience.scales
    alone = latest.errors(_outcomes(experience, rows[-COMPARED:], "believed"), scales)
    found = set()
    for name in before.keys() & after.keys():
        if after[name].slope.any() or (alone > floor).sum() < FEWEST_WRONG:
            continue
        shares = []
        for fit in (before[name], after[name]):
            with contextlib.suppress(SimulatorError):
                variant = planner.variant(values or {} if name == "both" else {}, fit)
                shares.append((latest.errors(list(planner.predict_next(latest.raw, variant)), scales) <= floor).mean())
        if len(shares) > 1 and shares[0] < PURITY <= shares[1]:
            found.add(name)
    return found


def _rows(experience: Experience, rows: np.ndarray) -> Rows:
    """These rows of what was seen."""
    column = {name: experience.column(name)[rows] for name in ("features", "action")}
    real = _outcomes(experience, rows, "real")
    real[2][real[2] < 0] = np.nan
    return Rows([experience.raw[row] for row in rows], column["features"], column["action"], real)


def _outcomes(experience: Experience, rows: np.ndarray, kind: str) -> list[np.ndarray]:
    return [experience.column(f"{kind}_{part}")[rows].astype(float) for part in ("features", "reward", "terminal")]


def _fit(
    planner: CorrectedPlanner, seen: Rows, shifts: np.ndarray, said: list[np.ndarray],
    effects: np.ndarray | None = None,
) -> Residual | None:  # fmt: skip
    paid = np.zeros(len(shifts)) if planner.judges_rewards else seen.unpaid(said)
    columns = np.column_stack([shifts, paid])
    return Residual.fit(seen.features, seen.actions, columns, planner.num_actions, effects=effects)


def effects_of_actions(planner: CorrectedPlanner, seen: Rows, values: dict[str, float]) -> np.ndarray | None:
    """What each action adds to the features and the reward, [actions, outputs]; None if that is not known.

    All actions are tried in a few states. An output that they do not change in the same way everywhere is 0.
    """
    count = planner.num_actions
    if count < 2 or count > MOST_TRIED:
        return None
    places = np.unique(np.linspace(0, len(seen.raw) - 1, STATES).astype(int)).tolist()
    here = [seen.raw[place] for place in places if len(list(planner.choices(seen.raw[place][0]))) == count]
    if not here:
        return None
    tried = [(state, action, following) for state, _, following in here for action in range(count)]
    try:
        said = planner.predict_next(tried, planner.variant(values, None))[0]
    except SimulatorError:
        return None
    done = said.reshape(len(here), count, -1)
    done = done - done.mean(axis=1, keepdims=True)
    usual = np.median(done, axis=0)
    same = np.abs(done - usual) <= 1e-3 * np.abs(usual).max(axis=0)
    alike = same.all(axis=1).mean(axis=0) >= ALIKE
    return np.column_stack([np.where(alike, usual, 0.0), np.zeros(count)])


def _better_residual(
    planner: CorrectedPlanner, seen: Rows, late: Residual, values: dict[str, float], said: list[np.ndarray],
    scales: Scales, floor: float,
) -> Residual:  # fmt: skip
    """The residual of next states, or one of states before the step, whichever explains the latest transitions better.

    Where a shifted next state is paid otherwise, or an end, only the second one can know: the simulator judges it.
    """
    latest = Rows(seen.raw[-COMPARED:], seen.features[-COMPARED:], seen.actions[-COMPARED:],
                  [part[-COMPARED:] for part in seen.real])  # fmt: skip
    try:
        after = planner.predict_next(latest.raw, planner.variant(values, late))
        judged_wrong = np.any(np.isfinite(latest.real[2]) & (after[2] != latest.real[2]))
        if not (judged_wrong or late.changes_rewards or latest.unpaid(list(after)).any()):
            return late
        reached = _shifts_before(planner, seen, planner.variant(values, None), seen.differences(said))
        early = None if reached is None else _fit(planner, seen, *reached)
        if early is None:
            return late
        early = early.before_the_step()
        before = planner.predict_next(latest.raw, planner.variant(values, early))
    except (SimulatorError, TypeError):  # there may be no such state
        return late
    errors = [latest.errors(list(one), scales) for one in (after, before)]
    ahead = np.mean(np.log(errors[0] + floor)) - np.mean(np.log(errors[1] + floor))
    fewer = np.minimum(errors[1], LARGEST).mean() < np.minimum(errors[0], LARGEST).mean()
    return early if ahead > (-CLEARLY if fewer else CLEARLY) else late


def _shifts_before(
    planner: CorrectedPlanner, seen: Rows, variant: Any, shifts: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """By how much to shift states so that the simulator leads to what was seen, and what it predicts then.

    Rows that it does not lead to are NaN; None if these are many. The difference itself is the first guess, and what is
    left of it is added: a state that is moved by a little is mostly followed by one that is moved by about as much.
    """
    first = np.abs(shifts).max(axis=0)
    rounding = 1e-6 * np.maximum(first, np.abs(seen.real[0]).max(axis=0))
    settled, allowed = (np.maximum(share * np.abs(shifts), rounding) for share in (SETTLED, REACHED))
    shifts = shifts.copy()
    said = [np.array(part, float) for part in planner.predict_next(seen.raw, variant, shifts)]
    for _ in range(CORRECTIONS):
        left = seen.differences(said)
        rows = np.flatnonzero(np.any(np.abs(left) > settled, axis=1))
        if not rows.size:
            break
        shifts[rows] += left[rows]
        found = planner.predict_next([seen.raw[row] for row in rows], variant, shifts[rows])
        for part, new in zip(said, found, strict=True):
            part[rows] = new
    missed = np.any(np.abs(seen.differences(said)) > allowed, axis=1)
    if missed.mean() > MOST_MISSED:
        return None
    return np.where(missed[:, None], np.nan, shifts), said
