"""How searches grow with their iterations and actions."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts import reference
from uamcts.mcts import tree
from uamcts.mcts.config import most_growths
from uamcts.mcts.graph.descend import best_outcome
from uamcts.types import Transition

ITERATIONS, ACTIONS = 61, 7
OFF = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)


def step(place, action):
    place = (place * 31 + action * 7 + 1) % 1009
    return Transition(place, jnp.where(place % 13 == 0, 1.0, 0.0), place % 97 == 0)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads the program of a CPU")
@pytest.mark.parametrize("settings", [OFF, {}])
def test_no_iteration_copies_the_tree(settings):
    """An array of the tree is written in place: time is linear in the number of iterations."""
    config = uamcts.SearchConfig(iterations=ITERATIONS, rollouts=2, depth=3, **settings)
    program = jax.jit(lambda key, place: uamcts.search(key, place, step, None, config, num_actions=ACTIONS).visits)
    text = program.lower(jax.random.key(0), jnp.int32(5)).compile().as_text()
    blocks = most_growths(config, ACTIONS, masked=False, slots=1) + 3
    array = rf"= \w+\[({blocks},{ACTIONS}|{blocks * ACTIONS})[,\]]"
    loops = text[: text.index("ENTRY")]
    assert re.search(rf"{array}.* dynamic-update-slice\(", loops)
    assert not re.search(rf"{array}\S* copy\(", loops)


class Counter:
    """Every sequence of actions has a state of its own, and pays the same."""

    def __init__(self, num_actions):
        self.num_actions = num_actions

    def step(self, state, action):
        return self.num_actions * state + action + 1, 0.0, False

    def compiled(self, state, action):
        return Transition(self.num_actions * state + action + 1, jnp.float32(0.0), jnp.bool_(False))


def expanded(node):
    return sum(map(expanded, node.children), 1) if node.children else 0


@pytest.mark.parametrize("rules", ["trust", "released", pytest.param("pseudocode", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("actions", "settings"),
    [pytest.param(2, {}, marks=pytest.mark.long), (3, {}), (3, {"tree_depth": 3}), (5, {"c": 0.0})],
)
def test_there_is_room_for_all_that_grows(rules, actions, settings):
    """Where all children are worth the same, a tree grows in breadth, which takes the most blocks; c = 0 digs deep."""
    counter = Counter(actions)
    for iterations in (actions + 2, 60):
        config = uamcts.SearchConfig(iterations=iterations, rollouts=1, depth=1, rules=rules, **settings)
        plain = reference.search(0, 0, counter, None, config)
        found = uamcts.search(jax.random.key(0), jnp.int32(0), counter.compiled, None, config, num_actions=actions)
        grown, blocks = int(np.count_nonzero(found.tree.children)), found.tree.exists.shape[0]
        assert grown == expanded(plain.tree) > iterations // (2 * actions)
        assert grown <= blocks - 2, "the last block belongs to nobody"


def test_a_shallow_tree_takes_little_room():
    """Two levels of three actions: the root, its children and theirs, however many iterations there are."""
    config = uamcts.SearchConfig(iterations=500, rollouts=1, depth=1, tree_depth=2)
    found = uamcts.search(jax.random.key(0), jnp.int32(0), Counter(3).compiled, None, config, num_actions=3)
    assert int(np.count_nonzero(found.tree.children)) == 4
    assert found.tree.exists.shape[0] <= 7


@pytest.mark.parametrize("numbers", [[3.0, 1.0, 3.0, -2.0], [-np.inf, -np.inf], [-np.inf, 2.0, np.inf], [0.0]])
def test_many_actions_are_joined_like_few(monkeypatch, numbers):
    numbers = jnp.array(numbers)

    def join():
        joined = [tree.reduce_actions(operation, numbers) for operation in (jnp.minimum, jnp.maximum)]
        moves = tree.reduce_actions(jnp.logical_or, numbers > 0)
        return [*joined, moves, tree.argmax_actions(numbers), best_outcome(numbers, jnp.arange(numbers.size) * 5)]

    few = join()
    monkeypatch.setattr(tree, "FEW_ACTIONS", 0)
    monkeypatch.setattr("uamcts.mcts.graph.descend.FEW_ACTIONS", 0)
    for one, other in zip(few, join(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert tree.reduce_actions(jnp.add, jnp.arange(5.0)) == 10


def test_a_search_with_hundreds_of_actions():
    """Loops over actions are not written out. Every action is tried once; the one that pays most, most often."""

    def pay(place, action):
        return Transition(place, jnp.where(action == 150, 1.0, 0.0), jnp.bool_(True))

    config = uamcts.SearchConfig(iterations=300, rollouts=1, depth=1, c=0.1, **OFF)
    result = uamcts.search(jax.random.key(0), jnp.int32(0), pay, None, config, num_actions=200)
    assert result.action == 150
    np.testing.assert_array_equal(np.delete(result.visits, 150), 1)
    assert result.visits[150] == 101
