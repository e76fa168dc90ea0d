"""UCB and UA-UCB: pulls by hand, the same pulls by a few lines of Python, regret, Theorem 1, bad input.

Seeds are fixed, so no test fails by chance; the tolerances are what chance would allow.
"""

import math
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import uamcts
from uamcts import bandits
from uamcts.bandits import arguments
from uamcts.bandits import runs as engine
from uamcts.randomness import seed_of

KEY = jax.random.key(0)


def constant(observed, real):
    """Arms that always pay the same."""
    return bandits.from_rewards(np.array(observed)[:, None], np.array(real)[:, None])


# Pulls, by hand and by a few lines of Python.


def by_hand(means, delta, c, steps):
    """The arms that constant rewards lead to."""
    counts, pulled = [1] * len(means), list(range(len(means)))
    for t in range(len(means) + 1, steps + 1):
        width = [c * math.sqrt(math.log(t - 1) / count) for count in counts]
        scores = [x + w * (1 - d) for x, w, d in zip(means, width, delta, strict=True)]
        pulled.append(scores.index(max(scores)))
        counts[pulled[-1]] += 1
    return pulled


# Rewards 0.75 and 0.25, always; c = 1. With N = (1, 1) at t = 3 the width is sqrt(ln 2) = 0.833, of which delta = 0.25
# leaves 0.624, and so on. At t = 4 and 5 it matters that the logarithm is that of t - 1.
#
#        UCB                                              UA-UCB, delta = (0.25, 0)
#   t    N        scores                        pull      N        scores                        pull
#   3    (1, 1)   0.75 + 0.833  0.25 + 0.833     0        (1, 1)   0.75 + 0.624  0.25 + 0.833     0
#   4    (2, 1)   0.75 + 0.741  0.25 + 1.048     0        (2, 1)   0.75 + 0.556  0.25 + 1.048     0
#   5    (3, 1)   0.75 + 0.680  0.25 + 1.177     0        (3, 1)   0.75 + 0.510  0.25 + 1.177     1
#   6    (4, 1)   0.75 + 0.634  0.25 + 1.269     1        (3, 2)   0.75 + 0.549  0.25 + 0.897     0
#   7    (4, 2)   0.75 + 0.669  0.25 + 0.947     0        (4, 2)   0.75 + 0.502  0.25 + 0.947     0
#   8    (5, 2)   0.75 + 0.624  0.25 + 0.986     0        (5, 2)   0.75 + 0.468  0.25 + 0.986     1
#   9    (6, 2)   0.75 + 0.589  0.25 + 1.020     0        (5, 3)   0.75 + 0.484  0.25 + 0.833     0
#  10    (7, 2)   0.75 + 0.560  0.25 + 1.048     0        (6, 3)   0.75 + 0.454  0.25 + 0.856     0
#  11    (8, 2)   0.75 + 0.536  0.25 + 1.073     1        (7, 3)   0.75 + 0.430  0.25 + 0.876     0
#
# With delta = (0, 0.25) arm 1 has its turn when 0.25 + 0.75 sqrt(ln(t - 1)) > 0.75 + sqrt(ln(t - 1) / (t - 2)): at
# t = 9, 0.25 + 1.081 > 0.75 + 0.545 (at t = 8: 0.25 + 1.046 < 0.75 + 0.569). Its next is not among the first twenty: at
# t = 20, 0.25 + 0.910 < 0.75 + 0.416.
BY_HAND = {
    (0.0, 0.0): [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0],
    (0.25, 0.0): [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0],
    (0.0, 0.25): [0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
}


@pytest.mark.parametrize("delta", BY_HAND)
def test_the_first_twenty_pulls(delta):
    arms = constant([0.75, 0.25], np.array([0.75, 0.25]) + delta)
    pulled = bandits.arms_pulled(KEY, arms, steps=20, runs=1, c=1.0, delta=arms.delta)
    assert arms.delta.tolist() == list(delta)
    assert pulled.tolist() == [BY_HAND[delta]]
    assert by_hand([0.75, 0.25], delta, 1.0, 20) == BY_HAND[delta]


def test_equal_scores_go_to_the_first_arm():
    """Three equal arms are pulled in turn: after 3, 6, 9 .. pulls all scores are the same number."""
    pulled = bandits.arms_pulled(KEY, constant([0.3] * 3, [0.3] * 3), steps=30, runs=2)
    assert pulled.tolist() == [[0, 1, 2] * 10] * 2


WORD = 2**32 - 1


def word(number):
    """The hash of randomness.py on Python's integers."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        number = ((number ^ (number >> shift)) * factor) & WORD
    return number ^ (number >> 16)


def plain_run(seed, run, observed, delta, c, steps):
    """One run with Bernoulli arms in Python, in doubles: arms and rewards."""
    golden, start = 0x9E3779B9, word((seed[1] + run * 0x9E3779B9) & WORD)
    counts, sums, pulled = [0] * len(observed), [0] * len(observed), []
    for t in range(1, steps + 1):
        arm = t - 1
        if t > len(observed):
            scores = [
                sums[i] / counts[i] + c * math.sqrt(math.log(t - 1) / counts[i]) * (1 - delta[i])
                for i in range(len(observed))
            ]
            arm = scores.index(max(scores))
        draw = (word(word((seed[0] + t * golden) & WORD) ^ start) >> 8) / 2**24
        counts[arm], sums[arm] = counts[arm] + 1, sums[arm] + (draw < observed[arm])
        pulled.append(arm)
    return pulled


@pytest.mark.parametrize("adapted", [False, True])
def test_random_runs_are_those_of_plain_python(adapted):
    arms = bandits.bernoulli([0.7, 0.5, 0.75, 0.2], [0.7, 0.25, 0.5, 0.2])
    delta = arms.delta if adapted else np.zeros(4)
    seed = [int(number) for number in seed_of(KEY)]
    expected = [plain_run(seed, run, arms.observed, delta, 1.2, 400) for run in range(3)]
    pulled = bandits.arms_pulled(KEY, arms, steps=400, runs=3, c=1.2, delta=delta)
    assert pulled.tolist() == expected
    assert expected[0] != expected[1] != expected[2]


def test_without_corruption_ua_ucb_is_ucb_pull_for_pull():
    arms = bandits.beta([0.7, 0.5, 0.6], [0.7, 0.5, 0.6])
    plain, adapted = (bandits.arms_pulled(KEY, arms, 500, 20, delta=delta) for delta in (0.0, arms.delta))
    np.testing.assert_array_equal(plain, adapted)
    np.testing.assert_array_equal(bandits.ucb(KEY, arms, 500, 20).regret, bandits.ua_ucb(KEY, arms, 500, 20).regret)
    corrupted = bandits.arms_pulled(KEY, arms, 500, 20, delta=[0.3, 0.0, 0.0])
    assert np.any(corrupted != plain), "delta made no difference: this compared nothing"


# Properties.

some_means = st.integers(0, 20).map(lambda number: number / 20)
some_arms = st.integers(2, 4).flatmap(
    lambda count: st.tuples(*[st.lists(some_means, min_size=count, max_size=count)] * 2)
)


@settings(max_examples=30)
@given(some_arms, st.sampled_from([0.0, 0.5, 2**0.5]), st.booleans(), st.integers(0, 2**31))
def test_every_pull_takes_a_greatest_score_and_regret_counts_real_means(means, c, known, seed):
    """Scores anew in doubles from constant rewards, so that the rewards of a run are known from its arms."""
    arms, key, steps = constant(*means), jax.random.key(seed), 60
    delta = arms.delta if known else np.zeros(arms.arms)
    pulled = bandits.arms_pulled(key, arms, steps, 2, c, delta)
    assert pulled[:, : arms.arms].tolist() == [list(range(arms.arms))] * 2
    for t in range(arms.arms + 1, steps + 1):
        counts = np.bincount(pulled[0, : t - 1], minlength=arms.arms)
        scores = arms.observed + c * np.sqrt(math.log(t - 1) / counts) * (1 - delta)
        assert scores[pulled[0, t - 1]] >= scores.max() - 1e-5
    found = bandits.play(key, arms, steps, 2, c, delta, checkpoints=[arms.arms, 17, steps])
    losses = np.cumsum(arms.gaps[pulled], axis=1)
    np.testing.assert_allclose(found.regret, losses[:, [arms.arms - 1, 16, steps - 1]].T, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.counts[0], np.bincount(pulled[0], minlength=arms.arms))


def test_runs_do_not_depend_on_how_many_there_are():
    arms = bandits.beta([0.7, 0.5, 0.6], [0.7, 0.3, 0.6])
    few, many = (bandits.ua_ucb(KEY, arms, 300, runs) for runs in (3, 101))
    np.testing.assert_array_equal(few.regret, many.regret[:, :3])
    assert len(set(many.regret[-1].tolist())) > 50


def test_one_program_whatever_the_steps():
    """Nothing in it has a size that depends on the steps: this is what keeps memory flat."""
    arms, program = bandits.bernoulli([0.7, 0.5], [0.7, 0.3]), engine._regret
    bandits.ucb(KEY, arms, 50, 7, checkpoints=[20, 50])
    before = program._cache_size()
    longer = bandits.ua_ucb(KEY, arms, 50_000, 7, c=0.3, checkpoints=[1000, 50_000])
    assert program._cache_size() == before
    assert longer.counts.sum(axis=1).tolist() == [50_000] * 7


# Rewards.


@pytest.mark.parametrize("kind", [bandits.bernoulli, bandits.beta])
def test_rewards_have_their_means_and_do_not_hang_together(kind):
    """2,000 runs x 50 pulls: five standard errors of a mean are 0.008, of a correlation 0.016."""
    arms, steps, runs = kind([0.3, 0.8], [0.3, 0.8]), 50, 2000
    known = arguments.observed_arms(arms, steps)
    start, _ = engine._begin(seed_of(KEY), known, runs)
    words = jax.vmap(lambda t: engine._word(seed_of(KEY), start, t))(jnp.arange(1, steps + 1))
    for arm, mean in enumerate([0.3, 0.8]):
        drawn = engine._reward(known, jnp.full(words.shape, arm), words) * known.unit
        variance = mean * (1 - mean) / (1 if kind is bandits.bernoulli else 5)  # Beta: m (1 - m) / (v + 1), v = 4
        assert float(drawn.mean()) == pytest.approx(mean, abs=0.008)
        assert float(drawn.var()) == pytest.approx(variance, rel=0.05)
        for one, other in ((drawn[1:], drawn[:-1]), (drawn[:, 1:], drawn[:, :-1])):
            assert abs(np.corrcoef(np.ravel(one), np.ravel(other))[0, 1]) < 0.016


@settings(max_examples=50)
@given(st.lists(some_means, min_size=2, max_size=5), st.sampled_from([0.1, 1.0, 4.0, 50.0]))
def test_beta_tables(means, concentration):
    """The mean is right to a millionth, the variance m (1 - m) / (v + 1), the ends are constant."""
    table = bandits.beta(means, means, concentration).observed_rewards
    means = np.array(means)
    np.testing.assert_allclose(table.mean(axis=1), means, atol=1e-6)
    np.testing.assert_allclose(table.var(axis=1), means * (1 - means) / (concentration + 1), atol=2e-5)
    assert np.all(np.diff(table, axis=1) >= -1e-12)


# An estimated delta.


def test_delta_from_pairs_by_hand():
    observed, real = [[1, 0], [1, 0], [0, 1]], [[0, 0], [1, 1], [0, 1]]
    np.testing.assert_allclose(bandits.delta_from_pairs(observed, real), [1 / 3, 1 / 3])


def test_the_estimate_comes_closer_with_more_pairs():
    """It is a distance, so noise makes it too great, least where delta is large; 400 runs."""
    arms = bandits.bernoulli([0.5, 0.9, 0.2], [0.5, 0.3, 0.3])
    few, many = (bandits.estimate_delta(KEY, arms, pairs, 400) for pairs in (10, 1000))
    assert few.shape == (400, 3)
    assert np.all((few >= 0) & (few <= 1))
    assert np.abs(many - arms.delta).mean() < np.abs(few - arms.delta).mean() / 5
    # |normal| of variance 2 * 0.25 / 10 has the mean sqrt(2 / pi) * 0.2236 = 0.178; of 1,000 pairs a tenth of it.
    np.testing.assert_allclose([few[:, 0].mean(), many[:, 0].mean()], [0.178, 0.0178], rtol=0.15)
    np.testing.assert_allclose(few.mean(axis=0)[1], 0.6, atol=5 * math.sqrt((0.09 + 0.21) / 10 / 400))


def test_ua_ucb_with_an_exact_estimate_is_ua_ucb():
    """Constant rewards: one pair tells all."""
    arms = constant([0.75, 0.5, 0.25], [0.25, 0.5, 0.25])
    known, estimated = (bandits.ua_ucb(KEY, arms, 300, 4, pairs=pairs) for pairs in (None, 1))
    np.testing.assert_array_equal(known.regret, estimated.regret)
    assert np.any(known.regret != bandits.ucb(KEY, arms, 300, 4).regret)


# Theorem 1.


def test_the_bound_by_hand():
    """K = 2, n = 4, c = 1, delta = (0, 0.25): beta = (1, 9/16); observed gap 0.5, real gap 0.75.

    Arm 1: 4 * 9/16 * ln 3 / 0.25 = 9 ln 3 pulls, plus t = 3, 4: 4 (2^(-9/8) + 3^(-9/8)) + 4 (2^-2 + 3^-2);
    times 0.5 + 0.25 + 0.75 - 0.75.
    """
    arms = bandits.bernoulli([0.75, 0.25], [0.75, 0.0])
    tail = 4 * (2 ** (-9 / 8) + 3 ** (-9 / 8)) + 4 * (1 / 4 + 1 / 9)
    assert bandits.bound(arms, 4, c=1.0) == pytest.approx((9 * math.log(3) + tail) * 0.75)
    plain = (16 * math.log(3) + 8 * (1 / 4 + 1 / 9)) * 0.75  # UCB: both beta are 1
    assert bandits.bound(arms, 4, c=1.0, adapted=False) == pytest.approx(plain)
    np.testing.assert_allclose(bandits.bound(arms, np.array([4, 9, 4]), 1.0)[[0, 2]], bandits.bound(arms, 4, 1.0))


def test_the_tighter_bound_is_not_always_ua_ucbs():
    """The paper compares the leading terms. If only the best arm is corrupted they are equal, and the sums are not."""
    decoy, best = bandits.bernoulli([0.8, 0.6], [0.8, 0.3]), bandits.bernoulli([0.6, 0.5], [1.0, 0.5])
    assert bandits.bound(decoy, 10_000) < bandits.bound(decoy, 10_000, adapted=False)
    assert bandits.bound(best, 10_000) > bandits.bound(best, 10_000, adapted=False)


def test_the_threshold():
    assert bandits.threshold(2**0.5) == pytest.approx(0.5)
    assert bandits.threshold(1.0) == pytest.approx(1 - math.sqrt(0.5))
    assert bandits.exploration_weights(bandits.threshold(1.7), 1.7) == pytest.approx(0.5)
    at_it = bandits.bernoulli([0.9, 0.6], [0.9, 0.1])
    assert bandits.bound(at_it, 100) > 0


@pytest.mark.parametrize(
    ("observed", "real", "options", "message"),
    [
        ([0.9, 0.6], [0.9, 0.05], {}, r"delta\[1\] is 0.55, above .* = 0.5 for c"),
        ([0.9, 0.8], [0.5, 0.8], {}, "arm 0 is the best by its observed mean 0.9 but not by its real one"),
        ([0.8, 0.8], [0.8, 0.6], {}, "arm 1 is the best by its observed mean"),
        ([0.9, 0.6], [0.9, 0.6], {"c": 0.7}, "c is 0.7; below"),
        ([0.9, 0.6], [0.9, 0.6], {"c": 0.0}, "c is 0.0; it must be"),
        ([0.9, 0.6], [0.9, 0.6], {"steps": 2}, "steps is 2; with 2 arms the bound holds from 3"),
        ([0.9, 0.6], [0.9, 0.6], {"steps": [10, 1]}, "steps is 1; "),
        ([0.9, 0.6], [0.9, 0.6], {"steps": 7.5}, "steps is 7.5; it must be a whole number"),
    ],
)
def test_where_the_bound_is_refused(observed, real, options, message):
    with pytest.raises(ValueError, match=message):
        bandits.bound(bandits.bernoulli(observed, real), **{"steps": 100, **options})


def test_the_printed_bound_is_wrong_for_two_pulls():
    """Why n = 2 is refused: 4 beta ln(1) = 0 and the sums are empty, yet both arms were played."""
    arms = bandits.bernoulli([0.9, 0.6], [0.9, 0.6])
    assert bandits.ucb(KEY, arms, 2, 1).regret[-1, 0] == pytest.approx(0.3)


def test_ucb_needs_no_threshold():
    """Its beta is c^2 whatever delta is; only the order of the arms matters."""
    assert bandits.bound(bandits.bernoulli([0.9, 0.8], [0.2, 0.1]), 100, adapted=False) > 0


@st.composite
def valid_instances(draw):
    """A bandit of four arms and a c for which Theorem 1 holds: the same best arm, deltas up to the threshold."""
    c = draw(st.sampled_from([0.75, 1.0, 2**0.5, 2.0]))
    limit = bandits.threshold(c)
    shares = st.floats(0, 1)
    real = np.array([draw(shares)] * 4) * [1, *(draw(shares) for _ in range(3))]
    best = np.clip(draw(shares), real[0] - limit, real[0] + limit)
    wished = np.array([best] * 4) * [1, *(draw(shares) for _ in range(3))]
    observed = np.clip(wished, np.maximum(real - limit, 0), np.minimum(real + limit, 1))
    assume(np.all(observed[1:] < observed[0] - 0.01))
    order = draw(st.permutations(range(4)))
    kind = draw(st.sampled_from([bandits.bernoulli, bandits.beta]))
    return kind(observed[order], real[order]), c


@settings(max_examples=60)
@given(valid_instances(), st.booleans(), st.integers(0, 2**31))
def test_regret_is_below_the_bound(instance, adapted, seed):
    """The mean of 100 runs, at five times."""
    arms, c = instance
    times = np.array([4, 8, 30, 200, 1000])
    strategy = bandits.ua_ucb if adapted else bandits.ucb
    regret = strategy(jax.random.key(seed), arms, 1000, 100, c, times).mean
    assert np.all(regret <= bandits.bound(arms, times, c, adapted) + 1e-9)


# Growth.


def resampled_kinds(regret, times=100):
    """The kind of growth over the last decade in bootstrap samples of the runs."""
    late, rng = regret.checkpoints >= regret.checkpoints[-1] / 10, np.random.default_rng(0)
    runs = regret.regret[late]
    means = (runs[:, rng.integers(runs.shape[1], size=runs.shape[1])].mean(axis=1) for _ in range(times))
    return {bandits.growth(regret.checkpoints[late], mean).kind for mean in means}


@pytest.mark.parametrize(
    ("family", "delta", "ucb", "ua_ucb"),
    [
        # c = 1: the threshold is 0.293
        pytest.param("shifted", 0.0, "logarithmic", "logarithmic", marks=pytest.mark.long),
        pytest.param("shifted", 0.2, "logarithmic", "logarithmic", marks=pytest.mark.long),
        ("shifted", 0.4, "logarithmic", "logarithmic"),  # beyond it, and still not linear: see docs/results/bandits.md
        ("shifted", 0.8, "logarithmic", "linear"),
        pytest.param("misleading", 0.1, "logarithmic", "logarithmic", marks=pytest.mark.long),
        ("misleading", 0.2, "logarithmic", "logarithmic"),
        ("misleading", 0.4, "linear", "linear"),
        pytest.param("misleading", 0.8, "linear", "linear", marks=pytest.mark.long),
    ],
)
def test_growth_on_both_sides_of_the_threshold(family, delta, ucb, ua_ucb):
    """The same in each of 100 bootstrap samples of 300 runs: were it a toss-up, one in 2^99."""
    (case,) = bandits.regret_against_delta(KEY, [delta], family, runs=300)
    assert resampled_kinds(case.ucb) == {ucb}
    assert resampled_kinds(case.ua_ucb) == {ua_ucb}
    assert np.isfinite(case.ua_ucb_bound[-1]) == (delta < bandits.threshold(1.0))
    assert np.isfinite(case.ucb_bound[-1]) == (ucb == "logarithmic")


def test_beyond_the_observed_order_every_pull_costs_the_same():
    """The last tenth of the pulls, against what the theory of a wrong favourite says: the slope, within 3%."""
    arms = bandits.bernoulli([0.5, 0.7], [0.9, 0.7])
    assert bandits.linear_rate(arms) == pytest.approx(0.2)
    found = bandits.ua_ucb(KEY, arms, 10_000, 100, checkpoints=[9_000, 10_000])
    assert np.diff(found.mean)[0] / 1000 == pytest.approx(0.2, rel=0.03)


def test_growth_of_known_curves():
    times = np.arange(1, 200) * 10
    log, line = bandits.growth(times, 5 * np.log(times)), bandits.growth(times, 2.0 * times)
    assert (log.kind, line.kind) == ("logarithmic", "linear")
    assert log.logarithmic_error == pytest.approx(0, abs=1e-9)
    assert line.exponent == pytest.approx(1)


# The data of the figures.


def apart(better, worse):
    """Whether the intervals of 99.9% at the end do not meet."""
    return better.interval(0.999)[1][-1] < worse.interval(0.999)[0][-1]


def test_ua_ucb_wins_where_decoys_are_corrupted():
    case = bandits.regret_over_time(KEY, steps=5000, runs=100)
    assert apart(case.ua_ucb, case.ucb)
    assert apart(case.estimated, case.ucb)
    assert np.all(case.ua_ucb.mean < case.ua_ucb_bound)
    assert np.all(case.ucb.mean < case.ucb_bound)
    assert case.ua_ucb_bound[-1] < case.ucb_bound[-1]


def test_ua_ucb_loses_where_the_corrupted_arm_is_the_best():
    case = bandits.losing_case(KEY, steps=5000, runs=100)
    assert case.bandit.delta.argmax() == case.bandit.best
    assert apart(case.ucb, case.ua_ucb)
    assert case.ua_ucb_bound[-1] > case.ucb_bound[-1]


def test_intervals_cover_the_mean():
    """200 intervals of 90% over 50 runs each, about the mean of all: at least 167 cover, or 1 in 1,000 by chance."""
    found = bandits.ucb(KEY, bandits.bernoulli([0.6, 0.4], [0.6, 0.4]), 200, 10_000, checkpoints=[200])
    parts = [bandits.Regret(found.checkpoints, part, found.counts) for part in np.split(found.regret, 200, axis=1)]
    covered = sum(bool(part.interval(0.9)[0] <= found.mean <= part.interval(0.9)[1]) for part in parts)
    assert 167 <= covered <= 192


def test_the_worst_case():
    """Where delta exceeds the gap some instance is linear, below the threshold as well as above it."""
    rows = bandits.worst_case(KEY, [0.05, 0.3], gaps=[0.2], arms=[2, 3], cs=[2**0.5], steps=3000, runs=50)
    assert [(row.algorithm, row.delta, row.arms) for row in rows] == [
        (algorithm, delta, arms) for arms in (2, 3) for delta in (0.05, 0.3) for algorithm in ("ucb", "ua_ucb")
    ]
    for row in rows:
        assert row.low <= row.regret <= row.high
        assert math.isnan(row.bound) == (row.delta > row.gap)
        if row.delta > row.gap:
            assert row.exponent > 0.9
        else:
            assert row.regret < row.bound


# Bad input.

GOOD = bandits.bernoulli([0.5, 0.6], [0.5, 0.4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bandits.bernoulli([0.5, 1.2], [0.5, 0.5]), r"observed\[1\] is 1.2; means must lie in \[0, 1\]"),
        (lambda: bandits.bernoulli([0.5, 0.2], [-0.1, 0.5]), r"real\[0\] is -0.1"),
        (lambda: bandits.bernoulli([0.5, math.nan], [0.5, 0.5]), r"observed\[1\] is nan"),
        (lambda: bandits.bernoulli([0.5], [0.5]), "observed has 1 mean.*at least 2 arms"),
        (lambda: bandits.bernoulli([[0.5, 0.5]], [0.5, 0.5]), r"observed has the shape \(1, 2\)"),
        (lambda: bandits.bernoulli([0.5, 0.5], [0.5] * 3), "real has 3 means and observed 2"),
        (lambda: bandits.bernoulli([0.5, 0.6], [0.5, 0.4], [0.0, 0.3]), r"delta\[1\] is 0.3, but .* is 0.2 there"),
        (lambda: bandits.bernoulli([0.5, 0.6], [0.5, 0.4], [0.2]), r"delta has the shape \(1,\)"),
        (lambda: bandits.beta([0.5, 0.6], [0.5, 0.4], concentration=0), "concentration is 0"),
        (lambda: bandits.beta([0.5, 1.6], [0.5, 0.4]), r"observed\[1\] is 1.6"),
        (lambda: bandits.from_rewards([[0.5], [7.0]], [[0.5], [0.5]]), r"observed contains the reward 7.0"),
        (lambda: bandits.from_rewards([0.5, 0.7], [[0.5], [0.5]]), r"observed has the shape \(2,\)"),
        (lambda: bandits.Bandit([0.5, 0.6], [0.5, 0.4], None, [[0.5], [0.4]]), "observed_rewards .* from_rewards"),
        (lambda: bandits.ucb(KEY, GOOD, 1, 10), "steps is 1 and there are 2 arms"),
        (lambda: bandits.ucb(KEY, GOOD, 10.0, 10), "steps is 10.0; it must be a whole number"),
        (
            lambda: bandits.ucb(KEY, GOOD, 10**9, 10),
            "steps is 1000000000; it must be a whole number from 1 to 16777216",
        ),
        (lambda: bandits.ucb(KEY, GOOD, 10, 0), "runs is 0"),
        (lambda: bandits.ucb(KEY, GOOD, 10, 1, c=-1.0), "c is -1.0"),
        (lambda: bandits.ucb(KEY, GOOD, 10, 1, checkpoints=[1, 5]), r"checkpoints is \[1, 5\]; .* from 2"),
        (lambda: bandits.ucb(KEY, GOOD, 10, 1, checkpoints=[5, 5]), "checkpoints is"),
        (lambda: bandits.ucb(KEY, GOOD, 10, 1, checkpoints=[5, 50]), "checkpoints is"),
        (lambda: bandits.play(KEY, GOOD, 10, 1, delta=[0.1, 1.5]), "delta goes from 0.1 to 1.5"),
        (lambda: bandits.play(KEY, GOOD, 10, 1, delta=[0.1] * 3), r"delta has the shape \(3,\)"),
        (lambda: bandits.ua_ucb(KEY, GOOD, 10, 1, pairs=0), "pairs is 0"),
        (lambda: bandits.delta_from_pairs([[1, 0]], [[1, 0], [1, 1]]), r"observed is \(1, 2\) and real \(2, 2\)"),
        (lambda: bandits.delta_from_pairs([[1, 2]], [[1, 0]]), "observed has rewards from 1.0 to 2.0"),
        (lambda: bandits.ucb(KEY, GOOD, 10, 1).interval(), "there are 1 runs"),
        (lambda: bandits.threshold(-1.0), "c is -1.0"),
        (lambda: bandits.regret_against_delta(KEY, [0.1], "turned"), "family is 'turned'; there are 'shifted'"),
        (lambda: bandits.regret_against_delta(KEY, [0.95]), r"deltas is \[0.95\]; .* \[0, 0.8\]"),
        (lambda: bandits.regret_against_delta(KEY, [0.1], "misleading", c=0.5), "c is 0.5"),
        (lambda: bandits.worst_case(KEY, [0.9], steps=10, runs=2), "deltas contains 0.9"),
        (lambda: bandits.growth([1, 2], [1, 2]), "at least 3"),
        (lambda: bandits.growth([1, 2, 3], [0, 1, 2]), r"regret\[0\] 0.0; start where both"),
    ],
)
def test_bad_input_gets_a_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_example_in_a_reduced_form():
    command = [sys.executable, str(Path(__file__).parents[1] / "examples" / "bandits.py"), "--runs", "40"]
    output = subprocess.run([*command, "--steps", "200"], capture_output=True, text=True, check=True).stdout
    assert output.count("bound") == 5
    assert output.count("; U = |o - x|") == 2
    assert output.count("\n") == 8 + 22 + 1 + 72 + (1 + 10) + (1 + 3), "two drawings, of ten arms and of three"


def test_bandits_is_a_public_name():
    assert uamcts.bandits is bandits
    for name in bandits.__all__:
        assert getattr(bandits, name) is not None
