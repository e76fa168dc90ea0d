"""Tables of a simulator: single elements that are off are found by the steps that read them."""

import numpy as np
import pytest

import uamcts
from uamcts.corrections.elements import MOST_ELEMENTS, parse_element
from uamcts.corrections.parameters import find_elements, find_parameters, with_values


class Shop:
    """(place, what was taken): ten shelves in a row. What lies on a shelf pays once, and each place may cost."""

    num_actions = 10

    def __init__(self, values=(1.0,) * 10, toll=0.0):
        self.values, self.toll = list(values), toll * (values != (1.0,) * 10)

    def step(self, state, action):
        place, taken = state
        paid = 0.0 if action in taken else self.values[action]
        return (action, taken | {action}), paid - 0.1 * abs(action - place), False


REAL = (1.0, 0.25, 1.0, 1.0, 3.5, 1.0, 1.0, 1.0, 1.0, -2.0)


def walk(world, actions, state=(0, frozenset())):
    """The transitions of a walk."""
    seen = []
    for action in actions:
        after, reward, over = world.step(state, action)
        seen.append((state, action, after, reward, over))
        state = after
    return seen


def learned(simulator, seen, **settings):
    agent = uamcts.Agent(simulator, iterations=20, rollouts=1, depth=5, gamma=0.9, **settings)
    agent.preload(seen)
    return agent


class Tables:
    """All kinds of tables."""

    costs = {"mud": 3, "road": 1.5}

    def __init__(self):
        self.short, self.names = (1.0, 2.0), ["a", "b", "c", "d", "e", "f", "g"]
        self.grid, self.flags = np.arange(8.0).reshape(2, 4), [True] * 9
        self.streets = {("X", 0): ("Y", 2.5), ("Y", 1): ("X", 4)}
        self.huge = [0.0] * (MOST_ELEMENTS + 1)

    num_actions = 2


def test_elements_are_named_as_they_are_written():
    found = find_elements(Tables())
    expected = {"grid[0, 0]": 0.0, "grid[1, 3]": 7.0, "streets['X', 0][1]": 2.5, "costs['mud']": 3.0}
    assert expected.items() <= found.items()
    assert len(found) == 8 + 2 + 2 + 2, "what is too large is left alone"
    few = {"short[0]", "short[1]", "costs['mud']", "costs['road']", "streets['X', 0][1]", "streets['Y', 1][1]"}
    assert find_parameters(Tables()).keys() == few
    assert parse_element("streets['X', 0][1]") == ("streets", (("X", 0), 1))


def test_other_elements_leave_the_simulator_alone():
    tables = Tables()
    other = with_values(tables, {"grid[1, 3]": 9.5, "streets['X', 0][1]": 1.0, "costs['mud']": 4.0, "short[1]": 5.0})
    assert other.grid.tolist() == [[0, 1, 2, 3], [4, 5, 6, 9.5]]
    assert other.streets == {("X", 0): ("Y", 1.0), ("Y", 1): ("X", 4)}
    assert (other.costs, other.short) == ({"mud": 4, "road": 1.5}, (1.0, 5.0))
    assert type(other.costs["mud"]) is int, "a whole number stays one"
    assert (tables.grid[1, 3], tables.streets["X", 0][1], tables.costs["mud"]) == (7.0, 2.5, 3)


def test_an_element_is_known_wherever_it_is_read():
    seen = walk(Shop(REAL), (1, 4, 2, 9, 7))
    agent = learned(Shop(), [*seen, *walk(Shop(REAL), (9, 4, 1, 3))])
    assert agent.backend.corrector.elements == {"values[1]": 0.25, "values[4]": 3.5, "values[9]": -2.0}
    assert "values[4] is about 3.5, not 1: corrected" in str(agent.report())
    never = (6, frozenset({0, 5}))  # no fact is about that
    predicted = agent.backend.planner.foresee(never, 4)
    assert predicted == (pytest.approx(3.5 - 0.2), False)


def test_a_simulator_that_is_right_has_no_corrected_element():
    agent = learned(Shop(), walk(Shop(), (1, 4, 2, 9, 7)))
    assert not agent.backend.corrector.elements
    assert learned(Shop(), walk(Shop(REAL), (1, 4, 9)), parameters=()).backend.corrector.tables == {}


def test_elements_that_are_gone_are_left_out():
    tables = Tables()
    whole = Tables()
    whole.grid = np.arange(8).reshape(2, 4)
    assert with_values(whole, {"grid[0, 1]": 3.0}).grid.dtype == whole.grid.dtype, "places remain places"
    assert with_values(whole, {"grid[0, 1]": 2.5}).grid[0].tolist() == [0, 2.5, 2, 3]
    tables.grid, tables.streets = np.zeros((1, 4)), {("Y", 1): ("X", 4)}
    other = with_values(tables, {"grid[1, 3]": 9.5, "grid[0, 3]": 8.5, "streets['X', 0][1]": 1.0})
    assert other.grid.tolist() == [[0, 0, 0, 8.5]]
    assert other.streets == tables.streets


class Ground:
    """A step pays for the ground it leaves and for that it enters, both by one table."""

    num_actions = 8

    def __init__(self, **costs):
        self.costs = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0, "f": 1.0, "g": 1.0, "h": 1.0} | costs

    def step(self, state, action):
        after = "abcdefgh"[action]
        return after, -self.costs[state] - self.costs[after], False


