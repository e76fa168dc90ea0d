"""Corrections of a simulator: parameters, the referee, doubt, facts in worlds with chance and in worlds that change."""

import math
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

import uamcts
from uamcts.corrections.doubt import Doubt
from uamcts.corrections.evidence import Evidence, doubtful, usual_error
from uamcts.corrections.parameters import Choice, find_parameters, with_values
from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.referee import Referee
from uamcts.corrections.residual import Residual
from uamcts.reference.models import Dynamics
from uamcts.reference.tree import Draws

BUDGET = {"iterations": 10, "rollouts": 1, "depth": 5}


# What may be off in a simulator


class Mixed:
    """Attributes of every kind."""

    drag = 0.25  # of the class
    num_actions = 2
    limit = math.inf
    name = "mixed"

    def __init__(self):
        self.mass, self.steps, self.wind, self.flag = 2.0, 7, np.array([0.0, 1.5]), True
        self.table = list(range(100))
        self._hidden = np.float32(0.5)

    def step(self, state, action):
        return state, 0.0, False


@dataclass(frozen=True)
class Frozen:
    num_actions: int = 2
    gravity: float = 9.8
    wind: tuple = field(default=(1.0, 2.0))


class Declared:
    """Says itself what its parameters are."""

    num_actions = 2

    def __init__(self, **values):
        self.parameters = {"mass": 1.0, "gravity": 9.8, **values}
        self.derived = self.parameters["mass"] * self.parameters["gravity"]

    def with_parameters(self, **values):
        return Declared(**values)


def test_the_numbers_of_a_simulator_are_its_parameters():
    found = find_parameters(Mixed())
    assert found == {"mass": 2.0, "steps": 7.0, "wind[0]": 0.0, "wind[1]": 1.5, "_hidden": 0.5, "drag": 0.25}
    assert find_parameters(Declared()) == {"mass": 1.0, "gravity": 9.8}
    assert find_parameters(Frozen()) == {"gravity": 9.8, "wind[0]": 1.0, "wind[1]": 2.0}


def test_other_values_leave_the_simulator_alone():
    simulator = Mixed()
    other = with_values(simulator, {"mass": 3.0, "wind[0]": 4.0, "drag": 1.0, "steps": 8.0})
    assert (other.mass, other.wind.tolist(), other.drag, other.steps) == (3.0, [4.0, 1.5], 1.0, 8)
    assert isinstance(other.steps, int)
    assert (simulator.mass, simulator.wind.tolist(), simulator.drag, Mixed.drag) == (2.0, [0.0, 1.5], 0.25, 0.25)
    frozen = with_values(Frozen(), {"gravity": 1.0, "wind[1]": 5.0})
    assert (frozen.gravity, frozen.wind, Frozen().gravity) == (1.0, (1.0, 5.0), 9.8)
    assert with_values(Declared(), {"mass": 2.0}).derived == 2.0 * 9.8


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (["gravty"], ValueError, "did you mean 'gravity'"),
        ({"gravity": (5, 1)}, ValueError, "give .low, high. with low < high"),
        ({"gravity": 5}, ValueError, "the bounds 5"),
        ({"gravity": (1, math.nan)}, ValueError, "the bounds"),
        ("gravity", TypeError, "give names"),
        ([5], TypeError, "give names"),
        (7, TypeError, "give names"),
    ],
)
def test_wrong_parameters_are_named(given, error, words):
    with pytest.raises(error, match=words):
        uamcts.Agent(Pole(), parameters=given)


def test_bounds():
    choice = Choice({"gravity": (1, 100)}, {"gravity": 9.8, "mass": 1.0}, "x")
    assert choice.bounds("gravity") == (1.0, 100.0)
    assert list(choice.believed) == ["gravity"]
    wide = Choice(None, {"gravity": 9.8, "wind": 0.0, "p": 0.7, "sink": -2.0}, "x")
    assert wide.bounds("gravity") == pytest.approx((0.098, 980.0))
    assert wide.bounds("wind") == (-math.inf, math.inf)
    assert wide.bounds("p") == pytest.approx((0.007, 70.0))
    assert Choice(None, {"p": 0.7}, "x", random=True).bounds("p") == (0.0, 1.0)
    assert wide.bounds("sink") == (-200.0, -0.02)
    close = {"gravity": 9.800001, "sink": -2.0000001, "p": 0.7001, "wind": 0.0}
    assert [wide.is_believed(*pair) for pair in close.items()] == [True, True, False, False]


