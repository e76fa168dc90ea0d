"""Random simulators whose draws are partly equal and partly from a continuum, and fits by energy scores."""

import math

import numpy as np
import pytest

import uamcts
from uamcts.agent.chance import RealOutcome
from uamcts.agent.energy_trials import energy_score, is_mixed
from uamcts.agent.measure import Scales
from uamcts.corrections.energy_fit import fit_energy
from uamcts.corrections.parameters import Choice

SCALES = Scales(np.array([2.0]), 1.0)


class Soil:
    """Moisture. It dries, is watered or not, and on some days it rains, by a random amount."""

    num_actions = 2

    def __init__(self, dries=0.05, rain=0.3):
        self.dries, self.rain = dries, rain

    def sample(self, moisture, action, rng):
        wet = 0.25 * rng.random() if rng.random() < self.rain else 0.0
        after = moisture - self.dries * (1.0 + moisture) + 0.1 * action + wet
        return after, -abs(after - 0.6), False


def log_of(soil, seed, count=60):
    """Transitions of random actions in this world."""
    rng, moisture, log = np.random.default_rng(seed), 0.5, []
    for _ in range(count):
        action = int(rng.integers(2)) if moisture < 0.8 else 0
        after, reward, over = soil.sample(moisture, action, rng)
        log.append((moisture, action, after, reward, over))
        moisture = max(after, 0.1)
    return log


def test_energy_score_by_hand():
    drawn = [(0.0, 1.0, False), (4.0, 1.0, False)]  # 2 apart in units of 2
    real = RealOutcome(4.0, 1.0, False)
    assert energy_score(drawn, real, lambda state: np.array([state]), SCALES) == pytest.approx((1.0 - 1.0, 1.0))
    unknown = RealOutcome(8.0, None, None)  # 4 and 2 units away; what is not known does not count
    assert energy_score(drawn, unknown, lambda state: np.array([state]), SCALES)[0] == pytest.approx(3.0 - 1.0)


def test_mixed_draws_are_told_from_others():
    assert is_mixed([0.1] * 20 + list(range(12)))
    assert not is_mixed(list(range(32)))
    assert not is_mixed([1, 2] * 16)


class Shifted:
    """Scores of draws of `shift` + a coin's `weight`, where a shift of 3 and a weight of 0.5 are right."""

    def scores(self, values, care=1):
        shift, weight = values.get("shift", 1.0), values.get("weight", 0.5)
        return np.full(40, 0.2 + abs(shift - 3.0) + (weight - 0.5) ** 2)


def test_only_what_is_off_is_fitted():
    fit = fit_energy(Shifted(), Choice(None, {"shift": 1.0, "weight": 0.5}, "coin", random=True))
    assert fit.values.keys() == {"shift"}
    assert fit.values["shift"] == pytest.approx(3.0, abs=0.02)


def test_amounts_and_chances_are_told_apart():
    agent = uamcts.Agent(Soil(), seed=0)
    agent.preload(log_of(Soil(dries=0.12, rain=0.1), seed=1))
    assert "dries is about 0.12, not 0.05: corrected" in str(agent.report())
    fitted = agent.backend.corrector.fit.values
    assert fitted["dries"] == pytest.approx(0.12, abs=1e-3)
    assert fitted.get("rain", 0.3) < 0.3 or math.isclose(fitted.get("rain", 0.3), 0.3)


@pytest.mark.parametrize("seed", range(3))
def test_a_right_simulator_stays_as_it_is(seed):
    """Where more rain makes more draws differ, a density must not be mistaken for a probability."""
    agent = uamcts.Agent(Soil(), seed=0)
    agent.preload(log_of(Soil(), seed))
    assert agent.backend.corrector.in_use == "none"
    assert "corrected" not in str(agent.report())
