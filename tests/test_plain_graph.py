"""Graph search in the plain engine: against value iteration and backward induction, with trust, with reuse."""

import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from decision_processes import LAKE, Process, Sampler, action_values, lake, random_process
from hypothesis import given, settings
from hypothesis import strategies as st

import uamcts
from uamcts import reference
from uamcts.reference.graph import Edge, GraphNode
from uamcts.reference.renewal import mean_change

GRAPH = uamcts.SearchConfig(iterations=1000, rollouts=4, depth=20, graph=True, gamma=0.95)


def graph(**options):
    return uamcts.SearchConfig(**{"iterations": 1000, "rollouts": 4, "depth": 20, "graph": True, **options})


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 4), st.integers(1, 4), st.floats(0.9, 0.99))
def test_converges_to_value_iteration(seed, states, actions, branching, gamma):
    process = random_process(seed, states, actions, branching, ends=0.05)
    result = reference.search(seed, 0, process, None, graph(gamma=gamma))
    np.testing.assert_allclose(result.values, action_values(process, gamma)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("states", "gamma", "ends"), [(8, 0.99, 0.0), (100, 0.97, 0.02), (500, 0.99, 0.0)])
def test_large_processes(states, gamma, ends):
    """The last one never ends: sweeps alone would need thousands of steps to reach its values."""
    process = random_process(states, states, 3, 4, ends)
    result = reference.search(1, 0, process, None, graph(gamma=gamma, rollouts=1))
    exact = action_values(process, gamma)[0]
    np.testing.assert_allclose(result.values, exact, rtol=1e-5)
    assert result.action == np.argmax(exact)


@pytest.mark.parametrize("intended", [0.4, 0.7, 1.0])
def test_the_slippery_lake(intended):
    process = lake(intended)
    exact = action_values(process, 0.998)
    for state in process.states():
        result = reference.search(state, state, process, None, graph(gamma=0.998, depth=50))
        np.testing.assert_allclose(result.values, exact[state], atol=1e-6)
        assert exact[state][result.action] == pytest.approx(max(exact[state]), abs=1e-6)


@pytest.mark.parametrize("steps", [1, 3, 6, 30])
@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_a_horizon_is_backward_induction(steps, gamma):
    process = lake(0.7)
    result = reference.search(3, 0, process, None, graph(gamma=gamma), horizon=steps)
    np.testing.assert_allclose(result.values, action_values(process, gamma, steps)[0], atol=1e-9)
    assert len(result.tree.expanded) <= 11
    random = random_process(5, 30, 3, 2)
    result = reference.search(3, 0, random, None, graph(gamma=gamma), horizon=steps)
    np.testing.assert_allclose(result.values, action_values(random, gamma, steps)[0], atol=1e-9)


def test_ends_when_everything_is_known():
    result = reference.search(0, 0, lake(0.7), None, graph(iterations=10**6))
    assert len(result.tree.expanded) == 11  # of 16 cells, 4 are holes and one is the goal
    assert result.iterations < 40


def test_a_few_iterations_cover_a_long_walk():
    """A cliff of 37 cells along a corridor: an iteration is hardly ever lost on a cycle."""
    process = lake(0.7, ("F" * 12,) * 3 + ("S" + "H" * 10 + "G",))
    result = reference.search(0, 36, process, None, graph(gamma=0.996, iterations=60))
    assert len(result.tree.expanded) == 37
    np.testing.assert_allclose(result.values, action_values(process, 0.996)[36], atol=1e-6)


def test_an_estimate_that_was_too_high_is_forgotten():
    """Both cells lead to each other for nothing; the value function promises 5, and all there is pays 1."""
    table = {
        (0, 0): [(1.0, (1, 0.0, False))],
        (0, 1): [(1.0, (0, 1.0, True))],
        (1, 0): [(1.0, (0, 0.0, False))],
        (1, 1): [(1.0, (1, -1.0, True))],
    }
    for gamma in (1.0, 0.999):
        result = reference.search(0, 0, Process(table, 2), None, graph(gamma=gamma), value=lambda state: 5.0)
        np.testing.assert_allclose(result.values, [gamma**2, 1.0], atol=1e-9)
        assert result.action == 1  # what can be had at once is not put off, even if gamma is 1


