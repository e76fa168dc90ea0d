"""The estimators beside the paper's: what they learn, exact zeros, files, runs side by side, and their formulas."""

import itertools
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.agent import checkpoint
from uamcts.uncertainty import ESTIMATORS, GATED, make_estimator
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.conformal_gate import Gated
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.learner import UncertaintyLearner
from uamcts.uncertainty.samples import Surprise, cautious, group_samples, sample_balanced
from uamcts.uncertainty.trees import evaluate_trees, fit_trees

KEY = jax.random.key(0)
NEW = ("two_part", "bayes", "trees", "nearest", "ensemble", "dropout")
SLOW = [pytest.param(name, marks=pytest.mark.long) for name in ("ensemble", "dropout")]  # much to compile
OPTIONS = {"capacity": 256, "minibatches": 600, "most_copies": 4}
DOMAIN = uamcts.make("two_way")
CELLS = [cell for cell in itertools.product(range(3), range(7)) if cell[0] != 1 or cell[1] in (0, 6)]


@pytest.fixture(scope="module")
def everything():
    """All states and actions of 2-Way, [64], and U of each."""
    states = jax.jit(jax.vmap(DOMAIN.from_features))(jnp.repeat(jnp.array(CELLS), 4, axis=0))
    actions = jnp.tile(jnp.arange(4), len(CELLS))
    return states, actions, jax.jit(jax.vmap(uamcts.true_uncertainty(DOMAIN)))(states, actions)


@pytest.fixture(scope="module")
def programs():
    """Absorbing samples [n], a round, and answers, each compiled once for a kind of estimator."""

    def absorb(estimator, samples, copies):
        one = lambda estimator, sample: (estimator.absorb(*sample, copies), None)  # noqa: E731
        return jax.lax.scan(one, estimator, samples)[0]

    return (
        jax.jit(absorb),
        jax.jit(lambda estimator, key: estimator.learn(key)),
        jax.jit(lambda estimator, states, actions: jax.vmap(estimator.predict)(states, actions)),
    )


@pytest.fixture(scope="module")
def train(everything, programs):
    """Estimators that have seen all of 2-Way, by name, with what they were before."""
    absorb, learn, _ = programs
    made = {}

    def give(name):
        if name not in made:
            fresh = make_estimator(name, KEY, DOMAIN, **OPTIONS)
            estimator = absorb(fresh, everything, 4)
            for key in jax.random.split(KEY, 5):
                estimator = learn(estimator, key)[0].finish_on_host()
            made[name] = fresh, estimator
        return made[name]

    return give


# What all of them have to do


@pytest.mark.parametrize("name", ["two_part", "trees", "nearest", *SLOW])
def test_it_learns_the_gridworld_with_exact_zeros(name, everything, programs, train):
    """Every (s, a) seen: U about right where the model errs, and 0, not something small, where it does not.

    (`bayes` has a test of its own: a sum of a row's and a column's weight cannot single out one cell.)
    """
    states, actions, true = everything
    fresh, estimator = train(name)
    assert not np.any(programs[2](fresh, states, actions)), "it says something before it has learned"
    assert not fresh.trained
    assert estimator.trained
    found, true = np.asarray(programs[2](estimator, states, actions)), np.asarray(true)
    assert np.sum(true > 0) >= 2, "there is nothing to learn"
    assert np.all(found[true == 0] == 0)
    near = 0.5 if name == "ensemble" else 0.2  # two of its five members stay at 0: see docs/concepts/estimators.md
    np.testing.assert_allclose(found[true > 0], true[true > 0], rtol=near)


@pytest.mark.parametrize("name", ["two_part", "bayes", "trees", "nearest", "linear+gate", *SLOW])
def test_files_keep_it(name, everything, programs, train, tmp_path):
    """What was saved after learning is loaded into a fresh one: the same answers, bit for bit."""
    states, actions, _ = everything
    fresh, estimator = train(name)
    checkpoint.save(tmp_path / "kept", estimator, "estimator", {"name": name})
    loaded = checkpoint.load(tmp_path / "kept", fresh, "estimator", {"name": name})
    expected = programs[2](estimator, states, actions)
    np.testing.assert_array_equal(programs[2](loaded, states, actions), expected)
    with pytest.raises(ValueError, match="does not fit"):
        checkpoint.load(tmp_path / "kept", make_estimator("linear", KEY, DOMAIN), "estimator", {"name": name})


