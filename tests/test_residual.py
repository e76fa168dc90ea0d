"""The residual: what is learned about worlds whose errors are known, and where it stays silent."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamcts
from uamcts.agent.compiled_residual import PackedResidual
from uamcts.agent.state_vectors import flatten
from uamcts.corrections.residual import NO_SPLIT, Residual, find_angles, wrap_differences
from uamcts.corrections.residual_border import fit_border
from uamcts.corrections.residual_fit import fit_node

PI = np.pi


def sample(rows=300, features=3, actions=2, seed=0):
    """Uniform features in [-1, 1], actions, and differences that are all 0."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (rows, features)), rng.integers(0, actions, rows), np.zeros((rows, features)), rng


def predict(residual, features, action):
    return np.array([residual.difference(row, action) for row in features])


def weak_motor():
    """Feature 1 is 0.12 lower after action 1 where feature 0 is above 0."""
    features, actions, differences, rng = sample()
    differences[(actions == 1) & (features[:, 0] > 0), 1] = -0.12
    return features, actions, differences, rng


def curved(rows=400):
    """Splits, slopes and noise in all features of both actions."""
    features, actions, differences, rng = sample(rows)
    differences = np.abs(features[:, [1, 2, 0]]) + 0.3 * features * actions[:, None]
    return features, actions, differences + 0.01 * rng.normal(size=differences.shape), rng


@pytest.fixture(scope="module")
def curved_fit():
    features, actions, differences, _ = curved()
    return Residual.fit(features, actions, differences, 2)


def test_a_constant_wind_is_a_constant():
    features, actions, differences, _ = sample()
    differences[:, 2] = 0.3
    residual = Residual.fit(features, actions, differences, 2)
    for action in range(2):
        np.testing.assert_array_equal(residual.difference(np.array([0.1, 0.2, 0.3]), action), [0, 0, 0.3])
    assert not residual.slope.any()
    assert (residual.split == NO_SPLIT).all()
    assert residual.describe() == "feature 2 by +0.3"


def test_a_noisy_wind_is_found_within_its_standard_error():
    features, actions, differences, rng = sample(800)
    differences[:, 2] = 0.3 + 0.2 * rng.normal(size=800)
    residual = Residual.fit(features, actions, differences, 2)
    error = predict(residual, features[:50], 0) - [0, 0, 0.3]
    assert np.abs(error).max() < 4 * 1.25 * 0.2 / np.sqrt(400)


def test_a_wrong_drag_is_a_linear_term():
    features, actions, differences, _ = sample()
    differences[:, 1] = 0.02 - 0.1 * features[:, 1]
    residual = Residual.fit(features, actions, differences, 2)
    inside = 0.9 * features[:50]
    np.testing.assert_allclose(predict(residual, inside, 0)[:, 1], 0.02 - 0.1 * inside[:, 1], atol=1e-6)
    assert (residual.split == NO_SPLIT).all()
    assert residual.describe(["x", "v"]) == "v by 0.02 - 0.1 * v"


def test_traces_of_a_correction_are_not_mentioned():
    features, actions, differences, _ = sample()
    residual = Residual.fit(features, actions, differences + np.array([0.3, 3e-4, 3e-3]), 3)
    assert residual.describe(["x", "y", "z"]) == "x by +0.3, z by +0.003"


def test_a_motor_that_is_weak_in_one_place_is_a_split():
    features, actions, differences, _ = weak_motor()
    residual = Residual.fit(features, actions, differences, 2)
    np.testing.assert_array_equal(residual.difference(np.array([0.2, 0, 0]), 1), [0, -0.12, 0])
    for features, action in [([-0.2, 0, 0], 1), ([0.2, 0, 0], 0), ([-0.2, 0, 0], 0)]:
        np.testing.assert_array_equal(residual.difference(np.array(features), action), [0, 0, 0])
    text = residual.describe(["x"])
    found = re.fullmatch(r"feature 1 by -0\.12 after action 1 where x > (\S+)", text)
    assert found, text
    assert abs(float(found.group(1))) < 0.05