def test_gamma_one_walks_straight_to_the_goal():
    state, process = 0, lake(1.0)
    for _ in range(6):
        result = reference.search(0, state, process, None, graph(gamma=1.0))
        assert max(result.values) == 1.0
        [(_, (state, reward, terminal))] = process.outcomes(state, result.action)
    assert (reward, terminal) == (1.0, True)


def test_a_cycle_that_pays():
    """With gamma = 1 its value has no bound: that of 1,000 steps is found, and the best action all the same."""
    table = {(0, action): [(1.0, (0, float(action), False))] for action in (0, 1)}
    result = reference.search(0, 0, Process(table, 2), None, graph(gamma=1.0))
    assert result.values == [999.0, 1000.0]
    assert result.action == 1
    result = reference.search(0, 0, Process(table, 2), None, graph(gamma=0.5))
    np.testing.assert_allclose(result.values, [1.0, 2.0], rtol=1e-6)


ROADS = {
    (0, 0): [(1.0, (1, 0.0, False))],  # the short road: one doubtful step, then 8
    (1, 0): [(1.0, (9, 8.0, True))],
    (1, 1): [(1.0, (9, 0.0, True))],
    (0, 1): [(1.0, (2, 0.0, False))],  # the long road: three certain steps, then 8
    (2, 0): [(1.0, (3, 0.0, False))],
    (2, 1): [(1.0, (2, 0.0, False))],
    (3, 0): [(1.0, (1, 0.0, False))],
    (3, 1): [(1.0, (3, 0.0, False))],
}


@pytest.mark.parametrize(("worst", "short"), [(0.0, 0.25 * 0.5 * 8), (-4.0, 0.5 * (0.25 * 8 - 0.75 * 4))])
def test_trust_takes_the_certain_road(worst, short):
    """Both roads pass the same cell: once with doubt on the way to it and once without."""

    def doubt(state, action):
        return 0.5 * (state == 0 and action == 0)

    process, config = Process(ROADS, 2), graph(gamma=0.5, rho=0.75, worst=worst)
    believed = reference.search(0, 0, process, None, config)
    assert believed.values == [4.0, 1.0]
    assert believed.action == 0
    trusted = reference.search(0, 0, process, doubt, config)
    assert trusted.values == pytest.approx([short, 1.0])
    assert trusted.action == 1 if worst else trusted.values[0] == trusted.values[1]
    assert trusted.uncertainty == [0.5, 0.0]
    assert {(1, False), (1, True)} <= trusted.tree.nodes.keys()


def test_doubt_counts_once():
    """Two doubtful steps in a row, the first of which keeps a quarter of the 8 beyond; reward 2 comes before it."""
    table = {
        (0, 0): [(0.5, (1, 2.0, False)), (0.5, (9, 2.0, True))],
        (1, 0): [(1.0, (2, 0.0, False))],
        (2, 0): [(1.0, (9, 8.0, True))],
    }
    result = reference.search(0, 0, Process(table, 1), lambda s, a: 0.5, graph(gamma=1.0, rho=0.75, worst=0.0))
    assert result.values == pytest.approx([2 + 0.5 * 8 / 4])


class Counted(Process):
    """A process that counts the questions about each state and action."""

    def __init__(self, table, num_actions):
        super().__init__(table, num_actions)
        self.asked = {}

    def outcomes(self, state, action):
        self.asked[state, action] = self.asked.get((state, action), 0) + 1
        return super().outcomes(state, action)


def values_under_doubt(process, doubtful, config):
    """Value iteration over (state, whether there was doubt): min(V, keep V + (1 - keep) V_min) at the first doubt."""
    values = dict.fromkeys(((state, doubted) for state in process.states() for doubted in (False, True)), 0.0)

    def action_value(state, doubted, action):
        first, total = (state, action) in doubtful and not doubted, 0.0
        for chance, (following, reward, over) in process.table[state, action]:
            below = 0.0 if over else values[following, doubted or first]
            below = min(below, (1 - config.rho) * below + config.rho * config.worst) if first else below
            total += chance * (reward + config.gamma * below)
        return total

    for _ in range(500):
        values = {place: max(action_value(*place, action) for action in range(3)) for place in values}
    return [action_value(0, False, action) for action in range(3)]


