"""Every claim of the paper on made-up data: where it plainly holds, plainly fails, cannot be told, was not measured."""

import json

import numpy as np
import pytest
from episode_tables import empty, rows, together

from uamcts.lab.analysis import claims, statistics
from uamcts.lab.analysis.evidence import CLOSE, FAILS, HOLDS, MISSING, equivalence, p_of_equivalence, p_of_margins
from uamcts.lab.analysis.verdicts import adjust, count_verdicts, in_words
from uamcts.lab.report import build
from uamcts.presets import EXPLORATION

OFFLINE = ("true", "corrupted", "backpropagation", "selection", "expansion", "simulation", "combined")
GAMES = {
    "space_invaders": (18.4, 16.3, 16.0, 21.0, 23.0, 19.0, 23.8),
    "freeway": (1.0, 0.4, 0.5, 0.6, 0.8, 0.6, 0.9),
    "breakout": (14.0, 1.0, 1.0, 11.0, 10.0, 1.0, 13.0),
}
LINEAR, UNITS_8, UNITS_16 = ("transition_linear", "transition_8_units", "transition_16_units")
GOOD = {
    **{(game, "offline", name, "true"): GAMES[game][index] for game in GAMES for index, name in enumerate(OFFLINE)},
    ("space_invaders", "online", "combined", "network"): 22.4,
    ("freeway", "online", "combined", "network"): 0.6,
    ("breakout", "online", "combined", "network"): 5.0,
    ("two_way", "online", "true", "none"): -12.0,
    ("two_way", "online", "corrupted", "none"): -30.0,
    ("two_way", "online", "combined", "linear"): -13.0,
    ("two_way", "online", "corrupted", LINEAR): -50.0,
    ("two_way", "online", "corrupted", UNITS_8): -40.0,
    ("two_way", "online", "corrupted", UNITS_16): -20.0,
    ("icy", "offline", "combined", "true"): -20.0,
}  # fmt: skip
"""Mean reward of a setting in which all claims hold; below 0 it is steps to the goal, and 50 steps are no goal."""

BAD = {
    "space_invaders_true_number": ("offline", "true", 12.0),
    "space_invaders_corrupted_number": ("offline", "corrupted", 20.0),
    "space_invaders_combined_number": ("offline", "combined", 20.0),
    "space_invaders_combined": ("offline", "combined", 17.0),
    "space_invaders_selection": ("offline", "selection", 17.0),
    "space_invaders_expansion": ("offline", "expansion", 17.0),
    "space_invaders_simulation": ("offline", "simulation", 17.0),
    "space_invaders_best_single": ("offline", "selection", 23.9),
    "space_invaders_online": ("online", "combined", 17.0),
    "freeway_combined_number": ("offline", "combined", 0.6),
    "freeway_combined": ("offline", "combined", 0.3),
    "freeway_single": ("offline", "backpropagation", 0.3),
    "freeway_best_single": ("offline", "simulation", 0.9),
    "freeway_online": ("online", "combined", 0.3),
    "freeway_online_limit": ("online", "combined", 0.95),
    "breakout_combined": ("offline", "combined", 0.5),
    "breakout_almost_true": ("offline", "combined", 9.0),
    "breakout_good_phases": ("offline", "expansion", 5.0),
    "breakout_poor_phases": ("offline", "simulation", 6.0),
    "breakout_online_drop": ("online", "combined", 13.5),
    "breakout_online": ("online", "combined", 0.5),
    "two_way_far_better": ("online", "combined", -25.0),
    "two_way_close_to_true": ("online", "combined", -20.0),
    "two_way_linear_never": ("online", LINEAR, -45.0),
    "two_way_capacity": ("online", UNITS_8, -18.0),
    "two_way_beats_linear": ("online", LINEAR, -12.5),
    "two_way_beats_8": ("online", UNITS_8, -12.5),
    "two_way_beats_16": ("online", UNITS_16, -12.5),
    "icy_reaches_goal": ("offline", "combined", -50.0),
}
"""For each claim about episodes a change that makes it plainly fail."""
ABOUT_EPISODES = {claim.id: claim for claim in claims.CLAIMS if claim.experiment != "bandit"}
GRIDWORLDS = ("two_way", "icy")
TRUE_KEY = ("space_invaders", "offline", "true", "true")


def table(means, runs=20, noise=0.01, **columns):
    """Episodes with these means; every other run lies `noise` above, the others below."""
    signs = np.resize([1.0, -1.0], runs)
    tables = []
    for (experiment, scenario, algorithm, learner), mean in means.items():
        fixed = {"scenario": scenario, "learner": learner, **columns}
        values = mean + noise * signs
        if experiment in GRIDWORLDS:
            goal = np.full(runs, mean > -50)
            if noise > 1:
                goal = np.arange(runs) == 0
            fixed |= {"steps": -values, "ended": goal}
            values = np.where(goal, 10.0, 0.0)
        tables.append(rows(experiment, algorithm, values, **fixed))
    return together(*tables)


