"""What agents keep so that they need not compute it again: it must not outlive what it was computed from."""

import math
from typing import ClassVar

import numpy as np
import pytest

import uamcts
from uamcts.agent.corrector import Corrector
from uamcts.agent.measure import Measure, Outcome, Scales
from uamcts.agent.plain_trials import PlainTrials, Sighting
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.corrections.effective_actions import EffectiveActions
from uamcts.corrections.parameter_fit import fit_parameters
from uamcts.corrections.parameters import Choice
from uamcts.corrections.patched_model import PatchedModel

BUDGET = {"iterations": 30, "rollouts": 2, "depth": 6}


class Counted:
    """A line whose steps are counted, with a parameter."""

    num_actions = 2

    def __init__(self, length=1):
        self.length, self.asked = length, []

    def step(self, state, action):
        self.asked.append((state, action))
        return state + (self.length if action else -self.length), 0.0, False


class Signed:
    """A model to which 0.0 and -0.0 are not the same."""

    num_actions = 1

    def step(self, state, action):
        return (math.copysign(1.0, state[0]), state[1]), 0.0, False


def contradicted(model, *places):
    """A patched model that has twice seen something else than the model predicts: it is planned in as random."""
    patched = PatchedModel(model)
    for state, action, after in places:
        for _ in range(2):
            patched.remember(state, action, after, 0.0, False)
    return patched