# What fits


class Pole:
    """A pole on a cart; `total` is derived and a parameter in its own right, `limit` matters at the end alone."""

    num_actions = 2

    def __init__(self, gravity=9.8, mass=1.0, wind=0.0, limit=0.3):
        self.gravity, self.mass, self.wind, self.limit = gravity, mass, wind, limit
        self.total, self.length, self.force, self.tau = mass + 0.1, 0.5, 10.0, 0.02

    def step(self, state, action):
        x, speed, angle, turn = state
        push = (self.force * (2 * action - 1) + self.wind) / self.total
        lean = (self.gravity * math.sin(angle) - math.cos(angle) * push) / self.length
        after = (x + self.tau * speed, speed + self.tau * push, angle + self.tau * turn, turn + self.tau * lean)
        return after, 1.0, abs(after[2]) > self.limit


def watch(simulator, real, steps=60, seed=0, noise=0.0, start=lambda rng: tuple(rng.uniform(-0.05, 0.05, 4).tolist()),
          **settings):  # fmt: skip
    """An agent that has watched random actions in a world."""
    agent = uamcts.Agent(simulator, **{**BUDGET, **settings})
    rng = np.random.default_rng(seed)
    state = start(rng)
    for _ in range(steps):
        action = int(rng.integers(simulator.num_actions))
        after, reward, over = real.step(state, action)
        seen = tuple((np.array(after) + noise * rng.standard_normal(len(after))).tolist()) if noise else after
        agent.observe(state, action, seen, reward=reward, terminal=over)
        state = start(rng) if over else seen
    return agent


def test_a_gravity_fifty_times_as_large_is_found_within_six_steps():
    agent = watch(Pole(), Pole(gravity=500.0), steps=6)
    assert agent.backend.corrector.in_use == "parameters"
    assert agent.backend.corrector.fit.values == {"gravity": pytest.approx(500.0, rel=1e-6)}


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        ({"gravity": 58.8}, {"gravity": 58.8}),
        ({"mass": 3.0}, {"total": 3.1}),
        ({"mass": 3.0, "gravity": 25.0}, {"total": 3.1, "gravity": 25.0}),
        ({"wind": -2.5}, {"wind": -2.5}),
    ],
)
def test_the_fewest_parameters_that_explain_it_are_found(real, expected):
    """`mass` acts in __init__ alone: what can be corrected is `total`."""
    agent = watch(Pole(), Pole(**real))
    corrector = agent.backend.corrector
    assert corrector.in_use == "parameters"
    assert corrector.fit.values == pytest.approx(expected, rel=1e-3)
    assert all(f"{name} is about" in str(agent.report()) for name in expected)
    assert "the corrected model is right about all of them" in str(agent.report())
    assert agent.backend.uncertainty is None, "what is corrected is not doubted"


class Rooms:
    """Two rooms, each with a heater."""

    num_actions = 4

    def __init__(self, second=1.0):
        self.first, self.second = 1.0, second

    def step(self, state, action):
        one, two = 0.9 * state[0] + self.first * (action & 1), 0.8 * state[1] + self.second * (action >> 1)
        return (one, two), -abs(one - two), False


@pytest.mark.parametrize(("real", "bounds", "expected"), [(0.0, None, 0.0), (0.01, None, 0.01), (0.0, (0.1, 2.0), 0.1)])
def test_a_part_that_is_broken_is_fitted_as_0(real, bounds, expected):
    """Unless the user has given bounds. What is small, but not gone, stays what it is."""
    given = {} if bounds is None else {"parameters": {"second": bounds}}
    agent = watch(Rooms(), Rooms(real), 60, start=lambda rng: (3.0, 1.0), **given)
    fitted = agent.backend.corrector.fit.values["second"]
    assert fitted == (0.0 if expected == 0.0 else pytest.approx(expected, rel=1e-3))


def test_a_limit_that_acts_only_at_the_end():
    """No slope leads to it: it is found on a grid, roughly."""
    agent = watch(Pole(), Pole(limit=0.12), 200)
    corrector = agent.backend.corrector
    assert corrector.in_use == "parameters"
    assert corrector.fit.values["limit"] == pytest.approx(0.12, abs=0.04)