@pytest.mark.parametrize(
    "name", ["trees", *(pytest.param(n, marks=pytest.mark.long) for n in ("bayes", "linear+gate"))]
)
def test_runs_side_by_side_are_the_same_as_one_by_one(name, everything):
    """Two runs with different samples under jit and vmap, as `online` has them, and each of them alone."""
    states, actions, targets = everything
    targets = jnp.stack([targets, targets[::-1]])

    def fresh(key):
        return UncertaintyLearner(make_estimator(name, key, DOMAIN, capacity=64, minibatches=5))

    def train_run(learner, key, targets):
        absorb = lambda estimator, sample: (estimator.absorb(*sample), None)  # noqa: E731
        estimator = jax.lax.scan(absorb, learner.estimator, (states, actions, targets))[0]
        return UncertaintyLearner(estimator).learn(key)[0]

    keys = jax.random.split(KEY, 2)
    both = jax.jit(jax.vmap(train_run))(jax.vmap(fresh)(keys), keys, targets).finish_on_host()
    answers = jax.jit(jax.vmap(lambda learner: jax.vmap(learner.estimator.predict)(states, actions)))(both)
    for run in range(2):
        alone = jax.jit(train_run)(fresh(keys[run]), keys[run], targets[run]).finish_on_host()
        expected = jax.jit(jax.vmap(alone.estimator.predict))(states, actions)
        np.testing.assert_allclose(answers[run], expected, rtol=1e-4, atol=1e-6)


def test_every_name_makes_an_estimator():
    assert set(NEW) < set(ESTIMATORS)
    assert set(GATED) == {f"{name}+gate" for name in ESTIMATORS if name not in ("true", "none")}
    for name in GATED:
        assert isinstance(make_estimator(name, KEY, DOMAIN, capacity=8, minibatches=1), Gated)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("two_part", {"gate": 1.0}, ValueError, "gate is 1.0; it must lie between 0 and 1"),
        ("two_part", {"minibatches": 0}, ValueError, "minibatches is 0; it must be a whole number of at least 1"),
        ("bayes", {"ridge": 0.0}, ValueError, "ridge is 0.0; it must be above 0"),
        ("bayes", {"k": -1.0}, ValueError, "k is -1.0; it must be a finite number of at least 0"),
        ("trees", {"leaves": 1}, ValueError, "leaves is 1; it must be a whole number of at least 2"),
        ("nearest", {"radius": -0.5}, ValueError, "radius is -0.5"),
        ("nearest", {"places": 1}, ValueError, "places is 1"),
        ("ensemble", {"members": 1}, ValueError, "members is 1; it must be a whole number of at least 2"),
        ("dropout", {"rate": 0.0}, ValueError, "rate is 0.0; it must lie between 0 and 1"),
        ("network+gate", {"level": 0.0}, ValueError, "level is 0.0"),
        ("network+gate", {"every": 1}, ValueError, "every is 1; it must be a whole number of at least 2"),
        ("bayes", {"members": 3}, TypeError, "the estimator 'bayes' has no option 'members'"),
        ("two_parts", {}, ValueError, "did you mean 'two_part'"),
    ],
)
def test_wrong_options_are_refused(name, options, error, message):
    with pytest.raises(error, match=message):
        make_estimator(name, KEY, DOMAIN, **options)


def test_without_scikit_learn_trees_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ImportError, match=r"pip install scikit-learn"):
        make_estimator("trees", KEY, DOMAIN)


# Their parts


def compiled(method):
    """A method of an estimator or of a buffer as one program."""
    return eqx.filter_jit(lambda one, *arguments: getattr(one, method)(*arguments))


absorb, append, learn, predict = map(compiled, ("absorb", "append", "learn", "predict"))


def a_buffer(samples, capacity=10):
    buffer = Buffer.empty(jnp.uint32(0), jnp.float32(0), capacity)
    for state, action, target in samples:
        buffer = append(buffer, jnp.uint32(state), jnp.int32(action), jnp.float32(target))
    return buffer


