"""`SearchConfig.first`: which action is tried first where none was, and how an agent chooses it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts import reference


class Counter:
    """Every sequence of actions has a state of its own."""

    num_actions = 4

    def step(self, state, action):
        return 4 * state + action + 1, 0.0, False


def compiled(state, action):
    return uamcts.Transition(4 * state + action + 1, jnp.float32(0.0), jnp.bool_(False))


def visited(tree):
    states, visits = np.asarray(tree.state), np.asarray(tree.visits)
    return sorted(states[visits > 0].tolist())


def visited_plainly(node):
    return [node.state] + [state for child in node.children if child.visits for state in visited_plainly(child)]


@pytest.mark.parametrize(
    ("first", "states"),
    [(None, [0, 1, 2, 3, 4, 5, 6, 9, 13, 17]), (0, [0, 1, 2, 3, 4, 5, 6, 9, 13, 17]),
     (3, [0, 1, 2, 3, 4, 5, 8, 12, 16, 20]), (6, [0, 1, 2, 3, 4, 7, 8, 11, 15, 19])],
)  # fmt: skip
def test_actions_follow_in_their_order_from_the_first_on(first, states):
    """After the four actions of the root, the same one is tried below each, and then the next one below action 0."""
    config = uamcts.SearchConfig(rules="trust", iterations=9, rollouts=1, depth=1, first=first)
    found = uamcts.search(jax.random.key(0), jnp.int32(0), compiled, None, config, num_actions=4)
    assert visited(found.tree) == states
    assert sorted(visited_plainly(reference.search(0, 0, Counter(), None, config).tree)) == states


def test_certain_children_still_come_first():
    config = uamcts.SearchConfig(rules="trust", iterations=3, rollouts=1, depth=1, first=2)
    doubt = lambda state, action: jnp.float32(action == 2)  # noqa: E731
    found = uamcts.search(jax.random.key(0), jnp.int32(0), compiled, doubt, config, num_actions=4)
    plain = reference.search(0, 0, Counter(), lambda state, action: float(action == 2), config)
    assert found.visits.tolist() == plain.visits == [1, 1, 0, 1]


def test_it_must_be_an_action():
    for wrong in (-1, 0.5):
        with pytest.raises(ValueError, match=f"first is {wrong}; it must be a whole number of at least 0"):
            uamcts.SearchConfig(first=wrong)


class Line:
    """A point on a line: no state is met twice."""

    num_actions = 2

    def step(self, state, action):
        return state + 0.3 * (2 * action - 1) + 0.01 * state, -abs(state), False


def used(agent):
    """The settings that an agent searches trees with."""
    return [agent.backend._settings(None) for agent.backend.acts in range(40)]


def test_an_agent_draws_the_first_action_of_every_tree():
    agent = uamcts.Agent(Line(), iterations=4, rollouts=1, depth=2)
    agent.act(0.1)
    configs = used(agent)
    assert {(config.graph, float(config.c)) for config in configs} == {(False, 8.0)}
    assert 10 < sum(config.first for config in configs) < 30
    again = uamcts.Agent(Line(), "none", corrections=(), iterations=4, rollouts=1, depth=2)
    again.act(0.1)
    assert [config.first for config in used(again)] == [config.first for config in configs]


@pytest.mark.parametrize("given", [{"c": 2.0, "first": 1}, {"graph": True}, {"rules": "released"}])
def test_what_was_given_is_kept(given):
    agent = uamcts.Agent(Line(), iterations=4, rollouts=1, depth=2, **given)
    agent.act(0.1)
    usual = uamcts.SearchConfig(rules=given.get("rules", "trust"))
    for config in used(agent):
        assert (config.c, config.first) == (given.get("c", usual.c), given.get("first"))


def test_an_agent_of_a_domain_searches_as_the_lab_does():
    agent = uamcts.Agent(uamcts.make("two_way"), graph=False, iterations=2, rollouts=1, depth=2)
    assert {(config.first, float(config.c)) for config in used(agent)} == {(None, 4.0)}
