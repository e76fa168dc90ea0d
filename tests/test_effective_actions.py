"""Actions that do something else than a deterministic simulator believes."""

import json
import random

import gymnasium
import numpy as np
import pytest

import uamcts
import uamcts.gym
from uamcts.corrections.effective_actions import EffectiveActions
from uamcts.corrections.effective_model import EffectiveModel
from uamcts.corrections.mixture import predicted_outcomes
from uamcts.corrections.slippery_places import SlipperyPlaces, rescale

MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
SETTINGS = {"iterations": 10, "rollouts": 1, "depth": 4, "gamma": 0.9}


class Field:
    """A field of 5 x 5 cells; a state is (row, column). The corner opposite to the start is the goal."""

    num_actions, action_names = 4, ("left", "down", "right", "up")

    def __init__(self, closed=()):
        self.closed = frozenset(closed)

    def step(self, state, action):
        row, column = (min(max(a + b, 0), 4) for a, b in zip(state, MOVES[action], strict=True))
        place = state if (row, column) in self.closed else (row, column)
        return place, float(place == (4, 4)), place == (4, 4)


def live(world, steps, seed=0, agent=None):
    """An agent that has seen a random walk in a world: a function of state, action and a generator.

    `MOVES` are numbers in the code, which would explain a swapped pair as well.
    """
    agent, rng, state = agent or uamcts.Agent(Field(), parameters=(), **SETTINGS), np.random.default_rng(seed), (0, 0)
    for _ in range(steps):
        action = int(rng.integers(4))
        after, reward, over = world(state, action, rng)
        agent.preload([(state, action, after, reward, over)])
        state = (0, 0) if over else after
    return agent


def slip(state, action, rng):
    """Half of the steps go as intended, a quarter to either side."""
    return Field().step(state, (action + int(rng.choice((0, 1, 3), p=(0.5, 0.25, 0.25)))) % 4)


def test_probabilities_by_hand():
    nothing = EffectiveActions.for_actions(2)
    np.testing.assert_allclose(nothing.probabilities(), [[0.8, 0.2], [0.2, 0.8]])  # 2 and 0.5 transitions
    some = nothing._replace(counts=np.array([[6.0, 2.0], [0.0, 0.0]]))
    stays = (6 + 4 * 8 / 10.5) / 12  # all actions: 6 + 2 stay, 2 + 0.5 do not
    expected = [[(6 + 8 * stays) / 16, (2 + 8 * (1 - stays)) / 16], [1 - stays, stays]]
    np.testing.assert_allclose(some.probabilities(), expected)


def test_what_several_actions_explain_is_shared_between_them():
    found = EffectiveActions.for_actions(2).add(0, [0, 1], (0, 0))
    np.testing.assert_allclose(found.counts, [[0.8, 0.2], [0.0, 0.0]])
    assert (found.wrong, found.explained, found.unexplained) == (0, 0, 0)
    found = found.add(1, [], (0, 0))
    assert (found.wrong, found.explained, found.unexplained) == (1, 0, 1)


def test_outcomes_of_actions_that_act_as_others():
    planned = np.array([[0.5, 0.5, 0, 0], [0, 1, 0, 0], [0.25, 0, 0.5, 0.25], [0, 0, 0, 1]])
    model = EffectiveModel(Field(), planned, lambda state: state)
    assert model.outcomes((2, 2), 0) == [(0.5, ((2, 1), 0.0, False)), (0.5, ((3, 2), 0.0, False))]
    assert model.outcomes((0, 0), 2) == [(0.5, ((0, 1), 0.0, False)), (0.5, ((0, 0), 0.0, False))]  # two stay
    assert [model.outcome_at((2, 2), 2, place)[0] for place in (0.2, 0.6, 0.8)] == [(2, 3), (2, 1), (1, 2)]
    allowed = EffectiveModel(Field(), planned, lambda state: state, lambda state: (2, 3))
    assert [round(chance, 3) for chance, _ in allowed.outcomes((2, 2), 2)] == [0.667, 0.333]
    assert allowed.outcomes((2, 2), 0) == [(1.0, ((2, 1), 0.0, False))]  # none of its effects is legal


def test_slips_are_learned_and_hold_where_nothing_was_seen():
    agent = live(slip, 150)
    facts = agent.backend.planner.patched
    relative = np.mean([np.roll(row, -action) for action, row in enumerate(facts.effective.planned)], axis=0)
    assert np.abs(relative - [0.5, 0.25, 0.0, 0.25]).max() < 0.12  # three standard errors
    unseen = next((row, column) for row in range(4, -1, -1) for column in range(4)
                  if not any(((row, column), action) in facts.facts for action in range(4)))  # fmt: skip
    assert len(predicted_outcomes(facts.planned_model(), unseen, 2)) == 3
    assert "'right' acts" in str(agent.report())
    assert "the corrected model is right about all of them" in str(agent.report())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "closed", [(), [(0, 1), (2, 1)], [(0, 1), (1, 1), (2, 1), (3, 1)]], ids=["right", "two", "a long one"]
)
def test_walls_are_no_slips(closed, seed):
    real = Field(closed)
    agent = live(lambda state, action, rng: real.step(state, action), 200, seed)
    assert agent.backend.planner.patched.effective.planned is None


def test_a_swapped_pair_is_planned_with():
    swapped = (2, 1, 0, 3)
    agent = live(lambda state, action, rng: Field().step(state, swapped[action]), 60)
    planned = agent.backend.planner.patched.effective.planned
    assert np.argmax(planned, axis=1).tolist() == [2, 1, 0, 3]
    assert planned[0, 2] > 0.8


