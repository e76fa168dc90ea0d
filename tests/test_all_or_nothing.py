"""What changes an agent is done as a whole or not at all: whatever fails, and at whichever step it fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.agent.fitted_uncertainty import FittedUncertainty

CONFIG = uamcts.SearchConfig(iterations=4, rollouts=1, depth=3, rules="released", gamma=1.0)


class Line:
    """Cells in a line; `broken` is what the next call of each kind raises."""

    num_actions = 2
    name = "line"

    def __init__(self):
        self.broken = {}

    def _may_fail(self, what):
        if self.broken.get(what, -1) == 0:
            raise self.broken["error"]
        if what in self.broken:
            self.broken[what] -= 1

    def step(self, state, action):
        self._may_fail("step")
        return (state[0] + (1 if action else -1),), 0.5, state[0] > 8

    def features(self, state):
        self._may_fail("features")
        return np.array(state, float)

    def inputs(self, state):
        self._may_fail("inputs")
        return np.array(state, float)

    def identity(self, state):
        self._may_fail("identity")
        return state


def jax_line():
    def step(state, action):
        return uamcts.Transition(state + jnp.where(action == 1, 1, -1), 0.5 * (state[0] < 9), state[0] > 8)

    return uamcts.JaxSimulator(step, 2, jnp.zeros(1, jnp.int32))


def agents():
    """One agent of every kind, with a function that makes states of numbers."""
    domain = uamcts.make("two_way")
    schedule = uamcts.Schedule(interval=3)
    return {
        "plain": (uamcts.Agent(Line(), config=CONFIG), lambda n: (n,)),
        "compiled": (uamcts.Agent(jax_line(), config=CONFIG), lambda n: jnp.array([n], jnp.int32)),
        "domain": (
            uamcts.Agent.paper(domain, "linear", CONFIG, schedule, minibatches=5, memory=True),
            lambda n: domain.from_features((n % 3, n % 7)),
        ),
    }


def content(agent, folder):
    """All that an agent knows, byte for byte."""
    agent.save(folder / "agent")
    return (folder / "agent").read_bytes()


@pytest.fixture(scope="module")
def known():
    found = agents()
    for agent, state in found.values():
        for number in (1, 2, 4):
            agent.observe(state(number), 1, state(number), reward=0.25, terminal=False)
    return found


WRONG = [
    {"terminal": "no"},
    {"terminal": 2},
    {"terminal": np.array([True])},
    {"reward": 1e308},
    {"reward": "much"},
    {"reward": float("nan")},
    {"reward": True},
    {"reward": [1.0]},
    {"action": 0.7},
    {"action": 1.7},
    {"action": True},
    {"action": "1"},
    {"action": float("nan")},
    {"action": np.array([1])},
    {"action": 1.0},
    {"action": 9},
    {"action": -1},
    {"action": None},
]


@pytest.mark.parametrize("kind", ["plain", "compiled", "domain"])
def test_a_refused_observation_leaves_no_trace_and_the_right_one_is_taken(known, kind, tmp_path):
    agent, state = known[kind]
    for wrong in WRONG:
        before = content(agent, tmp_path)
        given = {"action": 1, "reward": 0.25, "terminal": False, **wrong}
        name = next(iter(wrong))
        with pytest.raises(ValueError, match=f"{name} is ") as caught:
            agent.observe(state(5), given.pop("action"), state(5), **given)
        assert content(agent, tmp_path) == before, wrong
        assert len(str(caught.value)) < 250
    with pytest.raises(ValueError, match="action is"):
        agent.preload([(state(5), 1, state(5), 0.25, False), (state(4), 5, state(4))])
    assert content(agent, tmp_path) == before, "half of the samples stayed"
    steps = agent.steps
    agent.observe(state(5), np.int8(1), state(5), reward=np.float32(0.25), terminal=np.bool_(False))
    agent.observe(state(5), np.array(0), state(5), reward=1, terminal=jnp.bool_(False))
    assert agent.steps == steps + 2


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), KeyboardInterrupt()])
@pytest.mark.parametrize("what", ["step", "features", "inputs", "identity"])
def test_whichever_call_fails_nothing_has_changed(what, error, tmp_path):
    """Every call of the simulator during an observation fails in turn, until one observation gets through."""
    model = Line()
    agent = uamcts.Agent(model, config=CONFIG)
    agent.observe((1,), 1, (1,), reward=0.5, terminal=False)
    before = content(agent, tmp_path)
    for call in range(500):
        model.broken = {what: call, "error": error}
        try:
            agent.observe((2,), 1, (2,), reward=0.5, terminal=False)
        except (uamcts.SimulatorError, ValueError, KeyboardInterrupt):
            model.broken = {}
            assert content(agent, tmp_path) == before, f"call {call} of {what}"
        else:
            break
    assert 0 < call < 499
    model.broken = {}
    assert content(agent, tmp_path) != before
    assert agent.report().memory.facts == 2


@pytest.mark.parametrize("kind", ["plain", "compiled"])
@pytest.mark.parametrize("method", ["observe", "learn", "preload"])
def test_an_interrupted_lesson_leaves_the_agent_as_it_was(known, kind, method, monkeypatch, tmp_path):
    agent, state = known[kind]
    before, doubt = content(agent, tmp_path), agent.estimator

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(FittedUncertainty, "fit", interrupted)
    sample = (state(7), 1, state(7), 0.0, False)
    with pytest.raises(KeyboardInterrupt):
        {
            "observe": lambda: agent.observe(*sample[:3], reward=0.0, terminal=False),
            "learn": agent.learn,
            "preload": lambda: agent.preload([sample]),
        }[method]()
    assert content(agent, tmp_path) == before
    assert agent.estimator is doubt


def test_an_interrupted_lesson_of_a_domain_leaves_the_agent_as_it_was(monkeypatch, tmp_path):
    agent, state = agents()["domain"]
    agent.observe(state(1), 1, state(1))
    agent.observe(state(2), 1, state(2))
    before = content(agent, tmp_path)
    monkeypatch.setattr(agent.backend._programs, "train", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        agent.observe(state(3), 1, state(3))  # the third: it is time to learn
    with pytest.raises(KeyboardInterrupt):
        agent.preload([(state(number), 1, state(number)) for number in range(5)])
    assert content(agent, tmp_path) == before


def test_a_discrepancy_that_fails_leaves_no_trace(tmp_path):
    answers = [0.5, "a lot", -1.0, float("inf"), ValueError("oh"), 0.5]

    def discrepancy(real, believed):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    agent = uamcts.Agent(Line(), config=CONFIG, discrepancy=discrepancy)
    agent.observe((1,), 1, (1,), reward=0.5, terminal=False)
    before = content(agent, tmp_path)
    while len(answers) > 1:
        with pytest.raises(ValueError, match=r"discrepancy returned|oh"):
            agent.observe((2,), 1, (2,), reward=0.5, terminal=False)
        assert content(agent, tmp_path) == before
    assert agent.observe((2,), 1, (2,), reward=0.5, terminal=False)


@pytest.mark.parametrize("kind", ["plain", "compiled", "domain"])
def test_a_failed_move_does_not_count(known, kind, monkeypatch, tmp_path):
    """An interrupted search: the next one is what it would have been, and the agent can still act."""
    agent, state = known[kind]
    before = content(agent, tmp_path)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if kind == "plain":
            patch.setattr(uamcts.reference, "search", interrupted)
        elif kind == "compiled":
            patch.setattr(agent.backend.planner._compiled, "search", interrupted)
        else:
            patch.setattr(agent.backend._programs, "plan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.act(state(1))
    assert content(agent, tmp_path) == before
    assert agent.act(state(1)) in range(4)


def test_seeding_takes_nothing_from_a_source_that_fails(known, tmp_path):
    agent, state = known["plain"]
    before = content(agent, tmp_path)

    def samples():
        yield state(6), 0, state(6), 0.0, False
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        agent.preload(samples())
    for wrong in (5, "abc", {"state": 1}):
        with pytest.raises(TypeError, match="sample 0 is"):
            agent.preload([wrong])
    assert content(agent, tmp_path) == before
    assert jax.tree.leaves(agent.preload([])) == [0]
