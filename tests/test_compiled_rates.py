"""Rates of the outcomes that a JAX simulator lists: learned as those of a Python simulator are."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.agent.chance import RealOutcome
from uamcts.agent.compiled_rates import rated_outcomes
from uamcts.corrections.outcome_rates import OutcomeRates

BELIEVED, REAL = (0.9, 0.1), (0.3, 0.7)


class Walk:
    """Steps on a ring of twelve cells; some stay where they are."""

    num_actions = 2

    def outcomes(self, place, action):
        after = (place + (1, 11)[action]) % 12
        return [(BELIEVED[0], (after, 1.0 * (after == 6), False)), (BELIEVED[1], (place, 0.0, False))]


def outcomes(place, action):
    after = (place + jnp.array([1, 11])[action]) % 12
    states = jnp.stack([after, place])
    rewards = jnp.stack([1.0 * (after == 6), jnp.zeros(())])
    return uamcts.Transition(states, rewards, jnp.zeros(2, bool)), jnp.array(BELIEVED)


def log(steps):
    """Random steps in a world in which most stay where they are."""
    rng, place = random.Random(0), 0
    for _ in range(steps):
        action = rng.randrange(2)
        (_, after), = rng.choices(Walk().outcomes(place, action), REAL)  # fmt: skip
        yield place, action, *after
        place = after[0]


def test_a_jax_simulator_and_a_python_one_learn_the_same_rates(tmp_path):
    simulator = uamcts.JaxSimulator(None, num_actions=2, example=jnp.int32(0), outcomes=outcomes)
    python, compiled = (
        uamcts.Agent(Walk(), parameters=(), iterations=5),
        uamcts.Agent(simulator, parameters=(), iterations=5),
    )
    seen = list(log(80))
    python.preload(seen)
    compiled.preload([(jnp.int32(place), action, jnp.int32(after), *rest) for place, action, after, *rest in seen])
    assert python.report(0).corrections == compiled.report(0).corrections
    (sentence,) = compiled.report(0).corrections
    share = sum(after != place for place, _, after, *_ in seen) / 80
    assert sentence.startswith("probabilities of outcomes are corrected: ")
    assert float(sentence.split()[5].rstrip(",")) == pytest.approx(share, abs=0.1)
    compiled.save(tmp_path / "agent.uamcts")
    again = uamcts.Agent(simulator, parameters=(), iterations=5)
    again.load(tmp_path / "agent.uamcts")
    assert again.report(0).corrections == (sentence,)
    assert again.act(jnp.int32(3)) == compiled.act(jnp.int32(3))
    for after, expected in ((4, [True, False]), (8, [True, False]), (1, [False, True])):  # the nearest, if not listed
        real = RealOutcome(jnp.int32(after), 0.0, False)
        assert compiled.backend.planner.listed(jnp.int32(3), 0, real)[1] == expected


def test_compiled_rates_tilt_probabilities_as_python_does():
    rates = OutcomeRates({})
    for number in range(40):
        happened = [number % 3 == 0, number % 3 != 0]
        rates = rates.add(list(BELIEVED), happened, number % 2, number)
    table = np.array([rates.rates(2, action) for action in range(2)], np.float32)
    for action in range(2):
        _, chances = jax.jit(rated_outcomes(outcomes, table))(jnp.int32(4), jnp.int32(action))
        np.testing.assert_allclose(chances, rates.tilt(BELIEVED, action), rtol=1e-5)
    _, chances = rated_outcomes(outcomes, np.ones((2, 2), np.float32))(jnp.int32(4), 0)
    assert chances.tolist() == jnp.array(BELIEVED).tolist()