@pytest.mark.parametrize("seed", range(4))
def test_no_state_is_expanded_twice_because_of_doubt(seed):
    """Every state is reached with and without doubt. Values are exact, and the model is asked once about an action."""
    process = random_process(seed, 30, 3, 3, ends=0.05)
    doubtful = set(list(process.table)[seed::4])
    counted, config = Counted(process.table, 3), graph(gamma=0.9, rho=0.75, worst=-5.0)
    found = reference.search(
        seed, 0, counted, lambda state, action: float((state, action) in doubtful), config, value=lambda state: 0.0
    )
    np.testing.assert_allclose(found.values, values_under_doubt(process, doubtful, config), rtol=1e-5, atol=1e-5)
    assert len(found.tree.expanded) == 60
    assert set(counted.asked.values()) == {1}


def test_a_copied_node_has_the_value_of_its_own_rollouts():
    """Only one step is left below either road: without doubt it keeps a quarter of its 8, below doubt all of them."""
    table = {
        (0, 0): [(1.0, (1, 0.0, False))],
        (0, 1): [(1.0, (1, 0.0, False))],
        (1, 0): [(1.0, (2, 0.0, False))],
        (1, 1): [(1.0, (2, 0.0, False))],
        (2, 0): [(1.0, (9, 8.0, True))],
        (2, 1): [(1.0, (9, 8.0, True))],
    }
    found = reference.search(
        0, 0, Process(table, 2), lambda state, action: float(state == 1 or action == 0),
        graph(gamma=1.0, rho=0.75, worst=0.0, iterations=1),
    )  # fmt: skip
    assert found.values == pytest.approx([2.0, 2.0])
    first = {key: node for key, node in found.tree.nodes.items() if key[0] == 1}
    assert {key[1]: node.value for key, node in first.items()} == pytest.approx({False: 2.0, True: 8.0})


def test_legal_actions_and_dead_ends():
    """In state 1 nothing is legal: what a rollout would find there is nothing."""

    class Narrow(Process):
        def legal_actions(self, state):
            return {0: (1, 2), 1: (), 2: (0,)}[state]

    table = {
        (0, 1): [(1.0, (1, -1.0, False))],
        (0, 2): [(0.5, (1, 0.0, False)), (0.5, (2, 1.0, False))],
        (2, 0): [(1.0, (1, 6.0, False))],
    }
    result = reference.search(0, 0, Narrow(table, 3), None, graph(gamma=0.5), value=lambda state: 100.0)
    assert math.isnan(result.values[0])
    assert result.values[1:] == pytest.approx([-1.0, 0.5 + 0.5 * 0.5 * 6])
    assert result.exists == [False, True, True]
    assert result.action == 2


class Wrapped(Process):
    """States are whatever `wrap` makes of a number."""

    def __init__(self, process, wrap, unwrap):
        super().__init__(process.table, process.num_actions)
        self.wrap, self.unwrap = wrap, unwrap

    def outcomes(self, state, action):
        outcomes = super().outcomes(self.unwrap(state), action)
        return [(chance, (self.wrap(following), *rest)) for chance, (following, *rest) in outcomes]


@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda n: np.array([n, 0.5]), lambda s: int(s[0])),
        (lambda n: [n, [1, 2]], lambda s: s[0]),
        (lambda n: {"cell": n, "bag": {1, 2}}, lambda s: s["cell"]),
        (lambda n: (n, np.zeros(2)), lambda s: s[0]),
    ],
)
def test_states_by_their_contents(wrap, unwrap):
    process = lake(0.7)
    result = reference.search(0, wrap(0), Wrapped(process, wrap, unwrap), None, graph(gamma=0.9))
    assert len(result.tree.expanded) == 11
    np.testing.assert_allclose(result.values, action_values(process, 0.9)[0], atol=1e-6)


