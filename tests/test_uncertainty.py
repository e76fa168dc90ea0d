"""Estimators of U: formulas against numbers worked out by hand, the buffer, the schedule, and what is recalled."""

import itertools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamcts
from uamcts.uncertainty import ESTIMATORS, make_estimator
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.calibration import Calibrated
from uamcts.uncertainty.network import (
    ActionNetwork,
    PlainNetwork,
    Regression,
    squared_error,
)
from uamcts.uncertainty.prediction_cache import SETS, WAYS, PredictionCache, fingerprint, list_places
from uamcts.uncertainty.schedule import Schedule

KEY = jax.random.key(0)
APPEND, ROWS = eqx.filter_jit(Buffer.append), eqx.filter_jit(Buffer.rows)
"""One program for each form of a buffer."""


# Networks


def test_the_network_is_what_the_paper_says():
    """tanh(W1 [x, a] + b1), tanh(W2 [h, a] + b2), W3 [h, a] + b3, written out in NumPy with concatenated weights."""
    network = eqx.filter_jit(ActionNetwork)(KEY, 5, 3, (4, 4))
    inputs, action = np.array([1.0, 0.0, -2.0, 0.5, 3.0], np.float32), 2
    layers = [(np.hstack([layer.weight, layer.actions.T]), np.asarray(layer.bias)) for layer in network.layers]
    assert [weight.shape for weight, _ in layers] == [(4, 8), (4, 7), (1, 7)]
    hidden = inputs
    for index, (weight, bias) in enumerate(layers):
        hidden = weight @ np.concatenate([hidden, np.eye(3)[action]]) + bias
        hidden = np.tanh(hidden) if index < 2 else hidden
    np.testing.assert_allclose(eqx.filter_jit(network)(inputs, jnp.int32(action)), hidden, rtol=1e-5)


def learned_network(domain):
    """A network that counts as trained, with the weights of its start: U-hat around 0.5."""
    estimator = make_estimator("network", KEY, domain)
    return replace(estimator, regression=replace(estimator.regression, rounds=jnp.int32(1)))


def random_transitions(domain, number):
    keys = jax.random.split(KEY, number)
    states = jax.jit(jax.vmap(lambda key: domain.from_features(jax.random.randint(key, (306,), 0, 2))))(keys)
    return states, jnp.arange(number) % 4


@jax.jit
def remembered(estimator, states, actions):
    """U-hat of a batch, from an empty cache."""
    recall = replace(estimator.uncertainty(), remember=True)
    return recall.predict_batch(recall.empty_cache(), states, actions, jnp.ones(actions.size, bool))[0]


def test_a_networks_predictions_in_batches():
    """Row by row through one product a layer, also behind a threshold: the same predictions, to rounding."""
    domain = uamcts.make("space_invaders")
    states, actions = random_transitions(domain, 64)
    estimator = learned_network(domain)
    untrained = make_estimator("network", KEY, domain)
    assert not np.any(remembered(untrained, states, actions))  # nothing is learned yet
    expected = np.asarray(jax.jit(lambda one: jax.vmap(one.predict)(states, actions))(estimator))
    assert expected.min() < 0.5 < expected.max()
    above = replace(Calibrated.around(estimator, domain.reset(KEY)), threshold=jnp.float32(0.5))
    np.testing.assert_allclose(remembered(estimator, states, actions), expected, rtol=2e-6)
    np.testing.assert_allclose(
        remembered(above, states, actions), np.where(expected > 0.5, expected, 0), rtol=2e-6, atol=1e-6
    )


def test_a_prediction_does_not_depend_on_what_it_is_computed_with():
    """To the last bit: alone, in another order, in batches of any size, and in searches side by side."""
    domain = uamcts.make("space_invaders")
    states, actions = random_transitions(domain, 64)
    estimator = learned_network(domain)
    together = np.asarray(remembered(estimator, states, actions))
    assert len(np.unique(together)) > 60

    def some(rows):
        return remembered(estimator, jax.tree.map(lambda leaf: leaf[rows], states), actions[rows])

    for size in (1, 3, 13):
        rows = np.random.default_rng(size).permutation(64)[:size]
        np.testing.assert_array_equal(some(rows), together[rows])
    rows = np.arange(64)[::-1]
    np.testing.assert_array_equal(some(rows), together[rows])
    halves = jax.tree.map(lambda leaf: leaf.reshape(2, 32, *leaf.shape[1:]), (states, actions))
    side_by_side = jax.jit(jax.vmap(remembered, (None, 0, 0)))(estimator, *halves)
    np.testing.assert_array_equal(side_by_side.reshape(-1), together)