def test_errors_in_one_quadrant_need_two_splits():
    features, actions, differences, rng = sample(600, actions=1)
    differences[(features[:, 0] > 0) & (features[:, 1] > 0), 2] = 0.5
    residual = Residual.fit(features, actions, differences, 1)
    queries = rng.uniform(0.15, 0.9, (200, 3)) * rng.choice([-1, 1], (200, 3))
    expected = np.where((queries[:, 0] > 0) & (queries[:, 1] > 0), 0.5, 0)
    assert (np.abs(predict(residual, queries, 0)[:, 2] - expected) < 0.05).mean() > 0.95


def test_curves_are_followed_by_pieces(curved_fit):
    features, _, _, _ = curved()
    inside = 0.9 * features[:100]
    expected = np.abs(inside[:, [1, 2, 0]]) + 0.3 * inside
    assert np.abs(predict(curved_fit, inside, 1) - expected).mean() < 0.25 * np.abs(expected).mean()


def test_nothing_wrong_is_none():
    features, actions, differences, _ = sample()
    assert Residual.fit(features, actions, differences, 2) is None
    assert Residual.fit(features, actions, differences + 1e-12, 2) is None


def test_a_feature_with_rounding_errors_stays_exactly_0():
    features, actions, differences, rng = sample()
    differences[:, 0] = 1e-12 * rng.normal(size=300)
    differences[:, 1] = 0.1
    residual = Residual.fit(features, actions, differences, 2)
    np.testing.assert_array_equal(predict(residual, features, 0)[:, [0, 2]], 0)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_too_few_rows_are_none(rows):
    features, actions, differences, _ = sample(rows, actions=1)
    assert Residual.fit(features, actions, differences + 0.3 + 0.1 * features, 1) is None


def test_three_rows_that_differ_by_the_same_number_are_enough():
    features, actions, differences, _ = sample(3, actions=1)
    assert Residual.fit(features[:2], actions[:2], differences[:2] + 0.3, 1) is None
    fit = Residual.fit(features, actions, differences + 0.3, 1)
    far = features.mean(axis=0) + 10 * features.std(axis=0)
    np.testing.assert_allclose(fit.difference(far, 0), 0.3)


def test_what_holds_for_all_actions_holds_for_one_that_was_never_tried():
    features, actions, differences, _ = sample()
    residual = Residual.fit(features, actions, differences + 0.3, 3)
    np.testing.assert_allclose(residual.difference(features[0], 2), np.full(3, 0.3))
    assert residual.describe() == "feature 0 by +0.3, feature 1 by +0.3, feature 2 by +0.3"


def test_what_holds_for_one_action_says_nothing_about_another():
    features, actions, differences, _ = sample()
    differences = differences + np.where(actions == 0, 0.3, 0.0)[:, None]
    residual = Residual.fit(features, actions, differences, 3)
    for action, expected in ((0, 0.3), (1, 0.0), (2, 0.0)):
        np.testing.assert_allclose(residual.difference(features[0], action), np.full(3, expected))


def test_few_rows_of_each_of_many_actions_suffice_together():
    features, _, _, _ = sample(60)
    actions = np.arange(60) % 12  # five rows of each, fewer than one action alone would need
    residual = Residual.fit(features, actions, np.column_stack([np.zeros((60, 2)), 0.4 * features[:, 0]]), 12)
    for action in range(12):
        found = predict(residual, features, action)
        np.testing.assert_allclose(found[:, 2], 0.4 * features[:, 0], atol=0.02)
        np.testing.assert_array_equal(found[:, :2], 0)