def test_equal_samples_become_one_with_their_number_and_mean():
    buffer = a_buffer([(5, 0, 1.0), (5, 1, 0.0), (5, 0, 3.0), (6, 0, 0.5), (5, 0, 2.0)])
    groups = jax.jit(group_samples)(buffer)
    found = {}
    for row, size, mean in zip(*(np.asarray(part) for part in groups), strict=True):
        if size:
            found[int(buffer.states[row]), int(buffer.actions[row])] = (int(row), int(size), float(mean))
    assert found == {(5, 0): (4, 3, 2.0), (5, 1): (1, 1, 0.0), (6, 0): (3, 1, 0.5)}
    assert np.sum(groups.size > 0) == 3


def test_only_equal_samples_become_one(monkeypatch):
    """One-hot states, each once with U 0 or 1: no two share a group, not even where all fingerprints are equal."""
    targets = jnp.arange(1000) % 2.0
    buffer = Buffer(jnp.eye(1000), jnp.zeros(1000, jnp.int32), targets, jnp.int32(1000), 0)
    for _ in range(2):
        groups = jax.jit(lambda buffer: group_samples(buffer))(buffer)  # traced anew
        np.testing.assert_array_equal(groups.size, 1)
        np.testing.assert_array_equal(groups.row, np.arange(1000), "not in the order they came")
        np.testing.assert_array_equal(groups.mean, targets)
        monkeypatch.setattr("uamcts.uncertainty.samples.fingerprint", lambda state: (jnp.uint32(1), jnp.uint32(1)))


def test_classes_are_balanced_whatever_their_sizes():
    """1 sample with U > 0, 9 different ones with U = 0, one of them 90 times; 20,000 draws.

    Half of the draws, and a 18th each: within 5 standard deviations (1 in 100,000; the seed is fixed).
    """
    buffer = a_buffer([(99, 0, 0.3), *[(index, 0, 0.0) for index in range(9)], *[(0, 0, 0.0)] * 89], capacity=110)
    groups = jax.jit(group_samples)(buffer)
    drawn = np.asarray(buffer.states)[np.asarray(groups.row)[np.asarray(sample_balanced(KEY, groups, (20_000,)))]]
    counts = {state: np.sum(drawn == state) for state in [99, *range(9)]}
    assert sum(counts.values()) == 20_000
    assert counts[99] == pytest.approx(10_000, abs=5 * np.sqrt(5000))
    for state in range(9):
        assert counts[state] == pytest.approx(20_000 / 18, abs=5 * np.sqrt(20_000 / 18))
    certain = jax.jit(group_samples)(a_buffer([(1, 0, 0.0), (2, 0, 0.0)]))
    assert set(np.asarray(sample_balanced(KEY, certain, (100,)))) == {0, 1}


def test_the_surprise_and_the_caution_by_hand():
    """Errors 1 and 3 (twice): (1 + 9 + 9) / 3. A mean of 0.5 is believed with deviation 0.1 and k 2, not with 0.25."""
    surprise = Surprise.empty().add(jnp.float32(1), jnp.float32(0), 1).add(jnp.float32(0), jnp.float32(3), 2)
    assert float(surprise.mean) == pytest.approx(19 / 3)
    said = cautious(jnp.array([0.5, 0.5]), jnp.array([0.1, 0.25]), 2.0, 0.05)
    np.testing.assert_array_equal(said, np.array([0.5, 0.0], np.float32))