def test_each_transition_is_predicted_once():
    """Of 30 transitions, 5 of them different, and 3 of these in the cache already: 2 predictions."""
    asked = []

    def predict(state, action):
        return 10.0 * state + action

    def predict_rows(prepared, states, actions):
        jax.debug.callback(lambda *rows: asked.append(rows), states, actions)
        return jax.vmap(predict)(states, actions)

    recall = PredictionCache(predict, True, predict_rows)
    states, actions = jnp.arange(30) % 5, jnp.zeros(30, jnp.int32)
    many = jax.jit(recall.predict_batch)
    found, cache = many(recall.empty_cache(), states, actions, states < 3)
    np.testing.assert_array_equal(found[states < 3], 10.0 * states[states < 3])
    found, cache = many(cache, states, actions, jnp.ones(30, bool))
    np.testing.assert_array_equal(found, 10.0 * states)
    many(cache, states, actions, jnp.ones(30, bool))
    jax.effects_barrier()
    assert [set(rows.tolist()) - {0} for rows, _ in asked] == [
        {1, 2},
        {3, 4},
    ]  # rows that fill up are the first place's


def test_sizes_are_the_papers():
    for name, inputs in {"space_invaders": 319, "freeway": 348, "breakout": 155}.items():
        domain = uamcts.make(name)
        network = eqx.filter_eval_shape(make_estimator, "network", KEY, domain).regression.network
        assert [layer.weight.shape for layer in network.layers] == [(128, inputs), (128, 128), (1, 128)]
        assert {layer.actions.shape[0] for layer in network.layers} == {domain.num_actions}
    linear = eqx.filter_eval_shape(make_estimator, "linear", KEY, uamcts.make("two_way")).regression.network
    assert [layer.weight.shape for layer in linear.layers] == [(1, 3)]  # row, column, action


@pytest.mark.parametrize("name", uamcts.DOMAINS)
def test_inputs_hold_every_feature(name):
    """From the one-hot inputs of states of an episode the raw features can be read back."""
    domain = uamcts.make(name)

    @jax.jit
    def walk(actions):
        def step(state, number):
            after = domain.world(state, actions[number], jax.random.key(number)).state
            return after, (domain.features(state), domain.inputs(state))

        return jax.lax.scan(step, domain.reset(KEY), jnp.arange(40))[1]

    seen = walk(np.random.default_rng(0).integers(domain.num_actions, size=40))
    for features, inputs in zip(*map(np.asarray, seen), strict=True):
        place = 0
        for number, value in enumerate(features):
            least, count = domain.one_hot.get(number, (0, 0))
            if count:
                expected = np.arange(least, least + count) == value
                assert expected.sum() == 1, f"feature {number} is {value}, outside of its one-hot range"
                np.testing.assert_array_equal(inputs[place : place + count], expected)
            else:
                assert inputs[place] == value
            place += max(count, 1)
        assert place == inputs.size


def small_regression(targets, link=jax.nn.sigmoid, minibatches=1):
    """One linear layer on two inputs and the action's number, with weights that are easy to calculate with."""
    network = PlainNetwork(KEY, 2)
    layer = eqx.tree_at(
        lambda layer: (layer.weight, layer.bias), network.layers[0], (jnp.array([[0.5, -1.0, 0.25]]), jnp.array([0.1]))
    )
    network = eqx.tree_at(lambda network: network.layers[0], network, layer)
    buffer = Buffer.empty(jnp.zeros(2), jnp.float32(0), 8)
    for state, action, target in targets:
        buffer = APPEND(buffer, np.float32(state), np.int32(action), np.float32(target))
    return Regression.fresh(network, buffer, lambda state: state, link, minibatches)


def test_the_gradient_by_hand():
    """One sample: z = 0.5*2 - 1*1 + 0.25*2 + 0.1 = 0.6, p = 1/(1+e^-0.6) = 0.645656, loss (p - 0.2)^2 = 0.198609.

    dloss/dz = 2 (p - 0.2) p (1 - p) = 0.891313 * 0.228784 = 0.203918; times the inputs (2, 1, 2) and 1 for the bias.
    """
    regression = small_regression([])
    inputs, actions, targets = jnp.array([[2.0, 1.0]]), jnp.array([2]), jnp.array([0.2])
    slope = eqx.filter_jit(jax.value_and_grad(squared_error))
    loss, gradient = slope(regression.network, regression.link, inputs, actions, targets)
    assert loss == pytest.approx(0.198609, abs=1e-6)
    np.testing.assert_allclose(gradient.layers[0].weight, [[0.407836, 0.203918, 0.407836]], atol=1e-6)
    np.testing.assert_allclose(gradient.layers[0].bias, [0.203918], atol=1e-6)