class Opaque:
    def __init__(self, number):
        self.number = number


def test_states_without_an_identity():
    model = Wrapped(lake(0.7), Opaque, lambda state: state.number)
    with pytest.raises(TypeError, match="identity"):
        reference.search(0, Opaque(0), model, None, GRAPH)
    model.identity = lambda state: [state.number]
    with pytest.raises(TypeError, match=r"identity.*cannot be hashed"):
        reference.search(0, Opaque(0), model, None, GRAPH)
    model.identity = lambda state: state.number
    result = reference.search(0, Opaque(0), model, None, GRAPH)
    assert len(result.tree.expanded) == 11
    assert reference.search(0, Opaque(0), model, None, uamcts.SearchConfig(iterations=20, rollouts=1)).action in range(
        4
    )


def test_sampled_outcomes():
    """Eight draws an action at first; what is left of the iterations draws more, and the values come closer."""
    process, errors = lake(0.7), []
    exact = action_values(process, 0.9)[0]
    for iterations in (15, 1000):
        config = graph(gamma=0.9, rollouts=1, iterations=iterations)
        found = [reference.search(seed, 0, Sampler(process), None, config) for seed in range(4)]
        errors.append(np.mean([np.max(np.abs(result.values - exact)) for result in found]))
    assert errors[1] < errors[0] / 3  # about 90 times as many draws
    for node in found[0].tree.expanded:
        for edge in node.edges:
            assert sum(edge.chances) == pytest.approx(1.0)
    assert reference.search(0, 0, Sampler(process), None, config).values == found[0].values


def test_reuse_keeps_what_is_below():
    process = random_process(3, 200, 3, 3)
    config = graph(gamma=0.9, iterations=40, rollouts=2)
    first = reference.search(0, 0, process, None, config)
    edge = next(edge for edge in first.tree.root.edges if edge.action == first.action)
    node = next(child for child in edge.children if child.edges)
    visits, known = node.visits, len(first.tree.expanded)
    second = reference.search(0, node.state, process, None, config, tree=first)
    assert second.tree.root is node
    assert sum(second.visits) >= visits + second.iterations  # a path may pass the root again
    assert len(second.tree.expanded) > known / 2
    exact, alone = action_values(process, 0.9)[node.state], reference.search(0, node.state, process, None, config)
    assert np.max(np.abs(second.values - exact)) < np.max(np.abs(alone.values - exact))


def test_reuse_of_what_was_solved_costs_nothing():
    process = lake(0.7)
    first = reference.search(0, 0, process, None, GRAPH)
    second = reference.search(0, 4, process, None, GRAPH, tree=first)
    assert second.iterations == 0
    np.testing.assert_allclose(second.values, action_values(process, 0.95)[4], atol=1e-6)
    elsewhere = reference.search(0, 0, lake(0.7, ("SFG",)), None, GRAPH)
    assert reference.search(0, 14, process, None, GRAPH, tree=elsewhere).iterations > 0
    with pytest.raises(ValueError, match=r"gamma=0\.95, and this one has gamma=0\.5"):
        reference.search(0, 0, process, None, graph(gamma=0.5), tree=first)
    with pytest.raises(TypeError, match="tree is 3"):
        reference.search(0, 0, process, None, GRAPH, tree=3)


def test_a_search_goes_on_in_a_model_that_has_changed_a_little():
    """The lake is a little more slippery than it was: nothing is left to expand, and values are of the new one."""
    first = reference.search(0, 0, lake(0.7), None, GRAPH)
    first.tree.forget_all()
    second = reference.search(0, 4, lake(0.65), None, GRAPH, tree=first)
    assert second.iterations == 0
    np.testing.assert_allclose(second.values, action_values(lake(0.65), 0.95)[4], atol=1e-6)
    visits = {node.state: [edge.visits for edge in node.edges] for node in first.tree.expanded}
    assert all([edge.visits for edge in node.edges] == visits[node.state] for node in second.tree.expanded)
    third = reference.search(0, 0, lake(0.65), None, GRAPH, tree=second)
    assert second.tree.other_model is False, "the model is asked once"
    np.testing.assert_allclose(third.values, action_values(lake(0.65), 0.95)[0], atol=1e-6)


