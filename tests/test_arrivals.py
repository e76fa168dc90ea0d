"""What is wrong about a state is expected from all sides; and of equal ways, a known one is taken."""

import itertools

import pytest

import uamcts
from uamcts.agent.way_out import be_cautious
from uamcts.corrections.arrivals import Arrivals
from uamcts.corrections.journal import Journal
from uamcts.corrections.patched_model import PatchedModel


class Square:
    """Five by five cells; the goal in the corner pays 5. `holes` end the episode, `walls` cannot be entered."""

    num_actions, action_names = 4, ("up", "right", "down", "left")

    def __init__(self, holes=(), walls=(), tolls=()):
        self.holes, self.walls, self.tolls = frozenset(holes), frozenset(walls), frozenset(tolls)

    def step(self, state, action):
        row, column = state[0] + (-1, 0, 1, 0)[action], state[1] + (0, 1, 0, -1)[action]
        after = (row, column) if 0 <= row < 5 and 0 <= column < 5 and (row, column) not in self.walls else state
        if after == (4, 4):
            return after, 5.0, True
        return after, -0.1 - 2.0 * (after in self.tolls), after in self.holes


class Slippery(Square):
    """A tenth of all steps stays where it is."""

    def outcomes(self, state, action):
        return [(0.9, self.step(state, action)), (0.1, (state, -0.1, False))]


def seen(world, *steps):
    """Facts about a square, with the real outcomes of some steps."""
    model = PatchedModel(Square(), prior_weight=None)
    model.learn_arrivals()
    for state, action in steps:
        model.remember(state, action, *world.step(state, action))
    return model


ABOVE, LEFT, BELOW, RIGHT = ((1, 2), 2), ((2, 1), 1), ((3, 2), 0), ((2, 3), 3)
"""The four ways into (2, 2)."""


def chances(model, place):
    return {outcome: pytest.approx(chance) for chance, outcome in model.planned_model().outcomes(*place)}


@pytest.mark.parametrize(
    ("world", "instead"),
    [
        (Square(holes={(2, 2)}), ((2, 2), -0.1, True)),
        (Square(walls={(2, 2)}), ((2, 1), -0.1, False)),
    ],
)
def test_what_is_wrong_about_a_state_is_expected_from_other_sides_with_a_chance_that_is_learned(world, instead):
    believed = ((2, 2), -0.1, False)
    once = seen(world, ABOVE, ABOVE)  # seen twice: facts are worth looking up
    assert chances(once, LEFT) == {believed: 1 / 2, instead: 1 / 2}
    # it came true from below: a rate of 2 / 3 for the world, worth two cases, beside one more case here
    twice = seen(world, ABOVE, ABOVE, BELOW)
    assert chances(twice, LEFT) == {believed: 2 / 9, instead: (2 * 2 / 3 + 1) / 3}
    assert "(true in 1 of 1 cases so far)" in twice.arrivals.describe()[0]
    assert chances(twice, ((4, 3), 3)) == {((4, 2), -0.1, False): 1.0}  # other states are as believed


def test_a_toll_is_expected_as_its_mean():
    found = seen(Square(tolls={(2, 2)}), ABOVE, ABOVE).planned_model().outcomes(*LEFT)
    assert found == [(1.0, ((2, 2), pytest.approx(-0.1 - 2.0 / 2), False))]


def test_an_expectation_that_does_not_come_true_is_given_up():
    model = seen(Square(holes={(2, 2)}), ABOVE, ABOVE)
    model.remember(*BELOW, *Square().step(*BELOW))  # no hole from this side
    assert chances(model, LEFT) == {((2, 2), -0.1, False): 1.0}


def test_what_is_seen_again_as_before_changes_no_expectation():
    model = seen(Square(tolls={(2, 2)}), ABOVE, LEFT)
    renewals, tested = model.renewals, model.arrivals.tested
    for place in (ABOVE, LEFT, ABOVE):
        model.remember(*place, *Square(tolls={(2, 2)}).step(*place))
    assert (model.renewals, model.arrivals.tested) == (renewals, tested)
    model.remember(*LEFT, *Square().step(*LEFT))  # the toll was lifted on this side
    assert model.renewals > renewals


def test_a_change_back_is_noticed_and_other_models_are_compared_anew():
    model = seen(Square(holes={(2, 2)}), ABOVE, ABOVE)
    model.set_model(Square(holes={(2, 2)}))  # which knows of the hole
    assert not model.arrivals.different
    model.set_model(Square())
    assert model.arrivals.different == {(2, 2): 1}
    for _ in range(4):
        model.remember(*ABOVE, *Square().step(*ABOVE))
    assert not model.arrivals.different