def test_of_two_elements_that_explain_the_same_none_is_changed_until_one_explains_more():
    once = walk(Ground(b=3.0), (1,), "a")
    assert learned(Ground(), once).backend.corrector.elements == {}
    agent = learned(Ground(), [*once, *walk(Ground(b=3.0), (2,), "b")])
    assert agent.backend.corrector.variant("parameters").step("b", 3) == Ground(b=3.0).step("b", 3)
    assert agent.backend.corrector.variant("parameters").step("a", 3) == Ground().step("a", 3)


def test_what_no_element_explains_changes_none():
    """A toll in one state: the costs of the ground are right, as other steps say."""
    seen = walk(Ground(), (1, 2, 3, 4, 1, 3, 2), "a")
    seen += [("a", 3, "d", -7.0, False)]
    assert learned(Ground(), seen).backend.corrector.elements == {}


def test_an_element_that_turns_out_to_be_as_believed_is_dropped():
    agent = learned(Shop(), walk(Shop(REAL), (1, 4)))
    assert agent.backend.corrector.elements == {"values[1]": 0.25, "values[4]": 3.5}
    later = [walk(Shop(), (4,), (place, frozenset({place}))) for place in (5, 6)]  # somebody has changed it back
    for step, kept in zip(later, (True, False), strict=True):
        agent.preload(step)
        assert ("values[4]" in agent.backend.corrector.elements) is kept, "one transition against one says nothing"


def test_elements_are_saved(tmp_path):
    agent = learned(Shop(), [*walk(Shop(REAL), (1, 4, 2, 9, 7)), *walk(Shop(REAL), (9, 4, 1, 3))])
    agent.save(tmp_path / "agent")
    other = uamcts.Agent(Shop(), iterations=20, rollouts=1, depth=5, gamma=0.9)
    other.load(tmp_path / "agent")
    assert other.backend.corrector.elements == agent.backend.corrector.elements != {}
    assert str(other.report()) == str(agent.report())
    smaller = uamcts.Agent(Shop((1.0,) * 7), num_actions=10)
    with pytest.raises(ValueError, match="elements of tables that the simulator does not have"):
        smaller.load(tmp_path / "agent")


class Shelves(list):
    """A list that is not made of its parts alone."""

    def __init__(self, owner, values):
        super().__init__(values)
        self.owner = owner


class Pair(tuple):
    def __new__(cls, one, other):
        return super().__new__(cls, (one, other))


def test_tables_of_other_types_keep_them():
    shop = Shop()
    shop.values, shop.pairs = Shelves("me", [1.0] * 10), {"x": Pair(1, 2.0)}
    other = with_values(shop, {"values[3]": 4.0, "pairs['x'][1]": 5.0})
    assert (type(other.values), other.values.owner, other.values[3]) == (Shelves, "me", 4.0)
    assert (type(other.pairs["x"]), other.pairs["x"]) == (Pair, (1, 5.0))
    assert (shop.values[3], shop.pairs["x"][1]) == (1.0, 2.0)
    shop.pairs["x"], shop.values = None, 3
    assert with_values(shop, {"values[3]": 4.0, "pairs['x'][1]": 5.0}).pairs == {"x": None}, "they are gone"


def test_whole_numbers_that_do_not_fit_are_no_longer_bytes():
    tables = Tables()
    tables.grid = np.full((2, 4), 20, np.uint8)
    assert with_values(tables, {"grid[0, 1]": 200.0}).grid.dtype == np.uint8
    assert with_values(tables, {"grid[0, 1]": 300.0, "grid[0, 2]": -4.0}).grid[0].tolist() == [20, 300, -4, 20]


class Slots:
    __slots__ = ("cost",)
    costs, gravity = {"mud": 3, "road": 1.5}, 9.8

    def __init__(self):
        self.cost = 2.0


def test_what_only_a_class_can_hold_is_no_parameter():
    assert (find_parameters(Slots()), find_elements(Slots())) == ({"cost": 2.0}, {"cost": 2.0})


class Streets:
    """Where each street leads; a step looks the next place up."""

    num_actions = 2

    def __init__(self):
        self.ends = [[(place + 1) % 9, (place + 4) % 9] for place in range(9)]

    def step(self, state, action):
        following = self.ends[state][action]
        return following, float(following == 5), False


def test_a_place_in_a_table_stays_whole():
    world = Streets()
    world.ends[3][1], world.ends[4][0] = 0, 8
    agent = learned(Streets(), [(state, action, *world.step(state, action)) for state in range(9) for action in (0, 1)])
    assert agent.backend.corrector.elements == {"ends[3][1]": 0.0, "ends[4][0]": 8.0}


class Counting:
    """A step counts up to an element, and each count pays half as much as the one before."""

    num_actions = 8

    def __init__(self, asked):
        self.times, self.asked = dict.fromkeys(range(8), 3), asked

    def __deepcopy__(self, memo):  # notes what every copy is asked
        return type(self)(self.asked)

    def step(self, state, action):
        self.asked.add(self.times[action])
        return action, 2.0 - 0.5 ** (min(self.times[action], 1000) - 1), False


def test_no_element_is_set_so_high_that_a_step_does_not_end():
    asked = set()
    agent = learned(Counting(asked), [(0, action, action, 2.5 + 0.1**action, False) for action in range(8)])
    assert agent.backend.corrector.elements == {}, "no count pays that"
    assert 3 < max(asked) <= 3e5
