"""Errors of continuous simulators with known answers: found after few transitions, told apart, local, of an angle."""

import itertools
import math
import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import uamcts
from uamcts.agent.state_forms import form_of
from uamcts.corrections.referee import Referee
from uamcts.corrections.residual import Residual

BUDGET = {"iterations": 10, "rollouts": 1, "depth": 5}


class Glider:
    """(x, v) with friction; the motor has a gain, and there may be a wind."""

    num_actions = 3

    def __init__(self, gain=0.3, wind=0.0):
        self.gain, self.wind = gain, wind

    def step(self, state, action):
        v = 0.8 * state[1] + self.gain * (action - 1) + self.wind
        return (state[0] + v, v), -abs(state[0] + v), False


class Pendulum:
    """(angle, turn), the angle between -pi and pi."""

    num_actions = 3

    def step(self, state, action):
        turn = state[1] + 0.1 * (14.7 * math.sin(state[0]) + 6.0 * (action - 1))
        angle = (state[0] + 0.1 * turn + math.pi) % (2 * math.pi) - math.pi
        return (angle, turn), -(angle**2), False


class Braked(Pendulum):
    """Friction in the joint."""

    def step(self, state, action):
        return super().step((state[0], 0.8 * state[1]), action)


def show(agent, world, actions, state=(1.0, 0.0), noise=0.0):
    """Real steps with these actions; returns the last state."""
    rng = random.Random(0)
    for action in actions:
        after, reward, over = world.step(state, action)
        after = tuple(rng.gauss(one, noise) for one in after) if noise else after
        agent.observe(state, action, after, reward=reward, terminal=over)
        state = after
    return state


def test_one_number_that_explains_everything_is_used_after_three_transitions():
    agent = uamcts.Agent(Glider(), **BUDGET)
    show(agent, Glider(gain=0.5), (2, 0, 2))
    assert agent.backend.corrector.in_use == "parameters"
    assert agent.backend.corrector.fit.values == {"gain": pytest.approx(0.5)}


def test_noise_is_not_explained_after_three_transitions():
    agent = uamcts.Agent(Glider(), **BUDGET)
    show(agent, Glider(), (2, 0, 2), noise=0.02)
    assert agent.backend.corrector.in_use == "none"
    assert agent.backend.corrector.fit is None


def test_a_motor_that_is_wired_the_wrong_way_is_found():
    agent = uamcts.Agent(Glider(), **BUDGET)
    show(agent, Glider(gain=-0.2), (2, 0, 2, 1, 0, 2))
    assert "gain is about -0.2, not 0.3: corrected" in str(agent.report(0))
    assert "wind" not in str(agent.report(0))


def test_explanations_that_are_equally_good_are_tried_in_turn():
    """With one action alone, a reversed motor and a head wind explain the same; the other actions tell them apart."""
    agent, world = uamcts.Agent(Glider(), **BUDGET), Glider(gain=-0.2)
    state = show(agent, world, [2] * 8)
    fits = [agent.backend.corrector.fit]
    assert {*fits[0].values, *fits[0].instead} == {"gain", "wind"}
    assert "would explain the same" in str(agent.report(0))
    for _ in range(60):
        state = show(agent, world, [2], state)
        fits.append(agent.backend.corrector.fit)
    assert {name for fit in fits for name in fit.values} == {"gain", "wind"}
    assert sum(a.values.keys() != b.values.keys() for a, b in itertools.pairwise(fits)) == 1  # each once
    show(agent, world, [0, 1], state)
    assert agent.backend.corrector.fit.values == {"gain": pytest.approx(-0.2)}
    assert "would explain the same" not in str(agent.report(0))


def test_rivals_are_saved(tmp_path):
    agent, again = (uamcts.Agent(Glider(), **BUDGET) for _ in range(2))
    show(agent, Glider(gain=-0.2), [2] * 8)
    agent.save(tmp_path / "agent")
    again.load(tmp_path / "agent")
    assert again.backend.corrector.fit == agent.backend.corrector.fit
    assert again.backend.corrector.fit.rivals


def test_friction_in_a_joint_is_exact_across_the_turn():
    """The shift before the step is 20 % of the turn and nothing of the angle; the simulator itself wraps the angle."""
    rng = random.Random(3)
    agent = uamcts.Agent(Pendulum(), **BUDGET)
    show(agent, Braked(), [rng.randrange(3) for _ in range(150)], (3.0, 0.0))
    variant = agent.backend.corrector.variant()
    for state in ((3.1, 1.5), (-3.1, -1.5), (0.4, 0.5)):
        (angle, turn), _, _ = variant.step(state, 1)
        expected = Braked().step(state, 1)[0]
        assert (angle, turn) == pytest.approx(expected, abs=0.02)


def test_a_few_bad_predictions_do_not_outweigh_many_good_ones():
    referee = Referee(("none", "residual"))
    for _ in range(40):
        referee.add({"none": -3.0, "residual": -5.0}, {"none": 0.05, "residual": 0.005})
    for _ in range(4):  # where the simulator is exact, before the residual has learned that
        referee.add({"none": -12.0, "residual": -2.0}, {"none": 0.0, "residual": 0.1})
    assert referee.is_better("residual", "none")
    for _ in range(12):
        referee.add({"none": -12.0, "residual": -2.0}, {"none": 0.0, "residual": 0.1})
    assert not referee.is_better("residual", "none")