def test_random_models_expect_it_of_the_outcome_that_leads_there():
    model = PatchedModel(Slippery(), prior_weight=None)
    model.learn_arrivals()
    model.remember((1, 2), 2, (2, 2), -0.1, True)
    found = {outcome: pytest.approx(chance) for chance, outcome in model.outcomes((2, 1), 1)}
    assert found == {((2, 2), -0.1, False): 0.45, ((2, 2), -0.1, True): 0.45, ((2, 1), -0.1, False): 0.1}


def test_errors_of_actions_from_one_place_are_not_those_of_the_state_they_lead_to():
    """Machines that pay otherwise than believed: what one of them pays says nothing about the next one."""
    arrivals = Arrivals(lambda state: state)
    arrivals.add((0, 0), [(1.0, (1, 2.0, False))], (1, 5.0, False), Journal(), True)
    assert arrivals.expected(1, 0) is None
    assert arrivals.correct(0, (1, 2.0, False)) is None
    arrivals.add((0, 1), [(1.0, (1, 2.0, False))], (1, 2.0, False), Journal(), True)
    assert sum(arrivals.tested) == 0  # nothing was expected, so nothing has come true or not
    expected, chance = arrivals.expected(1, 7)
    assert (expected.reward, chance) == (
        3.0,
        pytest.approx(1 / 3),
    )  # half as worth two transitions, and one that was right


def test_what_fails_half_way_is_undone():
    arrivals, journal = Arrivals(lambda state: state), Journal()
    arrivals.add(((1, 2), 2), [(1.0, ((2, 2), 0.0, False))], ((2, 2), 0.0, True), journal, True)
    assert arrivals.expected((2, 2), (2, 1)) is not None
    journal.undo()
    assert (arrivals.different, arrivals.by_state, arrivals.by_place) == ({}, {}, {})


def live(agent, world, episodes):
    """The cells of each episode."""
    paths = []
    for _ in range(episodes):
        state, over, path = (0, 0), False, [(0, 0)]
        while not over and len(path) < 30:
            action = agent.act(state)
            after, reward, over = world.step(state, action)
            agent.observe(state, action, after, reward=reward, terminal=over)
            state = after
            path.append(state)
        paths.append(path)
    return paths


def test_caution_is_small_and_for_states_that_recur():
    """Every step pays it: 60 steps of 1/20 of the spread of rewards would make an agent end its episodes early."""
    facts = PatchedModel(Square())
    for x in range(4):
        facts.remember((x, 0), 1, (x, 0), -3.0, False)  # all of these are wrong
    be_cautious(facts, 10.0, True)
    assert facts.caution == pytest.approx(0.05 * 0.2 * 10.0)
    be_cautious(facts, 10.0, False)
    assert facts.caution == 0.0
    for x in range(4):
        for y in range(1, 3):
            facts.remember((x, y), 2, *Square().step((x, y), 2))  # these are not
    be_cautious(facts, 10.0, True)
    assert facts.caution == pytest.approx(0.05 * 0.2 * 10.0)  # a third is still more than a fifth
    for x in range(4):
        for action in (0, 3):
            facts.remember((x, 2), action, *Square().step((x, 2), action))
            facts.remember((x, 3), action, *Square().step((x, 3), action))
    be_cautious(facts, 10.0, True)
    assert facts.caution == pytest.approx(0.05 * 4 / 28 * 10.0)


@pytest.mark.parametrize("seed", range(3))
def test_of_seventy_equal_ways_a_known_one_is_taken_once_the_simulator_was_wrong(seed, tmp_path):
    """Eight steps lead to the corner in 70 ways. Who takes another one every time meets every hole sooner or later."""
    holes = {(0, 3), (3, 0), (2, 2)}
    agent = uamcts.Agent(Square(), iterations=60, rollouts=1, depth=20, gamma=0.97, seed=seed)
    paths = live(agent, Square(holes=holes), 10)
    known = {step for path in paths[:-3] for step in itertools.pairwise(path)}
    for path in paths[-3:]:
        assert known.issuperset(itertools.pairwise(path))
        assert path[-1] == (4, 4)
    agent.save(tmp_path / "agent.uamcts")
    again = uamcts.Agent(Square(), iterations=60, rollouts=1, depth=20, gamma=0.97, seed=seed)
    again.load(tmp_path / "agent.uamcts")
    assert live(again, Square(holes=holes), 1) == live(agent, Square(holes=holes), 1)
