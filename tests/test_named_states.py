"""States that are not equally many numbers: strings, sets, None, and tuples of any length."""

import dataclasses

import pytest

import uamcts
from uamcts.agent.state_vectors import canonical, flatten, marks

HALL = [31320, 29394, 55641, 44173]
"""What Python's `hashlib` gives for this word."""
ROOMS = ("hall", "kitchen", "pantry", "garden")


@dataclasses.dataclass(frozen=True)
class Visit:
    room: str
    guest: str | None = None


def text(room):
    return room


def in_tuple(room):
    return (3, room)


def as_visit(room):
    return Visit(room)


def as_dictionary(room):
    return {"room": room, "lights": 1}


def as_set(room):
    return frozenset(ROOMS[: ROOMS.index(room) + 1])


def as_path(room):
    return tuple(range(ROOMS.index(room)))


STATES = (text, in_tuple, as_visit, as_dictionary, as_set, as_path)


class House:
    """Four rooms in a row; the last one pays. `shut`: a room that cannot be entered."""

    num_actions, action_names = 2, ("back", "on")

    def __init__(self, make, shut=None):
        self.make, self.rooms, self.shut = make, {repr(make(room)): room for room in ROOMS}, shut

    def step(self, state, action):
        here = ROOMS.index(self.rooms[repr(state)])
        after = ROOMS[min(max(here + (1 if action else -1), 0), 3)]
        after = ROOMS[here] if after == self.shut else after
        return self.make(after), 1.0 if after == "garden" else -0.1, after == "garden"


@pytest.mark.parametrize("make", STATES)
def test_an_agent_plans_with_states_that_are_not_equally_many_numbers_and_remembers_them(make, tmp_path):
    agent, world, state = uamcts.Agent(House(make), iterations=30, depth=10), House(make, "kitchen"), make("hall")
    assert agent.act(state) == 1
    for _ in range(2):
        after, reward, over = world.step(state, 1)
        agent.observe(state, 1, after, reward=reward, terminal=over)
    assert after == state
    report = str(agent.report())
    assert "wrong in 1 of 1 different transitions (2 real steps)" in report
    assert repr(make("kitchen"))[:60] in report  # what the simulator says, in the user's words
    agent.save(tmp_path / "agent.uamcts")
    again = uamcts.Agent(House(make), iterations=30, depth=10)
    again.act(state)  # classes in files are those that were met
    again.load(tmp_path / "agent.uamcts")
    assert again.act(state) == agent.act(state)


def test_marks_are_the_same_for_equal_parts_and_exact_in_single_precision():
    assert canonical(frozenset({"b", "a", 1})) == canonical(frozenset({1, "a", "b"}))
    assert canonical({"x": 1, "y": None}) == canonical({"y": None, "x": 1})
    # blake2b of "'hall'", two bytes a number
    assert [round(65536 * mark) for mark in marks(repr("hall"))] == HALL
    assert flatten((1, "hall")).tolist() == [1.0, *(number / 65536 for number in HALL)]
    assert flatten("kitchen").tolist() != flatten("hall").tolist()