def test_what_nothing_explains_is_left_alone():
    right = watch(Pole(), Pole())
    assert right.backend.corrector.in_use == "none"
    assert right.backend.corrector.fit is None
    off = watch(Pole(), Pole(gravity=58.8), corrections=())
    assert off.backend.corrector.in_use == "none"
    assert watch(Pole(), Pole(gravity=58.8), parameters=(), corrections=("parameters",)).backend.corrector.fit is None
    noisy = watch(Pole(), Pole(), 120, noise=0.02)
    assert noisy.backend.corrector.in_use == "none"
    assert noisy.backend.uncertainty is None, "sensor noise is no error"


def test_noise_and_a_wrong_parameter():
    agent = watch(Pole(), Pole(gravity=58.8), 200, noise=0.002)
    fit = agent.backend.corrector.fit
    assert agent.backend.corrector.in_use in ("parameters", "both")
    low, high = fit.ranges["gravity"]
    assert low < fit.values["gravity"] < high
    assert fit.values["gravity"] == pytest.approx(58.8, rel=0.1)


class Worn(Pole):
    """Right of the middle, pushes to the right are weak: no parameter says that."""

    def step(self, state, action):
        weak = with_values(self, {"force": 1.0}) if state[0] > 0 and action == 1 else self
        return Pole.step(weak, state, action)


def test_a_border_beyond_which_the_simulator_is_wrong():
    agent = watch(Pole(), Worn(), 150)
    assert agent.backend.corrector.in_use == "residual"
    assert "next states are corrected" in str(agent.report())
    after, _, _ = agent.backend.corrector.variant().step((0.02, 0.0, 0.0, 0.0), 1)
    assert after == pytest.approx(Worn().step((0.02, 0.0, 0.0, 0.0), 1)[0], abs=0.01)
    exact = (-0.02, 0.0, 0.0, 0.0)
    assert agent.backend.corrector.variant().step(exact, 1) == Pole().step(exact, 1)


def test_an_action_that_was_never_taken_has_no_residual():
    features = np.random.default_rng(0).normal(size=(60, 2))
    found = Residual.fit(features, np.zeros(60, int), np.full((60, 2), 0.5), num_actions=2)
    assert found.difference(features[0], 0) == pytest.approx(0.5)
    assert found.difference(features[0], 1) == pytest.approx(0.0)


def test_an_agent_whose_simulator_is_right_is_plain_mcts():
    """Tree for tree: the same visits and values in every move."""
    agent, plain = uamcts.Agent(Pole(), **BUDGET), uamcts.Agent(Pole(), "none", corrections=(), **BUDGET)
    state, over = (0.01, 0.0, 0.02, 0.0), False
    for _ in range(30):
        action = agent.act(state)
        assert plain.act(state) == action
        assert agent.last_plan.visits == plain.last_plan.visits
        assert agent.last_plan.values == plain.last_plan.values
        after, reward, over = Pole().step(state, action)
        for one in (agent, plain):
            one.observe(state, action, after, reward=reward, terminal=over)
        state = (0.01, 0.0, 0.02, 0.0) if over else after


class Slippery:
    """A line of cells; with probability 1 - p a step goes the other way."""

    num_actions = 2

    def __init__(self, p=0.7):
        self.p = p

    def outcomes(self, state, action):
        def cell(turn):
            after = max(0, min(9, state + turn * (2 * action - 1)))
            return after, float(after == 9), after == 9

        return [(self.p, cell(1)), (1.0 - self.p, cell(-1))]


@pytest.mark.parametrize("p", [0.2, 0.95])
def test_a_probability_is_learned_from_counts(p):
    agent, rng, state = uamcts.Agent(Slippery(), parameters=["p"], **BUDGET), np.random.default_rng(1), 4
    for _ in range(80):
        slips = rng.random() >= p
        after = max(0, min(9, state + (-1 if slips else 1)))
        agent.observe(state, 1, after, reward=float(after == 9), terminal=after == 9)
        state = 4 if after == 9 else after
    fit = agent.backend.corrector.fit
    low, high = fit.ranges["p"]
    assert low <= p <= high
    assert fit.values["p"] == pytest.approx(p, abs=0.12)


