"""States are told apart by all that is in them; simulators with chance are found out; contradictions are counted."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.agent.domain_transitions import infer_terminal
from uamcts.agent.identity import Identity
from uamcts.corrections.facts import Outcomes, Recurrence
from uamcts.corrections.patched_model import PatchedModel
from uamcts.types import Transition

put = jax.jit(Outcomes.put)
CONFIG = uamcts.SearchConfig(iterations=30, rollouts=2, depth=5, rules="trust")


class Doors:
    """(place, key): a door at place 3 opens with the key alone. Features that leave the key out see one state."""

    num_actions = 2

    def step(self, state, action):
        place, key = state
        after = min(place + 1, 4) if action and (place != 3 or key) else place
        return (after, key), float(after == 4), after == 4


@pytest.mark.parametrize("wrap", [tuple, list, np.array])
def test_features_do_not_say_which_state_it_is(wrap):
    """Place 3 with and without the key: one vector of features, two facts, and nothing random about it."""

    class Wrapped(Doors):
        def step(self, state, action):
            after, reward, over = super().step(tuple(int(part) for part in state), action)
            return wrap(after), reward, over

    agent = uamcts.Agent(Wrapped(), config=CONFIG, features=lambda state: [state[0]])
    agent.observe(wrap((3, 1)), 1, wrap((4, 1)), reward=1.0, terminal=True)
    agent.observe(wrap((3, 0)), 1, wrap((3, 0)), reward=-2.0, terminal=False)
    agent.observe(wrap((3, 1)), 0, wrap((3, 1)), reward=0.0, terminal=False)
    step = agent.backend.planner.patched.step
    assert step(wrap((3, 1)), 1)[1:] == (1.0, True)
    assert step(wrap((3, 0)), 1)[1:] == (-2.0, False)
    assert agent.report().memory == Recurrence(3, 3, 0)


def test_features_do_not_say_which_state_it_is_in_jax():
    def step(state, action):
        after = jnp.where((action == 1) & ((state[0] != 3) | (state[1] == 1)), jnp.minimum(state[0] + 1, 4), state[0])
        return Transition(state.at[0].set(after), jnp.float32(after == 4), after == 4)

    model = uamcts.JaxSimulator(step, 2, jnp.zeros(2, jnp.int32), features=lambda state: state[:1])
    agent = uamcts.Agent(model, config=CONFIG)
    agent.observe(jnp.array([3, 1]), 1, jnp.array([4, 1]), reward=1.0, terminal=True)
    agent.observe(jnp.array([3, 0]), 1, jnp.array([3, 0]), reward=-2.0, terminal=False)
    assert agent.report().memory == Recurrence(2, 2, 0)


# Chance


class Slippery:
    """A walk on a line that slips with a probability of a tenth."""

    num_actions = 2
    name = "slippery"

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def step(self, state, action):
        forward = bool(action) != (self.rng.random() < 0.1)
        return state + (1 if forward else -1), 0.0, False


@pytest.mark.parametrize("method", ["act", "observe", "preload"])
def test_chance_is_found_before_the_first_move(method):
    """102 pairs of steps: one of 40 such simulators passes with a probability of 40 * 0.82^102, less than 1e-7."""
    for seed in range(40):
        agent = uamcts.Agent(Slippery(seed), config=CONFIG)
        with pytest.raises(uamcts.SimulatorError, match=r"slippery: the simulator is random: .* two results .* and "):
            {
                "act": lambda agent=agent: agent.act(0),
                "observe": lambda agent=agent: agent.observe(0, 1, 1, reward=0.0, terminal=False),
                "preload": lambda agent=agent: agent.preload([(0, 1, 1, 0.0, False)]),
            }[method]()
        assert agent.steps == 0


def test_chance_that_shows_later_is_called_chance_and_leaves_no_trace(tmp_path):
    """Far from where it was tried the simulator rolls dice."""

    class Later:
        num_actions = 2
        dice = iter(range(10**6))

        def step(self, state, action):
            return state + 1 + (next(self.dice) % 2 if state >= 1000 else 0), 0.0, False

    agent = uamcts.Agent(Later(), config=CONFIG)
    agent.observe(0, 1, 1, reward=0.0, terminal=False)
    agent.observe(1000, 1, 1001, reward=0.0, terminal=False)
    agent.save(tmp_path / "before")
    with pytest.raises(
        uamcts.SimulatorError, match=r"the simulator is random: .*state 1000, action 1: \(1001, 0.0, Fal"
    ):
        agent.observe(1000, 1, 1001, reward=0.0, terminal=False)
    agent.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_a_simulator_that_keeps_its_dice_in_the_state_is_deterministic():
    def step(state, action):
        place, dice = state
        rng = random.Random()
        rng.setstate(dice.getstate())
        return (place + (1 if rng.random() < 0.9 else -1), rng), 0.0, False

    agent = uamcts.Agent(step, num_actions=2, config=CONFIG, features=lambda state: [state[0]])
    assert agent.act((0, random.Random(1))) in (0, 1)


# Several outcomes


def test_the_most_frequent_outcome_is_planned_with():
    """99 times -1 and to 0, once +10 and to 1: planned as -1, in Python and in JAX; and the report says so."""
    model = PatchedModel(Doors())
    table = Outcomes.empty(jnp.int32(0), 8)
    for number in range(100):
        lucky = number == 57
        model.remember((2, 0), 1, (int(lucky), 0), 10.0 if lucky else -1.0, False)
        real = Transition(jnp.int32(lucky), jnp.float32(10.0 if lucky else -1.0), jnp.bool_(False))
        table = put(table, jnp.int32(5), jnp.int32(1), real)
    assert model.step((2, 0), 1) == ((0, 0), -1.0, False)
    found, known = table.find(jnp.int32(5), jnp.int32(1))
    assert bool(known)
    assert (int(found.state), float(found.reward)) == (0, -1.0)
    assert model.recurrence() == table.recurrence() == Recurrence(1, 100, 1)


def test_outcomes_against_a_count_by_hand():
    """Random sequences: the most frequent pair of next state and end, the latest of equals, with its mean reward."""
    rng = random.Random(0)
    for _ in range(10):
        model, table, seen = PatchedModel(Doors()), Outcomes.empty(jnp.int32(0), 8), {}
        for number in range(rng.randrange(1, 12)):
            place, over, reward = rng.randrange(2), rng.random() < 0.3, rng.choice([0.0, 1.0, 4.0])
            model.remember((2, 0), 1, (place, 0), reward, over)
            real = Transition(jnp.int32(place), jnp.float32(reward), jnp.bool_(over))
            table = put(table, jnp.int32(5), jnp.int32(1), real)
            seen.setdefault((place, over), []).append((number, reward))
        (place, over), rewards = max(seen.items(), key=lambda item: (len(item[1]), item[1][-1][0]))
        mean = sum(reward for _, reward in rewards) / len(rewards)
        after, reward, terminal = model.step((2, 0), 1)
        assert (after[0], terminal) == (place, over)
        assert reward == pytest.approx(mean)
        found, _ = table.find(jnp.int32(5), jnp.int32(1))
        assert (int(found.state), bool(found.terminal)) == (place, over)
        assert float(found.reward) == pytest.approx(mean, rel=1e-5)
        different = {(key, reward) for key, kept in seen.items() for _, reward in kept}
        assert model.recurrence().varied == table.recurrence().varied == int(len(different) > 1)


@pytest.mark.parametrize("kind", ["plain", "compiled", "domain"])
def test_a_report_tells_of_contradictions(kind):
    if kind == "domain":
        domain = uamcts.make("two_way")
        agent = uamcts.Agent.paper(domain, "none", memory=True, iterations=3)
        states = [domain.from_features((0, column)) for column in (1, 2)]
    elif kind == "plain":
        agent, states = uamcts.Agent(Doors(), config=CONFIG), [(1, 0), (2, 0)]
    else:
        model = uamcts.JaxSimulator(lambda s, a: Transition(s + a, jnp.float32(0), s > 8), 2, jnp.int32(0))
        agent, states = uamcts.Agent(model, config=CONFIG), [jnp.int32(1), jnp.int32(2)]
    for after in (states[0], states[0], states[1]):
        agent.observe(states[0], 1, after, reward=0.0, terminal=False)
    agent.observe(states[1], 1, states[1], reward=0.0, terminal=False)
    assert agent.report().memory == Recurrence(2, 4, 1)
    assert "1 of 2 remembered transitions had several outcomes" in str(agent.report())


def test_what_was_not_told_is_no_fact():
    """A wall where the model sees the goal. Its reward was not told: it is doubted, and not taken for the goal's."""
    agent = uamcts.Agent(Doors(), config=CONFIG)
    agent.observe((3, 1), 1, (3, 1))
    assert agent.report().memory.facts == 0
    assert agent.report()[0].learned > 0
    agent.observe((0, 0), 1, (1, 0))  # as the model says, so reward and end are the model's
    assert agent.report().memory.facts == 1
    agent.observe((3, 1), 1, (3, 1), reward=0.0, terminal=False)
    assert agent.backend.planner.patched.step((3, 1), 1) == ((3, 1), 0.0, False)


