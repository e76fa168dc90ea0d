"""An agent with somebody's own simulator: what it learns, what it tells, and simulators that cannot be planned with."""

import functools
import json
import time
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import uamcts
from uamcts.agent import python_simulator, simulator_probe
from uamcts.agent.backend import IterationBudget
from uamcts.agent.experience import Experience, Row
from uamcts.agent.measure import Measure, Outcome
from uamcts.agent.report import Report
from uamcts.agent.returns import Returns
from uamcts.agent.states import as_json, from_json
from uamcts.corrections.journal import Journal
from uamcts.uncertainty.estimator import ZeroUncertainty

BUDGET = {"iterations": 30, "rollouts": 3, "depth": 12, "gamma": 0.95}
CONFIG = uamcts.SearchConfig(**BUDGET, rules="released")
TRUST = uamcts.SearchConfig(**BUDGET, rules="trust", c=2.0, graph=False)
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


class Corridors:
    """A 4 x 4 grid from (0, 0) to (3, 3), as its planner sees it; `blocked` cells cannot be entered."""

    num_actions = 4
    action_names = ("up", "right", "down", "left")

    def __init__(self, blocked=()):
        self.blocked = frozenset(blocked)

    def step(self, state, action):
        after = (state[0] + MOVES[action][0], state[1] + MOVES[action][1])
        if not (min(after) >= 0 and max(after) <= 3) or after in self.blocked:
            after = state
        return after, 10.0 if after == (3, 3) else 0.0, after == (3, 3)


REAL = Corridors({(1, 1), (1, 2), (3, 1), (3, 2)})


@functools.cache  # equal simulators are one object: agents of it share compiled programs
def jax_corridors(blocked=()):
    walls = jnp.zeros((4, 4), bool)
    for cell in blocked:
        walls = walls.at[cell].set(True)

    def step(state, action):
        over = jnp.all(state == 3)
        after = state + jnp.asarray(MOVES)[action]
        inside = jnp.all((after >= 0) & (after <= 3))
        after = jnp.where(inside & ~walls[tuple(jnp.clip(after, 0, 3))] & ~over, after, state)
        arrived = jnp.all(after == 3)
        return uamcts.Transition(after, jnp.where(arrived & ~over, 10.0, 0.0), arrived)

    return uamcts.JaxSimulator(step, 4, jnp.zeros(2, jnp.int32), action_names=Corridors.action_names)


def live(agent, episodes=4, longest=40, wrap=lambda state: state):
    """The loop that a user writes; returns the steps of each episode."""
    lengths = []
    for _ in range(episodes):
        state, over, steps = (0, 0), False, 0
        while not over and steps < longest:
            action = agent.act(wrap(state))
            after, reward, over = REAL.step(state, action)
            agent.observe(wrap(state), action, wrap(after), reward=reward, terminal=over)
            state, steps = after, steps + 1
        lengths.append(steps)
    return lengths


@pytest.fixture(scope="module")
def lived():
    agent = uamcts.Agent(Corridors(), config=TRUST, memory=False)
    return agent, live(agent)


# Experience


def outcome(features, reward=0.0, terminal=False):
    return Outcome(np.array(features, float), reward, terminal)


def add(experience, here, action, believed, real):
    """Adds a transition that the simulator alone has predicted."""
    row = Row(None, action, None, here, here.astype(np.float32), action, real, believed, believed, (np.nan, np.nan))
    experience.add(row, Measure(), Journal())


def test_discrepancy_by_hand():
    """Two features: one in [0, 1000], one in [0, 1]. Standardised, an error of one deviation counts alike in both."""
    experience = Experience()
    for here, after, believed in (
        ((0, 0), (1000, 0), (1000, 0)),
        ((0, 1), (1000, 1), (500, 1)),
        ((0, 0), (0, 1), (0, 0.5)),
    ):
        add(experience, np.array(here, float), experience.count, outcome(believed), outcome(after))
    # The six real states have 0, 1000, 0, 1000, 0, 0 and 0, 0, 1, 1, 0, 1.
    scales = np.array([np.std([0, 1000, 0, 1000, 0, 0]), np.std([0, 0, 1, 1, 0, 1])])
    np.testing.assert_allclose(experience.scales.features, scales)
    expected = [0.0, (500 / scales[0]) ** 2 / 2, (0.5 / scales[1]) ** 2 / 2]
    np.testing.assert_allclose(experience.uncertainties(Measure()), expected)
    np.testing.assert_allclose(experience.uncertainties(Measure(("reward", "terminal"))), 0.0)


