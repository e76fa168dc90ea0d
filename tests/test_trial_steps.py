"""Trials with other values than believed: steps that never end, exit, warn or draw, and simulators that refuse."""

import copy
import logging
import pickle
import random
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import uamcts
from uamcts.agent import trial_pace
from uamcts.agent.measure import Measure, Outcome, Scales
from uamcts.agent.plain_trials import PlainTrials, Sighting
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.runtime.watch import Guarded, Watch

LONG = 5.0
"""Seconds of processor time that nothing here takes by far: without a guard, these tests would never end."""


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """Steps that never end are ended soon, to save time."""
    monkeypatch.setattr(trial_pace, "SLACK", 0.1)
    monkeypatch.setattr(trial_pace, "LONGEST_STEP", 0.2)


def go_on_for_ever(*_):
    time_left = 1.0
    while time_left > 0.0:
        time_left -= 0.0


def go_on_whatever_happens(*_):
    while True:
        try:  # noqa: SIM105
            sum(range(3))
        except:  # noqa: E722 (as some people write)
            pass


def ends(call):
    """Whether a call was ended."""
    try:
        call()
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize("endless", [go_on_for_ever, go_on_whatever_happens])
def test_a_loop_that_never_ends_is_ended(endless):
    watch = Watch()
    assert ends(lambda: watch.call(0.05, endless))
    assert watch.call(0.05, lambda: 7) == 7


def test_it_is_ended_in_any_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(ends(lambda: Watch().call(0.05, go_on_for_ever))))
    thread.start()
    thread.join()
    assert found == [True]


def test_an_interruption_by_the_user_is_passed_on():
    def interrupted():
        raise KeyboardInterrupt

    watch = Watch()
    with pytest.raises(KeyboardInterrupt):
        watch.call(5.0, interrupted)
    assert watch.call(5.0, lambda: 7) == 7


def test_a_guarded_function_is_not_asked_again_after_it_was_ended():
    watch, asked, told = Watch(0.05), [], []
    watch.attend()
    guarded = Guarded(watch, lambda state: asked.append(state) or go_on_for_ever(), lambda: told.append(True))
    assert ends(lambda: guarded(1))
    assert ends(lambda: guarded(2))
    assert (asked, told) == ([1], [True])


def test_nothing_is_raised_after_a_call():
    """Calls that end at about their limit: whatever is on its way is taken back before the caller goes on."""
    watch, ended = Watch(), 0
    for place in range(20):
        until = time.thread_time() + 0.01 * place
        ended += ends(lambda until=until: watch.call(0.03, lambda: spin(until)))
        spin(time.thread_time() + 0.001)
    assert 0 < ended < 20


def spin(until):
    while time.thread_time() < until:
        pass


class Substeps:
    """A cart whose steps consist of smaller ones."""

    num_actions = 3

    def __init__(self, dt=0.1, mass=1.0):
        self.dt, self.mass = dt, mass

    def step(self, state, action):
        (place, speed), passed = state, 0.0
        while passed < 1.0 - 1e-9:
            speed += (action - 1) / self.mass * self.dt
            place += speed * self.dt
            passed += self.dt
        return (place, speed), -abs(place - 3.0), False


class Unready(Substeps):
    """Other masses than believed make it exit."""

    def step(self, state, action):
        if self.mass > 2.5 or self.mass < 0.5:
            sys.exit("no such mass")
        return super().step(state, action)


class Refuses(Substeps):
    """It checks its mass when that is set."""

    @property
    def mass(self):
        return self.held

    @mass.setter
    def mass(self, value):
        if not 0.5 <= value <= 2.5:
            raise ValueError(f"mass is {value}")
        self.held = value


class Builds:
    """It is built anew for other values, and refuses some."""

    num_actions, parameters = 3, {"mass": 1.0, "dt": 0.1}

    def __init__(self, mass=1.0, dt=0.1):
        if not 0.5 <= mass <= 2.5:
            raise ValueError(f"mass is {mass}")
        self.inner = Substeps(dt, mass)

    def with_parameters(self, mass=1.0, dt=0.1):
        return Builds(mass, dt)

    def step(self, state, action):
        return self.inner.step(state, action)