def test_one_step_of_training_by_hand():
    """Adam's first step moves every weight by step size * g / (|g| + 1e-8), that is by 1e-3 against its gradient g."""
    regression = small_regression([((2.0, 1.0), 2, 0.2)])
    fitted, loss = regression.fit(KEY)
    assert loss == pytest.approx(0.198609, abs=1e-6)
    np.testing.assert_allclose(fitted.network.layers[0].weight, [[0.499, -1.001, 0.249]], atol=1e-6)
    np.testing.assert_allclose(fitted.network.layers[0].bias, [0.099], atol=1e-6)
    assert fitted.rounds == 1


def test_training_is_optax_adam_on_minibatches_of_32():
    """Five steps beside a loop written with optax and the same draws."""
    samples = [((float(i), float(i % 3)), i % 3, 0.1 * i) for i in range(6)]
    regression = small_regression(samples, minibatches=5)
    fitted, loss = regression.fit(KEY)
    numbers = regression.buffer.sample(KEY, (5, 32))
    assert numbers.shape == (5, 32)
    optimiser, network, losses = optax.adam(1e-3), regression.network, []
    state = optimiser.init(network)

    @jax.jit
    def move(network, state, *samples):
        found, gradient = jax.value_and_grad(squared_error)(network, jax.nn.sigmoid, *samples)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(network, updates), state, found

    for row in numbers:
        states, actions, targets = ROWS(regression.buffer, row)
        network, state, found = move(network, state, states, actions, targets)
        losses.append(found)
    np.testing.assert_allclose(fitted.network.layers[0].weight, network.layers[0].weight, rtol=1e-5)
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_network_learns_the_whole_gridworld():
    """All 16 cells x 4 actions of 2-Way, 20 rounds of 1,000 minibatches: squared error below 1e-4 nearly everywhere."""
    domain = uamcts.make("two_way")
    known = uamcts.true_uncertainty(domain)
    cells = [cell for cell in itertools.product(range(3), range(7)) if cell[0] != 1 or cell[1] in (0, 6)]
    estimator = make_estimator("network", KEY, domain, capacity=64, minibatches=4000)
    assert not estimator.trained
    absorb = jax.jit(lambda estimator, state, action: estimator.absorb(state, action, known(state, action)))
    predict = jax.jit(lambda estimator, state, action: estimator.predict(state, action))
    state_of = jax.jit(domain.from_features)
    pairs = [(state_of(np.array(cell)), action) for cell in cells for action in range(4)]
    for state, action in pairs:
        assert predict(estimator, state, action) == 0, "an untrained network says something"
        estimator = absorb(estimator, state, action)
    learn = jax.jit(lambda estimator, key: estimator.learn(key))
    for key in jax.random.split(KEY, 3):
        estimator, loss = learn(estimator, key)
    assert estimator.trained
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *[state for state, _ in pairs])
    actions = np.array([action for _, action in pairs])
    true = np.asarray(jax.jit(jax.vmap(known))(states, actions))
    found = np.asarray(jax.jit(jax.vmap(predict, (None, 0, 0)))(estimator, states, actions))
    assert np.sum(true > 0) >= 2, "there is nothing to learn"
    assert np.mean(np.square(true - found)) < 1e-4
    assert float(loss) < 1e-4
    assert np.max(np.abs(true - found)) < 0.02


