"""Graph search that knows the world reaches the exact optimum of the gridworlds, at the iterations of the presets."""

import jax
import numpy as np
import pytest

import uamcts
from uamcts.domains.exact import best_plan, evaluate, tabulate
from uamcts.presets import search_config


def reward_and_optimum(name, gamma, graph):
    """What a search in every state earns from the start within the time limit, evaluated exactly, and the optimum."""
    domain = uamcts.make(name).with_true_model()
    config = search_config(domain, "true", graph=graph, rules="trust", gamma=gamma)
    world, _, states = tabulate(domain)
    keys = jax.random.split(jax.random.key(0), len(world.legal))
    plan = jax.jit(jax.vmap(lambda key, state: uamcts.search(key, state, domain.model, None, config).action))
    actions = np.asarray(plan(keys, states))
    steps = domain.time_limit
    return evaluate(world, actions, gamma, steps)[0], best_plan(world, gamma, steps).values[0]


# With gamma below 1 only the shortest way is the optimum. 10 iterations in the first two worlds, 100 in the others.
@pytest.mark.parametrize(
    ("name", "gamma"),
    [
        ("two_way", 0.99),
        pytest.param("two_way_icy", 0.99, marks=pytest.mark.long),
        pytest.param("hidden_obstacles", 1.0, marks=pytest.mark.long),
        ("slippery", 1.0),
    ],
)
def test_the_optimum_is_reached_where_the_facts_are_known(name, gamma):
    reward, optimum = reward_and_optimum(name, gamma, graph=True)
    assert reward == pytest.approx(optimum, rel=1e-12)