def test_a_bump_beside_exact_transitions_is_no_constant():
    """A simulator that is exact beyond a border and wrong by a curve before it: a constant would leave two thirds."""
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.uniform(-3, 3, 240), rng.uniform(-1, 1, 240)])
    curve = np.where(features[:, 0] < 0, np.sin(features[:, 0] * math.pi / 1.5), 0.0)
    differences = np.column_stack([np.zeros(240), curve])
    residual = Residual.fit(features, rng.integers(0, 2, 240), differences, 2)
    assert residual is not None
    for x in (-2.25, -0.75, 1.5):
        expected = math.sin(x * math.pi / 1.5) if x < 0 else 0.0
        assert residual.difference(np.array([x, 0.0]), 0)[1] == pytest.approx(expected, abs=0.25)


@pytest.mark.parametrize(("paid", "doubts"), [("distance", False), ("step", True), ("trap", True)])
def test_where_every_state_pays_only_costly_errors_are_avoided(paid, doubts):
    """A magnet beside the way, without a residual: a small part of the steps end elsewhere than believed."""

    class Believed:
        num_actions = 2

        def step(self, state, action):
            x = state[0] + (-0.31, 0.29)[action]
            return (x,), -abs(x) if paid != "step" else -1.0, False

    agent, rng, state = uamcts.Agent(Believed(), corrections=("facts",), **BUDGET), random.Random(2), (0.0,)
    for _ in range(120):
        action = rng.randrange(2)
        (x,), reward, _ = Believed().step(state, action)
        near = 1.0 < state[0] < 1.6
        after, reward = ((x + 0.5,), reward - 0.5 * (paid == "distance")) if near else ((x,), reward)
        reward -= 20.0 * (near and paid == "trap")
        agent.observe(state, action, after, reward=reward, terminal=False)
        state = after if abs(after[0]) < 3 else (0.0,)
    agent.act(state)
    assert (agent.backend.uncertainty is not None) is doubts


class Named(NamedTuple):
    x: float
    v: float


@dataclass(frozen=True)
class Frozen:
    x: float
    v: float


@dataclass
class Bounded:
    x: float
    v: float

    def __post_init__(self):
        self.x = min(self.x, 2.0)


@dataclass(slots=True)
class Slotted:
    x: float
    v: float


STATES = [(1.0, 0.5), [1.0, 0.5], Named(1.0, 0.5), Frozen(1.0, 0.5), Bounded(1.0, 0.5), Slotted(1.0, 0.5)]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_states_are_made_like_others(state):
    form = form_of(state)
    assert list(form.read(state)) == [1.0, 0.5]
    made, expected = form.make(iter([5.0, 4.0])), type(state)
    assert type(made) is expected
    assert list(form.read(made)) == [2.0 if expected is Bounded else 5.0, 4.0]  # its constructor was called


def test_arrays_and_dictionaries_keep_their_form():
    form = form_of(np.array([1.0, 0.5]))
    assert form.make([2.0, 3.0]).dtype == np.float64
    with pytest.raises(TypeError):
        form.read(np.zeros(2, np.float32))
    form = form_of({"x": 1.0, "v": 0.5})
    assert form.read({"v": 0.5, "x": 1.0}) == (0.5, 1.0)  # by sorted keys
    assert list(form.make([4.0, 5.0]).items()) == [("x", 5.0), ("v", 4.0)]
    with pytest.raises(KeyError):
        form.read({"x": 1.0, "w": 0.5})
    assert form_of(3.0) is None
    assert form_of(object()) is None


@pytest.mark.parametrize("early", [False, True])
def test_a_residual_shifts_states_of_all_kinds_alike(early):
    """Drag that the simulator lacks: what is learned from tuples is what is learned from any other states."""
    kinds = [
        (tuple, tuple),
        (list, list),
        (lambda numbers: np.array([*numbers]), lambda state: state.tolist()),
        (lambda numbers: Frozen(*numbers), lambda state: (state.x, state.v)),
        (lambda numbers: dict(zip("xv", numbers, strict=True)), lambda state: (state["x"], state["v"])),
    ]
    rng, found = random.Random(1), []
    actions = [rng.randrange(3) for _ in range(60)]
    for make, read in kinds:

        class Kind:
            num_actions = 3

            def step(self, state, action, make=make, read=read):
                x, v = read(state)
                v += 0.1 * (action - 1)
                return make((x + v, v)), -abs(x + v) if early else 0.0, False

        agent, state = uamcts.Agent(Kind(), **BUDGET), (0.0, 0.0)
        for action in actions:
            v = 0.7 * state[1] + 0.1 * (action - 1)
            after = (state[0] + v, v)
            agent.observe(make(state), action, make(after), reward=-abs(after[0]) if early else 0.0, terminal=False)
            state = after
        following, reward, _ = agent.backend.corrector.variant().step(make((0.2, 0.1)), 2)
        found.append((*map(float, read(following)), reward))
    assert found[0][1] == pytest.approx(0.17, abs=0.01)
    assert all(one[1] == pytest.approx(found[0][1], abs=1e-6) for one in found)