QUICK = ("true", "none", "network", "linear", "two_part", "nearest")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.long]) for n in ESTIMATORS])
def test_every_estimator_keeps_the_protocol(name):
    """predict is at least 0 and finite, absorb and learn keep the form, all of it under jit and vmap."""
    domain = uamcts.make("two_way")
    estimator = make_estimator(name, KEY, domain, capacity=16, minibatches=3)
    state = domain.reset(KEY)

    @jax.jit
    def whole(estimator, key):
        for action in range(3):
            estimator = estimator.absorb(state, jnp.int32(action), jnp.float32(0.5), 1)
        estimator, loss = estimator.learn(key)
        return estimator, loss, jax.vmap(estimator.predict, (None, 0))(state, jnp.arange(4))

    after, loss, found = whole(estimator, KEY)
    assert jax.tree.structure(after) == jax.tree.structure(estimator)
    assert np.all(np.isfinite(found))
    assert np.all(np.asarray(found) >= 0)
    assert np.isfinite(loss)
    assert bool(after.trained)
    roomy = after.reserve(100)
    ask = jax.jit(lambda estimator: jax.vmap(estimator.predict, (None, 0))(state, jnp.arange(4)))
    np.testing.assert_allclose(ask(roomy), found, rtol=1e-6)


def test_an_unknown_estimator_gets_a_hint():
    with pytest.raises(ValueError, match="unknown estimator 'netwrk'; did you mean 'network'"):
        make_estimator("netwrk", KEY, uamcts.make("two_way"))


# The buffer


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 3), st.booleans()), max_size=30),
    st.sampled_from([1, 5, 40]),
)
def test_the_buffer_keeps_every_sample_in_order(samples, capacity):
    """Random samples, some stored three times, into a buffer that grows: exactly they are in it, in order."""
    buffer = Buffer.empty(jnp.uint32(0), jnp.float32(0), capacity, most_copies=3)
    expected = []
    for state, action, thrice in samples:
        buffer = buffer.reserve(1)
        copies = 3 if thrice else 1
        buffer = APPEND(buffer, np.uint32(state), np.int32(action), np.float32(state % 7), np.int32(copies))
        expected += [(state, action, float(state % 7))] * copies
    assert int(buffer.count) == len(expected)
    states, actions, targets = ROWS(buffer, np.arange(90))
    found = list(zip(states.tolist(), actions.tolist(), targets.tolist(), strict=True))
    assert found[: len(expected)] == expected


def test_a_full_buffer_counts_nothing_more():
    """Under jit it cannot grow: what does not fit is not counted, and what is there stays."""
    buffer = Buffer.empty(jnp.uint32(0), jnp.float32(0), 2)
    append = jax.jit(lambda buffer, value: buffer.append(value, jnp.int32(0), jnp.float32(1)))
    for value in (5, 6, 7):
        buffer = append(buffer, jnp.uint32(value))
    assert int(buffer.count) == 2
    assert ROWS(buffer, np.arange(2))[0].tolist() == [5, 6]


def test_samples_are_drawn_evenly():
    """32,000 draws out of 4 samples: each within 5 standard deviations (false alarm 1 in 400,000, seed fixed)."""
    buffer = Buffer.empty(jnp.uint32(0), jnp.float32(0), 100)
    for value in range(4):
        buffer = APPEND(buffer, np.uint32(value), np.int32(0), np.float32(0))
    counts = np.bincount(np.ravel(buffer.sample(KEY, (1000, 32))), minlength=5)
    assert counts[4:].sum() == 0
    np.testing.assert_allclose(counts[:4], 8000, atol=5 * np.sqrt(32000 * 0.25 * 0.75))


# The schedule


def test_the_schedule_written_out():
    """tau 10 -> 0.1 in two rounds; with losses 1e-2, 1e-4, 1e-8 training stops before the fourth round."""
    schedule = Schedule(interval=300)
    assert [step for step in range(1300) if schedule.due(step)] == [300, 600, 900, 1200]
    tau, loss, seen = jnp.float32(10), jnp.float32(jnp.inf), []
    for next_loss in (1e-2, 1e-4, 1e-8, 1e-9):
        goes_on = bool(schedule.goes_on(tau, loss))
        seen.append((round(float(tau), 6), goes_on))
        if goes_on:
            tau, loss = schedule.decay(tau), jnp.float32(next_loss)
    assert seen == [(10.0, True), (1.0, True), (0.1, True), (0.1, False)]


def test_a_low_loss_does_not_stop_training_while_tau_is_high():
    schedule = Schedule()
    assert schedule.goes_on(jnp.float32(1.0), jnp.float32(0.0))
    assert not schedule.goes_on(jnp.float32(0.1), jnp.float32(1e-7))
    assert schedule.goes_on(jnp.float32(0.1), jnp.float32(1.1e-7))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": 0}, "interval is 0"),
        ({"least": 0.0}, "least is 0.0"),
        ({"least": 20.0}, "tau falls from start to least"),
        ({"divisor": 0.5}, "divisor is 0.5"),
    ],
)
def test_wrong_schedules_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Schedule(**options)


