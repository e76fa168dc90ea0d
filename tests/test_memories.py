"""What steps of a simulator remember does not reach copies with other values, nor theirs the simulator."""

import functools

import numpy as np
import pytest

import uamcts


class Remembers:
    """A walk, of which every answer is looked up if it was given before."""

    num_actions = 5

    def __init__(self, scale=1.0):
        self.scale, self.answers = scale, {}

    def step(self, state, action):
        if (state, action) not in self.answers:
            self.answers[state, action] = self.answer(state, action)
        return self.answers[state, action]

    def answer(self, state, action):
        place, time = state
        return (place + action - 2, time + 1), self.scale * (3 * action % 7) - 0.4 * abs(place), False


class Computes(Remembers):
    """It computes a table when it is first read."""

    def step(self, state, action):
        place, time = state
        return (place + action - 2, time + 1), self.table[action] - 0.4 * abs(place), False

    @functools.cached_property
    def table(self):
        return [self.scale * (3 * action % 7) for action in range(5)]


class Numbers:
    """States are numbers under which it has filed places: a copy that has lost them cannot step."""

    num_actions = 5

    def __init__(self, scale=1.0):
        self.scale, self.places, self.numbers = scale, {0: 0}, {0: 0}

    def step(self, state, action):
        place = (self.places[state] + action - 2) % 12
        number = self.numbers.setdefault(place, len(self.numbers))
        self.places[number] = place
        return number, self.scale * (3 * action % 7), False


def walked(kind, start, steps=25):
    """An agent of a simulator that is wrong about the scale, and the simulator."""
    world = Remembers(-0.5) if kind in KEPT else kind(-0.5)
    simulator, rng = kind(), np.random.default_rng(0)
    agent, state = uamcts.Agent(simulator, iterations=5, rollouts=1, depth=3), start
    for _ in range(steps):
        action = int(rng.integers(5))
        agent.act(state)
        after, reward, over = world.step(state, action)
        if kind is Numbers:  # as it numbers places itself
            after = simulator.step(state, action)[0]
            world.places, world.numbers = dict(simulator.places), dict(simulator.numbers)
        agent.observe(state, action, after, reward, over)
        state = after
    return agent, simulator


@pytest.mark.parametrize(("kind", "start"), [(Remembers, (0, 0)), (Computes, (0, 0)), (Numbers, 0)])
def test_a_number_is_fitted_whatever_steps_remember(kind, start):
    agent, _ = walked(kind, start)
    assert agent.backend.corrector.fit.values == {"scale": pytest.approx(-0.5)}
    assert agent.backend.corrector.in_use == "parameters"


def test_the_simulator_remembers_no_answers_of_other_values(tmp_path):
    agent, simulator = walked(Remembers, (0, 0))
    agent.save(tmp_path / "agent")
    loaded = Remembers()
    other = uamcts.Agent(loaded, iterations=5, rollouts=1, depth=3)
    other.load(tmp_path / "agent")
    assert other.backend.planner.foresee((3, 70), 2) == (pytest.approx(-0.5 * 6 - 1.2), False)
    agent.act((4, 80))
    other.act((4, 80))
    for one in (simulator, loaded):
        assert one.answers
        assert all(answer == Remembers().answer(*asked) for asked, answer in one.answers.items())


class Engine:
    """A part that remembers what the simulator answers."""

    def __init__(self):
        self.answers = {}

    def run(self, simulator, state, action):
        if (state, action) not in self.answers:
            self.answers[state, action] = simulator.answer(state, action)
        return self.answers[state, action]


class HasEngine(Remembers):
    def __init__(self, scale=1.0):
        self.scale, self.engine = scale, Engine()

    def step(self, state, action):
        return self.engine.run(self, state, action)


class Dispatches(Remembers):
    """It keeps its methods in a table, and one of them under another name."""

    def __init__(self, scale=1.0):
        self.scale, self.go = scale, self.look_up
        self.moves = {action: functools.partial(self.answer, action=action) for action in range(5)}

    def look_up(self, state, action):
        return self.moves[action](state)

    def step(self, state, action):
        return self.go(state, action)


class HasRooms(Remembers):
    """Its parts know what they are parts of."""

    class Room:
        def __init__(self, world, action):
            self.world, self.action = world, action

    def __init__(self, scale=1.0):
        self.scale, self.rooms = scale, [HasRooms.Room(self, action) for action in range(5)]

    def step(self, state, action):
        room = self.rooms[action]
        return room.world.answer(state, room.action)


class Caches(Remembers):
    """All of its objects are equal, and share a cache."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return 7

    @functools.cache  # noqa: B019
    def step(self, state, action):
        return self.answer(state, action)


class CachesItself(Remembers):
    def __init__(self, scale=1.0):
        self.scale, self.quick = scale, functools.lru_cache(None)(self.answer)

    def step(self, state, action):
        return self.quick(state, action)


class Closes(Remembers):
    """Its step is made of a function that was written when it was made."""

    def __init__(self, scale=1.0):
        def go(state, action):
            return self.answer(state, action)

        self.scale, self.go = scale, go

    def step(self, state, action):
        return self.go(state, action)


class RemembersTheLast(Remembers):
    def __init__(self, scale=1.0):
        self.scale, self.asked, self.said = scale, None, None

    def step(self, state, action):
        if self.asked != (state, action):
            self.asked, self.said = (state, action), self.answer(state, action)
        return self.said


class FillsTables(Remembers):
    """It fills a list and an array as it goes along."""

    def __init__(self, scale=1.0):
        self.scale, self.paid, self.extra = scale, [None] * 5, np.full(5, np.nan)

    def step(self, state, action):
        place, time = state
        if self.paid[action] is None:
            self.paid[action], self.extra[action] = self.scale * (3 * action % 7), 0.0
        return (place + action - 2, time + 1), self.paid[action] + float(self.extra[action]) - 0.4 * abs(place), False


KEPT = [HasEngine, Dispatches, HasRooms, Caches, CachesItself, Closes, RemembersTheLast, FillsTables]


@pytest.mark.parametrize("kind", KEPT)
def test_a_number_is_fitted_whatever_parts_remember_or_refer_back(kind):
    agent, simulator = walked(kind, (0, 0))
    assert agent.backend.corrector.fit.values == {"scale": pytest.approx(-0.5)}
    assert agent.backend.corrector.in_use == "parameters"
    fresh = Remembers()
    asked = [((place, time), action) for place in range(-3, 4) for time in (3, 24, 60) for action in range(5)]
    assert all(simulator.step(*one) == fresh.step(*one) for one in asked)


class Shares(Remembers):
    """All objects of the class look up answers in one dictionary; other simulators are other classes."""

    answers = {}

    def __init__(self, scale=1.0):
        self.scale = scale


def test_answers_that_a_class_remembers():
    rng, simulator, state = np.random.default_rng(0), Shares(), (0, 0)
    agent, real = uamcts.Agent(simulator, iterations=5, rollouts=1, depth=3), Remembers(-0.5)
    for _ in range(25):
        action = int(rng.integers(5))
        after, reward, over = real.step(state, action)
        agent.observe(state, action, after, reward=reward, terminal=over)
        agent.act(after)
        state = after
    assert agent.backend.corrector.fit.values == {"scale": -0.5}
    assert len(Shares.answers) >= 25
    assert all(answer == Remembers().step(*asked) for asked, answer in Shares.answers.items())
    assert "answers" not in vars(simulator)