def live(simulator, world, steps=30):
    """An agent that has taken random actions in a world."""
    rng = np.random.default_rng(0)
    agent, state = uamcts.Agent(simulator, iterations=5, rollouts=1, depth=3), (0.0, 0.0)
    agent.act(state)
    for _ in range(steps):
        action = int(rng.integers(3))
        after, reward, over = world.step(state, action)
        agent.observe(state, action, after, reward, over)
        state = after
    return agent


@pytest.mark.parametrize("kind", [Substeps, Unready, Refuses, Builds])
def test_values_that_a_simulator_cannot_have_are_no_obstacle(kind):
    start = time.thread_time()
    agent = live(kind(), Substeps(mass=2.0))
    assert agent.backend.corrector.fit.values == {"held" if kind is Refuses else "mass": pytest.approx(2.0)}
    assert agent.backend.corrector.in_use == "parameters"
    assert time.thread_time() - start < LONG


def test_a_step_of_another_size_is_found_among_sizes_that_never_end():
    start = time.thread_time()
    agent = live(Substeps(), Substeps(dt=0.05))
    assert agent.backend.corrector.fit.values == {"dt": pytest.approx(0.05)}
    assert agent.backend.planner.laboratory.pace._impossible
    assert time.thread_time() - start < LONG


def trials_of(simulator):
    state = (0.0, 1.0)
    after, reward, over = Substeps().step(state, 2)
    seen = [Sighting(state, 2, after, Outcome(np.array(after), reward, over))] * 4
    model = PythonSimulator(simulator)
    return PlainTrials(model, simulator, seen, Measure(), Scales(np.ones(2), 1.0), 1e-8, None, trial_pace.Pace(model))


def test_a_value_beyond_one_that_never_ends_is_not_tried():
    trials, rows = trials_of(Substeps()), np.arange(4)
    losses = [trials.losses(["dt"], np.array([[value]]), rows)[0, 0] for value in (0.1, -0.1)]
    start = time.thread_time()
    losses += [trials.losses(["dt"], np.array([[value]]), rows)[0, 0] for value in (-0.2, -0.3, 0.05)]
    assert time.thread_time() - start < 0.25
    assert losses[0] == pytest.approx(np.log(1e-8)) != losses[4]
    assert losses[1] == losses[2] == losses[3] == pytest.approx(np.log(1e4))


class Sleeper(Substeps):
    """The more mass, the longer it takes."""

    def step(self, state, action):
        spin(time.thread_time() + 2e-4 * self.mass)
        return super().step(state, action)


def test_a_value_that_makes_steps_much_slower_is_impossible_and_others_are_not():
    trials, rows = trials_of(Sleeper()), np.arange(4)
    losses = [trials.losses(["mass"], np.array([[value]]), rows)[0, 0] for value in (1.0, 2.0, 400.0, 3.0)]
    assert losses[2] == pytest.approx(np.log(1e4))
    assert max(losses[:2]) < 5.0 > losses[3]


class Misses(Substeps):
    """With twice the gain, it never gets to an end beyond 5, where nobody has been when that is found out."""

    def __init__(self, mass=1.0):
        super().__init__(mass=mass)

    def step(self, state, action):
        after, reward, over = super().step(state, action)
        while self.mass == 2.0 and state[0] > 5.0:
            pass
        return after, reward, over


def test_a_corrected_simulator_that_never_answers_is_given_up():
    agent, start = live(Misses(), Substeps(mass=2.0)), time.thread_time()
    assert agent.backend.corrector.in_use == "parameters"
    agent.act((6.0, 0.0))
    assert agent.backend.corrector.in_use == "none"
    agent.act((6.0, 0.0))
    assert time.thread_time() - start < LONG


def test_an_exit_of_the_simulator_itself_is_an_error_that_says_so():
    with pytest.raises(uamcts.SimulatorError, match="step raised SystemExit: no such mass"):
        uamcts.Agent(Unready(mass=3.0)).act((0.0, 0.0))