# What is recalled


def walked(domain, steps, lanes):
    """States of random walks, flattened to [lanes * steps]."""

    def walk(key):
        def step(state, action):
            return domain.model(state, action).state, state

        return jax.lax.scan(step, domain.reset(key), jax.random.randint(key, (steps,), 0, domain.num_actions))[1]

    states = jax.jit(jax.vmap(walk))(jax.random.split(KEY, lanes))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)


@pytest.mark.parametrize("name", ["breakout", pytest.param("space_invaders", marks=pytest.mark.long)])
def test_recalled_answers_are_the_networks(name):
    """First asked, asked again, and glanced at: the same numbers as without any memory, each computed once."""
    domain = uamcts.make(name)
    predict = lambda state, action: jnp.mean(domain.inputs(state)) + 0.1 * action  # noqa: E731
    states = walked(domain, 40, 8)
    actions = jnp.arange(320) % domain.num_actions
    recall = PredictionCache(predict, remember=True)
    plain = PredictionCache(predict, remember=False)
    expected, nothing = jax.jit(plain.predict_batch)(plain.empty_cache(), states, actions, jnp.ones(320, bool))
    assert nothing is None
    wanted = jnp.arange(320) % 5 != 0
    many = jax.jit(recall.predict_batch)
    found, memory = many(recall.empty_cache(), states, actions, wanted)
    np.testing.assert_allclose(found[wanted], expected[wanted], rtol=1e-6)
    again, memory = many(memory, states, actions, jnp.ones(320, bool))
    np.testing.assert_allclose(again, expected, rtol=1e-6)
    answers, known = jax.jit(jax.vmap(recall.lookup, (None, 0, 0)))(memory, states, actions)
    assert np.mean(known) > 0.99
    np.testing.assert_allclose(np.asarray(answers)[known], np.asarray(again)[known], rtol=1e-6)


def test_the_memory_answers_and_not_the_network():
    """A memory filled by one network is believed by the next: so it must be emptied when a network learns."""
    domain = uamcts.make("breakout")
    states, actions = walked(domain, 10, 2), jnp.zeros(20, jnp.int32)
    first = PredictionCache(lambda state, action: jnp.float32(0.25), remember=True)
    second = PredictionCache(lambda state, action: jnp.float32(0.75), remember=True)
    _, memory = jax.jit(first.predict_batch)(first.empty_cache(), states, actions, jnp.ones(20, bool))
    found, _ = jax.jit(second.predict_batch)(memory, states, actions, jnp.ones(20, bool))
    assert set(found.tolist()) == {0.25}


def test_a_crowded_table_still_answers_rightly():
    """Far more states than a set has ways, all in the same set: right answers, whoever is thrown out."""
    predict = lambda state, action: state.astype(jnp.float32) + action  # noqa: E731
    recall = PredictionCache(predict, remember=True)
    numbers = np.arange(4_000_000, dtype=np.uint32)
    first, _ = jax.jit(jax.vmap(fingerprint))(jnp.asarray(numbers))
    crowd = jnp.asarray(numbers[np.asarray(first) % SETS == 7][: 3 * WAYS])
    assert crowd.size == 3 * WAYS
    memory, many = recall.empty_cache(), jax.jit(recall.predict_batch)
    for _ in range(3):
        for action in (0, 1):
            asked = jnp.full(crowd.size, action)
            found, memory = many(memory, crowd, asked, jnp.ones(crowd.size, bool))
            np.testing.assert_array_equal(found, np.asarray(crowd, np.float32) + action)


def small_integers():
    """100,000 different rows of ten numbers from 0 to 7."""
    numbers = np.random.default_rng(0).choice(8**10, 101_000)
    numbers = np.unique(numbers)[:100_000]
    assert len(numbers) == 100_000
    return (numbers[:, None] >> np.arange(0, 30, 3)) & 7


