"""Draws of a random simulator beside real transitions, by how far apart they are: see `corrections.energy_fit`."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from uamcts.agent.chance import RealOutcome
from uamcts.agent.measure import Scales
from uamcts.errors import SimulatorError
from uamcts.runtime.watch import attempt
from uamcts.types import PyTree

if TYPE_CHECKING:
    from uamcts.agent.plain_trials import PlainTrials, Sighting
    from uamcts.agent.python_simulator import PythonSimulator

Drawn = Sequence[tuple[Any, float, bool]]
"""Next states, rewards and ends."""

DRAWS, JUDGED_DRAWS = (8, 16, 32), 32
"""Draws of every transition, for a first look, for a fit, and for the last digits; and for the referee."""
MOST_ROWS, FEW_ROWS = 64, 24
"""Transitions that a fit looks at, the latest ones, and those of a first look."""
MIXED = 0.12
"""A distribution is mixed if at least this share of its draws are unlike all others, and as many like another one."""
WORST = 10.0
"""The score of a simulator that fails, in units of the spread of states."""
LEAST_UNIT = 1e-3
"""The least score that is expected: there is no end to how exact a number may be."""

Drawable: TypeAlias = Any
"""A simulator that is drawn from, or a variant of one."""


class EnergyDraws:
    """Real transitions beside a simulator that can only be drawn from, as `corrections.energy_fit.EnergyTrials`.

    Args:
        trials: The trials of the random simulator.
        count: How many of its transitions there are to look at.
    """

    def __init__(self, trials: PlainTrials, count: int):
        self.trials, self.features = trials, trials.simulator.quick_features
        self.seen = list(trials.seen[max(count - MOST_ROWS, 0) : count])
        self.few = np.unique(np.linspace(0, len(self.seen) - 1, FEW_ROWS).astype(int)).tolist() if self.seen else []

    def scores(self, values: dict[str, float], care: int = 1) -> np.ndarray:
        """The energy score of each transition; with no `care` of some of them and roughly, with 2 of it exactly."""
        model = self.trials._model(list(values), np.array(list(values.values())))
        rows, draws = range(len(self.seen)) if care else self.few, DRAWS[care]
        none, names = np.full(len(rows), WORST), list(values)
        if model is None:
            return none
        said = self.trials.run(
            names, np.array(list(values.values())), draws * len(rows),
            lambda: [self._score(model, self.seen[row], draws) for row in rows],
        )  # fmt: skip
        return none if said is None else np.array(said)

    def _score(self, model: PythonSimulator, sight: Sighting, draws: int) -> float:
        rng = np.random.default_rng(zlib.crc32(self.features(sight.state).tobytes()))
        real = RealOutcome(sight.following, sight.real.reward, sight.real.terminal)

        def ask() -> float:  # the same random numbers for all values: what changes is due to these alone
            drawn = [model.call(sight.state, sight.action, rng) for _ in range(draws)]
            return energy_score(drawn, real, self.features, self.trials.scales)[0]

        found = attempt(ask)  # other values than believed may break anything
        return WORST if found is None else float(found)


def energy_score(
    drawn: Drawn, real: RealOutcome, features: Callable[[Any], np.ndarray], scales: Scales
) -> tuple[float, float]:
    """How far draws lie from what happened, less what is due to chance, and the score that the draws expect."""
    place = features(real.following)
    units = np.array([*(scales.features * math.sqrt(max(place.size, 1))), scales.reward, 1.0])
    points = np.array([[*features(state), paid, over] for state, paid, over in drawn], float) / units
    point = np.array([*place, *(np.nan if one is None else one for one in real[1:])], float) / units
    point = np.where(np.isnan(point), points.mean(axis=0), point)
    apart = float(np.linalg.norm(points - point, axis=1).mean())
    among = float(np.linalg.norm(points[:, None] - points[None], axis=2).sum()) / (len(drawn) * (len(drawn) - 1))
    score = min(apart - 0.5 * among, WORST)
    return (score if math.isfinite(score) else WORST), 0.5 * among


def is_mixed(keys: Sequence[Hashable]) -> bool:
    """Whether some of the draws with these keys are equal, and others come from a continuum.

    Probabilities of the former and densities of the latter cannot be compared.
    """
    single = sum(times == 1 for times in Counter(keys).values()) / len(keys)
    return MIXED <= single <= 1.0 - MIXED


def nats_of_mixture(
    believed: Drawable, model: Drawable, state: PyTree, action: PyTree, real: RealOutcome, scales: Scales
) -> float | None:
    """How badly a model predicts what happened, in units of what the simulator as believed expects of its own draws.

    None where the draws of the latter are not mixed.
    """
    if believed.kind != "sample":
        return None
    seed, drawn = zlib.crc32(believed.features(state).tobytes()), []
    for one in (believed, model):
        rng = np.random.default_rng(seed)
        try:
            drawn.append([one.sample(state, action, rng) for _ in range(JUDGED_DRAWS)])
        except (SimulatorError, ValueError, TypeError, ArithmeticError):
            return None
        if not is_mixed([believed.key(after) for after, _, _ in drawn[0]]):
            return None
    unit = energy_score(drawn[0], real, believed.features, scales)[1]
    return energy_score(drawn[1], real, believed.features, scales)[0] / max(unit, LEAST_UNIT)
