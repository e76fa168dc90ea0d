"""The plain engine on its own: any Python simulator, time budgets, batches, bad input."""

import math
import random
import time

import pytest
from tables import table

import uamcts
from uamcts import reference

CONFIG = uamcts.SearchConfig(iterations=50, rollouts=4, depth=10, c=1.0)


class Grid:
    """A Python gridworld of 9 x 9 cells: states are pairs, the goal is in the corner."""

    num_actions = 4
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self):
        self.steps = 0

    def step(self, state, action):
        self.steps += 1
        row, column = state[0] + self.moves[action][0], state[1] + self.moves[action][1]
        if 0 <= row < 9 and 0 <= column < 9:
            state = (row, column)
        return state, float(state == (8, 8)), state == (8, 8)


class BatchGrid(Grid):
    def step_batch(self, states, actions):
        moved = [self.step(state, action) for state, action in zip(states, actions, strict=True)]
        return [m[0] for m in moved], [m[1] for m in moved], [m[2] for m in moved]


class FittedUncertainty:
    def __call__(self, state, action):
        return 0.5 if state == (7, 7) else 0.0

    def batch(self, states, actions):
        return [self(state, action) for state, action in zip(states, actions, strict=True)]


class Recorded(reference.Draws):
    """Draws that depend on where they are made and not on their order."""

    def __init__(self):
        super().__init__(random.Random(0))

    def rollout(self, iteration, number):
        rng = random.Random(1000 * iteration + number)
        return lambda count: int(rng.random() * count)


def test_finds_the_goal_next_door():
    result = reference.search(0, (8, 7), Grid(), None, CONFIG)
    assert result.action == 0
    assert sum(result.visits) == result.iterations == 50
    assert result.tree.visits == 50


def test_lockstep_rollouts_give_the_same_tree():
    one_by_one = reference.search(Recorded(), (7, 6), Grid(), FittedUncertainty(), CONFIG)
    together = reference.search(Recorded(), (7, 6), BatchGrid(), FittedUncertainty(), CONFIG)
    assert one_by_one.visits == together.visits
    assert one_by_one.values == pytest.approx(together.values, rel=1e-12)


def test_a_seed_decides():
    first, again = (reference.search(5, (4, 4), Grid(), None, CONFIG) for _ in range(2))
    assert first.visits == again.visits
    assert first.values == again.values


def test_stops_when_time_is_up():
    """A search that would take minutes ends soon after its budget, with what it has."""
    config = uamcts.SearchConfig(iterations=10**6, rollouts=4, depth=10)
    start = time.perf_counter()
    result = reference.search(0, (0, 0), Grid(), None, config, budget_seconds=0.05)
    assert time.perf_counter() - start < 5
    assert 0 < result.iterations < 10**6
    assert sum(result.visits) == result.iterations


def test_a_short_budget_still_moves():
    """The printed rules expand the root in the second iteration: that much is done in any case."""
    config = uamcts.SearchConfig(iterations=10, rollouts=2, depth=5, rules="pseudocode")
    result = reference.search(0, (0, 0), Grid(), None, config, budget_seconds=1e-9)
    assert result.iterations == 2


@pytest.mark.parametrize("rng", [None, "seed", 1.5])
def test_a_source_of_randomness_is_needed(rng):
    with pytest.raises(TypeError, match="rng is"):
        reference.search(rng, (0, 0), Grid(), None, CONFIG)


def test_legal_actions_alone_are_tried():
    class Masked(Grid):
        def legal_actions(self, state):
            return (1,) if state == (0, 0) else (0, 1)

        def step(self, state, action):
            assert action in self.legal_actions(state)
            return super().step(state, action)

    result = reference.search(0, (0, 0), Masked(), FittedUncertainty(), CONFIG)
    assert result.visits[1] == 50
    assert result.exists == [False, True, False, False]
    assert math.isnan(result.values[0])


def test_states_are_not_copied():
    """A state may be anything, also something that cannot be copied."""

    class Uncopyable:
        def __init__(self, place):
            self.place = place

        def __deepcopy__(self, memo):
            raise AssertionError("copied")

        __copy__ = __reduce__ = None

    class Model:
        num_actions = 2

        def step(self, state, action):
            return Uncopyable(state.place + action), float(action), state.place > 5

    assert reference.search(0, Uncopyable(0), Model(), None, CONFIG).action in (0, 1)


@pytest.mark.parametrize(
    ("model", "doubt", "options", "words"),
    [
        (Grid(), lambda s, a: -1.0, {}, r"uncertainty function returned -1\.0"),
        (Grid(), lambda s, a: math.nan, {}, "uncertainty function returned nan"),
        (Grid(), None, {"budget_seconds": 0.0}, r"budget_seconds is 0\.0"),
        (table({(0, 0): (1, math.nan, 0.0)}, 3, 2), None, {}, "a reward of nan"),
        (table({(0, 0): (1, -math.inf, 0.0)}, 3, 2), None, {}, "a reward of -inf"),
    ],
)
def test_bad_input(model, doubt, options, words):
    start = 0 if not isinstance(model, Grid) else (0, 0)
    with pytest.raises(ValueError, match=words):
        reference.search(0, start, model, doubt, CONFIG, **options)


def test_no_legal_action_at_the_root():
    class Stuck(Grid):
        def legal_actions(self, state):
            return ()

    with pytest.raises(ValueError, match="no legal action"):
        reference.search(0, (0, 0), Stuck(), None, CONFIG)