class Loud(Substeps):
    """It warns of unusual values, and draws from global generators where it has noise, which has no effect."""

    def __init__(self, mass=1.0, noise=0.0):
        super().__init__(0.1, mass)
        self.noise, self.tried = noise, set()

    def step(self, state, action):
        if self.noise:
            random.random(), np.random.rand()  # noqa: NPY002
        if not 0.5 < self.mass < 3.0:
            warnings.warn(f"mass is {self.mass}", stacklevel=1)
            logging.getLogger("cart").warning("mass is %s", self.mass)
        place, speed = state
        speed = float(speed + np.float64(action - 1) / np.float64(self.mass))
        return (place + speed, speed), -abs(place - 3.0), False


def test_trials_neither_warn_nor_draw(recwarn, caplog):
    simulator, world, rng = Loud(), Loud(mass=2.0), np.random.default_rng(0)
    agent, state = uamcts.Agent(simulator, iterations=5, rollouts=1, depth=3), (0.0, 0.0)
    agent.act(state)
    before = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    for _ in range(20):
        action = int(rng.integers(3))
        after, reward, over = world.step(state, action)
        agent.observe(state, action, after, reward, over)
        state = after
    assert agent.backend.corrector.fit.values == {"mass": pytest.approx(2.0)}
    assert (random.getstate(), np.random.get_state()[1].tobytes()) == before  # noqa: NPY002
    assert not recwarn.list
    assert not caplog.records
    with pytest.warns(UserWarning, match="mass is 5"):
        Loud(mass=5.0).step((0.0, 0.0), 1)


def test_an_agent_with_corrections_can_be_copied_and_pickled():
    agent = live(Substeps(), Substeps(mass=2.0))
    assert agent.backend.corrector.in_use == "parameters"
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert twin.act((0.5, 0.0)) in range(3)


def test_a_call_that_sleeps_is_ended_as_well():
    def sleep():
        while True:
            time.sleep(0.01)

    start = time.perf_counter()
    assert ends(lambda: Watch().call(0.05, sleep))
    assert time.perf_counter() - start > 0.2


def test_numbers_that_took_too_long_together_may_be_tried_alone():
    pace = trial_pace.Pace(PythonSimulator(Substeps()))
    for place in range(trial_pace.FORGIVEN):
        pace.refuse({"dt": 0.001 * place, "mass": 2.0})
    assert not pace.allows({"dt": 0.03, "mass": 3.0})
    assert pace.allows({"mass": 3.0})
    assert pace.allows({"dt": 0.03})


class OnlyOne(Substeps):
    """All objects of its class are the same one."""

    one = None

    def __new__(cls):
        cls.one = super().__new__(cls) if cls.one is None else cls.one
        return cls.one


class OwnCopy(Substeps):
    """Its copies are the object itself."""

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class Private:
    """What it has is in slots, one of them private."""

    __slots__ = ("__lock", "mass", "num_actions")

    def __init__(self):
        self.__lock, self.num_actions, self.mass = threading.Lock(), 3, 1.0

    def step(self, state, action):
        with self.__lock:
            return Substeps(0.1, self.mass).step(state, action)


@pytest.mark.parametrize("kind", [OnlyOne, OwnCopy, Private])
def test_a_simulator_that_hands_itself_out_as_its_copy_stays_as_it_is(kind):
    simulator = kind()
    agent = live(simulator, Substeps(mass=2.0))
    assert agent.backend.corrector.fit.values == {"mass": pytest.approx(2.0)}
    assert simulator.mass == 1.0


class Turns(Builds):
    """It changes itself in place of a copy."""

    def with_parameters(self, mass=1.0, dt=0.1):
        self.inner = Substeps(dt, mass)
        return self


class Lacks(Builds):
    def with_parameters(self, mass=1.0, dt=0.1):
        self.inner = Substeps(dt, mass)


class TakesOne(Builds):
    def with_parameters(self, values):
        return Builds(**values)


@pytest.mark.parametrize(
    ("kind", "said"),
    [(Turns, "returned the simulator itself"), (Lacks, "returned None"), (TakesOne, "must take any of the names")],
)
def test_a_with_parameters_that_makes_no_new_simulator_is_refused(kind, said):
    with pytest.raises(TypeError, match=said):
        uamcts.Agent(kind())