# Ends of episodes that nobody told


@pytest.mark.parametrize("name", ["two_way", "breakout", "freeway", "space_invaders"])
def test_a_domain_is_asked_whether_an_episode_has_ended(name):
    """Random play in the real world, observed without `terminal`: every end is remembered as one, and nothing else."""
    domain = uamcts.make(name)
    agent = uamcts.Agent.paper(domain, "none", memory=True, iterations=3, schedule=uamcts.Schedule(interval=500))
    world, rng = jax.jit(domain.world), np.random.default_rng(1)
    ended = jax.jit(functools.partial(infer_terminal, domain))
    state, ends = domain.reset(jax.random.key(0)), 0
    for number in range(300):
        action = int(rng.integers(domain.num_actions))
        after = world(state, action)
        assert bool(ended(state, jnp.int32(action), after.state)) == bool(after.terminal)
        ends += bool(after.terminal)
        state = domain.reset(jax.random.key(number)) if after.terminal else after.state
    if name == "two_way":
        goal = domain.from_features((0, 6))
        after = domain.world(goal, 1)
        assert bool(after.terminal)
        agent.observe(goal, 1, after.state)
        remembered, known = agent.backend.knowledge.learner.facts.find(goal, jnp.int32(1))
        assert bool(known)
        assert bool(remembered.terminal)
    else:
        assert ends or name == "freeway"