def test_a_further_column_corrects_the_reward():
    features, actions, differences, _ = sample()
    differences = np.column_stack([differences, np.where(actions == 1, -0.5 * features[:, 1], 0.0)])
    residual = Residual.fit(features, actions, differences, 2)
    here = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(residual.difference(here, 1), [0, 0, 0, -0.1], atol=1e-6)
    np.testing.assert_array_equal(residual.difference(here, 0), np.zeros(4))
    assert residual.describe(["x", "y", "z"]) == "reward by -0.5 * y after action 1"
    assert residual.describe(["x", "y", "z"], ["stay", "go"]) == "reward by -0.5 * y after 'go'"
    assert residual.changes_rewards
    again = Residual.of(residual.arrays())
    np.testing.assert_array_equal(again.difference(here, 1), residual.difference(here, 1))
    packed = PackedResidual.of(residual)
    np.testing.assert_allclose(
        packed.difference(jnp.asarray(here, jnp.float32), jnp.int32(1)), [0, 0, 0, -0.1], atol=1e-6
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("noise", ["normal", "heavy_tails", "slips"])
def test_noise_is_none(noise, seed):
    features, actions, _, rng = sample(200, seed=seed)
    draws = {
        "normal": lambda: rng.normal(size=(200, 3)),
        "heavy_tails": lambda: rng.standard_t(2, size=(200, 3)),
        "slips": lambda: 1.0 * (rng.random((200, 3)) < 0.3),
    }
    assert Residual.fit(features, actions, draws[noise](), 2) is None


@pytest.mark.parametrize("seed", range(4))
def test_noisy_sensors_of_a_right_simulator_are_none(seed):
    """A reading that is too high makes the next difference negative, although the simulator is right."""
    rng = np.random.default_rng(seed)
    true = np.cumsum(0.01 * rng.normal(size=(401, 2)), axis=0)
    read = true + 0.02 * rng.normal(size=true.shape)
    moves = np.diff(true, axis=0)
    differences = read[1:] - (read[:-1] + moves)
    assert np.corrcoef(read[:-1, 0], differences[:, 0])[0, 1] < 0
    assert Residual.fit(read[:-1], np.zeros(400, int), differences, 1) is None


@pytest.mark.parametrize("size", [1, 100])
def test_a_few_outliers_do_not_bend_the_fit(size):
    features, actions, differences, rng = sample()
    differences[:, 1] = -0.1 * features[:, 1]
    differences[:, 2] = 0.3
    walls = rng.choice(300, 9, replace=False)
    differences[walls, 1:] = size
    residual = Residual.fit(features, actions, differences, 2)
    inside = 0.9 * features[:50]
    found = predict(residual, inside, 0)
    np.testing.assert_allclose(found[:, 1], -0.1 * inside[:, 1], atol=0.005)
    np.testing.assert_allclose(found[:, 2], 0.3, atol=0.005)


def test_rows_that_are_not_finite_are_left_out():
    features, actions, differences, _ = sample()
    differences[:, 0] = 0.2
    differences[5, 0], features[6, 1] = np.nan, np.inf
    residual = Residual.fit(features, actions, differences, 2)
    np.testing.assert_array_equal(residual.difference(np.zeros(3), 0), [0.2, 0, 0])


def test_away_from_data_the_correction_fades_out():
    features, actions, differences, _ = sample()
    differences[:, 2] = 0.3 + 0.1 * features[:, 1]
    residual = Residual.fit(features, actions, differences, 2)
    sizes = [residual.difference(np.array([x, 0, 0]), 0)[2] for x in (0, 1.3, 1.8, 4, 1e9, np.inf, np.nan)]
    assert sizes[0] == pytest.approx(0.3, rel=1e-3)
    assert sizes[0] > sizes[1] > sizes[2] > 0
    assert sizes[3:] == [0, 0, 0, 0]


def test_a_linear_term_is_not_extrapolated():
    features, actions, differences, _ = sample()
    differences[:, 1] = -0.1 * features[:, 1]
    residual = Residual.fit(features, actions, differences, 2)
    corners = np.array([[0, x, 0] for x in np.linspace(-5, 5, 101)])
    assert np.abs(predict(residual, corners, 0)).max() <= np.abs(differences).max() * (1 + 1e-6)


def test_a_feature_that_never_varied_may_be_rounded_but_not_change():
    features, actions, differences, _ = sample()
    features[:, 0] = 0.1
    differences[:, 2] = 0.3
    residual = Residual.fit(features, actions, differences, 2)
    assert residual.difference(np.array([np.float32(0.1), 0, 0], float), 0)[2] == pytest.approx(0.3, rel=1e-3)
    assert residual.difference(np.array([0.2, 0, 0]), 0)[2] == 0


def test_fits_are_reproducible_and_keep_a_given_scale(curved_fit):
    features, actions, differences, _ = curved()
    again = Residual.fit(features, actions, differences, 2, previous_scale=curved_fit.scale)
    for name, array in curved_fit.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    wider = Residual.fit(features, actions, differences, 2, previous_scale=2 * curved_fit.scale)
    np.testing.assert_array_equal(wider.scale, 2 * curved_fit.scale)


def test_units_do_not_matter(curved_fit):
    features, actions, differences, _ = curved()
    units, origin = np.array([1e-6, 1.0, 1e5]), np.array([0, 1000.0, 0])
    residual = Residual.fit(features * units + origin, actions, differences * units, 2)
    queries = features[:50]
    np.testing.assert_allclose(
        predict(residual, queries * units + origin, 1) / units, predict(curved_fit, queries, 1), atol=1e-4
    )


@jax.jit
def compiled(residual, features, actions):
    return jax.vmap(residual.difference_jax)(features, actions)


def test_numpy_and_jax_agree(curved_fit):
    assert (curved_fit.split != NO_SPLIT).sum() >= 6
    queries = np.random.default_rng(1).uniform(-3, 3, (2000, 3)).astype(np.float32)
    queries[:3, 0] = np.nan, np.inf, -np.inf
    actions = np.arange(2000) % 2
    expected = [curved_fit.difference(row.astype(float), action) for row, action in zip(queries, actions, strict=True)]
    assert 0 < (np.array(expected) != 0).mean() < 1
    np.testing.assert_allclose(compiled(curved_fit, queries, actions), expected, atol=2e-6)


def test_a_refit_is_not_compiled_again(curved_fit):
    features, actions, differences, _ = weak_motor()
    traced = []

    @jax.jit
    def program(residual, features, action):
        traced.append(True)
        return residual.difference_jax(features, action)

    state = jnp.array([0.2, 0.0, 0.0])
    np.testing.assert_array_equal(program(Residual.zero(2, 3), state, 1), np.zeros(3))
    np.testing.assert_allclose(program(Residual.fit(features, actions, differences, 2), state, 1), [0, -0.12, 0])
    program(curved_fit, state, 0)
    assert len(traced) == 1


@settings(max_examples=60)
@given(st.lists(st.floats(width=32), min_size=3, max_size=3), st.integers(0, 1))
def test_predictions_are_bounded_everywhere(curved_fit, values, action):
    found = curved_fit.difference(np.array(values), action)
    leaves = np.maximum(np.abs(curved_fit.low), np.abs(curved_fit.high))[action].max(axis=0)
    assert (np.abs(found) <= leaves).all()


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(8, 60), st.floats(-10, 10).filter(lambda size: abs(size) > 1e-3))
def test_any_constant_is_found_from_eight_rows_on(seed, rows, wind):
    features, actions, differences, _ = sample(rows, actions=1, seed=seed)
    residual = Residual.fit(features, actions, differences + wind, 1)
    np.testing.assert_allclose(residual.difference(features[0], 0), wind)