def test_a_search_starts_anew_in_a_model_that_has_changed_much():
    first = reference.search(0, 0, lake(0.9), None, GRAPH)
    first.tree.forget_all()
    second = reference.search(0, 0, lake(0.4), None, GRAPH, tree=first)
    assert second.tree.inherited == 0 < second.iterations
    np.testing.assert_allclose(second.values, action_values(lake(0.4), 0.95)[0], atol=1e-6)


def test_how_much_a_model_has_changed():
    """0.3 of the probability leads elsewhere; rewards that spread over 4 change by 1; the third action is as it was."""
    node, left, right = (GraphNode(state, False, False) for state in range(3))

    def edges(chance, reward):
        found = [Edge(action, 0.0) for action in range(3)]
        for edge, one, paid in zip(found, (chance, 0.5, 0.5), (0.0, reward, 4.0), strict=True):
            edge.children, edge.chances, edge.visited, edge.reward = [left, right], [one, 1 - one], [0, 0], paid
        return found

    before, node.edges = edges(0.9, 1.0), edges(0.6, 2.0)
    assert mean_change({node: before}) == pytest.approx((0.3 + 0.25) / 3)
    node.edges = node.edges[:1]
    assert mean_change({node: before}) == pytest.approx(0.3), "of actions that are still legal"


def test_a_prior_leads_the_way():
    """Along a corridor of 40 cells with four side doors each, six iterations get six cells far."""
    table = {}
    for cell in range(41):
        table[cell, 0] = [(1.0, (cell + 1, float(cell == 39), cell == 39))]
        table.update({(cell, door): [(1.0, (100 * door + cell, 0.0, False))] for door in range(1, 5)})
        for side in range(1, 5):
            table.update({(100 * side + cell, action): [(1.0, (cell, 0.0, True))] for action in range(5)})

    def right(state):
        return [0.96, 0.01, 0.01, 0.01, 0.01]

    config, process = graph(iterations=42, gamma=0.99, rollouts=1, depth=1), Process(table, 5)
    led = reference.search(0, 0, process, None, config, prior=right)
    assert led.values[0] == pytest.approx(0.99**39)
    assert reference.search(0, 0, process, None, config).values[0] == 0.0


def test_the_lake_map():
    assert len(lake(0.5).states()) == "".join(LAKE).count("F") + 1


def test_explain_tells_how_many_states_share_nodes():
    result = reference.search(0, 0, lake(0.7), None, uamcts.SearchConfig(graph=True, iterations=100, gamma=0.9))
    assert result.explain().endswith("equal states share a node: 11 states were expanded, no other can be reached")


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_a_reward_beyond_the_horizon_does_not_count(engine):
    """A corridor that pays 1 at the fourth step is worth nothing with three steps left, expanded or not."""

    def step(state, action):
        return state + 1, 1.0 * (state == 3), False

    for horizon, worth in ((3, 0.0), (4, 1.0)):
        for iterations in (3, 4, 20):
            if engine == "plain":
                model = types.SimpleNamespace(num_actions=1, step=step)
                config = uamcts.SearchConfig(graph=True, iterations=iterations, depth=10)
                found = uamcts.reference.search(0, 0, model, None, config, horizon=horizon).values[0]
            else:
                found = compiled_corridor(iterations, horizon)
            if horizon == 3 or iterations > 3:
                assert found == pytest.approx(worth), (horizon, iterations)


@functools.cache
def corridor_search(iterations):
    """A program of this many iterations, for any horizon."""

    def step(state, action):
        return uamcts.Transition(state + 1, (state == 3).astype(jnp.float32), jnp.bool_(False))

    config = uamcts.SearchConfig(graph=True, iterations=iterations, depth=10)

    def values(horizon):
        key, start = jax.random.key(0), jnp.int32(0)
        return uamcts.search(key, start, step, None, config, num_actions=1, horizon=horizon).values

    return jax.jit(values)


def compiled_corridor(iterations, horizon):
    return float(corridor_search(iterations)(horizon)[0])
