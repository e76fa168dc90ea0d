"""Many searches on all devices, and how a program sets JAX up for them."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.mcts import many
from uamcts.runtime.jax_setup import SMALL_LOOPS
from uamcts.types import Transition

CONFIG = uamcts.SearchConfig(iterations=6, rollouts=2, depth=4)


class Line:
    num_actions = 2

    def __call__(self, place, action):
        place = jnp.clip(place + 2 * action - 1, 0, 9)
        return Transition(place, jnp.where(place == 9, 1.0, 0.0), place == 9)


LINE = Line()
"""One for all searches, which then share a compiled program."""


@pytest.mark.parametrize("lanes", [640, 4])
def test_many_searches_are_single_ones(monkeypatch, lanes):
    """All at once, and two at a time with one left over."""
    monkeypatch.setattr(many, "LANES", lanes)
    keys, states = jax.random.split(jax.random.key(0), 3), jnp.array([2, 7, 8])
    results = uamcts.search_many(keys, states, LINE, None, CONFIG, horizon=5)
    for place in range(3):
        single = uamcts.search(keys[place], states[place], LINE, None, CONFIG, horizon=5)
        for ours, theirs in zip(jax.tree.leaves(results), jax.tree.leaves(single), strict=True):
            np.testing.assert_allclose(ours[place], theirs, rtol=1e-6)


@pytest.mark.parametrize("states", [jnp.zeros(2, int), jnp.int32(1), ()])
def test_keys_and_states_must_match(states):
    with pytest.raises(ValueError, match="first axis has n entries"):
        uamcts.search_many(jax.random.split(jax.random.key(0), 3), states, LINE, None, CONFIG)


def test_errors_of_any_search_are_raised():
    def endless(place, action):
        return Transition(place, jnp.where(place == 1, jnp.inf, 0.0), jnp.bool_(False))

    keys = jax.random.split(jax.random.key(0), 2)
    with pytest.raises(ValueError, match="not a finite number"):
        uamcts.search_many(keys, jnp.arange(2), endless, None, CONFIG, num_actions=2)


def test_a_search_is_a_program_of_its_own_or_part_of_another(monkeypatch):
    """Only an outermost program may have options of the compiler, which a search on a CPU has after `configure`."""
    monkeypatch.setenv("XLA_FLAGS", SMALL_LOOPS)

    def visits(goal):
        def step(place, action):
            place = jnp.clip(place + 2 * action - 1, 0, 9)
            return Transition(place, jnp.where(place == goal, 1.0, 0.0), place == goal)

        return uamcts.search(jax.random.key(0), jnp.int32(2), step, None, CONFIG, num_actions=2).visits

    assert visits(3).tolist() == jax.jit(visits)(3).tolist() == jax.vmap(visits)(jnp.array([3]))[0].tolist()


PROGRAM = """
import jax
import uamcts
first = uamcts.configure()
keys = jax.random.split(jax.random.key(0), 3)
import jax.numpy as jnp
def step(place, action):
    return uamcts.Transition(place + action, 1.0 * action, place > 3)
config = uamcts.SearchConfig(iterations=4, rollouts=1, depth=2)
found = uamcts.search_many(keys, jnp.arange(3), step, None, config, num_actions=2)
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    again = uamcts.configure()
print(first, len(jax.devices()), len(found.action.sharding.device_set) >= 1, again, len(caught))
"""


def test_a_program_configures_jax_first(tmp_path):
    """Every core is a device, also if JAX was imported before; afterwards it is too late, and it says so."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "PJRT_"))}
    environment |= {"JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    cores = len(os.sched_getaffinity(0))
    assert done.stdout.split() == ["True", str(cores), "True", "False", "1"], done.stderr
    assert any(tmp_path.iterdir()), "nothing was kept in the cache of compiled programs"