def test_bayes_is_the_ridge_regression():
    """40 random samples, some counted three times, beside the closed form in NumPy for each action."""
    random = np.random.default_rng(0)
    inputs, actions = random.normal(size=(40, 5)).astype(np.float32), random.integers(2, size=40)
    targets = (inputs @ random.normal(size=5) + 3 + 0.1 * random.normal(size=40)).astype(np.float32)
    copies = random.choice([1, 3], size=40)
    bayes = ESTIMATORS["bayes"](KEY, _Vectors(), ridge=0.5, k=1.5, floor=0.0)
    absorb = jax.jit(lambda bayes, *sample: bayes.absorb(*sample))
    for sample in zip(inputs, actions, targets, copies, strict=True):
        bayes = absorb(bayes, *(jnp.asarray(part) for part in sample))
    bayes, loss = jax.jit(lambda bayes: bayes.learn(KEY))(bayes)
    assert float(loss) == pytest.approx(np.sum(copies * targets**2) / np.sum(copies), rel=1e-4)
    for action in range(2):
        x = np.hstack([inputs, np.ones((40, 1))])[actions == action].astype(float)
        y, w = targets[actions == action], copies[actions == action]
        precision = 0.5 * np.eye(6) + (x * w[:, None]).T @ x
        mean = np.linalg.solve(precision, x.T @ (w * y))
        variance = (np.sum(w * y**2) - mean @ (x.T @ (w * y))) / np.sum(w)
        np.testing.assert_allclose(bayes.weights[action], mean, rtol=1e-3, atol=1e-4)
        assert float(bayes.noise[action]) == pytest.approx(np.sqrt(variance), rel=0.01)
        query = np.array([0.3, -1.0, 0.5, 2.0, 0.1, 1.0])
        expected = np.linalg.inv(precision) * variance
        assert float(query @ bayes.covariance[action] @ query) == pytest.approx(query @ expected @ query, rel=0.02)
        low = query @ mean - 1.5 * np.sqrt(query @ expected @ query)
        said = float(bayes.predict(jnp.asarray(query[:5], jnp.float32), jnp.int32(action)))
        assert said == pytest.approx(query @ mean if low > np.sqrt(variance) else 0.0, rel=1e-3)


def test_bayes_learns_what_depends_on_single_inputs_with_exact_zeros():
    """Five random bits, U = 0.03 for action 1 where the third is set, 200 samples: all 32 states x 2 actions."""
    random = np.random.default_rng(0)
    bits, actions = random.integers(2, size=(200, 5)).astype(np.float32), random.integers(2, size=200)
    samples = jnp.asarray(bits), jnp.asarray(actions), jnp.asarray(0.03 * bits[:, 2] * actions, jnp.float32)
    bayes = ESTIMATORS["bayes"](KEY, _Vectors())
    bayes = jax.jit(lambda bayes: jax.lax.scan(lambda b, s: (b.absorb(*s), None), bayes, samples)[0].learn(KEY)[0])(
        bayes
    )
    states = jnp.asarray(list(itertools.product((0.0, 1.0), repeat=5)))
    found = jax.jit(jax.vmap(jax.vmap(bayes.predict, (None, 0)), (0, None)))(states, jnp.arange(2))
    assert np.all(np.asarray(found)[:, 0] == 0)
    assert np.all(np.asarray(found)[states[:, 2] == 0] == 0)
    np.testing.assert_allclose(np.asarray(found)[states[:, 2] == 1, 1], 0.03, rtol=0.02)


class _Vectors:
    """As much of a domain as an estimator asks for: states are vectors of five numbers."""

    num_actions = 2

    def reset(self, key):
        return jnp.zeros(5)

    def inputs(self, state):
        return state

    features = inputs


def test_the_tree_evaluator_is_scikit_learns():
    """200 samples of real numbers: each tree of the arrays, and their mean, as scikit-learn predicts."""
    from sklearn.ensemble import ExtraTreesRegressor

    random = np.random.default_rng(0)
    inputs = random.normal(size=(200, 6)).astype(np.float32)
    targets = np.maximum(inputs[:, 0] * inputs[:, 1], 0).astype(np.float32)
    nodes = jax.tree.map(jnp.asarray, fit_trees(inputs, targets, 7, 8, (5, 63)))
    forest = ExtraTreesRegressor(5, max_leaf_nodes=32, max_depth=8, random_state=7).fit(inputs, targets)
    others = np.concatenate([inputs, random.normal(size=(500, 6)).astype(np.float32)])
    found = jax.jit(jax.vmap(lambda row: evaluate_trees(nodes, row, 8)))(others)
    each = np.stack([tree.predict(others) for tree in forest.estimators_], axis=1)
    np.testing.assert_allclose(found, each, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.mean(found, axis=1), forest.predict(others), rtol=1e-5, atol=1e-6)
    assert len({tree.tree_.max_depth for tree in forest.estimators_} & {5, 6, 7, 8}) > 0