def test_a_change_of_gravity_is_noticed_and_learned_anew():
    agent, rng = uamcts.Agent(Pole(), **BUDGET), np.random.default_rng(0)
    for real, steps in ((Pole(gravity=20.0), 60), (Pole(gravity=60.0), 60)):
        state = (0.0, 0.0, 0.02, 0.0)
        for _ in range(steps):
            action = int(rng.integers(2))
            after, reward, over = real.step(state, action)
            agent.observe(state, action, after, reward=reward, terminal=over)
            state = (0.0, 0.0, 0.02, 0.0) if over else after
    assert agent.backend.corrector.fit.values == pytest.approx({"gravity": 60.0}, rel=1e-3)
    assert "the world changed at about step 6" in str(agent.report())
    assert agent.backend.uncertainty is None, "what was seen before the change is not held against the model"


def test_corrections_are_saved(tmp_path):
    agent = watch(Pole(), Pole(gravity=58.8))
    agent.save(tmp_path / "agent")
    again = uamcts.Agent(Pole(), **BUDGET)
    again.load(tmp_path / "agent")
    assert str(again.report()) == str(agent.report())
    assert again.act((0.0, 0.0, 0.1, 0.0)) == agent.act((0.0, 0.0, 0.1, 0.0))
    assert again.backend.corrector.fit == agent.backend.corrector.fit


# The referee


def test_a_candidate_must_be_credibly_better():
    referee = Referee(("none", "other"))
    assert referee.choose(["none", "other"]) == "none"
    for _ in range(3):
        referee.add({"none": -1.0, "other": -1.5}, {"none": 0.4, "other": 0.2})
    assert referee.choose(["none", "other"]) == "none", "1.5 nats in all"
    for _ in range(10):
        referee.add({"none": -1.0, "other": -1.5}, {"none": 0.4, "other": 0.2})
    assert referee.choose(["none", "other"]) == "other"
    assert referee.choose(["none"]) == "none"
    for _ in range(60):
        referee.add({"none": -3.0, "other": -1.0}, {"none": 0.1, "other": 0.4})
    assert referee.choose(["none", "other"]) == "none", "older evidence counts less"


def test_better_most_of_the_time_but_much_worse_at_times_is_not_better():
    referee = Referee(("none", "other"))
    for number in range(40):
        rare = number % 4 == 0
        referee.add({"none": -2.0, "other": 1.0 if rare else -6.0}, {"none": 0.1, "other": 3.0 if rare else 0.0})
    assert referee.ahead("other", "none") > 0
    assert referee.choose(["none", "other"]) == "none"


def test_where_candidates_agree_nothing_is_forgotten():
    referee = Referee(("none", "other"))
    for _ in range(10):
        referee.add({"none": -1.0, "other": -3.0}, {"none": 0.4, "other": 0.0})
    for _ in range(500):
        referee.add({"none": -9.0, "other": -9.0}, {"none": 0.0, "other": 0.0})
    assert referee.choose(["none", "other"]) == "other"


# Doubt


def seen(errors, others=None, times=None, deviations=None, points=None):
    count = len(errors)
    return Evidence(
        np.arange(count, dtype=float)[:, None] if points is None else points, np.zeros(count, int),
        np.array(errors, float), np.zeros(count) if others is None else np.array(others, float),
        np.ones(count, int) if times is None else np.array(times),
        (np.array(errors) > 0).astype(int) if deviations is None else np.array(deviations),
    )  # fmt: skip


def test_one_error_is_proof_in_a_world_that_is_predicted_exactly():
    assert doubtful(seen([0.0] * 20 + [1e-3]), 0.0).tolist() == [False] * 20 + [True]
    assert usual_error(np.zeros(20)) == 0.0


def test_noise_is_no_doubt_and_a_single_large_error_in_it_neither():
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.chisquare(2, 200)
    points = rng.uniform(-1, 1, (200, 2))
    assert not doubtful(seen(noise, points=points), 0.0).any()
    noise[17] = 5.0
    assert not doubtful(seen(noise, points=points), 0.0).any()
    near = np.argsort(np.sum((points - points[17]) ** 2, axis=1))[:4]
    noise[near] = 5.0
    assert doubtful(seen(noise, points=points), 0.0)[near].all()


