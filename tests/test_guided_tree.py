"""What people bring to the compiled tree: policies, values, priors, horizons, earlier trees; bad input."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from decision_processes import Process
from random_tables import Chances, arrays, drawn, plan
from test_chance_tree import BETS, IN_ARRAYS, KEY, PLAIN, TREE, bet, first_outcome

import uamcts
from uamcts import reference
from uamcts.mcts.reuse import move_root
from uamcts.mcts.tree import VISITS, empty

# What people bring.


CORRIDOR = Chances(
    following=np.array([[[cell + 1], [0]] for cell in range(12)]),
    rewards=np.array([[[float(cell == 11)], [0.0]] for cell in range(12)], np.float32),
    ends=np.array([[[cell == 11], [True]] for cell in range(12)]),
    probabilities=np.ones((12, 2, 1), np.float32),
)
"""Twelve cells; the right end pays 1, and every step to the left ends the walk."""

corridor = first_outcome(CORRIDOR)


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        pytest.param(corridor, lambda s, key: jnp.array([2.0, 0.0]), id="step-shares"),
        pytest.param(arrays(CORRIDOR), lambda s, key: 0, id="outcomes-action"),
    ],
)
def test_rollouts_follow_the_policy(model, policy):
    config = replace(TREE, iterations=3, depth=20, gamma=0.9)
    found = uamcts.search(KEY, jnp.int32(0), model, None, config, num_actions=2, policy=policy)
    assert float(found.values[0]) == pytest.approx(0.9**11)
    assert uamcts.search(KEY, jnp.int32(0), model, None, config, num_actions=2).values[0] < 0.1


def test_values_at_leaves():
    """One step without a reward, then one that pays 1; the value function says 4. gamma is 1/2."""
    step = lambda state, action: uamcts.Transition(state + 1, jnp.float32(state == 1), jnp.bool_(False))  # noqa: E731
    value = lambda state: 4.0  # noqa: E731
    for weight, first in ((1.0, 2.0), (0.0, 0.5), (0.25, 0.25 * 2 + 0.75 * 0.5)):
        config = uamcts.SearchConfig(iterations=1, tree_depth=1, rollouts=3, depth=4, gamma=0.5, value_weight=weight)
        found = uamcts.search(KEY, jnp.int32(0), step, None, config, num_actions=1, value=value)
        assert found.values.tolist() == pytest.approx([first]), weight


def test_no_rollouts_with_a_value_of_full_weight():
    """The compiled program then has no rollouts in it: the model is traced for the expansions alone."""
    calls = []

    def step(state, action):
        calls.append(1)
        return uamcts.Transition(state + 1, jnp.float32(0), jnp.bool_(False))

    uamcts.search(KEY, jnp.int32(0), step, None, replace(TREE, worst=0.0), num_actions=2, value=lambda state: 0.0)
    without = len(calls)
    uamcts.search(KEY, jnp.int32(0), step, None, replace(TREE, worst=0.0, value_weight=0.5), num_actions=2,
                  value=lambda state: 0.0)  # fmt: skip
    assert without < len(calls) - without


def test_a_prior_by_hand():
    """score = x + c P sqrt(N) / (1 + n): c = 1, P = (1/5, 4/5); the first arm pays 1, the second 0.

    N = 0: scores tie at 0.5: arm 0. N = 1: 0.5 + 0.1 against 0.5 + 0.8: arm 1. N = 2: 1 + 0.2 sqrt(2) / 2 against
    0.8 sqrt(2) / 2: arm 0; and so on.
    """
    arms = lambda state, action: uamcts.Transition(state, jnp.float32(action == 0), jnp.bool_(True))  # noqa: E731
    visits = []
    for iterations in range(1, 5):
        config = uamcts.SearchConfig(iterations=iterations, rollouts=1, depth=1, c=1.0, rules="trust")
        prior = lambda state: jnp.array([0.2, 0.8])  # noqa: E731
        found = uamcts.search(KEY, jnp.int32(0), arms, None, config, num_actions=2, prior=prior)
        visits.append(found.visits.tolist())
    assert visits == [[1, 0], [1, 1], [2, 1], [3, 1]]
    never = uamcts.search(KEY, jnp.int32(0), arms, None, config, num_actions=2, prior=lambda s: jnp.array([1.0, 0.0]))
    assert never.visits.tolist() == [4, 0]
    assert np.isnan(never.values[1])


def plain_process(model):
    """The same process for the plain engine."""
    states, actions, outcomes = model.following.shape
    return Process(
        {
            (state, action): [
                (
                    float(model.probabilities[state, action, slot]),
                    (
                        int(model.following[state, action, slot]),
                        float(model.rewards[state, action, slot]),
                        bool(model.ends[state, action, slot]),
                    ),
                )
                for slot in range(outcomes)
            ]
            for state in range(states)
            for action in range(actions)
        },
        actions,
    )


@pytest.mark.parametrize("rules", ["released", "trust"])
def test_engines_agree_with_a_prior(rules):
    model, worth = drawn(6, 15, actions=3, outcomes=2), np.linspace(-1, 1, 15).astype(np.float32)
    shares = np.random.default_rng(0).random((15, 3)).astype(np.float32)
    config = uamcts.SearchConfig(iterations=120, rollouts=1, gamma=0.9, rules=rules)
    ours = uamcts.search(
        KEY, jnp.int32(0), arrays(model), None, config,
        value=lambda state: jnp.asarray(worth)[state], prior=lambda state: jnp.asarray(shares)[state],
    )  # fmt: skip
    plain = reference.search(
        0, 0, plain_process(model), None, config, value=lambda s: float(worth[s]), prior=lambda s: shares[s].tolist()
    )
    assert ours.visits.tolist() == plain.visits
    np.testing.assert_allclose(ours.values, plain.values, rtol=1e-4)


def test_nothing_after_the_horizon_counts():
    """After one step the first bet has paid 1 on average; only later steps pay the rest."""
    config = replace(TREE, iterations=2000, gamma=1.0, c=100.0)
    search = jax.jit(lambda left: uamcts.search(KEY, jnp.int32(0), IN_ARRAYS, None, config, horizon=left))
    one, two = search(1), search(2)
    np.testing.assert_allclose(one.values, [1.0, 1.5], atol=0.02)
    np.testing.assert_allclose(two.values, [bet(1.0), 1.5], atol=0.02)
    assert (one.action, two.action) == (1, 0)
    valued = uamcts.search(KEY, jnp.int32(0), IN_ARRAYS, None, config, horizon=1, value=lambda state: 100.0)
    np.testing.assert_allclose(valued.values, [1.0, 1.5], atol=0.02)


def test_the_horizon_ends_rollouts():
    """Every step pays 1: with three steps left each action is worth exactly three."""
    step = lambda state, action: uamcts.Transition(state + 1, jnp.float32(1), jnp.bool_(False))  # noqa: E731
    for iterations in (2, 50):
        config = uamcts.SearchConfig(iterations=iterations, rollouts=2, depth=20, **PLAIN)
        found = uamcts.search(KEY, jnp.int32(0), step, None, config, num_actions=2, horizon=3)
        assert found.values.tolist() == [3.0, 3.0]


# Reuse.


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ("released", "step"),
        ("pseudocode", "outcomes"),
        ("trust", "outcomes"),
        pytest.param("released", "outcomes", marks=pytest.mark.long),
        pytest.param("pseudocode", "step", marks=pytest.mark.long),
        pytest.param("trust", "step", marks=pytest.mark.long),
    ],
)
def test_the_part_below_the_real_outcome_is_kept(rules, kind):
    """A search that goes on from a kept tree has its visits and values, and adds its own."""
    model = drawn(4, 200, actions=2, outcomes=1 if kind == "step" else 2)._replace(ends=np.zeros((200, 2, 2), bool))
    step = first_outcome(model)
    planned = step if kind == "step" else arrays(model)
    config = uamcts.SearchConfig(iterations=100, rollouts=1, depth=3, gamma=0.9, rules=rules, **PLAIN)
    search = lambda state, **more: uamcts.search(  # noqa: E731
        KEY, jnp.int32(state), planned, None, config, num_actions=2, **more
    )
    first = search(0)
    tree, block = first.tree, first.tree.children[0, 0]
    visits = tree.stats[block, :, VISITS] if tree.chance is None else tree.chance.visits[block]
    place = int(jnp.argmax(visits))
    top, state = int(tree.children[block, place]), int(tree.state[block, place])
    second = search(state, tree=first)
    assert (second.visits >= tree.stats[top, :, VISITS]).all()
    assert second.visits.sum() == tree.stats[top, :, VISITS].sum() + 100
    assert second.tree.stats[0, 0, VISITS] == visits[place] + 100
    third = search(int(second.tree.state[second.tree.children[0, 0], 0]), tree=second)
    assert third.visits.sum() > 100
    elsewhere = search(199, tree=first)
    assert elsewhere.visits.tolist() == search(199).visits.tolist()


def test_a_kept_tree_is_the_same_tree():
    """Path by path: what lies below the outcome has the same states, visits and totals after it has moved."""
    model = drawn(4, 200, actions=2, outcomes=2)._replace(ends=np.zeros((200, 2, 2), bool))
    config = uamcts.SearchConfig(iterations=60, rollouts=1, depth=3, gamma=0.9, rules="trust")
    tree = uamcts.search(KEY, jnp.int32(0), arrays(model), None, config).tree
    block = tree.children[0, 0]
    place = int(jnp.argmax(tree.chance.visits[block]))
    blank = empty(tree.state[block, place], 122, 2, 2)
    moved = move_root(tree, blank, tree.state[block, place], 60, True)

    def paths(tree, block):
        tree = jax.device_get(tree)
        rows = [tree.state[block].tolist(), tree.stats[block].tolist(), tree.chance.visits[block].tolist()]
        return [rows, *([paths(tree, int(child)) if child else None for child in tree.children[block]])]

    assert moved.children[0, 0] == 1
    assert paths(moved, 1) == paths(tree, int(tree.children[block, place]))
    few = move_root(tree, blank, tree.state[block, place], 5, True)
    assert int(few.children.max()) == 5
    assert paths(few, 1)[0] == paths(moved, 1)[0]


def test_nothing_is_kept_behind_doubt():
    step = lambda state, action: uamcts.Transition(state + 1 + action, jnp.float32(1), jnp.bool_(False))  # noqa: E731
    config = uamcts.SearchConfig(iterations=60, rollouts=1, depth=2, gamma=0.5, rules="trust", worst=0.0)
    search = lambda state, **more: uamcts.search(  # noqa: E731
        KEY, jnp.int32(state), step, lambda s, a: 0.5 * (a == 0), config, num_actions=2, **more
    )
    first = search(0)
    assert search(1, tree=first).visits.sum() == 60
    assert search(2, tree=first).visits.sum() > 60


# Bad input.


@pytest.mark.parametrize("probabilities", [[0.5, 0.4], [1.5, -0.5], [np.nan, 1.0]])
@pytest.mark.parametrize("later", [False, True])
def test_bad_probabilities(probabilities, later):
    shape = BETS.following.shape  # whose compiled program serves here too
    states = np.broadcast_to(np.arange(shape[0]).reshape(-1, 1, 1), shape)
    chances = np.where(later & (states < 2), [1.0, 0.0], probabilities).astype(np.float32)
    onward, nothing = np.minimum(states + 1, shape[0] - 1), np.zeros(shape, np.float32)
    model = Chances(onward, nothing, np.zeros(shape, bool), chances)
    with pytest.raises(ValueError, match="probabilities of outcomes, or of a prior"):
        plan(KEY, 0, model, TREE)


@pytest.mark.parametrize(
    ("brought", "words"),
    [
        ({"prior": lambda s: jnp.array([0.0, 0.0])}, "probabilities of outcomes, or of a prior"),
        ({"prior": lambda s: jnp.array([-1.0, 2.0])}, "probabilities of outcomes, or of a prior"),
        ({"prior": lambda s: 0.5}, "prior.state. returned an array of shape"),
        ({"value": lambda s: jnp.nan}, "not a finite number"),
        ({"value": lambda s: jnp.zeros(2)}, "value.state. returned an array of shape"),
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"tree": 3}, "tree is 3"),
    ],
)
def test_bad_guides(brought, words):
    with pytest.raises(ValueError, match=words):
        uamcts.search(KEY, jnp.int32(0), IN_ARRAYS, None, TREE, **brought)


def test_a_tree_of_another_search():
    found = plan(KEY, 0, BETS, TREE)
    with pytest.raises(ValueError, match="tree is the tree of a search, and this search has graph=True"):
        uamcts.search(KEY, jnp.int32(0), IN_ARRAYS, None, replace(TREE, graph=True), tree=found)
    with pytest.raises(ValueError, match="2 actions with 2 outcomes each"):
        uamcts.search(KEY, jnp.int32(0), corridor, None, TREE, num_actions=2, tree=found)
