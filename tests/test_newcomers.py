"""What somebody meets who uses the package for the first time: missing extras, and simulators that are nearly right."""

import enum
import re
import subprocess
import sys
from decimal import Decimal

import gymnasium
import jax
import numpy as np
import pytest

import uamcts
from uamcts.agent.alarm import SlowMoves
from uamcts.agent.feature_names import number_names
from uamcts.agent.report import Report
from uamcts.agent.state_vectors import flatten, numbers_of, unflatten
from uamcts.inspector.page import check_page


class Line:
    num_actions = 2

    def step(self, state, action):
        return state + action, float(action), False


class Named(Line):
    """Its actions are words."""

    def step(self, state, action):
        return state + {"left": -1, "right": 1}[action], 0.0, False


class Listed(Named):
    num_actions = None
    actions = ("left", "right")


class Kept(Line):
    """It keeps its state, as environments do."""

    def reset(self):
        return 0

    def step(self, action):
        return action, 0.0, False, False, {}


class Exact(Line):
    def step(self, state, action):
        return state + action, Decimal(1), False


class Gymnasium(Line):
    def step(self, state, action):
        return state + action, 0.0, False, False, {}


@pytest.mark.parametrize(
    ("simulator", "error", "message"),
    [
        (
            Kept(),
            TypeError,
            r"Kept: step takes \(action\); it must take \(state, action\) .* derive it from gymnasium\.Env",
        ),
        (Gymnasium(), uamcts.SimulatorError, r"a Gymnasium environment returns five: .* \(state, reward, terminal\)$"),
        (Exact(), uamcts.SimulatorError, r"the reward is Decimal\('1'\); return float\(reward\)"),
        ("CartPole-v1", TypeError, r"give a simulator, or gymnasium\.make\('CartPole-v1'\)"),
        (Line, TypeError, r"model is the class Line; give an object of it, such as Line\(\)"),
        (Listed(), ValueError, r"model\.actions is \('left', 'right'\); give the model num_actions = 2 and"),
        (Named(), uamcts.SimulatorError, r"step raised KeyError: 0 .*every action, a number from 0 to 1$"),
    ],
)
def test_a_simulator_that_is_nearly_right(simulator, error, message):
    with pytest.raises(error, match=message):
        uamcts.Agent(simulator, iterations=2).act(0)


class Phase(enum.Enum):
    CLOSED = "closed"
    OPEN = "open"


class Valve:
    """A state as many people write one: an object with attributes, of which one is an object again."""

    def __init__(self, level, phase):
        self.phase, self.level, self.pump = phase, level, Pump(2.0)


class Pump:
    __slots__ = ("speed",)

    def __init__(self, speed):
        self.speed = speed


class Tank:
    num_actions, flow = 2, 1.0

    def step(self, state, action):
        level = state.level + self.flow * (1 if action else -1)
        return Valve(level, tuple(Phase)[action]), -abs(level - 5), False


def test_objects_and_enums_are_states():
    state = Valve(0.5, Phase.OPEN)
    assert flatten(state).tolist() == numbers_of(state) == [0.5, 1.0, 2.0]  # level, phase and the speed of the pump
    assert number_names(state) == ["level", "phase", "pump.speed"]
    other = unflatten(state, np.array([7.0, 0.0, 3.0]))
    assert (other.level, other.phase, other.pump.speed) == (7.0, Phase.OPEN, 3.0)  # only floats are shifted
    assert (state.level, state.pump.speed) == (0.5, 2.0)


def test_a_number_is_fitted_where_states_are_objects(tmp_path):
    agent, state, real = uamcts.Agent(Tank(), iterations=5), Valve(0.0, Phase.OPEN), Tank()
    real.flow = 2.0
    for _ in range(8):
        action = agent.act(state)
        after, reward, _ = real.step(state, action)
        agent.observe(state, action, after, reward=reward, terminal=False)
        state = after
    assert "flow is about 2, not 1: corrected" in str(agent.report())
    agent.save(tmp_path / "agent.uamcts")
    again = uamcts.Agent(Tank(), iterations=5)
    again.load(tmp_path / "agent.uamcts")
    assert again.act(state) == agent.act(state)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((4, 0, 0), "all of them"),
        ((4, 1, 1), "all but 1, which is remembered as a fact"),
        ((4, 9, 9), "all but 9, which are remembered as facts"),
        ((4, 3, 1), "all but 3, 1 of which is remembered"),
        ((4, 3, 2), "all but 3, 2 of which are remembered"),
        ((4, 3, 0), "all but 3"),
    ],
)
def test_a_report_says_what_is_remembered_of_what_no_correction_explains(counts, words):
    wrong, remaining, remembered = counts
    report = Report([], 20, 30, wrong, (), None, ["flow is about 2, not 1: corrected"], remaining, remembered)
    assert str(report).splitlines() == [
        f"the simulator was wrong in {wrong} of 20 different transitions (30 real steps)",
        "flow is about 2, not 1: corrected", f"the corrected model is right about {words}",
    ]  # fmt: skip