def test_rewards_and_ends_count_where_wanted():
    experience = Experience()
    same = np.zeros(1)
    for action, believed, real in (
        (0, (0.0, False), (4.0, False)),
        (1, (2.0, False), (2.0, True)),
        (2, (0.0, True), (None, None)),
    ):
        add(experience, same, action, Outcome(same, *believed), Outcome(same, *real))
    np.testing.assert_allclose(experience.uncertainties(Measure()), [1.0, 1.0, 0.0])  # 4 is the whole spread of rewards
    np.testing.assert_allclose(experience.uncertainties(Measure(("reward",))), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(experience.uncertainties(Measure(("terminal",))), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(experience.uncertainties(Measure(("state",))), 0.0)


def test_what_is_seen_twice_is_one_transition():
    """A world with chance: once as the simulator says, twice not: two thirds of the error."""
    experience = Experience()
    for after in (0.0, 1.0, 1.0):
        add(experience, np.zeros(1), 0, outcome([0.0]), outcome([after]))
    assert experience.count == 1
    assert experience.column("times") == [3]
    variance = np.var([0, 0, 0, 1, 0, 1])
    np.testing.assert_allclose(experience.uncertainties(Measure()), 2 / 3 / variance)
    again = Experience.of(experience.arrays(), 1)
    add(again, np.zeros(1), 0, outcome([0.0]), outcome([0.0]))
    assert again.column("times") == [4]
    assert experience.column("times") == [3]


# The agent


def test_it_learns_where_the_simulator_lies(lived):
    agent, lengths = lived
    assert lengths[-1] <= 12, lengths  # the shortest way has 6 steps
    walls = {(tuple(error.features.astype(int)), error.action) for error in agent.report(100)}
    assert walls
    for state, action in walls:
        assert Corridors().step(state, action) != REAL.step(state, action), (state, action)
    seen = agent.backend.experience
    for features, action in zip(seen.column("features"), seen.column("action"), strict=True):
        state = tuple(features.astype(int))
        wrong = Corridors().step(state, action) != REAL.step(state, action)
        assert wrong == ((state, int(action)) in walls)
        assert (agent.backend.planner.uncertainty(state, int(action)) > 0) == wrong


def test_a_compiled_simulator_is_learned_alike(lived):
    """The same experience in plain Python and in JAX: the same doubt about every transition."""
    plain, _ = lived
    compiled = uamcts.Agent(jax_corridors(), config=CONFIG)
    seen = plain.backend.experience
    samples = []
    for features, action in zip(seen.column("features"), seen.column("action"), strict=True):
        state = tuple(features.astype(int))
        after, reward, over = REAL.step(state, int(action))
        samples.append((jnp.array(state, jnp.int32), int(action), jnp.array(after, jnp.int32), reward, over))
    assert compiled.preload(samples) == seen.count
    ours, theirs = compiled.report(100), plain.report(100)
    key = lambda error: (tuple(error.features), error.action)  # noqa: E731
    assert sorted(map(key, ours)) == sorted(map(key, theirs))
    assert all(error.learned > 0 for error in ours)
    assert compiled.act(jnp.zeros(2, jnp.int32)) in range(4)


@pytest.mark.long
def test_a_compiled_simulator_in_a_loop():
    agent = uamcts.Agent(jax_corridors(), config=TRUST)
    lengths = live(agent, episodes=3, wrap=lambda state: jnp.array(state, jnp.int32))
    assert lengths[-1] <= 16
    assert len(agent.report()) > 0
    with pytest.raises(TypeError, match=r"state is \{.row.: 3\}; a state of simulator looks like"):
        agent.act({"row": 3})
    with pytest.raises(ValueError, match="give one state, not a batch"):
        agent.act(jnp.zeros((5, 2), jnp.int32))


def test_a_function_is_a_simulator():
    agent = uamcts.Agent(Corridors().step, num_actions=4, config=CONFIG)
    assert agent.act((3, 2)) == 1
    with pytest.raises(ValueError, match=r"num_actions is not given and the model does not have it; pass num_actions="):
        uamcts.Agent(Corridors().step)


def test_features_and_discrepancy_of_ones_own():
    """Only the row is looked at: a block beside is not noticed, one below is."""
    agent = uamcts.Agent(Corridors(), config=CONFIG, features=lambda state: [state[0]], parts=["state"])
    agent.observe((0, 0), 1, (0, 0))
    assert agent.estimator is None
    agent.observe((0, 0), 2, (0, 0))
    assert [error.action for error in agent.report()] == [2]

    own = uamcts.Agent(Corridors(), config=CONFIG, discrepancy=lambda real, said: 7.0 * (real != said), parts=["state"])
    own.observe((0, 0), 1, (0, 0))
    assert own.report()[0].error == 7.0
    bad = uamcts.Agent(Corridors(), config=CONFIG, discrepancy=lambda real, said: -1.0)
    with pytest.raises(ValueError, match=r"discrepancy returned -1.0; it must be a finite number of at least 0"):
        bad.observe((0, 0), 1, (0, 0))
    assert bad.steps == 0


def test_wrong_rewards_and_ends_are_noticed():
    agent = uamcts.Agent(Corridors(), config=CONFIG)
    agent.observe((0, 0), 1, (0, 1), reward=5.0, terminal=False)
    agent.observe((0, 1), 1, (0, 2), reward=0.0, terminal=True)
    agent.observe((0, 2), 1, (0, 3))
    words = str(agent.report())
    assert "reward 0" in words
    assert "reward 5" in words
    assert "goes on" in words
    assert len(agent.report()) == 2
    blind = uamcts.Agent(Corridors(), config=CONFIG, parts=["state"])
    blind.observe((0, 0), 1, (0, 1), reward=5.0, terminal=True)
    assert len(blind.report()) == 0


def test_it_explains_itself(lived):
    agent, _ = lived
    agent.act((2, 0))
    words = agent.explain().split("\n")
    assert len(words) == 6
    assert words[1].split() == ["action", "visits", "value", "uncertainty"]
    assert [line.split()[0] for line in words[2:]] == list(Corridors.action_names)
    assert sum("chosen" in line for line in words) == 1
    papers = uamcts.Agent(Corridors(), config=CONFIG, memory=False)
    papers.observe((0, 1), 2, (0, 1))
    assert any("deleted: the model is doubtful here" in _explained(papers, (0, 1)) for _ in range(5))
    assert "nothing was observed yet" in str(uamcts.Agent(Corridors()).report())
    with pytest.raises(RuntimeError, match="explain was called before act"):
        uamcts.Agent(Corridors()).explain()


def _explained(agent, state):
    agent.act(state)
    return agent.last_plan.explain(agent.backend.action_names)


def test_what_is_known_before_is_taken_whole_or_not_at_all():
    agent = uamcts.Agent(Corridors(), config=CONFIG)
    assert agent.preload([((0, 0), 2, (1, 0), 0.0, False), ((1, 0), 1, (1, 0), 0.0, False)]) == 2
    assert agent.steps == 0
    assert [(tuple(error.features), error.action) for error in agent.report()] == [((1, 0), 1)]
    with pytest.raises(ValueError, match="sample 1 has 2 entries"):
        agent.preload([((1, 1), 1, (1, 1)), ((0, 0), 1)])
    assert agent.backend.experience.count == 2
    assert len(agent.backend.planner.patched.facts) == 2, "half of the samples went into the memory"
    domain = uamcts.make("two_way")
    learned = uamcts.Agent.paper(domain, "linear", CONFIG)
    state = domain.reset(jax.random.key(0))
    assert learned.preload([(state, 1, state)]) == 1
    assert learned.steps == 1


@pytest.fixture
def ticks(monkeypatch):
    """A clock that moves on by what is given with every look at it."""
    now, tick = [0.0], [0.0]

    def look():
        now[0] += tick[0]
        return now[0]

    monkeypatch.setattr(time, "perf_counter", look)
    return lambda seconds: tick.__setitem__(0, seconds)


def test_time_instead_of_iterations(ticks):
    """The plain engine looks at the clock once an iteration, and does as many as fit, not the 30 of its settings."""
    ticks(2.0**-10)
    agent = uamcts.Agent(Corridors(), config=CONFIG, budget_seconds=0.125)
    agent.act((0, 0))
    assert agent.last_plan.iterations == 127  # the 128th look is too late
    with pytest.raises(ValueError, match="budget_seconds is 0; it must be above 0"):
        uamcts.Agent(Corridors(), budget_seconds=0)


def test_compiled_searches_double_while_they_fit(ticks):
    """A search takes 1 of 5 seconds; the first one of a size is compiled, which is not counted."""
    ticks(1.0)
    agent, visits = uamcts.Agent(jax_corridors(), config=CONFIG, budget_seconds=5.0), []
    for _ in range(3):
        agent.act(jnp.zeros(2, jnp.int32))
        visits.append(int(agent.last_plan.visits.sum()))
    assert visits == [16, 16, 32]


def test_sizes_of_compiled_searches_by_hand(ticks):
    """Twice as many if 2.2 times as long still fits, half as many if they took too long, else the same."""
    budget, sizes = IterationBudget(5.0), []
    for seconds in (1.0, 1.0, 9.0, 2.3, 2.2, 9.0, 9.0, 9.0, 9.0):
        ticks(seconds)
        budget.run(sizes.append)
    assert sizes == [16, 16, 32, 32, 32, 64, 64, 32, 16]
    assert budget.iterations == 8


def test_saved_and_loaded(lived, tmp_path):
    agent, _ = lived
    agent.save(tmp_path / "agent")
    other = uamcts.Agent(Corridors(), config=TRUST, memory=False)
    other.load(tmp_path / "agent")
    assert str(other.report(100)) == str(agent.report(100))
    assert other.steps == agent.steps
    assert [other.act((0, 0)) for _ in range(3)] == [agent.act((0, 0)) for _ in range(3)]
    content = (tmp_path / "agent").read_bytes()
    (tmp_path / "agent").write_bytes(content[: len(content) // 2])
    before = other.backend.experience
    with pytest.raises(ValueError, match="damaged"):
        other.load(tmp_path / "agent")
    assert other.backend.experience is before
    uamcts.Agent.paper(uamcts.make("two_way"), "linear", CONFIG).save(tmp_path / "domain")
    with pytest.raises(ValueError, match="use the same, or another file"):
        other.load(tmp_path / "domain")


@pytest.mark.parametrize("estimator", ["linear", "bayes"])
def test_other_estimators_and_a_schedule(estimator):
    schedule = uamcts.Schedule(interval=10)
    agent = uamcts.Agent(Corridors(), estimator, CONFIG, schedule, minibatches=50)
    lessons = [agent.observe((0, column % 3), 1, (0, column % 3)) for column in range(20)]
    assert [place for place, learned in enumerate(lessons) if learned] == [9, 19]
    assert agent.tau == pytest.approx(0.1)
    assert all(error.learned >= 0 for error in agent.report())
    assert agent.act((0, 0)) in range(4)


# Simulators that cannot be planned with


class State(NamedTuple):
    row: int
    column: float


class Faulty:
    """Works like a walk on a line until `fault` happens, from the call number `when` on."""

    num_actions = 2
    name = "faulty"

    def __init__(self, fault, when):
        self.fault, self.when, self.calls = fault, when, 0

    def step(self, state, action):
        self.calls += 1
        good = [state[0] + (1 if action else -1)], 0.5, state[0] > 8
        if self.calls <= self.when:
            return good
        if self.fault == "raises":
            raise ZeroDivisionError("float division by zero")
        if self.fault == "mutates":
            state[0] += 1
        return {
            "nan reward": (good[0], float("nan"), False),
            "infinite reward": (good[0], float("inf"), False),
            "text reward": (good[0], "much", False),
            "nan state": ([float("nan")], 0.0, False),
            "longer state": ([1, 2], 0.0, False),
            "no state": (None, 0.0, False),
            "text state": ("here", 0.0, False),
            "four things": (*good, {}),
            "five things": (*good, False, {}),
            "nothing": None,
            "list": list(good),
            "vague end": (good[0], 0.5, "no"),
            "chance": ([state[0] + self.calls], 0.5, False),
            "mutates": good,
        }[self.fault]


SENTENCES = {
    "raises": "step raised ZeroDivisionError: float division by zero",
    "nan reward": "the reward is nan",
    "infinite reward": "the reward is inf",
    "text reward": "the reward is 'much'",
    "nan state": "they must be finite numbers",
    "longer state": "2 features where the state before it had 1",
    "no state": "are not numbers",
    "text state": "4 features where the state before it had 1",
    "four things": "must return a tuple",
    "five things": "a Gymnasium environment returns five",
    "nothing": "step returned None",
    "list": "must return a tuple",
    "vague end": "terminal is 'no'",
    "chance": "the same step gave two results",
    "mutates": "step changed the state it was given",
}


@pytest.mark.parametrize("fault", SENTENCES)
def test_the_first_step_tells(fault):
    agent = uamcts.Agent(Faulty(fault, 0), config=CONFIG)
    with pytest.raises(uamcts.SimulatorError, match=SENTENCES[fault]) as caught:
        agent.act([0])
    assert str(caught.value).startswith("faulty: ")


@settings(max_examples=60)
@given(fault=st.sampled_from(sorted(SENTENCES)), when=st.integers(0, 400), steps=st.integers(1, 3))
@example(fault="text reward", when=233, steps=1)  # the last question of an observe
def test_nothing_learned_is_lost_whenever_it_fails(fault, when, steps):
    """Whatever goes wrong, and whenever: either nothing does, or an error, and the agent knows what it knew."""
    agent = uamcts.Agent(Faulty(fault, when), config=uamcts.SearchConfig(iterations=4, rollouts=1, depth=3))
    state = [0]
    for _ in range(steps):
        before = agent.steps, agent.backend.experience.arrays()
        try:
            action = agent.act(state)
            agent.observe(state, action, [state[0] + (2 if action else -1)], reward=0.5, terminal=False)
        except (uamcts.SimulatorError, ValueError) as error:
            assert "faulty" in str(error)  # noqa: PT017 (whether it raises depends on the example)
            assert agent.steps == before[0]
            for name, array in agent.backend.experience.arrays().items():
                np.testing.assert_array_equal(array, before[1].get(name, array[:0]))
            return
        state = [state[0] + 1]
    agent.report()


@pytest.mark.parametrize(("end", "graph"), [(2, True), (1, False)])
def test_states_of_a_world_that_seems_tiny_recur(end, graph):
    """Three cells, of which the last ends: 6 of 7 steps lead to known states. With two, 3 of 3 do, and one is left."""

    class Row:
        num_actions = 4

        def step(self, state, action):
            after = max(state + (0, 1, 0, -1)[action], 0)
            return after, -0.1, after >= end

    agent = uamcts.Agent(Row(), iterations=5, rollouts=1, depth=5)
    agent.act(0)
    assert agent.backend.planner.tried[:2] == ((6, 7) if graph else (3, 3))
    assert agent.backend.planner.tried.recurs == graph


def test_slow_ones_are_told_of(monkeypatch):
    monkeypatch.setattr(simulator_probe, "SLOW", 0.01)

    class Slow(Corridors):
        def step(self, state, action):
            time.sleep(0.02)
            return super().step(state, action)

    with pytest.warns(
        uamcts.errors.SlowSimulator, match=r"one step took \d\.\d s; a move of up to 4 steps may take \d+ s: give"
    ):
        uamcts.Agent(Slow(), config=uamcts.SearchConfig(iterations=1, rollouts=1, depth=1), num_actions=3).act((0, 0))
    with pytest.warns(uamcts.errors.SlowSimulator, match=r"budget_seconds=0.05 leaves room for \d steps a move"):
        uamcts.Agent(Slow(), budget_seconds=0.05).act((0, 0))


def test_no_legal_action():
    class Stuck(Corridors):
        def legal_actions(self, state):
            return [] if state == (0, 0) else [7] if state == (3, 0) else [0, 1]

    agent = uamcts.Agent(Stuck(), config=CONFIG)
    with pytest.raises(uamcts.SimulatorError, match="there is no legal action in state"):
        agent.act((0, 0))
    with pytest.raises(uamcts.SimulatorError, match=r"legal_actions gave 7; actions are 0 to 3 \(in state \(3, 0\)\)"):
        agent.act((3, 0))
    assert agent.act((2, 1)) in (0, 1)
    with pytest.raises(uamcts.SimulatorError, match="no legal action"):
        agent.act((0, 0))


def test_compiled_ones_that_lie():
    def broken(state, action):
        return uamcts.Transition(state, jnp.nan * state[0], jnp.bool_(False))

    agent = uamcts.Agent(uamcts.JaxSimulator(broken, 2, jnp.ones(1)), config=CONFIG)
    with pytest.raises(uamcts.SimulatorError, match="a reward that is not a finite number"):
        agent.act(jnp.ones(1))
    with pytest.raises(uamcts.SimulatorError, match="they must be finite numbers"):
        agent.act(jnp.full(1, jnp.nan))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 3}, "model is 3; give a domain"),
        ({"model": Corridors(), "num_actions": 0}, "num_actions is 0; it must be a whole number"),
        ({"model": Corridors(), "parts": ["colour"]}, "parts holds 'colour'; there are 'state', 'reward', 'terminal'"),
        ({"model": Corridors(), "discrepancy": 3}, "discrepancy is 3; give a function"),
        ({"model": Corridors(), "estimator": "forest"}, "unknown estimator 'forest'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        uamcts.Agent(**arguments)
    agent = uamcts.Agent(Corridors())
    with pytest.raises(ValueError, match="action is 4; Corridors has the actions 0 to 3"):
        agent.observe((0, 0), 4, (0, 0))
    with pytest.raises(ValueError, match="reward is nan"):
        agent.observe((0, 0), 1, (0, 0), reward=float("nan"))


def test_states_of_many_kinds():
    """Named tuples, dataclasses, dictionaries, arrays: all numbers in them, in order."""
    assert python_simulator.flatten(State(1, 2.5)).tolist() == [1, 2.5]
    assert python_simulator.flatten({"b": np.ones((2, 1)), "a": [True, (3,)]}).tolist() == [1, 3, 1, 1]
    assert python_simulator.flatten(()).tolist() == []
    with pytest.raises(TypeError, match="a NoneType is not a number"):
        python_simulator.flatten(None)


# Memory


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_what_was_seen_is_planned_with(kind, tmp_path):
    """A wall in the way of (3, 2): the agent knows it from one bump, also after it was saved and loaded."""
    model = Corridors() if kind == "plain" else jax_corridors()

    def fresh(memory=True):
        return uamcts.Agent(model, config=uamcts.SearchConfig(**BUDGET, rules="trust", worst=-1.0), memory=memory)

    state = (3, 2) if kind == "plain" else jnp.array((3, 2), jnp.int32)
    agent = fresh()
    assert agent.act(state) == 1
    agent.observe(state, 1, state, reward=0.0, terminal=False)
    agent.act(state)
    assert float(agent.last_plan.values[1]) < 10.0
    assert float(agent.last_plan.uncertainty[1]) == 0.0, "what is known is not doubted"
    agent.save(tmp_path / "agent")
    again = fresh()
    again.load(tmp_path / "agent")
    assert again.act(state) == agent.act(state)
    np.testing.assert_array_equal(again.last_plan.visits, agent.last_plan.visits)
    forgetful = fresh(memory=False)
    forgetful.observe(state, 1, state, reward=0.0, terminal=False)
    forgetful.act(state)
    assert float(forgetful.last_plan.uncertainty[1]) > 0.0
    with pytest.raises(ValueError, match="was written with memory True"):
        forgetful.load(tmp_path / "agent")


@pytest.mark.parametrize(
    "state",
    [3, 2.5, "here", (1, (2.0, "x")), [1, [2]], np.arange(3.0), np.int8(5), {"a": (1, True)}, b"\0"],
)
def test_states_come_back_from_json(state):
    again = from_json(json.loads(json.dumps(as_json(state))))
    assert type(again) is type(state)
    if isinstance(state, np.ndarray):
        np.testing.assert_array_equal(again, state)
        assert again.dtype == state.dtype
    else:
        assert repr(again) == repr(state)


def test_states_that_json_cannot_hold():
    for state in (object(), (1, iter([2])), np.array([object()]), {"f": print}, type("Own", (list,), {})()):
        with pytest.raises(TypeError):
            as_json(state)


def test_the_worst_is_learned_from_what_is_paid():
    """Steps that cost 2 on average, over 50 + 100 steps, as far as a search looks, with a discount of 0.99."""
    agent = uamcts.Agent(Corridors())
    assert agent.backend.returns.worst(agent.backend.experience.mean_reward) == 0.0
    agent.observe((0, 0), 1, (0, 1), reward=-3.0)
    agent.observe((0, 1), 1, (0, 2), reward=-1.0)
    worst = agent.backend.returns.worst(agent.backend.experience.mean_reward)
    assert worst == pytest.approx(-2 * (1 - 0.99**150) / 0.01)


# What is expected beyond doubt


def test_the_least_return_by_hand():
    """Windows of two steps, taken to go on for four: (1 + 1/2 + 1/4 + 1/8) / (1 + 1/2) = 1.25 times as much."""
    returns = Returns(0.5, 2, 4)
    places = range(9)
    returns.add(places[0], places[1], -1.0, False)
    assert returns.least == 0.0  # what follows is not known yet
    returns.add(places[1], places[2], -2.0, False)
    assert returns.least == -2.0 * 1.25
    returns.add(places[5], places[6], -8.0, False)  # another episode: -2 and -8 do not belong together
    assert returns.least == -2.0 * 1.25
    returns.add(places[6], places[7], 4.0, True)  # -8 + 4 / 2; and an end goes on for nothing
    assert returns.least == -6.0
    returns.add(places[7], places[8], 100.0, True)
    assert returns.least == -6.0


class Ledge:
    """Two roads of 8 steps that pay 1, beside a fall that costs 3. Really the low one gives way after two steps."""

    num_actions = 3
    action_names = ("low road", "high road", "fall")

    def __init__(self, firm):
        self.firm = firm

    def step(self, state, action):
        high, place = state
        if action == 2 or (not self.firm and action == 0 and state == (0, 2)):
            return state, -3.0, True
        if action == 1 and not high:
            return (1, place), 0.0, False
        return (high, place + 1), 1.0, place == 7


@pytest.mark.parametrize("config", [None, uamcts.SearchConfig(**BUDGET, rules="trust", c=2.0)])
def test_doubt_is_no_better_than_a_danger_that_is_known(config):
    """Rewards are positive on average; still a doubtful step must not look better than a certain one beside a fall."""
    agent = uamcts.Agent(Ledge(firm=True), config=config, memory=False)
    world, paid = Ledge(firm=False), []
    for _ in range(4):
        state, over, total = (0, 0), False, 0.0
        while not over:
            action = agent.act(state)
            after, reward, over = world.step(state, action)
            agent.observe(state, action, after, reward=reward, terminal=over)
            state, total = after, total + reward
        paid.append(total)
    assert paid[-1] == 8.0, paid
    assert agent.backend.returns.worst(agent.backend.experience.mean_reward) <= -3.0
    given = uamcts.Agent(Ledge(firm=True), config=replace(TRUST, worst=0.0), memory=False)
    assert given.backend.config.worst == 0.0  # what is given stays


def test_a_report_warns_where_nearly_everything_is_wrong():
    assert "correct the simulator" in str(Report((), 30, 40, 25))
    assert "correct the simulator" not in str(Report((), 30, 40, 24))
    assert "correct the simulator" not in str(Report((), 10, 40, 10)), "ten transitions are too few to tell"


@pytest.mark.parametrize("estimator", ["none", ZeroUncertainty()])
@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_an_agent_that_doubts_nothing_never_asks_for_u(kind, estimator):
    """Whatever it has seen: with U = 0 its searches are those of plain MCTS, and cost no more."""
    model, place = (
        (Corridors(), tuple) if kind == "plain" else (jax_corridors(), lambda cell: jnp.array(cell, jnp.int32))
    )
    agent, fresh = (uamcts.Agent(model, estimator, **BUDGET, corrections=(), reuse=False) for _ in range(2))
    for cell, after in (((0, 0), (0, 1)), ((0, 1), (0, 1)), ((0, 2), (0, 3))):
        agent.observe(place(cell), 1, place(after), reward=0.0, terminal=False)
    agent.learn()
    assert agent.backend.experience.simulator_errors(agent.backend.measure).any()
    assert agent.backend.planner.uncertainty is None
    assert agent.estimator is None
    assert agent.act(place((0, 0))) == fresh.act(place((0, 0)))
    np.testing.assert_array_equal(agent.last_plan.values, fresh.last_plan.values)
