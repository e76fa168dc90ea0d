"""Quick ways to read and to make states do what `numbers_of` and `refill` do; residuals by rows are those by arrays."""

import enum
import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from uamcts.agent.plain_residual import EarlyResidualSimulator, ResidualSimulator
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.state_forms import UNLIKE, form_of
from uamcts.agent.state_vectors import numbers_of, refill
from uamcts.corrections.residual import Residual


class Pair(NamedTuple):
    x: float
    v: float


@dataclass(frozen=True)
class Frozen:
    pose: Pair
    gear: int
    fuel: float


@dataclass
class Free:
    q: np.ndarray
    w: float


class Thing:
    def __init__(self, v, x):
        self.v, self.x = v, x

    def __eq__(self, other):
        return vars(self) == vars(other)

    __hash__ = None


class Slots:
    __slots__ = ("v", "x")

    def __init__(self, v, x):
        self.v, self.x = v, x

    def __eq__(self, other):
        return (self.v, self.x) == (other.v, other.x)

    __hash__ = None


class Copied(Thing):
    def __copy__(self):
        return Copied(self.v, self.x)


class Gear(enum.Enum):
    LOW = 0


class Level(enum.IntEnum):
    LOW = 3


STATES = [
    (1.0, 0.5, 3),
    [1.0, True],
    Pair(1.0, 0.5),
    {"x": 1.0, "a": 0.5},
    {"x": 1.0},
    Frozen(Pair(1.0, 0.5), 2, 0.25),
    Thing(1.0, 0.5),
    Thing((1.0, [0.5, 0.25]), 2),
    Slots(1.0, 0.5),
    ((1.0, 0.5), {"b": [0.1, 0.2], "a": 7}),
    (np.float64(1.0), np.int64(2)),
]
ARRAYS = [np.array([1.0, 0.5]), np.array([[1.0, 0.5], [0.1, 0.2]], np.float32), np.array([1, 2])]


@pytest.mark.parametrize("state", STATES, ids=[f"{number} {type(one).__name__}" for number, one in enumerate(STATES)])
def test_states_are_read_and_made_number_by_number(state):
    form = form_of(state)
    assert list(form.read(state)) == numbers_of(state)
    moved = [number + 0.125 if isinstance(number, float) else number for number in form.read(state)]
    made = form.make(moved)
    assert made == refill(state, moved)
    assert made != state
    assert type(made) is type(state)
    assert [type(number) for number in form.read(made)] == [type(number) for number in form.read(state)]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype} {array.shape}")
@pytest.mark.parametrize("wrap", [lambda array: array, lambda array: Free(array, 1.0)], ids=["array", "dataclass"])
def test_arrays_keep_their_form(array, wrap):
    state = wrap(array)
    form = form_of(state)
    assert form.read(state) == numbers_of(state)
    made = form.make([2 * number for number in form.read(state)])
    held = made if wrap(array) is array else made.q
    np.testing.assert_array_equal(held, 2 * array)
    assert (held.dtype, held.shape) == (array.dtype, array.shape)


def test_there_is_no_form_where_reading_or_making_takes_more():
    for state in (3.0, "left", None, object(), (1.0, "left"), (1.0, Gear.LOW), (1.0, Level.LOW), Copied(1.0, 0.5), ()):
        assert not (form_of(state) and form_of(state).read(state))


@pytest.mark.parametrize(
    ("state", "other"),
    [
        ({"x": 1.0, "v": 2.0}, {"x": 1.0, "v": 2.0, "w": 0.0}),
        (Thing(1.0, (0.5, 1.0)), Thing(1.0, (0.5, 1.0, 2.0))),
        ((1.0, (0.5,)), (1.0, [0.5])),
        (Free(np.zeros(2), 1.0), Free(np.zeros(3), 1.0)),
    ],
)
def test_a_state_that_is_not_alike_is_refused(state, other):
    with pytest.raises(UNLIKE):
        form_of(state).read(other)


