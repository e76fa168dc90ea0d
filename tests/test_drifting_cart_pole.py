"""The cart pole of benchmarks/cart_pole_planners.py is Gymnasium's, also with another pole and another gravity."""

import sys
import types
from pathlib import Path

import jax
import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def planners():
    sys.path.insert(0, str(FOLDER))
    import cart_pole_planners

    yield cart_pole_planners
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def step(planners):
    """One program for every pole and every gravity."""
    return jax.jit(lambda masspole, gravity, state, action: planners.cart_pole(masspole, gravity)(state, action))


@pytest.mark.parametrize("change", ["normal", "mass10", "gravity6", "mass10_gravity4"])
def test_a_step_in_jax_is_gymnasiums(planners, step, change):
    rules = {**planners.NORMAL, **planners.CHANGES.get(change, {})}
    env, luck, falls = planners.gymnasium_cart_pole(**rules), np.random.default_rng(0), 0
    for episode in range(8):
        env.reset(seed=episode)
        over = False
        while not over:
            before, action = np.array(env.state, np.float32), int(luck.integers(2))
            env.state = before.astype(np.float64)  # from the same numbers, so that only one step is compared
            _, reward, over, _, _ = env.step(action)
            after = step(rules["masspole"], rules["gravity"], before, action)
            np.testing.assert_allclose(after.state, env.state, rtol=1e-5, atol=1e-6)
            assert float(after.reward) == reward
            assert bool(after.terminal) == over
        falls += abs(env.state[2]) > env.theta_threshold_radians
        again = step(rules["masspole"], rules["gravity"], after.state, 1)
        assert np.array_equal(again.state, after.state)
        assert float(again.reward) == 0.0
        assert bool(again.terminal)
    assert falls == 8


@pytest.mark.parametrize("push", [0, 1])
def test_the_track_ends_where_gymnasiums_does(planners, step, push):
    env, rules = planners.gymnasium_cart_pole(), planners.NORMAL
    for position, speed in ((2.39, 0.4), (2.39, 0.6), (-2.39, -0.4), (-2.39, -0.6)):
        env.reset(seed=0)
        env.state = np.array([position, speed, 0.0, 0.0])
        after = step(rules["masspole"], rules["gravity"], np.float32(env.state), push)
        _, _, over, _, _ = env.step(push)
        assert bool(after.terminal) == over == (abs(speed) > 0.5)


def test_a_change_is_a_change(planners, step):
    state = np.float32([0.1, 0.2, 0.1, -0.3])
    normal = step(*planners.NORMAL.values(), state, 1).state
    for change in planners.CHANGES.values():
        changed = step(*{**planners.NORMAL, **change}.values(), state, 1).state
        assert float(np.max(np.abs(normal - changed))) > 0.01


def test_episodes_begin_where_gymnasiums_do_and_are_cut(planners):
    chosen = types.SimpleNamespace(seed=7, longest=12, depth=5, c=1.44, gamma=0.999)
    worlds = [planners.gymnasium_cart_pole(**change) for change in ({}, planners.CHANGES["gravity6"])]
    for number, start in enumerate(planners.starts(chosen, 3)):
        worlds[1].reset(seed=7 + number)
        np.testing.assert_allclose(start, worlds[1].state, rtol=1e-6)
    config = planners.settings(chosen, "pseudocode", 8, **planners.OFF)
    steps = planners.plain(chosen, *worlds, config, 3)
    assert all(5 <= number <= 12 for number in steps)


def test_mean_and_error_by_hand(planners):
    from drifting_cart_pole import summary

    assert summary([1, 2, 3]) == {"mean": 2.0, "error": 0.6, "episodes": 3}