def verdicts(episodes, rules="released", bandit=None):
    return {found["id"]: found["verdict"] for found in claims.judge(episodes, rules, bandit)}


@pytest.fixture(scope="module")
def on_good():
    return claims.judge(table(GOOD), "released")


def test_every_claim_has_a_test_of_its_own():
    assert set(BAD) == set(ABOUT_EPISODES)
    assert len({claim.id for claim in claims.CLAIMS}) == len(claims.CLAIMS)
    assert all(set(claim.expected) <= {"released", "pseudocode"} for claim in claims.CLAIMS)


@pytest.mark.parametrize("name", ABOUT_EPISODES)
def test_claim_holds_and_fails(on_good, name):
    found = {one["id"]: one for one in on_good}[name]
    assert found["verdict"] == HOLDS
    assert found["p"] < 0.01
    scenario, which, mean = BAD[name]
    experiment = ABOUT_EPISODES[name].experiment
    changed = {
        key: mean if key[:2] == (experiment, scenario) and which == key[2 + which.startswith("transition")] else value
        for key, value in GOOD.items()
        if key[0] == experiment
    }
    assert sum(changed[key] != GOOD[key] for key in changed) == 1
    assert verdicts(table(changed))[name] == FAILS


def test_too_close_to_call_amid_noise():
    found = claims.judge(table(GOOD, noise=1000.0), "released")
    assert {one["id"]: one["verdict"] for one in found if one["experiment"] != "bandit"} == dict.fromkeys(BAD, CLOSE)
    assert all(one["interval"][0] <= 0 <= one["interval"][1] for one in found if one["experiment"] != "bandit")


@pytest.mark.parametrize("runs", [1, 4])
def test_too_few_runs_decide_nothing(runs):
    found = {one["id"]: one for one in claims.judge(table(GOOD, runs=runs), "released")}
    assert {(found[name]["verdict"], found[name]["p"]) for name in BAD} == {(CLOSE, None)}


def test_not_measured():
    assert set(verdicts(empty()).values()) == {MISSING}
    assert set(verdicts(table(GOOD), "pseudocode").values()) == {MISSING}
    without = {key: value for key, value in GOOD.items() if key[:3] != ("freeway", "offline", "simulation")}
    found = verdicts(table(without))
    missing = {name for name, verdict in found.items() if verdict == MISSING and name in BAD}
    assert missing == {"freeway_single", "freeway_best_single"}


def test_plain_values_with_all_numbers(on_good):
    assert json.loads(json.dumps(on_good, allow_nan=False)) == on_good
    found = {one["id"]: one for one in on_good}["space_invaders_combined"]
    assert found["numbers"]["offline combined"] == pytest.approx(23.8)
    assert found["numbers"]["offline true"] == pytest.approx(18.4)
    assert found["numbers"]["offline true, c"] == 1
    assert found["numbers"]["margin: offline combined - offline true"] == pytest.approx(5.4)
    assert found["interval"] == pytest.approx([5.4, 5.4], abs=0.02)
    assert (found["runs"], found["expected"], found["rules"]) == (20, True, "released")


def test_fresh_seeds_at_the_chosen_c_come_first():
    half, one = EXPLORATION[:2]
    names = (("freeway", "offline", "combined", "true"), ("freeway", "offline", "corrupted", "true"))
    sweep = [table(dict.fromkeys(names, mean), c=c) for c, mean in ((half, 0.6), (one, 0.8))]
    fresh = [
        table({names[0]: 0.7, names[1]: 0.5}, c=one, purpose="fresh"),
        table({names[0]: 0.1}, c=half, purpose="fresh"),
    ]
    other_tau = table({names[0]: 0.99}, c=half, tau=1.0)

    def numbers(*tables):
        found = {claim["id"]: claim for claim in claims.judge(together(*tables), "released")}["freeway_combined"]
        return found["numbers"]["offline combined"], found["numbers"]["offline combined, c"]

    assert numbers(*sweep, other_tau) == (pytest.approx(0.8), one)
    assert numbers(*sweep, *fresh, other_tau) == (pytest.approx(0.7), one)
    assert numbers(*sweep, fresh[1]) == (pytest.approx(0.8), one)  # fresh seeds at another c say nothing
    assert numbers(fresh[0]) == (pytest.approx(0.7), one)


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (0.0, HOLDS),
        (0.3, HOLDS),
        (-0.3, HOLDS),
        (0.45, CLOSE),
        (-0.45, CLOSE),
        (0.6, CLOSE),
        (0.8, FAILS),
        (-0.8, FAILS),
    ],
)
def test_about_a_number_by_hand(difference, verdict):
    """400 runs, half of them 2 above and half 2 below: standard error 0.1, so 90 % are +-0.165 and 95 % +-0.196.

    The tolerance is (18.4 - 16.3) / 4 = 0.525: 0.3 + 0.165 lies within, 0.45 + 0.165 does not, 0.6 - 0.196 lies within,
    0.8 - 0.196 does not.
    """
    found = claims.judge(table({TRUE_KEY: 18.4 + difference}, runs=400, noise=2.0), "released")
    found = {one["id"]: one for one in found}["space_invaders_true_number"]
    assert found["verdict"] == verdict
    assert found["interval"] == pytest.approx([difference - 0.196, difference + 0.196], abs=0.02)
    assert found["numbers"]["paper's standard error"] == pytest.approx(0.2, abs=1e-5)
    assert (found["p"] <= 0.05) == (verdict != CLOSE)