def test_saved_arrays_give_the_same_residual(curved_fit):
    copy = Residual.of({name: array.copy() for name, array in curved_fit.arrays().items()})
    queries = np.random.default_rng(2).uniform(-1, 1, (20, 3))
    np.testing.assert_array_equal(predict(copy, queries, 1), predict(curved_fit, queries, 1))
    assert copy.describe() == curved_fit.describe()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda arrays: arrays.pop("low"), "consists of the arrays"),
        (lambda arrays: arrays.update(extra=np.zeros(1)), "consists of the arrays"),
        (
            lambda arrays: arrays.update(slope=arrays["slope"][:, :4]),
            r"slope should be float64 of shape \(2, 8, 3, 3\)",
        ),
        (lambda arrays: arrays.update(split=arrays["split"] + 0.0), "split should be int32"),
        (lambda arrays: arrays.update(centre=np.array(["a", "b", "c"])), "centre should be float64"),
        (lambda arrays: arrays.update(lower=np.float64(0)), "lower should be"),
        (lambda arrays: arrays.update(high=arrays["high"] * np.nan), "high holds numbers that are not finite"),
        (lambda arrays: arrays.update(split=arrays["split"] + 3), "here it is not so"),
        (lambda arrays: arrays.update(low=arrays["high"] + 1), "here it is not so"),
        (lambda arrays: arrays.update(scale=-arrays["scale"]), "here it is not so"),
        (lambda arrays: arrays.update(reach=0 * arrays["reach"]), "here it is not so"),
    ],
)
def test_damaged_arrays_are_refused(curved_fit, damage, message):
    arrays = curved_fit.arrays()
    damage(arrays)
    with pytest.raises(ValueError, match=message):
        Residual.of(arrays)