def test_a_search_asks_a_model_once_for_each_transition():
    model = Counted()
    planned = contradicted(model, (4, 1, 4)).planned_model()
    model.asked.clear()
    answers = [[planned.outcome_at(state, action, 0.5) for state in range(6) for action in (0, 1)] for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert sorted(model.asked) == [(state, action) for state in range(6) for action in (0, 1)]
    assert planned.outcome_at(4, 1, 0.5) == (4, 0.0, False)
    assert planned.outcomes(3, 1) == [(1.0, (4, 0.0, False))]


def test_what_a_search_has_kept_does_not_reach_the_next_one():
    patched = contradicted(Counted(), (4, 1, 4))
    before = patched.planned_model()
    assert (before.outcome_at(2, 1, 0.5)[0], before.outcome_at(4, 1, 0.5)[0]) == (3, 4)
    for _ in range(2):
        patched.remember(2, 1, 2, 0.0, False)
    assert patched.planned_model().outcome_at(2, 1, 0.5)[0] == 2
    patched.set_model(Counted(length=5))
    after = patched.planned_model()
    assert (after.outcome_at(7, 1, 0.5)[0], after.outcome_at(2, 1, 0.5)[0]) == (12, 2)


def test_a_search_asks_a_model_once_for_each_transition_where_actions_act_as_others():
    """Two actions that slip, and a state that is found to be a wall: rollouts must not work that out at every step."""
    model, slips = Counted(), np.array([[0.9, 0.1], [0.2, 0.8]])
    patched = contradicted(model, (4, 1, 4))
    patched.learn_effects(EffectiveActions(np.zeros((2, 2)), planned=slips))
    patched.learn_arrivals()
    planned = patched.planned_model()
    model.asked.clear()
    places = [(state, action) for state in range(7) for action in (0, 1) if (state, action) != (4, 1)]
    drawn = [[planned.outcome_at(*place, draw) for place in places] for draw in (0.05, 0.95, 0.05)]
    assert len(model.asked) == 2 * len(places)
    assert drawn[0] == drawn[2]
    assert [planned.outcome_at(2, 0, draw)[0] for draw in (0.89, 0.91)] == [1, 3]
    # From 6, action 0 leads to 5, from which nothing else is known than that action 1 of 4 did not lead there.
    assert planned.outcomes(6, 0) == [(pytest.approx(0.45), (5, 0.0, False)), (pytest.approx(0.45), (6, 0.0, False)),
                                      (pytest.approx(0.1), (7, 0.0, False))]  # fmt: skip


def test_equal_states_that_a_model_tells_apart_are_asked_for_one_by_one():
    planned = contradicted(Signed(), ((0.0, 5.0), 0, (0.0, 5.0)), ((3.0, 1.0), 0, (9.0, 9.0))).planned_model()
    first, second = (planned.outcome_at((zero, 1.0), 0, 0.5)[0] for zero in (0.0, -0.0))
    assert (first, second) == ((1.0, 1.0), (-1.0, 1.0))
    assert planned.outcome_at((3.0, 1.0), 0, 0.5)[0] == (9.0, 9.0)


@pytest.mark.parametrize("state", [(1, 2.5), (True, "a"), (1.0, 2), ((1, 2), 3), (float("nan"), 1.0), "a", 7, 2.5])
def test_states_of_all_kinds_are_planned_with_as_they_were_seen(state):
    class Still:
        num_actions = 2

        def step(self, state, action):
            return state, 0.0, False

    agent = uamcts.Agent(Still(), features=lambda state: [0.0], **BUDGET)
    for _ in range(2):
        agent.observe(state, 1, state, reward=3.0, terminal=False)
    planned = agent.backend.planner.patched.planned_model()
    for _ in range(2):
        after, reward, _ = planned.outcome_at(state, 1, 0.99)
        assert (after is state, reward) == (True, pytest.approx(3.0, abs=1.0))
        assert planned.outcome_at(state, 0, 0.5)[1] == 0.0


def test_doubt_of_whole_numbers_is_not_mixed_up_with_keys():
    """With an identity, the key of one state may be the number of another one."""

    class Doors:
        num_actions = 2

        def step(self, state, action):
            return (state + 1) % 12, 0.0, False

        def inputs(self, state):
            return np.eye(12)[state]

        def identity(self, state):
            return 11 - state

    agent = uamcts.Agent(Doors(), memory=False, **BUDGET)
    for state in range(12):
        agent.observe(state, 0, 0 if state == 3 else (state + 1) % 12, reward=0.0, terminal=False)
    uncertainty = agent.backend.planner.uncertainty
    doubts = [uncertainty(state, 0) for state in range(12)]
    assert [state for state, doubt in enumerate(doubts) if doubt] == [3]
    assert doubts == uncertainty.many(list(range(12)), [0] * 12)


def test_predictions_that_were_compared_are_not_made_again_for_the_referee():
    """Believed and corrected, then the fact: three steps, however many candidates the referee knows."""

    class Counts(Counted):
        def step(self, state, action):
            self.asked.append((state, action))
            return (state[0] + self.length * (1 if action else -1),), 0.0, False

    simulator = Counts(length=1.0)
    agent = uamcts.Agent(simulator, corrections=("facts", "parameters"), **BUDGET)
    agent.observe((0.5,), 1, (1.5,), reward=0.0, terminal=False)
    simulator.asked.clear()
    agent.observe((1.5,), 1, (2.5,), reward=0.0, terminal=False)
    assert len(simulator.asked) == 2


def test_fits_of_parameters_become_rarer_the_longer_a_world_lasts(monkeypatch):
    """Nothing explains these errors. Every fit comes after a fifth of all that was seen, or after 400 transitions."""
    fits = []
    monkeypatch.setattr(Corrector, "_fit_parameters", lambda self, experience, *_: fits.append(experience.steps))
    monkeypatch.setattr(Corrector, "_propose_drift", lambda *_: None)
    agent, rng = uamcts.Agent(Counted(), "none", corrections=("parameters",), **BUDGET), np.random.default_rng(0)
    state = 0
    for _ in range(4000):
        after = int(rng.integers(50))
        agent.observe(state, 1, after, reward=0.0, terminal=False)
        state = after
    gaps = np.diff(fits)
    late = np.array(fits[:-1]) >= 1100  # before that, fits are called for by surprises
    assert late.sum() >= 3
    assert np.all(gaps[late] >= np.maximum(400, np.array(fits[:-1])[late] // 5))


class Sled:
    """A sled that glides on, with numbers in it that its steps do not use."""

    num_actions = 2
    asked: ClassVar[list] = []  # of all sleds: fits make copies

    def __init__(self, push=0.1, friction=0.9, **unused):
        self.push, self.friction = push, friction
        self.__dict__.update(unused)

    def step(self, state, action):
        self.asked.append(action)
        speed = self.friction * state[1] + (self.push if action else -self.push)
        return (state[0] + speed, speed), 0.0, False


UNUSED = {f"unused_{place}": 1.0 + place for place in range(12)}
MANY_STEPS = 9_000
"""A fit that explains nothing takes 18,656 steps if nothing is given up early and nothing looked up."""


def trials_of(simulator, push, noise, count=80):
    """Transitions of a sled with another push, and with noise that no parameter explains."""
    rng, real, seen = np.random.default_rng(1), Sled(push), []
    for _ in range(count):
        state, action = tuple(rng.normal(size=2).tolist()), int(rng.integers(2))
        after = tuple((np.array(real.step(state, action)[0]) + rng.normal(0.0, noise, 2)).tolist())
        seen.append(Sighting(state, action, after, Outcome(np.array(after), 0.0, False)))
    scales = Scales(np.ones(2), 1.0)
    return PlainTrials(PythonSimulator(simulator), simulator, seen, Measure(), scales, 1e-8)


def fit_and_count(push, noise):
    """What is fitted, and in how many steps of the simulator."""
    simulator = Sled(**UNUSED)
    trials = trials_of(simulator, push, noise)
    choice = Choice(None, PythonSimulator(simulator).parameters, "sled")
    Sled.asked.clear()
    return fit_parameters(trials, choice, len(trials.seen)), len(Sled.asked)


def test_where_nothing_explains_the_errors_a_fit_is_given_up_early():
    found, steps = fit_and_count(push=0.1, noise=0.5)
    assert found is None
    assert steps < MANY_STEPS, steps


@pytest.mark.parametrize("push", [0.3, 0.014, 4.0])
def test_a_parameter_that_explains_everything_is_not_given_up(push):
    found, _ = fit_and_count(push, noise=0.0)
    assert found.values == {"push": push}


def test_a_fit_does_not_repeat_steps_that_it_has_made():
    trials = trials_of(Sled(), 0.1, 0.0)
    Sled.asked.clear()
    first = trials.residuals(["push"], np.array([0.2]), np.arange(10))
    again = trials.residuals(["push"], np.array([0.2]), np.arange(5, 20))
    assert len(Sled.asked) == 20
    np.testing.assert_array_equal(first[5:], again[:5])
    other = trials.residuals(["friction"], np.array([0.2]), np.arange(20))
    assert len(Sled.asked) == 40
    assert not np.array_equal(again, other[5:])


class Sliding:
    """A point that slides on; in the real world drag slows it down."""

    num_actions = 2

    def __init__(self, drag: float):
        self._drag = drag

    def step(self, state, action):
        place, speed = state
        speed = speed + (0.1 if action else -0.1) - self._drag * speed * abs(speed)
        return (place + 0.1 * speed, speed), -abs(place), False


def test_a_residual_that_is_never_exact_is_not_fitted_all_the_time(monkeypatch):
    """Every fit makes it another one, and every other one still surprises now and then.

    After 200 transitions, fits are due after 1.5 times the square root of their number: 14 of them, up to 600.
    """
    fits, fit = [], Corrector._fit

    def count(self, experience, measure, urgent):
        fits.append(experience.steps)
        fit(self, experience, measure, urgent)

    monkeypatch.setattr(Corrector, "_fit", count)
    agent = uamcts.Agent(Sliding(0.0), "none", corrections=("residual",), **BUDGET)
    real, rng = Sliding(0.3), np.random.default_rng(0)
    for _ in range(30):
        state = tuple(rng.uniform(-2, 2, 2))
        for _ in range(20):
            action = int(rng.integers(2))
            after, reward, over = real.step(state, action)
            agent.observe(state, action, after, reward=reward, terminal=over)
            state = after
    assert agent.backend.corrector.in_use == "residual"
    assert len([step for step in fits if step > 200]) <= 16, fits


class Drag:
    """(x, v), with drag that the simulator lacks; states are objects."""

    num_actions = 2

    class At:
        def __init__(self, x, v):
            self.x, self.v = x, v

    def step(self, state, action):
        v = state.v + 0.1 * (2 * action - 1)
        return self.At(state.x + v, v), -abs(state.x), False


def test_facts_are_not_looked_up_where_states_never_recur():
    agent, rng = uamcts.Agent(Drag(), **BUDGET), np.random.default_rng(0)
    states = [Drag.At(*rng.normal(size=2).tolist()) for _ in range(12)]
    agent.act(states[0])
    for state in states:
        following = Drag.At(state.x + 0.5 * state.v**3, 0.5 * state.v**3)
        agent.observe(state, 1, following, reward=-abs(state.x), terminal=False)
    planner = agent.backend.planner
    facts = planner.patched
    assert not planner.tried.recurs
    assert facts.planned_model() is facts  # they contradict the model
    assert planner.searched_model(Drag.At(5.0, 0.0), False) is facts.model
    assert planner.searched_model(states[3], False) is facts  # it has a fact itself
    assert planner.searched_model(Drag.At(5.0, 0.0), True) is facts
    agent.observe(states[-1], 1, following, reward=-abs(states[-1].x), terminal=False)  # a state is met again
    planner = agent.backend.planner
    assert planner.patched.repeats == 1
    assert planner.searched_model(Drag.At(5.0, 0.0), False) is not planner.patched.model