def test_a_wide_interval_agrees_with_nothing():
    """100 runs of 16.8 with a spread of 7: standard error 0.7. That is no evidence for 18.4, nor against it."""
    found = verdicts(table({TRUE_KEY: 16.8}, runs=100, noise=7.0))
    assert found["space_invaders_true_number"] == CLOSE


@pytest.mark.parametrize(("mean", "verdict"), [(0.9, HOLDS), (0.93, CLOSE), (1.0, FAILS), (0.8, FAILS)])
def test_about_nine_tenths_is_not_all(mean, verdict):
    """400 runs with a spread of 0.3: 90 % are +-0.025 and 95 % +-0.029, the tolerance is 0.05."""
    found = verdicts(table({("freeway", "offline", "combined", "true"): mean}, runs=400, noise=0.3))
    assert found["freeway_combined_number"] == verdict


def test_tolerances_are_smaller_than_the_effects_in_question():
    """The true and the wrong model's numbers are 2.1 apart, UA-MCTS and the true model in Freeway 0.1."""
    assert claims.SPACE_INVADERS_TOLERANCE < (18.4 - 16.3) / 2
    assert pytest.approx(0.1) == 2 * claims.FREEWAY_TOLERANCE


def test_false_alarms_of_an_equivalence_test():
    """Where the truth lies on the edge of the tolerance, one in 20 samples says that it is within, one in 40 outside.

    Of 1,000 normal samples of 60 the percentile bootstrap makes it a little more; 80 and 45 have a chance below 0.001.
    """
    samples = np.random.default_rng(8).normal(1.0, 1.0, size=(1000, 60))
    narrow, wide = (statistics.interval(statistics.mean, samples, level=level) for level in (0.9, 0.95))
    said = [equivalence(*ends, tolerance=1.0) for ends in zip(narrow, wide, strict=True)]
    assert 30 < said.count(HOLDS) < 80
    assert 10 < said.count(FAILS) < 45


def test_p_values_by_hand():
    """Student's t with 10 degrees of freedom is above 2 with a chance of 0.0367, above 3 with 0.00667."""
    assert p_of_margins([(2.0, 1.0)], 11) == p_of_margins([(-2.0, 1.0)], 11) == pytest.approx(2 * 0.0367, abs=2e-4)
    assert p_of_margins([(2.0, 1.0), (3.0, 1.0)], 11) == pytest.approx(2 * 0.0367, abs=2e-4)  # the less sure decides
    assert p_of_margins([(2.0, 1.0), (-3.0, 1.0)], 11) == pytest.approx(4 * 0.00667, abs=2e-4)  # two might have failed
    assert p_of_margins([(0.0, 1.0)], 11) == 1
    assert p_of_equivalence(0.0, 1.0, 2.0, 11) == pytest.approx(0.0367, abs=2e-4)
    assert p_of_equivalence(-1.0, 1.0, 3.0, 11) == pytest.approx(0.0367, abs=2e-4)  # 2 from the nearer end
    assert p_of_equivalence(4.0, 1.0, 1.0, 11) == pytest.approx(2 * 0.00667, abs=2e-4)
    assert p_of_equivalence(1.0, 0.0, 2.0, 11) == p_of_equivalence(3.0, 0.0, 2.0, 11) == 0