def test_nearest_by_hand():
    """Samples at 0 (U 1), 2 (U 0) and 5 (U 0.5) on a line, radius 2.

    At 0 the sample itself; at 0.5 the nearer one, 1; at 1.5 the nearer one is 0; at 5.5 the only near one; at 9 none.
    """
    nearest = ESTIMATORS["nearest"](KEY, _Vectors(), capacity=8, places=8, radius=2.0)
    at = lambda place: jnp.array([place, 0, 0, 0, 0], float)  # noqa: E731
    for place, target in [(0.0, 1.0), (2.0, 0.0), (5.0, 0.5)]:
        nearest = absorb(nearest, at(place), jnp.int32(0), jnp.float32(target))
    nearest, _ = learn(nearest, KEY)
    said = [float(predict(nearest, at(place), jnp.int32(0))) for place in (0.0, 0.5, 1.5, 5.5, 9.0)]
    assert said == pytest.approx([1.0, 1.0, 0.0, 0.5, 0.0])
    assert float(predict(nearest, at(0.0), jnp.int32(1))) == 0, "a sample of another action"


def test_nearest_remembers_the_latest_of_either_kind():
    nearest = ESTIMATORS["nearest"](KEY, _Vectors(), capacity=20, places=4, radius=0.1)
    at = lambda place: jnp.array([place, 0, 0, 0, 0], float)  # noqa: E731
    for place in range(12):
        nearest = absorb(nearest, at(place), jnp.int32(0), jnp.float32(place % 3 == 0))
    nearest, _ = learn(nearest, KEY)
    assert sorted(np.asarray(nearest.points)[:, 0].tolist()) == [6.0, 9.0, 10.0, 11.0]


class _Noisy(Estimator):
    """Says what the state says."""

    def predict(self, state, action):
        return state


def test_the_gate_lets_no_more_through_than_it_says():
    """499 samples held out, level 0.1, then 20,000 fresh ones with U = 0; 30 times over.

    The share let through has mean 50 / 500 = 0.1 exactly and, for given held-out samples, a beta distribution of
    standard deviation 0.0134: the mean of 30 lies within 5 x 0.0134 / sqrt(30) of it (false alarm 1 in a million).
    """

    def share(key):
        held, new = jax.random.split(key)
        gate = Gated.around(_Noisy(), jnp.float32(0), capacity=5 * 499, level=0.1)
        samples = jax.random.normal(held, (5 * 499,))
        absorb = lambda gate, value: (gate.absorb(value, jnp.int32(0), jnp.float32(0)), None)  # noqa: E731
        gate = jax.lax.scan(absorb, gate, samples)[0]
        gate, _ = gate.learn(key)
        fresh = jax.random.normal(new, (20_000,))
        return gate.buffer.count, jnp.mean(jax.vmap(gate.predict, (0, None))(fresh, jnp.int32(0)) != 0)

    counts, shares = jax.jit(jax.vmap(share))(jax.random.split(KEY, 30))
    assert np.all(np.asarray(counts) == 499)
    assert float(np.mean(shares)) == pytest.approx(0.1, abs=5 * 0.0134 / np.sqrt(30))


def test_the_gate_is_shut_while_too_little_is_held_out():
    """Level 0.1 needs 9 samples held out: 8 would promise too much. What passes is what the estimator says."""
    for number, said in [(8, 0.0), (9, 20.0)]:
        gate = Gated.around(_Noisy(), jnp.float32(0), capacity=100, level=0.1, every=2)
        for value in range(2 * number):
            gate = absorb(gate, jnp.float32(value), jnp.int32(0), jnp.float32(0))
        gate, _ = learn(gate, KEY)
        assert float(predict(gate, jnp.float32(20), jnp.int32(0))) == said


def test_the_gate_holds_out_what_the_estimator_never_sees():
    """Of samples with U = 0 every fifth goes to the gate, the others, and all with U > 0, to the estimator."""
    gate = make_estimator("linear+gate", KEY, DOMAIN, capacity=64, minibatches=1)
    state = DOMAIN.reset(KEY)
    absorb = jax.jit(lambda gate, target: gate.absorb(state, jnp.int32(0), target))
    for index in range(20):
        gate = absorb(gate, jnp.float32(index % 2))
    assert int(gate.buffer.count) == 2
    assert int(gate.inner.regression.buffer.count) == 18
    roomy = eqx.tree_at(lambda gate: gate.met, gate, gate.met).reserve(500)
    assert roomy.buffer.capacity >= 102
    assert roomy.inner.regression.buffer.capacity >= 518
