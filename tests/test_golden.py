"""Recorded transitions of the paper's worlds and models, also of the broken events: no mismatch."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts

FOLDER = Path(__file__).parents[2] / "shared" / "golden"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"SKIPPED: no recorded transitions in {FOLDER}; the games are not compared with them"
)

# The recordings count actions as MinAtar does: none, left, up, right, down, fire. In Space Invaders and Breakout what
# is no action of the game is `none`. In Freeway it is not even a frame of the cars, so those rows are left out.
ACTIONS = {
    "space_invaders": (0, 1, 0, 2, 0, 3),
    "freeway": (0, None, 1, None, 2, None),
    "breakout": (0, 1, 0, 2, 0, 0),
    "two_way": (0, 1, 2, 3),
    "two_way_icy": (0, 1, 2, 3),
}
AT_LEAST = {"space_invaders": 10_000, "freeway": 8_900, "breakout": 9_000, "two_way": 80, "two_way_icy": 80}


@pytest.mark.parametrize("name", ACTIONS)
def test_no_mismatch(name):
    domain = uamcts.make(name)
    data = dict(np.load(FOLDER / f"{name}.npz"))
    actions = [ACTIONS[name][action] for action in data["action"]]
    kept = np.array([action is not None for action in actions])
    if "is_goal" in data:  # the recording walks on from the goal; here the goal is terminal and absorbs
        kept &= ~data["is_goal"]
    data = {field: values[kept] for field, values in data.items() if len(values) == len(kept)}
    actions = jnp.asarray([action for action, keep in zip(actions, kept, strict=True) if keep])
    assert len(actions) >= AT_LEAST[name]

    states = jax.vmap(domain.from_features)(jnp.asarray(data["state"], jnp.int32))
    world = jax.jit(jax.vmap(domain.world))(states, actions)
    model = jax.jit(jax.vmap(domain.model))(states, actions)
    uncertainty = jax.jit(jax.vmap(uamcts.true_uncertainty(domain)))(states, actions)
    features = jax.vmap(domain.features)

    np.testing.assert_array_equal(features(states), data["state"])
    np.testing.assert_array_equal(features(world.state), data["next_true"])
    np.testing.assert_array_equal(features(model.state), data["next_model"])
    np.testing.assert_array_equal(world.reward, data["reward_true"])
    np.testing.assert_array_equal(model.reward, data["reward_true"])
    np.testing.assert_array_equal(world.terminal, data["terminal_true"])
    np.testing.assert_array_equal(model.terminal, data["terminal_model"])
    difference = data["next_true"].astype(np.float64) - data["next_model"]
    np.testing.assert_allclose(uncertainty, np.mean(difference**2, axis=1), rtol=1e-6)
    assert np.count_nonzero(difference.any(axis=1)) >= 3, "no broken event among the recordings"
