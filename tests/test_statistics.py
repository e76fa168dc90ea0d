"""Statistics of runs: numbers computed by hand, coverage, properties, and made-up tables of episodes."""

import json

import numpy as np
import pytest
from episode_tables import empty, rows, together
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from uamcts.lab.analysis import statistics
from uamcts.lab.analysis.groups import best_c, group_runs
from uamcts.lab.analysis.paired import differences
from uamcts.presets import EXPLORATION

SAMPLES = arrays.arrays(np.float64, st.integers(1, 12), elements=st.integers(-5, 5).map(float))


def difference_of_means(first, second, axis=-1):
    return np.mean(first, axis=axis) - np.mean(second, axis=axis)


def test_numbers_by_hand():
    sample = np.array([1.0, 2.0, 3.0, 10.0])
    assert statistics.mean(sample) == 4
    assert statistics.standard_deviation(sample) == pytest.approx(np.sqrt((9 + 4 + 1 + 36) / 4))
    assert statistics.interquartile_mean(sample) == 2.5  # one of four is left out at either end


def test_interval_is_that_of_resampling_written_out():
    sample = np.random.default_rng(5).exponential(size=40)
    generator = np.random.default_rng(9)
    means = [np.mean(generator.choice(sample, 40)) for _ in range(20_000)]
    expected = np.percentile(means, [2.5, 97.5])
    found = statistics.interval(statistics.mean, sample)
    assert found == pytest.approx(expected, abs=0.1 * (expected[1] - expected[0]))
    assert np.array_equal(found, statistics.interval(statistics.mean, sample))  # the seed is fixed
    assert not np.array_equal(found, statistics.interval(statistics.mean, sample, seed=1))


def test_intervals_of_many_samples_are_those_of_each():
    samples = np.random.default_rng(0).normal(size=(3, 20))
    together_ = statistics.interval(statistics.mean, samples)
    assert together_.shape == (3, 2)
    assert together_[1] == pytest.approx(statistics.interval(statistics.mean, samples[1]))


def test_coverage():
    """Of 1,000 intervals of 60 exponential draws 95 % should hold the mean, 1; skewness costs some 2 %.

    At a true coverage of 93 % fewer than 900 or more than 960 have a chance below 0.001.
    """
    samples = np.random.default_rng(3).exponential(size=(1000, 60))
    low, high = statistics.interval(statistics.mean, samples).T
    assert 900 < np.sum((low < 1) & (high > 1)) < 960


def test_a_lower_level_is_a_narrower_interval():
    """Normal draws: 90 % is 1.645 standard errors to either side, 95 % 1.96."""
    sample = np.random.default_rng(1).normal(size=400)
    error = sample.std() / 20
    for level, width in ((0.9, 1.645), (0.95, 1.96)):
        low, high = statistics.interval(statistics.mean, sample, level=level)
        assert high - low == pytest.approx(2 * width * error, rel=0.06)


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == [1, 1]
    assert statistics.holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_nothing_and_bonferroni(chances):
    for chance, adjusted in zip(chances, statistics.holm(chances), strict=True):
        assert chance <= adjusted <= min(1, len(chances) * max(chances))
    assert min(statistics.holm(chances)) == pytest.approx(min(1, len(chances) * min(chances)))


def test_planners_are_compared_seed_by_seed():
    """The seeds differ by far more than the planners; what is the same seed's for both cancels."""
    random = np.random.default_rng(0)
    seeds = 100 * random.normal(size=200)
    better, order = seeds + 1 + random.normal(size=200), random.permutation(200)
    table = together(
        rows("world", "combined", seeds, purpose="fresh", seed=np.arange(200)),
        rows("world", "trust", better[order], purpose="fresh", seed=np.arange(200)[order], rules="trust"),
        rows("world", "combined", seeds[:150], purpose="fresh", seed=np.arange(150), tau=10.0),
        rows("world", "corrupted", seeds, purpose="sweep"),
        rows("other", "combined", seeds, purpose="fresh"),
        rows("other", "combined", seeds, purpose="fresh", rules="pseudocode"),
    )
    found = differences(table)
    assert [(one["first_algorithm"], one["second_algorithm"], one["runs"]) for one in found] == [
        ("trust", "combined", 200), ("combined", "combined", 150), ("combined", "trust", 150)
    ]  # fmt: skip
    first = found[0]
    assert first["mean"] == pytest.approx(np.mean(better - seeds), abs=1e-4)
    assert first["ci95"][1] - first["ci95"][0] == pytest.approx(2 * 1.96 / np.sqrt(200), rel=0.15)  # of the noise alone
    assert first["ci95"][0] < first["mean"] < first["ci95"][1]
    assert first["p"] < 1e-10
    assert first["p_holm"] == pytest.approx(3 * first["p"])
    assert (found[1]["mean"], found[1]["ci95"], found[1]["p"]) == (0, [0, 0], 1)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert differences(empty()) == []


def test_constant_and_tiny_samples():
    assert statistics.interval(statistics.mean, np.full(10, 3.0)).tolist() == [3, 3]
    assert np.isnan(statistics.interval(statistics.mean, np.array([3.0]))).all()
    assert statistics.interval(statistics.interquartile_mean, np.array([0.0, 1.0])).tolist() == [0, 1]
    one, two = np.array([1.0]), np.array([1.0, 2.0])
    assert np.isnan(statistics.interval(difference_of_means, one, two)).all()
    assert statistics.interval(difference_of_means, two, two).tolist() == [-1, 1]
    with pytest.raises(ValueError, match="at least one run"):
        statistics.interval(statistics.mean, np.array([]))


@given(SAMPLES)
def test_interquartile_mean_lies_between_the_quartiles(sample):
    low, high = np.percentile(sample, [25, 75])
    assert low - 1e-9 <= statistics.interquartile_mean(sample) <= high + 1e-9


