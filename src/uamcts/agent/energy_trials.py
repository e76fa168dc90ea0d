"""Compares draws of a random simulator with real transitions by their distance: see `corrections.energy_fit`."""

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
"""How often each transition is drawn for a first look, for a fit, and for the last digits; and for the referee."""
MOST_ROWS, FEW_ROWS = 64, 24
"""How many of the latest transitions a fit looks at, and how many a first look does."""
MIXED = 0.12
"""Draws are mixed if at least this share of them equal no other draw, and at least this share equal another one."""
WORST = 10.0
"""The score of a simulator that fails, in units of the spread of states."""
LEAST_UNIT = 1e-3
"""The least score that a simulator may expect of its own draws: it is a divisor."""

Drawable: TypeAlias = Any
"""A simulator that is drawn from, or a variant of one."""


class EnergyDraws:
    """Compares real transitions with a simulator that has only `sample`: a `corrections.energy_fit.EnergyTrials`.

    Args:
        trials: The trials of the random simulator.
        count: How many of its transitions there are to look at.
    """

    def __init__(self, trials: PlainTrials, count: int):
        self.trials, self.features = trials, trials.simulator.quick_features
        self.seen = list(trials.seen[max(count - MOST_ROWS, 0) : count])
        self.few = np.unique(np.linspace(0, len(self.seen) - 1, FEW_ROWS).astype(int)).tolist() if self.seen else []

    def scores(self, values: dict[str, float], care: int = 1) -> np.ndarray:
        """The energy score of each transition. `care` 0: of some of them, roughly; 1: of all; 2: of all, precisely."""
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

        def ask() -> float:  # the same random numbers for all values: scores differ by these alone
            drawn = [model.call(sight.state, sight.action, rng) for _ in range(draws)]
            return energy_score(drawn, real, self.features, self.trials.scales)[0]

        found = attempt(ask)  # other values than believed may break anything
        return WORST if found is None else float(found)


def energy_score(
    drawn: Drawn, real: RealOutcome, features: Callable[[Any], np.ndarray], scales: Scales
) -> tuple[float, float]:
    """How far draws lie from what happened, less what is due to chance; and the score expected if they are right."""
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
    """Whether some of the draws with these keys are equal, and others are continuous.

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