def test_a_world_that_stops_slipping_is_believed_again():
    rng, found = np.random.default_rng(0), EffectiveActions.for_actions(4)
    for step in range(2000):
        action, slips = step % 4, step < 100 and rng.random() < 0.5
        found = found.add(action, [(action + 1) % 4 if slips else action], (2, 1))
        assert (found.planned is not None) or step != 99
    assert found.planned is None


def test_saved_and_loaded(tmp_path):
    agent = live(slip, 60)
    agent.save(tmp_path / "agent")
    other = uamcts.Agent(Field(), **SETTINGS)
    other.load(tmp_path / "agent")
    ours, theirs = (one.backend.planner.patched for one in (agent, other))
    np.testing.assert_array_equal(ours.effective.planned, theirs.effective.planned)
    assert ours.believe((3, 3), 2) == theirs.believe((3, 3), 2)
    assert [agent.act((row, 1)) for row in range(3)] == [other.act((row, 1)) for row in range(3)]


@pytest.mark.parametrize("found", [None, [], [[[1.0]], *[0] * 5, None], [[[1, 2], [3, -1]], *[0] * 5, None]])
def test_another_table_is_refused(found):
    with pytest.raises(ValueError, match="effective actions"):
        EffectiveActions.from_json(found, 2)


def test_a_lake_that_is_believed_not_to_be_slippery():
    """The optimal policy of the slippery lake reaches the goal in .74 of the episodes; the simulator's in .01."""
    wrong = uamcts.gym.Simulator(gymnasium.make("FrozenLake-v1", is_slippery=False))
    real = gymnasium.make("FrozenLake-v1", is_slippery=True)
    agent, rewards = uamcts.Agent(wrong, seed=3, iterations=40, rollouts=1, depth=8), []
    for episode in range(24):
        real.reset(seed=700 + episode)
        over, total = False, 0.0
        while not over:
            state = wrong.read(real)
            action = agent.act(state)
            _, reward, terminated, truncated, _ = real.step(wrong.actions[action])
            agent.observe(state, action, wrong.read(real), reward=float(reward), terminal=terminated)
            over, total = terminated or truncated, total + float(reward)
        rewards.append(total)
    assert sum(rewards[-12:]) >= 4  # an optimal policy gets less once in 1,900 times; the wrong simulator gets 0 or 1


class Plane:
    """(row, column) on a plane without walls."""

    num_actions = 4

    def step(self, state, action):
        return (state[0] + (-1, 0, 1, 0)[action], state[1] + (0, 1, 0, -1)[action]), 0.0, False


def walk(agent, ice, seed, steps=400):
    """Real steps on the plane: half of those that begin on the ice slip to either side."""
    rng, state = random.Random(seed), (0, 0)
    for _ in range(steps):
        action = rng.randrange(4)
        effective = (action + rng.choice((-1, 1))) % 4 if ice(state) and rng.random() < 0.5 else action
        after = Plane().step(state, effective)[0]
        agent.observe(state, action, after, reward=0.0, terminal=False)
        state = after if max(map(abs, after)) <= 4 else (0, 0)


def test_slips_in_a_part_of_a_map_are_expected_there_alone():
    agent = uamcts.Agent(Plane(), iterations=10, rollouts=1, depth=5)
    agent.act((0, 0))
    walk(agent, lambda state: state[1] > 0, 1)
    facts = agent.backend.planner.patched
    assert facts.effective.places.used
    right = {state: facts.effects.outcomes(state, 0)[0] for state in ((0, 3), (0, -3), (20, 20))}
    assert all(chance[1][0] == Plane().step(state, 0)[0] for state, chance in right.items())
    assert right[0, 3][0] == pytest.approx(0.5, abs=0.15)
    assert right[0, -3][0] > 0.93
    everywhere = facts.effective.probabilities()[0, 0]
    assert right[20, 20][0] == pytest.approx(everywhere, abs=0.02)  # far from all that was seen
    assert "in some places more often than in others" in str(agent.report())


def test_slips_everywhere_do_not_depend_on_the_place():
    agent = uamcts.Agent(Plane(), iterations=10, rollouts=1, depth=5)
    agent.act((0, 0))
    walk(agent, lambda state: True, 2)
    assert not agent.backend.planner.patched.effective.places.used


@pytest.mark.parametrize(
    ("row", "odds", "expected"),
    [
        ([(0.8, 0), (0.2, 1)], 2.0, [(0.6, 0), (0.4, 1)]),
        ([(0.8, 0), (0.2, 1)], 0.0, [(1.0, 0), (0.0, 1)]),
        ([(0.5, 0), (0.5, 1)], 3.0, [(0.95, 1), (0.05, 0)]),
        ([(1.0, 1)], 3.0, [(1.0, 1)]),  # a swapped pair slips nowhere more than elsewhere
    ],
)
def test_rescale(row, odds, expected):
    found = rescale(row, 0, odds)
    assert [other for _, other in found] == [other for _, other in expected]
    assert [chance for chance, _ in found] == pytest.approx([chance for chance, _ in expected])


def test_slippery_places_are_saved():
    places = SlipperyPlaces().add(np.array([1.0, 2.0]), 1.0, 4.0, 0.9).add(np.array([2.0, 2.0]), 0.0, 1.0, 0.9)
    assert SlipperyPlaces.from_json(json.loads(json.dumps(places.as_json()))) == places
    assert places.used
    assert places.ahead == pytest.approx(4.6)
    with pytest.raises(ValueError, match="slippery places"):
        SlipperyPlaces.from_json([[[1.0], [1.0, 2.0]], [0.0, 1.0], 0.0, False])
