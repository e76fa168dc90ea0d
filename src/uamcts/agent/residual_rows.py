"""What residuals are fitted to: the latest transitions beside what the simulator predicts of them."""

from __future__ import annotations

import contextlib

import numpy as np

from uamcts.agent.corrected_planner import CorrectedPlanner
from uamcts.agent.experience import Experience
from uamcts.corrections.residual import Residual, wrap_differences
from uamcts.errors import SimulatorError


def fit_residuals(
    planner: CorrectedPlanner, experience: Experience, rows: np.ndarray, values: dict[str, float] | None
) -> dict[str, Residual]:
    """Residuals of the simulator, and of the simulator with these parameters, by the candidates that they belong to.

    A candidate whose residual would explain nothing is left out.
    """
    columns = {name: experience.column(name)[rows] for name in ("features", "action", "real_features")}
    believed = {"residual": [experience.column(f"believed_{name}")[rows] for name in ("features", "reward")]}
    if values is not None:
        raw = [experience.raw[row] for row in rows]
        with contextlib.suppress(SimulatorError):  # it may fail with these values
            believed["both"] = list(planner.predict_next(raw, planner.variant(values, None)))
    real_rewards, found = experience.column("real_reward")[rows], {}
    # What is paid for an end that does not come says nothing about rewards: a little later it may come.
    early = (experience.column("believed_terminal")[rows] == 1) & (experience.column("real_terminal")[rows] == 0)
    for name, (predicted, rewards) in believed.items():
        apart = wrap_differences(columns["real_features"] - predicted, columns["features"], columns["real_features"])
        paid = np.zeros(len(rows))
        if not planner.judges_rewards:
            paid = np.nan_to_num(real_rewards - rewards)
            paid[(np.abs(paid) <= 1e-6 * np.abs(rewards)) | early] = 0.0  # rounding
        differences = np.column_stack([apart, paid])
        fit = Residual.fit(columns["features"], columns["action"], differences, planner.num_actions)
        if fit is not None:
            found[name] = fit
    return found
