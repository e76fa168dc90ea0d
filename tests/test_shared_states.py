"""Worlds that change their states in place, files of objects, threads, and policies that fail."""

import dataclasses
import threading

import numpy as np
import pytest

import uamcts


class Line:
    """Nine places; the last one is the goal."""

    num_actions = 2

    def step(self, state, action):
        after = min(max(int(state[0]) + (-1, 1)[action], 0), 8)
        return np.array([after]), -1.0, after == 8


@dataclasses.dataclass(frozen=True)
class Place:
    x: int


class Objects:
    num_actions = 2

    def step(self, state, action):
        after = min(max(state.x + (-1, 1)[action], 0), 8)
        return Place(after), -1.0, after == 8


def test_a_world_may_change_its_states_in_place():
    agent, place = uamcts.Agent(Line(), iterations=20), np.array([0])
    for _ in range(5):
        before = place.copy()
        action = agent.act(before)
        place[0] += 2 if action else -2  # the real world takes double steps
        place[0] = np.clip(place[0], 0, 8)
        agent.observe(before, action, place, reward=-1.0, terminal=bool(place[0] == 8))
        before[0] = 99
    assert [(int(one.state[0]), int(one.next_state[0])) for one in agent.experience[:2]] == [(0, 2), (2, 4)]


def test_the_experience_of_a_file_is_there_once_its_classes_are(tmp_path):
    agent = uamcts.Agent(Objects(), iterations=10)
    agent.preload([(Place(x), 1, Place(x), -1.0, False) for x in range(4)])
    agent.save(tmp_path / "agent.uamcts")
    again = uamcts.Agent(Objects(), iterations=10)
    again.load(tmp_path / "agent.uamcts")
    with pytest.raises(ValueError, match=r"4 of 4 transitions could not be rebuilt.*call act"):
        again.replace(Objects())
    assert again.report(0).seen == 4  # nothing was lost
    again.act(Place(0))
    assert [one.state for one in again.experience] == [Place(x) for x in range(4)]
    again.replace(Objects())
    assert again.report(0).wrong == 4
    once_more = uamcts.Agent(Objects(), iterations=10)
    once_more.load(tmp_path / "agent.uamcts")
    once_more.replace(Objects(), keep=False)
    assert once_more.report(0).seen == 0


def test_threads_take_turns():
    agent, errors = uamcts.Agent(Line(), iterations=5), []

    def live(start):
        try:
            for number in range(10):
                state = np.array([(start + number) % 8])
                agent.act(state)
                agent.observe(state, 1, state, -1.0, False)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=live, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert agent.steps == 40
    assert all(int(one.next_state[0]) == int(one.state[0]) for one in agent.experience)


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        ({"policy": lambda state: 1}, r"policy\(state, rng\) raised TypeError.*for state"),
        ({"policy": lambda state, rng: "on"}, "policy gave 'on'; it must give an action"),
        ({"value": lambda state: 1 / 0}, r"value\(state\) raised ZeroDivisionError"),
        ({"prior": lambda state, action: 1}, r"prior\(state\) raised TypeError"),
    ],
)
def test_what_you_bring_is_named(brought, message):
    agent = uamcts.Agent(Line(), iterations=5, **brought)
    with pytest.raises(uamcts.SimulatorError, match=message):
        agent.act(np.array([0]))


def test_a_policy_that_fails_does_not_cost_corrections():
    fails = False

    def policy(state, rng):
        if fails:
            raise RuntimeError("out of order")
        return 1

    class Priced(Line):
        price = 1.0

        def step(self, state, action):
            after, _, over = super().step(state, action)
            return after, -self.price, over

    agent = uamcts.Agent(Priced(), iterations=5, policy=policy)
    agent.preload([(np.array([x]), 1, np.array([x + 1]), -3.0, x == 7) for x in range(8)])
    assert "price is about 3" in str(agent.report(0))
    fails = True
    with pytest.raises(uamcts.SimulatorError, match="out of order"):
        agent.act(np.array([0]))
    assert "price is about 3" in str(agent.report(0))


def test_actions_of_a_state_are_legal_actions():
    class Legal:
        def actions(self, state):
            return [0, 1]

        def step(self, state, action):
            return state, 0.0, False

    with pytest.raises(ValueError, match=r"num_actions is not given.*legal_actions"):
        uamcts.Agent(Legal())


def test_a_bad_sample_is_named():
    good = (np.array([0]), 1, np.array([1]), -1.0, False)
    with pytest.raises(ValueError, match="sample 1: reward is 'x'"):
        uamcts.Agent(Line()).preload([good, (np.array([0]), 1, np.array([1]), "x", False)])


def test_what_belongs_to_the_simulator_is_said():
    with pytest.raises(TypeError, match="make legal_actions an attribute or a method of the simulator"):
        uamcts.Agent(Line(), legal_actions=lambda state: [0])