class Leaking(Tank):
    """A leak in one place only: no number explains it, and it is met once."""

    flow = 2.0

    def step(self, state, action):
        after, reward, terminal = super().step(state, action)
        return (Valve(-50.0, after.phase), -55.0, terminal) if state.level == 6.0 else (after, reward, terminal)


def test_a_fact_beside_a_correction_is_not_called_wrong():
    agent, real = uamcts.Agent(Tank(), iterations=5), Leaking()
    for level in range(9):
        after, reward, over = real.step(Valve(float(level), Phase.OPEN), 1)
        agent.observe(Valve(float(level), Phase.OPEN), 1, after, reward=reward, terminal=over)
    said = str(agent.report()).splitlines()
    assert "flow is about 2, not 1: corrected" in said
    assert "the corrected model is right about all but 1, which is remembered as a fact" in said


class Door:
    num_actions, action_names = 1, ("open",)

    def step(self, state, action):
        return "garden", 0.0, False


def test_what_is_wrong_at_times_is_counted_and_shown():
    agent = uamcts.Agent(Door(), iterations=5)
    for after in ("kitchen", "garden", "garden"):
        agent.observe("kitchen", 0, after, reward=0.0, terminal=False)
    said = str(agent.report()).splitlines()
    assert said[0] == "the simulator was wrong in 1 of 1 different transitions (3 real steps), remembered as a fact"
    assert said[-1].split()[3:] == ["'kitchen'", "open", "'garden'", "'garden',", "not", "always"]


class Coin:
    num_actions, heads = 1, 0.5

    def outcomes(self, state, action):
        return [(self.heads, (1, 1.0, False)), (1 - self.heads, (0, 0.0, False))]


def test_odds_that_are_off_contradict_no_single_transition():
    agent = uamcts.Agent(Coin(), iterations=5)
    for number in range(80):
        heads = number % 10 > 0
        agent.observe(0, 0, int(heads), reward=float(heads), terminal=False)
    words = str(agent.report(0))
    assert re.search(r"^heads is about 0\.\d+ .*not 0\.5: corrected$", words, re.MULTILINE), words
    head = "the simulator was wrong in none of 1 different transitions (80 real steps), only in how often things happen"
    assert words.startswith(head)


class Bag(Line):
    def step(self, state, action):
        return [state[0] + action], 0.0, False


def test_a_state_that_a_step_has_changed_since_act_is_refused():
    agent, state = uamcts.Agent(Bag(), iterations=2), [0]
    action = agent.act(state)
    state[0] = 5
    with pytest.raises(ValueError, match=r"state is \[5\], which has changed since act was given it; keep the state"):
        agent.observe(state, action, state, reward=0.0, terminal=False)
    assert agent.steps == 0
    state[0] = 0
    agent.observe(state, 0, state, reward=0.0, terminal=False)  # the same list, and nothing has changed
    assert agent.steps == 1


def test_a_next_state_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"next_state is \[1, 2\], which has 2 features; .* have 1"):
        uamcts.Agent(Bag(), iterations=2).observe([0], 1, [1, 2])


class Mutating(Line):
    def step(self, state, action):
        state.level += action
        return state, 0.0, False


def test_what_a_step_has_changed_is_shown():
    with pytest.raises(uamcts.SimulatorError, match=r"Valve\(phase=.*level=0,.* became Valve\(phase=.*level=1,"):
        uamcts.Agent(Mutating(), iterations=2).act(Valve(0, Phase.OPEN))


def test_no_other_name_is_suggested_for_one_that_is_far_from_all():
    with pytest.raises(TypeError, match=r"no argument 'xyzzy'; settings of the search are"):
        uamcts.Agent(Line(), xyzzy=1)