def test_verdicts_are_counted_and_adjusted_for_their_number():
    """Holm: 0.01 x 3, then 0.03 x 2 and 0.04 x 1, of which the latter may not be less than the 0.06 before it."""
    made = [
        {"verdict": HOLDS, "p": 0.01},
        {"verdict": HOLDS, "p": 0.04},
        {"verdict": FAILS, "p": 0.03},
        {"verdict": HOLDS, "p": None},  # decided, but not by a test
        {"verdict": MISSING, "p": None},
    ]
    adjusted = [one["p_holm"] for one in adjust(made)]
    assert adjusted == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.06), None, None]
    assert count_verdicts(made) == {
        "judged": 4, "tested": 3, "level": 0.05, "expected_false_alarms": pytest.approx(0.15), "hold": 2,
        "hold_after_holm": 1, "do_not_hold": 1, "do_not_hold_after_holm": 0,
    }  # fmt: skip
    said = in_words(made)
    assert "3 tests at 5% each" in said
    assert "1 of the 2 tested claims that hold still do, and 0 of the 1" in said
    assert in_words(made[3:]) == in_words([{"verdict": HOLDS}]) == ""


def test_the_report_says_what_the_number_of_tests_means(on_good, tmp_path):
    summary = {"rows": [], "claims": adjust(on_good), "curves": [], "provenance": {}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    said = in_words(on_good)
    assert f"The verdicts rest on {len(BAD)} tests at 5% each" in said
    assert said in build.build(tmp_path).read_text()


def test_goes_a_share_of_the_way_by_hand():
    margin = claims.goes(claims.COMBINED, 0.75, claims.TRUE, claims.CORRUPTED)
    assert [weight for weight, _ in margin.terms] == [1, -0.75, -0.25]


def regret(mean, half=1.0):
    mean = np.asarray(mean, float)
    return {"mean": mean.tolist(), "low": (mean - half).tolist(), "high": (mean + half).tolist()}


def figures(ucb=90.0, adapted=40.0, bound=200.0, half=1.0, shifted=(0.2, 1.0), misleading=(0.2, 1.0), runs=100):
    """Figures in which UCB and UA-UCB end with these regrets, and UA-UCB's grows with these powers on either side."""
    cases = [
        {
            "id": name, "runs": runs, "steps": [2, 100, 1000],
            "ucb": regret([1.5, ucb / 2, ucb], half), "ua_ucb": regret([1.5, adapted / 2, adapted], half),
            "ucb_bound": [None, 300.0, 400.0], "ua_ucb_bound": [None, bound / 2, bound],
        }
        for name in ("wins", "loses")
    ]  # fmt: skip
    against = [
        {"family": family, "threshold": 0.293, "runs": runs, "delta": [0.2, 0.4], "ua_ucb": {"exponent": list(powers)}}
        for family, powers in (("shifted", shifted), ("misleading", misleading))
    ]
    return {"cases": cases, "against_delta": against}


@pytest.mark.parametrize(
    ("name", "holds", "fails", "close"),
    [
        ("bandit_regret", {}, {"adapted": 120.0}, {"half": 30.0}),
        ("bandit_regret_best_arm", {}, {"adapted": 120.0}, {"half": 30.0}),
        ("bandit_bound", {}, {"bound": 30.0}, {"bound": 40.5}),
        ("bandit_linear", {}, {"shifted": (0.2, 0.2)}, {"shifted": (0.2, 0.7)}),
        ("bandit_linear_misleading", {"shifted": (0.2, 0.2)}, {"misleading": (0.2, 0.3)}, {"misleading": (0.2, 0.8)}),
    ],
)
def test_bandit_claims(name, holds, fails, close):
    for changes, verdict in ((holds, HOLDS), (fails, FAILS), (close, CLOSE)):
        found = {one["id"]: one for one in claims.judge(empty(), "released", figures(**changes))}[name]
        assert found["verdict"] == verdict
        assert found["numbers"]
        json.dumps(found, allow_nan=False)
        assert ("linear" in name) == (found["p"] is None)
        assert verdict != HOLDS or found["p"] is None or found["p"] < 0.01
    assert verdicts(empty())[name] == MISSING
    assert verdicts(empty(), bandit={"cases": [], "against_delta": []})[name] == MISSING


def test_bandit_claims_come_once():
    assert "bandit_bound" not in verdicts(empty(), "pseudocode")
    assert verdicts(empty(), "pseudocode", figures())["bandit_bound"] == HOLDS


def test_bound_names_the_tightest_place():
    found = {one["id"]: one for one in claims.judge(empty(), "released", figures(bound=30.0))}["bandit_bound"]
    assert {name: found["numbers"][name] for name in ("regret", "bound", "pulls")} == {
        "regret": 40,
        "bound": 30,
        "pulls": 1000,
    }
    assert found["interval"] == [-11, -9]
