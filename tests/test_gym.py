"""Gymnasium plays our broken worlds."""

import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import uamcts.gym
from uamcts.gym import ENVIRONMENTS

IDS = [f"uamcts/{name}" for name in ENVIRONMENTS]


@pytest.mark.parametrize("observation", ["features", "board"])
@pytest.mark.parametrize("identifier", IDS)
def test_passes_gymnasiums_own_check(identifier, observation):
    check_env(gymnasium.make(identifier, observation=observation, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("imports", ["import uamcts.gym, gymnasium", "import gymnasium, uamcts"])
def test_an_import_registers_without_loading_jax(imports):
    program = (
        f"{imports}, sys; assert 'uamcts/Breakout-v0' in gymnasium.registry; assert 'jax' not in sys.modules; "
        "env = gymnasium.make('uamcts/Breakout-v0', render_mode='ansi'); env.reset(seed=0); print(env.render())"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "▒▒▒▒▒▒▒▒▒▒" in output


def test_uamcts_registers_with_a_loaded_gymnasium_and_imports_nothing_else():
    """Whichever of the two comes first, once, and without a warning."""
    program = (
        "import gymnasium, uamcts, sys; assert 'uamcts/Breakout-v0' in gymnasium.registry; "
        "assert 'uamcts.gym' not in sys.modules and 'jax' not in sys.modules; "
        "spec = gymnasium.registry['uamcts/Breakout-v0']; import uamcts.gym; "
        "assert gymnasium.registry['uamcts/Breakout-v0'] is spec"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_time_limits_are_the_domains_own():
    for name, (domain, limit) in ENVIRONMENTS.items():
        assert uamcts.make(domain).time_limit == limit == gymnasium.spec(f"uamcts/{name}").max_episode_steps


def test_an_episode_is_the_domains_world():
    env = gymnasium.make("uamcts/Breakout-v0")
    domain = uamcts.make("breakout")
    vector, _ = env.reset(seed=4)
    state = domain.from_features(vector)
    terminated = False
    while not terminated:
        action = env.action_space.sample()
        vector, reward, terminated, truncated, _ = env.step(action)
        state, expected, end = domain.world(state, int(action))
        np.testing.assert_array_equal(vector, domain.features(state))
        assert (reward, terminated, truncated) == (float(expected), bool(end), False)


def test_is_cut_at_the_time_limit():
    env = gymnasium.make("uamcts/TwoWay-v0")
    env.reset(seed=0)
    for step in range(50):
        _, _, terminated, truncated, _ = env.step(2)  # against the edge
        assert not terminated
        assert truncated == (step == 49)


@pytest.mark.parametrize("action", [4, -1, 1.5, "left", None])
def test_a_wrong_action_names_the_range_and_changes_nothing(action):
    env = gymnasium.make("uamcts/SpaceInvaders-v0").unwrapped
    env.reset(seed=0)
    env.step(3)
    before = env.state
    with pytest.raises(ValueError, match="the legal ones are 0 to 3: 0 none, 1 left, 2 right, 3 fire"):
        env.step(action)
    assert all(a is b for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(env.state), strict=True))


def test_seeds_decide_the_start():
    env = gymnasium.make("uamcts/Freeway-v0")
    first, again, other = (env.reset(seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_breaks_other_places():
    env = gymnasium.make("uamcts/Breakout-v0", broken=(7,)).unwrapped
    assert int(env.domain.world_rules) == 1 << 7


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda env: env.step(0), "step was called before reset"),
        (lambda env: env.render(), "render was called before reset"),
    ],
)
def test_must_be_reset_first(call, sentence):
    env = gymnasium.make("uamcts/Breakout-v0", render_mode="ansi").unwrapped
    with pytest.raises(RuntimeError, match=sentence):
        call(env)


def test_rendering_needs_a_mode():
    env = gymnasium.make("uamcts/Breakout-v0").unwrapped
    env.reset()
    with pytest.raises(ValueError, match="render_mode='rgb_array'"):
        env.render()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"render_mode": "human"}, "render_mode is 'human'"), ({"observation": "pixels"}, "observation is 'pixels'")],
)
def test_wrong_options_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        uamcts.gym.WorldEnv("breakout", **options)