def test_arguments_of_the_wrong_shape_are_refused():
    features, actions, differences, _ = sample()
    with pytest.raises(ValueError, match=r"their shapes are \(300, 3\), \(300, 2\) and \(300,\)"):
        Residual.fit(features, actions, differences[:, :2], 2)
    with pytest.raises(ValueError, match="integers from 0 to 0"):
        Residual.fit(features, actions, differences, 1)
    with pytest.raises(ValueError, match="previous_scale should be 3 numbers"):
        Residual.fit(features, actions, differences, 2, previous_scale=np.ones(2))


def turning(start, rows=3000):
    """An angle kept in [start, start + 2 pi) that the simulator turns by 0.05 too little, and the same not wrapped."""
    angle = np.cumsum(np.random.default_rng(3).uniform(0.1, 0.2, rows + 1))
    before, after, believed = (
        np.column_stack([start + np.mod(turn - start, 2 * PI), turn])
        for turn in (angle[:-1], angle[1:], angle[1:] - 0.05)
    )
    return after - believed, before, after


@pytest.mark.parametrize("start", [-PI, 0])
def test_differences_of_angles_are_wrapped(start):
    differences, before, after = turning(start)
    assert np.abs(differences[:, 0]).max() == pytest.approx(2 * PI - 0.05)
    np.testing.assert_array_equal(find_angles(differences, before, after), [True, False])
    wrapped = wrap_differences(differences, before, after)
    np.testing.assert_allclose(wrapped[:, 0], 0.05)
    np.testing.assert_array_equal(wrapped[:, 1], differences[:, 1])


def test_an_angle_that_jumps_only_in_the_simulator_is_wrapped():
    before = np.array([[-3.1], [0.0], [3.12]])
    after = np.array([[-3.0], [0.1], [3.14]])
    believed = np.array([[-3.0], [0.1], [-3.14]])
    np.testing.assert_allclose(wrap_differences(after - believed, before, after)[:, 0], [0, 0, 6.28 - 2 * PI])


def test_given_angles_are_taken_at_their_word():
    differences = np.array([[6.0, 6.0]])
    wrapped = wrap_differences(differences, np.zeros((1, 2)), differences, np.array([True, False]))
    np.testing.assert_allclose(wrapped, [[6.0 - 2 * PI, 6.0]])


@pytest.mark.parametrize("kind", ["no_jumps", "too_wide", "anywhere", "no_rows"])
def test_other_features_are_not_angles(kind):
    rng = np.random.default_rng(4)
    before = {
        "no_jumps": np.linspace(-3, 3, 100),
        "too_wide": np.mod(np.arange(100) * 0.3, 7.0),
        "anywhere": rng.uniform(-PI, PI, 100),
        "no_rows": np.zeros(1),
    }[kind][:, None]
    before, after = before[:-1], before[1:]
    assert not find_angles(np.zeros_like(before), before, after).any()


def test_a_few_wrong_transitions_among_many_exact_ones_have_no_border_of_their_own():
    rng = np.random.default_rng(0)
    inputs, outputs = rng.uniform(-1, 1, (400, 2)), np.zeros((400, 1))
    outputs[50::60] = 0.5
    assert fit_border(inputs, outputs) is None
    outputs[:] = np.where(inputs[:, :1] > 0.9, 0.5, 0.0)
    assert fit_border(inputs, outputs).threshold[0] == pytest.approx(0.9, abs=0.05)


def test_actions_share_what_they_have_in_common_and_differ_by_a_constant():
    features, actions, differences, _ = sample(80, actions=3)
    actions[:72] %= 2  # eight transitions of the third action, and only they pay 0.5 less
    actions[72:] = 2
    differences[:, 1] = 0.3 * features[:, 0] - 0.5 * (actions == 2)
    residual = Residual.fit(features, actions, differences, 3)
    inside = 0.8 * sample(50, seed=1)[0]
    for action, shift in ((0, 0.0), (2, -0.5)):
        np.testing.assert_allclose(predict(residual, inside, action)[:, 1], 0.3 * inside[:, 0] + shift, atol=0.02)