def different_states():
    """States by name, as trees of arrays with rows in front, no two rows equal."""
    taxi = np.array(list(itertools.product(range(5), range(5), range(5), range(4))))
    pairs = np.array(list(itertools.combinations(range(100), 2)))
    small = small_integers()
    return {
        "two small words": np.array(list(itertools.product(range(400), repeat=2)), np.uint32),
        "one-hot": np.eye(3936, dtype=np.float32),
        "one-hot and short": np.eye(24, dtype=np.float32),
        "two of 100": np.eye(100, dtype=np.float32)[pairs].sum(axis=1),
        "Taxi, one-hot": np.concatenate([np.eye(5, dtype=np.float32)[taxi[:, place]] for place in range(4)], axis=1),
        "Taxi, numbers": taxi.astype(np.float32),
        "small integers": small.astype(np.int8),
        "small integers as floats": small.astype(np.float32),
        "small integers in a tree": {"a": small[:, :3] > 3, "b": (small[:, :3] & 3, small[:, 3:] * np.float32(0.25))},
        "real numbers": np.linspace(-1, 1, 100_000, dtype=np.float32)[:, None] * np.float32([1, 0, -1]),
    }


def fingerprints(states):
    """[rows, 2]."""
    return np.stack(jax.jit(jax.vmap(fingerprint))(jax.tree.map(jnp.asarray, states)), axis=1)


def number_of(prints):
    """How many different ones there are."""
    return len(np.unique(prints.astype(np.uint64) @ np.array([2**32, 1], np.uint64)))


def test_fingerprints_tell_states_apart():
    """As many fingerprints as there are different states; one collision would be expected in 10^8 such tests."""
    for name, states in different_states().items():
        prints = fingerprints(states)
        assert number_of(prints) == len(prints), name
    states = walked(uamcts.make("space_invaders"), 100, 20)
    columns = [np.asarray(leaf).reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(states)]
    assert number_of(fingerprints(states)) == len(np.unique(np.concatenate(columns, axis=1), axis=0))


def test_each_half_of_a_fingerprint_is_a_hash_of_its_own():
    """100,000 states and 32 (31) bits: about 1.2 (2.3) pairs collide; more than 12 once in 10^7 tests."""
    prints = fingerprints(small_integers().astype(np.float32))
    for half in prints.T:
        assert len(half) - len(np.unique(half)) <= 12


@pytest.mark.parametrize("size", [3, 40])
def test_fingerprints_of_floats_follow_their_values(size):
    """-0.0 is 0.0, NaN is NaN whatever its bits, tiny numbers are no zeros; in short arrays and in long ones."""
    other_nan = np.uint32(0xFFC00001).view(np.float32)
    alike = [np.full(size, number, np.float32) for number in (0.0, -0.0, np.nan, other_nan)]
    print_of = jax.jit(fingerprint)
    prints = [tuple(map(int, print_of(row))) for row in alike]
    assert prints[0] == prints[1]
    assert prints[2] == prints[3]
    others = [np.full(size, number, np.float32) for number in (np.inf, -np.inf, 1e-45, -1e-45, 1.0, -1.0)]
    prints = [prints[0], prints[2], *(tuple(map(int, print_of(row))) for row in others)]
    assert len(set(prints)) == len(prints)
    halves = tuple(map(int, print_of(np.full(size, -0.0, np.float16))))
    assert halves == prints[0]


def test_a_fingerprint_does_not_depend_on_how_words_are_mixed(monkeypatch):
    """One by one or as a vector."""
    state = (jnp.arange(5), jnp.linspace(-1, 1, 40))
    expected = jax.jit(fingerprint)(state)
    for limit in (0, 1000):
        monkeypatch.setattr("uamcts.mcts.state_hash.UNROLLED", limit)
        found = jax.jit(lambda state: fingerprint(state))(state)  # a function of its own, to be traced anew
        assert [int(word) for word in found] == [int(word) for word in expected]


def test_the_memory_keeps_one_hot_states_apart():
    """3,936 one-hot states asked for one after the other: each gets its own answer."""
    recall = PredictionCache(lambda state, action: jnp.argmax(state).astype(jnp.float32), remember=True)
    states, memory = jnp.eye(3936), recall.empty_cache()
    many = jax.jit(recall.predict_batch)
    for start in range(0, 3936, 984):
        rows = states[start : start + 984]
        found, memory = many(memory, rows, jnp.zeros(984, jnp.int32), jnp.ones(984, bool))
        np.testing.assert_array_equal(found, np.arange(start, start + 984))


LIST_PLACES = jax.jit(list_places)


@settings(max_examples=30)
@given(st.lists(st.booleans(), min_size=12, max_size=12))
def test_list_places(conditions):
    listed, count = LIST_PLACES(np.array(conditions))
    assert listed[:count].tolist() == [place for place, holds in enumerate(conditions) if holds]