def fitted(size, outputs, seed=0):
    """A residual with several leaves; where there are several outputs, the second is a multiple of the first."""
    rng = np.random.default_rng(seed)
    features, actions = rng.normal(size=(400, size)), rng.integers(0, 2, 400)
    differences = np.zeros((400, outputs))
    bent = np.where(features[:, 0] > 0, features[:, -1], 2.0) + 0.5 * actions
    differences[:, 0] = bent
    if outputs > 1:
        differences[:, 1] = 0.15 * bent
    differences[:, -1] += features.sum(axis=1)
    return Residual.fit(features, actions, differences, 3)


def by_arrays(residual, values, action):
    """What a residual adds, written down from its definition."""
    outside = np.maximum(residual.lower[action] - values, values - residual.upper[action]).clip(0) / residual.reach
    node = 0
    while node < residual.split.shape[1]:
        split = residual.split[action, node]
        node = 2 * node + 1 + (split >= 0 and values[split] > residual.threshold[action, node])
    leaf = node - residual.split.shape[1]
    total = residual.intercept[action, leaf] + residual.slope[action, leaf] @ (values - residual.centre)
    return max(1 - outside.max(), 0.0) * np.clip(total, residual.low[action, leaf], residual.high[action, leaf])


@pytest.mark.parametrize("outputs", [0, 1])
@pytest.mark.parametrize("size", range(1, 10))
def test_rows_are_what_the_arrays_say(size, outputs):
    residual = fitted(size, size + outputs)
    rng = np.random.default_rng(1)
    weights = set()
    for values in [*rng.normal(size=(40, size)), *(4.0 * rng.normal(size=(40, size))), np.full(size, np.nan)]:
        for action in range(3):
            expected = np.nan_to_num(by_arrays(residual, values, action))
            np.testing.assert_allclose(residual.difference(values, action), expected, rtol=1e-9, atol=1e-12)
            weights.add(bool(expected.any()))
    assert weights == {True, False}  # some states are too far away


KINDS = [
    lambda numbers: tuple(numbers),
    lambda numbers: [*map(np.float64, numbers)],
    lambda numbers: {"b": numbers[1], "a": numbers[0], "c": numbers[2]},
    lambda numbers: Thing(numbers[0], (numbers[1], numbers[2])),
    lambda numbers: (np.array(numbers[:2]), numbers[2]),
    lambda numbers: (Copied(numbers[0], numbers[1]), numbers[2]),
]


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("make", KINDS)
def test_a_residual_of_any_kind_of_state_is_that_of_its_numbers(make, early):
    class Still:
        num_actions = 2

        def step(self, state, action):
            return state, 0.0, False

    residual = fitted(3, 4)
    residual = residual.before_the_step() if early else residual
    simulator = (EarlyResidualSimulator if early else ResidualSimulator)(PythonSimulator(Still()), residual)
    rng = random.Random(0)
    for _ in range(30):
        state, action = make([rng.gauss(0, 2) for _ in range(3)]), rng.randrange(2)
        following, reward, _ = simulator.step(state, action)
        expected = by_arrays(residual, np.array(numbers_of(state)), action)
        assert numbers_of(following) == pytest.approx(np.array(numbers_of(state)) + expected[:3])
        assert reward == pytest.approx(expected[3])
        assert type(following) is type(state)


@pytest.mark.parametrize("early", [False, True])
def test_whole_numbers_stay(early):
    class Still:
        num_actions = 2

        def step(self, state, action):
            return state, 0.0, False

    residual = fitted(3, 3)
    residual = residual.before_the_step() if early else residual
    simulator = (EarlyResidualSimulator if early else ResidualSimulator)(PythonSimulator(Still()), residual)
    (x, v, w), _, _ = simulator.step((0.5, 1, 0.25), 0)
    assert (type(v), v) == (int, 1)
    assert x != 0.5
    assert w != 0.25