def test_ends_that_nobody_predicted_are_errors_of_another_kind():
    rng = np.random.default_rng(0)
    points, ends = rng.uniform(-1, 1, (100, 2)), np.zeros(100)
    near = np.argsort(np.sum((points - points[3]) ** 2, axis=1))[:6]
    ends[near] = 1.0
    found = doubtful(seen(10.0 * rng.chisquare(2, 100), ends, points=points), 0.0)
    assert found[near].sum() >= 5
    assert found.sum() < 10


def test_where_nearly_all_is_wrong_nothing_is_doubtful():
    assert not doubtful(seen([0.0] * 10 + [1.0] * 90), 0.0).any()


def test_chance_is_no_doubt():
    """A tenth of all steps slip: one deviation is nothing, two of two are."""
    errors, times = [0.0] * 30 + [1.0, 1.0, 0.1], [5] * 30 + [1, 3, 10]
    found = doubtful(seen(errors, times=times, deviations=[0] * 30 + [1, 3, 1]), 0.1)
    assert found[-3:].tolist() == [False, True, False]


def test_balls_end_half_way_to_what_is_right():
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    doubt = Doubt.fit(points, np.zeros(4, int), np.array([0.0, 2.0, 0.0, 0.0]), np.array([False, True, False, False]))
    assert doubt.count == 1
    for place, action, expected in ((1.0, 0, 2.0), (1.4, 0, 2.0), (1.6, 0, 0.0), (0.4, 0, 0.0), (1.0, 1, 0.0)):
        assert doubt.table()(np.array([[place]]), 2)[0][action] == expected
        assert float(doubt(np.array([place], np.float32), np.int32(action))) == expected
    assert Doubt.fit(points, np.zeros(4, int), np.zeros(4), np.zeros(4, bool)) is None


# Facts


class Line:
    num_actions = 2

    def step(self, state, action):
        after = max(0, min(5, state + (1 if action else -1)))
        return after, 0.0, False


def test_two_outcomes_in_turn_are_chance_and_become_probabilities():
    model = PatchedModel(Line())
    for number in range(20):
        model.remember(2, 1, 3 if number % 2 else 2, 0.0, False)
    assert model.noisy
    assert not model.changes
    outcomes = {after: chance for chance, (after, _, _) in model.planned_model().outcomes(2, 1)}
    assert outcomes[3] == pytest.approx(20 / 30)  # ten of twenty, and the model's ten
    assert outcomes[2] == pytest.approx(10 / 30)


def test_rollouts_draw_the_outcomes_that_are_listed():
    patched = PatchedModel(Line())
    for number in range(20):
        patched.remember(2, 1, 3 if number % 2 else 2, 0.0, False)
    model, dynamics = patched.planned_model(), Dynamics(patched.planned_model(), Draws(random.Random(0)), 1)
    drawn = [model.outcome_at(2, 1, place)[0] for place in (0.0, 0.6, 0.7, 1.0 - 1e-16)]
    assert drawn == [3, 3, 2, 2]  # 20 of 30, and 10 of 30
    for state, action in ((2, 1), (1, 1), (5, 1)):
        for place in np.linspace(0, 1, 50, endpoint=False).tolist():
            assert model.outcome_at(state, action, place) == dynamics.draw(state, action, place)


def test_a_lasting_change_is_taken_over_and_older_contradictions_are_tried_again():
    model = PatchedModel(Line())
    model.remember(4, 1, 4, 0.0, False)  # a wall that the model does not know of
    for _ in range(8):
        model.remember(2, 1, 3, 0.0, False)
    assert model.step(4, 1) == (4, 0.0, False)
    model.remember(2, 1, 2, 0.0, False)
    assert not model.changes, "once may be chance"
    model.remember(2, 1, 2, 0.0, False)
    assert [(change.state, change.action) for change in model.changes] == [(2, 1)]
    assert model.step(2, 1) == (2, 0.0, False)
    assert model.step(4, 1) == (5, 0.0, False), "the wall may be gone as well"
    model.remember(4, 1, 4, 0.0, False)
    assert model.step(4, 1) == (4, 0.0, False)


