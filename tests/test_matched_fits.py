"""Numbers of random simulators that say what happens, beside those that say how often: known answers."""

import numpy as np
import pytest

import uamcts


class Kettle:
    """A state is (heat, water). Heating is noisy; every step pays for heat and costs what was heated."""

    num_actions, action_names = 3, ("wait", "heat", "fill")
    power, leak, price, noise = 4.0, 0.1, 0.5, 0.3

    def sample(self, state, action, rng):
        heat, water = state
        heat += self.power * (action == 1) - self.leak * heat + rng.normal(0.0, self.noise)
        water += 0.2 * (action == 2) - 0.01
        return (heat, water), heat - self.price * self.power * (action == 1), False


class Machine:
    """A machine that may break: use it, repair it or wait. A state is (how many were made, whether it is broken)."""

    num_actions, action_names = 3, ("wait", "use", "repair")
    breaks, cost = 0.1, 4.0

    def sample(self, state, action, rng):
        made, broken = state
        if action == 2 and broken:
            return (made, 0), -self.cost, False
        if action == 1 and not broken:
            breaks = rng.random() < self.breaks
            return ((made + 1) % 5, int(breaks)), 2.0, False
        return (made, broken), 0.0, False


class ListedMachine:
    num_actions, action_names = Machine.num_actions, Machine.action_names
    breaks, cost = 0.1, 4.0

    def outcomes(self, state, action):
        made, broken = state
        if action == 2 and broken:
            return [(1.0, ((made, 0), -self.cost, False))]
        if action == 1 and not broken:
            after = (made + 1) % 5
            return [(1.0 - self.breaks, ((after, 0), 2.0, False)), (self.breaks, ((after, 1), 2.0, False))]
        return [(1.0, ((made, broken), 0.0, False))]


def changed(simulator, **values):
    for name, value in values.items():
        setattr(simulator, name, value)
    return simulator


def walk(world, state, count, seed=0):
    """A log of random actions in a world that can be sampled."""
    rng, log = np.random.default_rng(seed), []
    for _ in range(count):
        action = int(rng.integers(world.num_actions))
        after, reward, over = world.sample(state, action, rng)
        log.append((state, action, after, reward, over))
        state = after
    return log


def corrected(simulator, log, **given):
    agent = uamcts.Agent(simulator, **given)
    agent.preload(log)
    return agent.backend.corrector.fit, str(agent.report(0))


def test_two_numbers_beside_noise():
    fit, words = corrected(Kettle(), walk(changed(Kettle(), power=2.0, leak=0.3), (5.0, 1.0), 40))
    assert fit.values == pytest.approx({"power": 2.0, "leak": 0.3}, rel=0.15)
    assert "power is about" in words
    assert "leak is about" in words


def test_a_price_beside_noise_is_exact():
    """The noise of the reward is that of the heat, so the price is told apart from it only on average."""
    fit, _ = corrected(Kettle(), walk(changed(Kettle(), price=1.5), (5.0, 1.0), 60))
    assert fit.values == pytest.approx({"price": 1.5}, rel=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_is_no_error(seed):
    fit, words = corrected(Kettle(), walk(Kettle(), (5.0, 1.0), 60, seed))
    assert fit is None
    assert "corrected" not in words


@pytest.mark.parametrize("simulator", [Machine(), ListedMachine()])
def test_what_a_repair_costs_and_how_often_it_is_needed(simulator):
    log = walk(changed(Machine(), breaks=0.6, cost=9.0), (0, 0), 150)
    fit, words = corrected(simulator, log)
    assert fit.values["cost"] == 9.0
    assert fit.values["breaks"] == pytest.approx(0.6, abs=0.15)
    assert "cost is about 9, not 4: corrected" in words


def test_a_named_price_is_exact():
    log = walk(changed(Machine(), cost=9.0), (0, 0), 80)
    fit, words = corrected(Machine(), log, parameters=["cost"])
    assert fit.values == {"cost": 9.0}
    assert "the corrected model is right about all of them" in words


def test_values_that_are_known_stay_while_others_are_tried():
    from uamcts.corrections.trials import WithValues

    class Table:
        times, seen, floor, small_step = np.ones(2), [0, 1], 1e-6, 1e-5

        def losses(self, names, values, rows):
            vectors = [dict(zip(names, vector, strict=True)) for vector in values]
            return np.array([[one["a"] + 10 * one.get("b", 0.0)] * len(rows) for one in vectors])

    trials = WithValues(Table(), {"a": 3.0})
    assert trials.losses(["b"], np.array([[1.0], [2.0]]), np.array([0])).tolist() == [[13.0], [23.0]]
    assert trials.losses(["a"], np.array([[5.0]]), np.array([0])).tolist() == [[5.0]]
