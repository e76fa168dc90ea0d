"""Random models in the compiled tree: known answers by hand, exact expectations, samplers, batches."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_tables import Chances, arrays, drawn, plan

import uamcts

KEY = jax.random.key(0)
PLAIN = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)
TREE = uamcts.SearchConfig(iterations=200, rollouts=1, depth=4, gamma=0.5, rules="trust")
BETS = Chances(
    following=np.array([[[1, 2], [3, 3]], [[3, 3], [3, 3]], [[3, 3], [3, 3]], [[3, 3], [3, 3]]]),
    rewards=np.array([[[4, 0], [1.5, 0]], [[8, 8], [8, 8]], [[-2, 0], [-2, 0]], [[0, 0], [0, 0]]], np.float32),
    ends=np.array([[[0, 0], [1, 1]], [[1, 1], [1, 1]], [[1, 1], [1, 1]], [[1, 1], [1, 1]]], bool),
    probabilities=np.array([[[0.25, 0.75], [1, 0]], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2, [[1, 0]] * 2], np.float32),
)
"""The first bet is worth 1/4 (4 + gamma 8) + 3/4 gamma (-1): 1.625 with gamma 1/2; the second is worth 1.5."""


IN_ARRAYS = arrays(BETS)


def bet(gamma):
    return 0.25 * (4 + gamma * 8) - 0.75 * gamma


def first_outcome(model):
    """The process as a deterministic model: always the first outcome."""

    def step(state, action):
        return uamcts.Transition(*(jnp.asarray(part)[state, action, 0] for part in model[:3]))

    return step


class Drawn:
    """The same process, which only draws."""

    def __init__(self, model):
        self.model, self.num_actions = model, model.num_actions

    def sample(self, state, action, key):
        after, probabilities = self.model.outcomes(state, action)
        slot = jax.random.choice(key, probabilities.shape[0], p=probabilities)
        return jax.tree.map(lambda leaf: leaf[slot], after)


# Known answers.


@pytest.mark.parametrize("rules", ["released", "pseudocode", "trust"])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 0.25])
def test_two_bets(rules, gamma):
    config = uamcts.SearchConfig(iterations=2000, rollouts=1, depth=4, gamma=gamma, rules=rules, c=4.0, **PLAIN)
    found = uamcts.search(KEY, jnp.int32(0), IN_ARRAYS, None, config)
    np.testing.assert_allclose(found.values, [bet(gamma), 1.5], atol=0.05)
    assert found.action == (0 if bet(gamma) > 1.5 else 1)
    assert found.visits.sum() >= 1999  # the printed rules roll out from the root first


def test_outcomes_are_visited_as_often_as_they_are_likely():
    found = plan(KEY, 0, BETS, TREE)
    tree, block = found.tree, found.tree.children[0, 0]
    first, second = tree.chance.visits[block, :2]
    assert tree.slots == 2
    assert first + second == found.visits[0]
    assert abs(first - found.visits[0] / 4) <= 1
    assert tree.rewards(block)[0] == pytest.approx(4 * first / found.visits[0])
    assert tree.state[block, :2].tolist() == [1, 2]
    assert tree.chance.visits[block, 3] == 0  # of probability 0


def test_a_sampler_visits_its_draws_in_turn():
    config = replace(TREE, iterations=2000, outcomes=40)
    sampler = Drawn(IN_ARRAYS)
    found = uamcts.search(KEY, jnp.int32(0), sampler, None, config)
    tree, block = found.tree, found.tree.children[0, 0]
    visits = tree.chance.visits[block, :40]
    assert tree.slots == 40
    assert visits.max() - visits.min() <= 1
    lucky = float(jnp.mean(tree.state[block, :40] == 1))
    assert 0.05 < lucky < 0.5
    assert float(found.values[0]) == pytest.approx(lucky * 8 - (1 - lucky) * 0.5, abs=0.15)
    other = uamcts.search(jax.random.key(1), jnp.int32(0), sampler, None, config)
    assert (other.tree.state[block, :40] != tree.state[block, :40]).any()


def expectimax(model, state, depth, gamma):
    """Q of the actions of a state with so many steps left."""
    if depth == 0:
        return np.zeros(model.num_actions)
    values = np.zeros(model.num_actions)
    for action, slot in np.ndindex(*model.following.shape[1:]):
        following, reward, ends, probability = (part[state, action, slot] for part in model)
        rest = 0.0 if ends else gamma * expectimax(model, following, depth - 1, gamma).max()
        values[action] += probability * (reward + rest)
    return values


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("rules", ["released", "pseudocode", "trust"])
def test_root_values_are_the_expectation(rules, seed):
    """With two steps left the root has the exact expectation, once the best second steps have most visits."""
    model = drawn(seed, 6, actions=2, outcomes=2)
    exact = expectimax(model, 0, 2, 0.9)
    config = uamcts.SearchConfig(iterations=4000, rollouts=1, depth=3, gamma=0.9, rules=rules, c=0.7, **PLAIN)
    found = uamcts.search(KEY, jnp.int32(0), arrays(model), None, config, horizon=2)
    np.testing.assert_allclose(found.values[exact.argmax()], exact.max(), atol=0.05)
    assert found.action == exact.argmax()


def test_each_search_of_a_batch_has_its_own_probability():
    """Two arms: the first pays 1 with probability p, the second always 0.5."""

    class Arms:
        num_actions = 2

        def __init__(self, p):
            self.p = p

        def outcomes(self, state, action):
            after = uamcts.Transition(
                jnp.stack([state, state]), jnp.where(action == 0, jnp.array([1.0, 0.0]), 0.5), jnp.array([True, True])
            )
            return after, jnp.stack([self.p, 1 - self.p])

    chances = jnp.array([0.1, 0.4, 0.6, 0.9])
    config = replace(TREE, iterations=400)
    found = jax.jit(jax.vmap(lambda p: uamcts.search(KEY, jnp.int32(0), Arms(p), None, config)))(chances)
    np.testing.assert_allclose(found.values[:, 0], chances, atol=0.02)
    assert found.action.tolist() == [1, 1, 0, 0]
    assert not found.flags.any()


def test_one_certain_outcome_is_a_step():
    """`outcomes` with one outcome builds the tree of `step`, from the same draws."""
    model = drawn(3, 12, actions=3, outcomes=1)
    step = first_outcome(model)
    doubt = lambda state, action: 0.3 * (state % 2)  # noqa: E731
    for rules in ("released", "pseudocode", "trust"):
        config = uamcts.SearchConfig(iterations=80, rollouts=2, depth=5, gamma=0.9, rules=rules)
        certain = uamcts.search(KEY, jnp.int32(0), step, doubt, config, num_actions=3)
        listed = uamcts.search(KEY, jnp.int32(0), arrays(model), doubt, config)
        assert certain.tree.chance is None
        assert certain.visits.tolist() == listed.visits.tolist()
        np.testing.assert_allclose(certain.values, listed.values, rtol=1e-5)
        np.testing.assert_array_equal(certain.tree.children, listed.tree.children)