def test_facts_are_bounded_and_old_contradictions_are_tried_again():
    model = PatchedModel(Line(), key=lambda state: state, most=100)
    model.remember(4, 1, 4, 0.0, False)
    for number in range(1100):
        model.remember(10 + number % 300, 0, 9 + number % 300, 0.0, False, agrees=True)
        if number == 500:
            model.remember(4, 1, 4, 0.0, False)
    assert len(model.facts) <= 164  # dropped every 64 transitions
    assert not model.knows(4, 1)


def test_where_facts_say_nothing_new_the_model_itself_is_searched():
    model = PatchedModel(Line())
    model.remember(2, 1, 3, 0.0, False)
    assert model.planned_model() is model.model
    model.remember(4, 1, 4, 0.0, False)
    assert model.planned_model() is model


class Drift:
    """A state is (place, speed), both floats."""

    num_actions = 1

    def step(self, state, action):
        return (state[0] + state[1], state[1]), 0.0, False


@pytest.mark.parametrize(("key", "near"), [(None, False), (lambda state: (round(state[0], 1), state[1]), True)])
def test_facts_about_floats_are_found_by_their_keys(key, near):
    model = PatchedModel(Drift(), key)
    model.remember((0.5, 0.25), 0, (9.0, 0.25), reward=1.0, terminal=True)
    assert model.step((0.5, 0.25), 0) == ((9.0, 0.25), 1.0, True)
    assert model.step((0.5, 0.5), 0) == ((1.0, 0.5), 0.0, False)
    expected = ((9.0, 0.25), 1.0, True) if near else ((0.501 + 0.25, 0.25), 0.0, False)
    assert model.step((0.501, 0.25), 0) == expected


def test_doubt_of_one_state_is_that_of_many():
    rng = np.random.default_rng(0)
    points, actions = rng.normal(size=(400, 3)) * [1.0, 50.0, 1e-3] + [0.0, 1e4, 0.0], rng.integers(0, 2, 400)
    wrong = points[:, 0] > 1.0
    table = Doubt.fit(points.astype(np.float32), actions, np.where(wrong, rng.random(400), 0.0), wrong).table()
    seen = np.concatenate([points, points + rng.normal(size=(400, 3)) * [0.2, 10.0, 2e-4]])
    expected = np.array(table(seen.astype(np.float32), 2))
    found = np.array([[table.level(tuple(point), action) for action in (0, 1)] for point in seen.tolist()])
    assert (expected > 0).sum() > 50
    assert found == pytest.approx(expected)


# What the user may do


def test_experience_can_be_read_and_forgotten():
    agent = watch(Pole(), Pole(gravity=58.8), 40)
    table = agent.experience
    assert len(table) == 40
    assert Pole(gravity=58.8).step(table[3].state, table[3].action) == table[3][2:5]
    assert all(one.times == 1 and one.error == 0.0 for one in table), "gravity is corrected"
    with pytest.raises(TypeError, match="which is 3; give a function of a transition"):
        agent.forget(3)
    assert agent.forget(lambda one: one.action == 1) == sum(one.action == 1 for one in table)
    assert {one.action for one in agent.experience} == {0}
    assert agent.backend.corrector.fit.values == pytest.approx({"gravity": 58.8}), "the rest says so too"
    assert agent.steps == 40
    assert agent.forget() == len(table) - sum(one.action == 1 for one in table)
    assert agent.experience == []
    assert agent.backend.corrector.in_use == "none"


def test_a_simulator_that_was_corrected_by_hand_is_taken_over():
    agent = watch(Pole(), Pole(gravity=58.8), 40)
    agent.replace(Pole(gravity=58.8))
    assert agent.backend.corrector.in_use == "none"
    assert "wrong in none of 40 different transitions (40 real steps)" in str(agent.report())
    agent.act((0.0, 0.0, 0.1, 0.0))
    with pytest.raises(TypeError, match="model is 'pole'"):
        agent.replace("pole")
    assert len(agent.experience) == 40, "what cannot be planned in changes nothing"


def test_the_papers_agent_keeps_no_transitions():
    papers = uamcts.Agent.paper(uamcts.make("two_way"), "linear", iterations=2, rollouts=1, depth=2)
    for use in (lambda: papers.experience, papers.forget, lambda: papers.replace(Pole())):
        with pytest.raises(TypeError, match="the paper's agent keeps no transitions"):
            use()