# A clock in the state


def clocked(identity=None):
    """A line with a step counter beside the place."""

    def step(state, action):
        return Transition(
            {"place": state["place"] + action, "time": state["time"] + 1}, jnp.float32(0), jnp.bool_(False)
        )

    example = {"place": jnp.int32(0), "time": jnp.int32(0)}
    return uamcts.JaxSimulator(step, 2, example, features=lambda state: jnp.stack([state["place"]]), identity=identity)


def test_a_clock_is_left_out_of_what_tells_states_apart():
    def at(place, time):
        return {"place": jnp.int32(place), "time": jnp.int32(time)}

    blind = uamcts.Agent(clocked(), config=CONFIG)
    for time in range(25):
        blind.observe(at(3, time), 1, at(3, time + 1), reward=-5.0, terminal=False)
    assert blind.report().memory == Recurrence(25, 25, 0)
    assert "none of the 25 remembered transitions was ever met again" in str(blind.report())
    agent = uamcts.Agent(clocked(lambda state: state["place"]), config=CONFIG)
    for time in range(25):
        agent.observe(at(3, time), 1, at(3, time + 1), reward=-5.0, terminal=False)
    assert agent.report().memory == Recurrence(1, 25, 0)
    assert "met again" not in str(agent.report())
    agent.act(at(3, 99))
    assert float(agent.last_plan.uncertainty[1]) == 0.0
    assert agent.act(at(3, 99)) == 0


def test_a_clock_in_a_python_state():
    def step(state, action):
        return (state[0] + action, state[1] + 1), 0.0, False

    agent = uamcts.Agent(step, num_actions=2, config=CONFIG, features=lambda s: [s[0]], identity=lambda s: s[0])
    agent.observe((3, 0), 1, (3, 1), reward=-5.0, terminal=False)
    agent.act((3, 99))
    assert agent.last_plan.uncertainty[1] == 0.0
    assert agent.last_plan.action == 0


# What tells states apart


def test_keys_are_equal_where_states_are():
    key = Identity()
    assert key(np.array([1, 2])) == key(np.array([1, 2], np.int8)) == key(jnp.array([1, 2]))
    assert key(np.array([0.0])) == key(np.array([-0.0]))
    assert key({"a": [1], "b": {2}}) == key({"b": {2}, "a": [1]})
    assert key(float("nan")) == key(float("nan"))
    assert key(random.Random(1)) == key(random.Random(1)) != key(random.Random(2))
    assert key(np.random.default_rng(1)) == key(np.random.default_rng(1)) != key(np.random.default_rng(2))


def test_keys_differ_where_states_do():
    key = Identity()
    states = [
        0, "0", b"0", None, (0,), (0, 0), ((0,), 0), np.zeros(2), np.zeros((2, 1)), np.array([1, 0]), {"a": 0},
        {"b": 0}, {"a": 1}, {0}, set(), (np.zeros(1), 1), (np.zeros(1), 2), np.array(["a"]),
        np.array([2**63], np.uint64), np.array([-(2**63)]),
    ]  # fmt: skip
    assert len({key(state) for state in states}) == len(states)


def test_what_holds_itself_has_no_key():
    ring = []
    ring.append(ring)
    with pytest.raises(TypeError, match="holds itself"):
        Identity()(ring)