@given(SAMPLES, st.integers(1, 15))
def test_moving_average(values, window):
    expected = [np.mean(values[max(0, place + 1 - window) : place + 1]) for place in range(len(values))]
    assert statistics.moving_average(values, window) == pytest.approx(np.array(expected))


def test_best_c_takes_the_first_of_equal_means():
    half, one, root, two = EXPLORATION
    table = together(
        rows("freeway", "true", [1, 1], c=two),
        rows("freeway", "true", [1, 1], c=one),
        rows("freeway", "true", [1, 0], c=half),
        rows("freeway", "corrupted", [0, 0], c=half),
        rows("freeway", "corrupted", [0, 1], c=root),
        rows("freeway", "corrupted", [1, 1], c=two, purpose="fresh"),
        rows("freeway", "corrupted", [1, 1], c=two, rules="pseudocode"),
    )
    best = best_c(group_runs(table))
    assert best["freeway", "freeway", "true", "released", 0.1] == one
    assert best["freeway", "freeway", "corrupted", "released", 0.1] == root
    marked = [(row["algorithm"], row["rules"], row["c"]) for row in statistics.summarise(table) if row["best"]]
    assert marked == [("true", "released", one), ("corrupted", "released", root), ("corrupted", "pseudocode", two)]


def test_summary_by_hand():
    offline = rows("two_way", "true", [10, 0, 10, 0], steps=[10, 50, 20, 50], ended=[True, False, True, False])
    online = rows(
        "two_way", "combined", [[0, 0, 10], [0, 10, 10]], scenario="online", learner="linear",
        tau=[10, 1, 0.1, 10, 1, 1], steps=[50, 50, 10, 50, 30, 20], ended=[0, 0, 1, 0, 1, 1],
    )  # fmt: skip
    order = np.random.default_rng(0).permutation(10)
    table = {name: column[order] for name, column in together(offline, online).items()}
    by_scenario = {row["scenario"]: row for row in statistics.summarise(table)}
    first, second = by_scenario["offline"], by_scenario["online"]
    wanted = {"runs": 4, "episodes": 4, "mean": 5, "std": 5, "iqm": 5, "steps": 32.5, "goal_share": 0.5, "tau": 0.1}
    assert {name: first[name] for name in wanted} == wanted
    assert first["ci95"] == [0, 10]
    # The second half of three episodes is the last two: means 5 and 10, lengths 30 and 25, goals 1/2 and 1.
    wanted = {"runs": 2, "episodes": 6, "mean": 7.5, "std": 2.5, "steps": 27.5, "goal_share": 0.75, "tau": 1}
    assert {name: second[name] for name in wanted} == wanted
    assert second["best"] is False
    assert json.loads(json.dumps(by_scenario, allow_nan=False)) == by_scenario


def test_one_run_has_no_interval():
    (row,) = statistics.summarise(rows("freeway", "true", [1.0], c=np.nan))
    assert (row["mean"], row["std"], row["ci95"], row["iqm_ci95"], row["c"]) == (1, 0, [None, None], [None, None], None)
    json.dumps(row, allow_nan=False)


def test_curves_by_hand():
    rewards = np.zeros((2, 60))
    rewards[0, 50:] = 5.0
    table = together(
        rows("freeway", "combined", rewards, scenario="online", learner="network"),
        rows("freeway", "combined", np.ones((1, 55)), scenario="online", learner="network", seed=7),
        rows("freeway", "combined", [1.0]),
        rows("icy", "combined", [[0, 10]], scenario="online", learner="linear", steps=[50, 20]),
    )
    freeway, *icy = statistics.curves(table)
    assert freeway["episode"] == list(range(55))  # the shortest run's
    assert freeway["mean"][0] == pytest.approx(1 / 3)
    assert freeway["std"][0] == pytest.approx(np.sqrt(2) / 3)
    assert freeway["mean"][54] == pytest.approx((25 / 50 + 0 + 1) / 3)
    assert [(curve["quantity"], curve["mean"]) for curve in icy] == [("reward", [0, 5]), ("steps", [50, 35])]
    assert [curve["real_steps"] for curve in icy] == [[50, 70]] * 2
    json.dumps([freeway, *icy], allow_nan=False)


def test_nothing_and_bad_tables():
    assert statistics.summarise(empty()) == statistics.curves(empty()) == []
    table = empty()
    with pytest.raises(ValueError, match="lacks reward; a table"):
        statistics.summarise({name: column for name, column in table.items() if name != "reward"})
    with pytest.raises(ValueError, match="different lengths"):
        statistics.summarise({**table, "reward": np.zeros(3)})
    with pytest.raises(ValueError, match="window is 0"):
        statistics.moving_average(np.zeros(3), 0)


def test_a_whole_reproduction_is_summarised():
    """16,800 offline and 90,000 online episodes: a cell for each setting, with all of its runs."""
    generator = np.random.default_rng(0)
    algorithms = ("true", "corrupted", "backpropagation", "selection", "expansion", "simulation", "combined")
    games, both = ("space_invaders", "freeway", "breakout"), ("released", "pseudocode")
    settings = [
        (game, algorithm, c, rules) for game in games for algorithm in algorithms for c in EXPLORATION for rules in both
    ]
    tables = [rows(g, a, generator.random(100), c=c, rules=rules) for g, a, c, rules in settings]
    tables += [rows(g, "combined", generator.random((15, 2000)), scenario="online", learner="network") for g in games]
    found = statistics.summarise(together(*tables))
    assert [row["runs"] for row in found] == [100] * 168 + [15] * 3
    assert [row["episodes"] for row in found] == [100] * 168 + [30_000] * 3
    assert len(statistics.curves(together(*tables))) == 3
