"""Probabilities of outcomes that are corrected by what outcomes are like, wherever that is met."""

import numpy as np
import pytest

import uamcts
from uamcts.corrections.outcome_tilt import OutcomeTilt, Seen, fit_tilt
from uamcts.corrections.referee import Referee
from uamcts.corrections.tilt_terms import Listed, Term

SETTINGS = {"parameters": (), "iterations": 10, "rollouts": 1, "depth": 4, "gamma": 0.9}
SIZE = 12


class Chase:
    """(mouse, cat) on a line. The mouse moves; the cat then moves by -1, 0 or 1, towards it with this probability."""

    num_actions = 2

    def __init__(self, hunts):
        def outcomes(state, action):
            mouse = min(max(state[0] + (-1, 1)[action], 0), SIZE - 1)
            to = int(np.sign(mouse - state[1]))
            chances = [(1 - hunts) / 3 + hunts * (step == to) for step in (-1, 0, 1)]
            after = [min(max(state[1] + step, 0), SIZE - 1) for step in (-1, 0, 1)]
            return [
                (chance, ((mouse, cat), -1.0 * (cat == mouse), False))
                for chance, cat in zip(chances, after, strict=True)
            ]

        self.outcomes = outcomes


def log(world, steps, low=0, high=SIZE, seed=0):
    """Random transitions from states in a part of the line."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        state, action = tuple(rng.integers(low, high, 2).tolist()), int(rng.integers(2))
        found = world.outcomes(state, action)
        yield state, action, *found[rng.choice(len(found), p=[chance for chance, _ in found])][1]


def row(after, times, chances=(0.5, 0.3, 0.2)):
    """What was seen of a transition from (0, 5) to states with these second numbers."""
    numbers = np.array([[0.0, float(one)] for one in after])
    listed = Listed(np.array(chances), np.array([0.0, 5.0]), numbers, np.zeros(3), np.zeros(3), 0)
    return Seen(listed, tuple(np.arange(3) == place for place in range(3)), tuple(map(float, times)))


def rows(count=20):
    rng = np.random.default_rng(1)
    return [row(rng.permutation(3) + number % 4, rng.integers(0, 4, 3) + 1) for number in range(count)]


def test_weights_are_where_the_posterior_is_highest():
    """There, what was seen beyond what is expected equals the pull of the prior, a standard normal distribution."""
    tilt = fit_tilt(rows(), ["a", "b"])
    pull = np.zeros(len(tilt.weights))
    for one in rows():
        phi, counts = tilt.terms.describe(one.listed), np.array(one.times)
        chances = one.listed.chances * np.exp(phi @ tilt.weights)
        chances /= chances.sum()
        np.testing.assert_allclose(tilt.tilt(one.listed), chances, rtol=1e-9)
        pull += phi.T @ (counts - counts.sum() * chances)
    np.testing.assert_allclose(pull, tilt.weights, atol=1e-3)
    assert np.abs(tilt.weights).max() > 0.1


def test_one_step_leaves_a_transition_out_as_another_fit_does():
    seen = rows()
    tilt, others = fit_tilt(seen, ["a", "b"]), fit_tilt(seen[1:], ["a", "b"])
    left_out = tilt.without(seen[0])
    exact = others.weights * tilt.terms.scales / others.terms.scales
    assert np.abs(tilt.weights - exact).max() > 0.02, "it says something"
    np.testing.assert_allclose(left_out.weights, exact, atol=0.01)


def test_what_a_list_says_is_believed_where_nothing_differs():
    same = row((3, 3, 3), (1, 1, 1), (1.0, 0.0, 0.0))
    assert fit_tilt([same, same], ["a", "b"]) is None
    tilt = fit_tilt(rows(), ["a", "b"])
    impossible = row((4, 5, 6), (1, 1, 1), (0.6, 0.4, 0.0)).listed
    assert tilt.tilt(impossible)[2] == 0.0


def test_a_cat_that_hunts_is_expected_to_hunt_where_nobody_has_been():
    """Places in the list mean other things to the left and to the right of the mouse: rates cannot say it."""
    agent = uamcts.Agent(Chase(0.0), **SETTINGS)
    agent.preload(log(Chase(0.8), 120, 0, 7))
    assert agent.backend.corrector.in_use == "tilt"
    (sentence,) = agent.report(0).corrections
    assert "state[1] moves towards state[0] are" in sentence
    for state in ((10, 7), (7, 10), (11, 8)):
        agent.backend.planner.patched.knows(state, 0)
        chances = dict.fromkeys(range(SIZE), 0.0)
        for chance, ((_, cat), *_) in agent.backend.corrector.variant().outcomes(state, 0):
            chances[cat] += chance
        nearer = state[1] + int(np.sign(state[0] - 1 - state[1]))
        assert chances[nearer] > 0.6, "listed are 1/3 each; really it is 0.87"


def test_a_right_simulator_is_planned_in_as_it_is():
    for seed in range(4):
        agent = uamcts.Agent(Chase(0.5), **SETTINGS)
        agent.preload(log(Chase(0.5), 150, seed=seed))
        assert agent.backend.corrector.in_use == "none"
        assert "tilt" in agent.backend.corrector.residuals, "weights were fitted"


def test_an_agent_goes_on_alike_after_it_was_saved(tmp_path):
    agent, path = uamcts.Agent(Chase(0.0), **SETTINGS), tmp_path / "agent.npz"
    agent.preload(log(Chase(0.8), 120))
    agent.save(path)
    loaded = uamcts.Agent(Chase(0.0), **SETTINGS)
    loaded.load(path)
    for one in (agent, loaded):
        for state, action, after, reward, over in log(Chase(0.8), 40, seed=3):
            one.observe(state, action, after, reward=reward, terminal=over)
        one.act((3, 9))
    assert loaded.backend.corrector.in_use == agent.backend.corrector.in_use == "tilt"
    assert loaded.last_plan.values == agent.last_plan.values
    assert loaded.report(0).corrections == agent.report(0).corrections


def test_files_are_checked():
    arrays = fit_tilt(rows(), ["a", "b"]).arrays()
    again = OutcomeTilt.of(arrays)
    np.testing.assert_array_equal(again.tilt(rows()[0].listed), fit_tilt(rows(), ["a", "b"]).tilt(rows()[0].listed))
    with pytest.raises(ValueError, match="missing"):
        OutcomeTilt.of({name: array for name, array in arrays.items() if name != "tilt.scales"})
    with pytest.raises(ValueError, match="do not fit"):
        OutcomeTilt.of({**arrays, "tilt.weights": arrays["tilt.weights"][:-1]})
    with pytest.raises(ValueError, match="scale"):
        OutcomeTilt.of({**arrays, "tilt.scales": 0.0 * arrays["tilt.scales"]})


def test_scores_of_a_file_without_the_last_candidate_are_taken_over():
    old, new = Referee(("none", "rates")), Referee(("none", "rates", "tilt"))
    for _ in range(5):
        old.add({"none": 3.0, "rates": 1.0}, {"none": 3.0, "rates": 1.0})
    new.restore(old.arrays())
    assert new.ahead("rates", "none") == old.ahead("rates", "none") > 4.0
    assert new.choose(["none", "rates", "tilt"]) == "rates"


def test_terms_in_words():
    names, actions = ("mouse", "cat"), ("left", "right")
    assert Term("apart", 1, 0).describe(names, actions, False) == "outcomes in which cat moves towards mouse"
    assert Term("value", 0).describe((), (), True) == "outcomes with a larger state[0]"
    assert Term("slot", 3, 1, 1).describe(names, actions, True) == "outcomes in place 1 of 3 after right"