def test_actions_that_were_tried_once_each_speak_together():
    features, _, differences, _ = sample(12)
    residual = Residual.fit(features, np.arange(12), differences + 0.3, 100)
    np.testing.assert_allclose(residual.difference(features[0], 99), np.full(3, 0.3))


def test_three_equal_differences_beyond_a_border_are_enough():
    inputs = np.linspace(-1, 1, 13)[:, None]
    outputs = np.where(inputs > 0.6, -0.2, 0.0)
    assert (outputs != 0).sum() == 3
    fit = fit_border(inputs, outputs)
    assert 0.5 < fit.threshold[0] < 0.7
    assert fit.low.min() == -0.2
    assert fit_border(inputs, outputs * (1 + inputs)) is None


class Ledge:
    """(x, v) on a ledge that ends at 1 and -1. What a step pays, and whether it ends, only `step` knows."""

    num_actions = 2

    def __init__(self, shape=tuple):
        self._shape = shape

    def push(self, action):
        return 0.2 * action - 0.1

    def step(self, state, action):
        x, v = (state.x, state.v) if isinstance(state, Spot) else state
        v = v + self.push(action)
        x = x + v
        over = abs(x) > 1.0
        return (Spot(x, v) if self._shape is Spot else (x, v)), -5.0 if over else -abs(x), over


class WindyLedge(Ledge):
    def push(self, action):
        return super().push(action) + 0.07


@dataclasses.dataclass(frozen=True)
class Spot:
    x: float
    v: float


@pytest.mark.parametrize("shape", [tuple, Spot])
def test_a_shift_before_the_step_is_judged_by_the_simulator(shape, tmp_path):
    settings = {"corrections": ("facts", "residual"), "iterations": 5, "rollouts": 1, "depth": 3}
    real, agent = WindyLedge(shape), uamcts.Agent(Ledge(shape), **settings)
    rng = np.random.default_rng(0)

    def draw():
        x, v = rng.uniform(-1, 1), rng.uniform(-0.4, 0.4)
        return Spot(float(x), float(v)) if shape is Spot else (float(x), float(v))

    def log(count):
        states = [(draw(), int(rng.integers(2))) for _ in range(count)]
        return [(state, action, *real.step(state, action)) for state, action in states]

    agent.preload(log(120))
    path = tmp_path / "agent.npz"
    agent.save(path)
    loaded = uamcts.Agent(Ledge(shape), **settings)
    loaded.load(path)
    seen, ends = log(200), 0
    for corrector in (agent.backend.corrector, loaded.backend.corrector):
        assert corrector.in_use == "residual"
        assert corrector.sentences()[0].startswith("states before a step are corrected: ")
        for state, action, after, reward, over in seen:
            found, paid, ended = corrector.variant().step(state, action)
            assert (flatten(found), paid) == (pytest.approx(flatten(after)), pytest.approx(reward))
            assert ended == over
            ends += over != Ledge(shape).step(state, action)[2]
    assert ends >= 10  # so many would be wrong without


def test_a_simulator_that_forgets_its_state_is_not_shifted_before_the_step():
    """Where it starts from changes nothing, so that no shift of that leads to what was seen."""

    class Throw:
        num_actions = 2

        def step(self, state, action):
            return (0.5 * action,), 0.5 * action, False

    agent, rng = uamcts.Agent(Throw(), iterations=5, rollouts=1, depth=3), np.random.default_rng(0)
    for _ in range(40):
        state, action = (float(rng.uniform(-1, 1)),), int(rng.integers(2))
        agent.observe(state, action, (0.5 * action + 0.3,), reward=0.5 * action + 0.3, terminal=False)
    assert agent.backend.corrector.in_use == "residual"
    assert not agent.backend.corrector.residuals["residual"].early
    assert agent.backend.corrector.variant().step((0.2,), 1)[:2] == (pytest.approx((0.8,)), pytest.approx(0.8))


def test_a_node_without_rows_adds_nothing():
    """All rows that a part of a tree has may be held out."""
    assert not fit_node(np.zeros((0, 3)), np.zeros((0, 2))).any()