def test_an_agent_is_saved_into_a_folder_that_exists(tmp_path):
    agent = uamcts.Agent(Line(), iterations=2)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing .*agent\.uamcts"):
        agent.save(tmp_path / "missing" / "agent.uamcts")
    with pytest.raises(IsADirectoryError, match="this is a folder; give the name of a file"):
        agent.save(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"there is no folder .*file"):
        agent.save(tmp_path / "file" / "agent.uamcts")


def test_a_page_in_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_planned(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    with pytest.raises(ValueError, match=r"html is .*plan\.html; nothing can be written into .*: give another folder"):
        check_page(tmp_path / "plan.html", "html")


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_modules_of_the_package_need_no_import_of_their_own():
    found = run("import uamcts; print(uamcts.gym.Simulator.__name__, 'gym' in dir(uamcts), uamcts.field.__name__)")
    assert found.stdout.split() == ["Simulator", "True", "uamcts.field"], found.stderr


@pytest.mark.parametrize("make", [uamcts.Agent, uamcts.gym.Simulator, uamcts.gym.check_simulator])
def test_a_batch_of_environments_is_refused_by_name(make):
    batch = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    argument = "model" if make is uamcts.Agent else "env"
    with pytest.raises(TypeError, match=rf"^{argument} is SyncVectorEnv.* give a single one, of gymnasium\.make"):
        make(batch)


def test_what_reset_returns_is_no_state():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(TypeError, match=r"state is a pair \(observation, info\).* give the environment, env"):
        uamcts.Agent(env, iterations=2).act(env.reset(seed=0))


def test_an_environment_of_gymnax_is_shown_the_way():
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make("CartPole-v1")
    with pytest.raises(TypeError, match=r"as gymnax's do; give uamcts\.gym\.from_gymnax\(env, params\)"):
        uamcts.Agent(env)
    simulator = uamcts.gym.from_gymnax(env, params)
    batch = jax.tree.map(lambda leaf: jax.numpy.stack([leaf] * 3), simulator.example)
    with pytest.raises(TypeError, match="as reward; it must be one number: give a function of one state, not of a bat"):
        uamcts.JaxSimulator(jax.vmap(simulator.step, (0, None)), num_actions=2, example=batch)
    with pytest.raises(ValueError, match="give one state, not a batch"):
        uamcts.Agent(simulator, iterations=2).act(batch)


class Slow(Line):
    def step(self, state, action):
        for _ in range(200):
            pass
        return super().step(state, action)


def test_slow_moves_are_told_of_once_with_a_remedy(monkeypatch):
    monkeypatch.setattr("uamcts.agent.alarm.SLOW_MOVE", 0.0)
    remedy = r"^Slow: a move took \d+\.\d s; pass fewer iterations= \(now 100\) or budget_seconds=, or make"
    agent = uamcts.Agent(Slow())
    agent.act(0)  # which may have been compiled
    with pytest.warns(uamcts.errors.SlowSimulator, match=remedy) as said:
        agent.act(0)
    assert said[0].filename == __file__
    agent.act(0)  # warnings are errors in tests: it is not told of again
    for chosen in (uamcts.Agent(Slow(), iterations=5), uamcts.Agent(Slow(), budget_seconds=0.01)):
        for _ in range(3):
            chosen.act(0)


def test_a_single_slow_move_is_not_told_of(monkeypatch):
    monkeypatch.setattr("uamcts.agent.alarm.SLOW_MOVE", 2.0)
    moves = SlowMoves(usual=True)
    for seconds in (9.0, 0.1, 9.0, 0.1, 1.9, 9.0):
        moves.add(seconds, "Slow", 100)
    with pytest.warns(uamcts.errors.SlowSimulator, match="a move took 3.0 s"):
        moves.add(3.0, "Slow", 100)


@pytest.mark.parametrize("program", ["import uamcts.gym", "uamcts.gym.Simulator"])
def test_without_gymnasium_the_extra_is_named(program):
    found = run("import sys, uamcts; sys.modules['gymnasium'] = None; " + program)
    assert "uamcts.gym needs Gymnasium: pip install 'gymnasium>=1.3'" in found.stderr


def test_without_scikit_learn_an_agent_with_trees_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="`trees` needs scikit-learn: pip install scikit-learn"):
        uamcts.Agent(Line(), "trees")
