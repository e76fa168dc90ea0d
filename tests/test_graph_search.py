"""Search on a graph: known answers by hand and by value iteration, shared nodes, what people bring, bad input."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_tables import Chances, arrays, drawn, plan, slippery, solve
from tables import find, table

import uamcts
from uamcts.mcts.graph import equals
from uamcts.mcts.graph import table as hash_table
from uamcts.mcts.graph.graph import END, ROOT, graph_bytes

KEY = jax.random.key(0)
GRAPH = uamcts.SearchConfig(graph=True, iterations=30, rollouts=4, depth=6)
SIX = replace(GRAPH, iterations=6, gamma=0.9)
LAKE = arrays(slippery(0.7))


def stacked(tables):
    return Chances(*(jnp.stack(parts) for parts in zip(*tables, strict=True)))


# Against value iteration.


def test_values_on_the_lake_are_those_of_value_iteration():
    """One program for a batch in which every search has its own probability, discount and key."""
    chances, gammas = (0.4, 0.7, 1.0, 0.7), jnp.array([0.998, 0.998, 0.998, 0.9])
    config = uamcts.SearchConfig(graph=True, iterations=1000)

    def search(key, lake, gamma):
        found = uamcts.search(key, jnp.int32(0), lake, None, replace(config, gamma=gamma))
        return found.values, found.tree.rows, found.flags

    lakes = [slippery(p) for p in chances]
    values, rows, flags = jax.jit(jax.vmap(search))(jax.random.split(KEY, 4), stacked(lakes), gammas)
    exact = [solve(lake, float(gamma))[0] for lake, gamma in zip(lakes, gammas, strict=True)]
    np.testing.assert_allclose(values, exact, atol=1e-4)
    assert rows.tolist() == [11] * 4  # every cell but the holes and the goal is expanded once
    assert flags.tolist() == [0] * 4


def test_as_many_iterations_as_states_cover_them_all():
    found = plan(KEY, 0, slippery(0.4), replace(GRAPH, iterations=11, gamma=0.9))
    assert (int(found.tree.rows), int(found.tree.open)) == (11, 0)
    np.testing.assert_allclose(found.values, solve(slippery(0.4), 0.9)[0], atol=1e-5)


def test_random_processes_of_8_to_500_states():
    sizes, gammas = (8, 30, 120, 500), (0.5, 0.9, 0.95, 0.8)
    processes = [drawn(seed, size, padded=500) for seed, size in enumerate(sizes)]
    config = uamcts.SearchConfig(graph=True, iterations=900, rollouts=1, depth=1, tree_depth=64)
    search = jax.jit(lambda table, gamma: uamcts.search(KEY, jnp.int32(0), table, None, replace(config, gamma=gamma)))
    for process, gamma in zip(processes, gammas, strict=True):
        found = search(arrays(process), gamma)
        exact = solve(process, gamma)[0]
        assert int(found.tree.open) == 0
        np.testing.assert_allclose(found.values, exact, atol=1e-4)
        assert int(found.action) == exact.argmax()


def test_a_horizon_is_backward_induction():
    """The number of steps left is traced, and differs within a batch."""
    steps = jnp.array([1, 2, 6, 20, 100])
    config = replace(GRAPH, iterations=100, gamma=0.998)

    def search(horizon):
        return uamcts.search(KEY, jnp.int32(0), LAKE, None, config, horizon=horizon).values

    found = jax.jit(jax.vmap(search))(steps)
    for values, horizon in zip(found, steps.tolist(), strict=True):
        np.testing.assert_allclose(values, solve(slippery(0.7), 0.998, horizon)[0], atol=1e-5)


def endless(length):
    """A ring that pays 1 per step, and in which one may also stay for 1/2 a step."""
    following = np.array([[[(state + 1) % length], [state]] for state in range(length)], np.int32)
    rewards = np.broadcast_to(np.array([[1.0], [0.5]], np.float32), following.shape)
    return Chances(following, rewards, np.zeros(following.shape, bool), np.ones(following.shape, np.float32))


@pytest.mark.parametrize("slots", [pytest.param(1, marks=pytest.mark.long), 2])
def test_rewards_that_never_end(slots):
    """1 / (1 - gamma) in a ring, with outcomes that are one or two halves; sweeps alone would take 14,000 steps."""
    ring = Chances(*(np.repeat(part, slots, axis=2) for part in endless(7)))
    ring = arrays(ring._replace(probabilities=ring.probabilities / slots))
    search = jax.jit(lambda gamma: uamcts.search(KEY, jnp.int32(0), ring, None, replace(GRAPH, gamma=gamma)).values)
    for gamma in (0.9, 0.999):
        worth = 1 / (1 - gamma)
        np.testing.assert_allclose(search(gamma), [worth, 0.5 + gamma * worth], rtol=1e-4)


def test_random_processes_without_end():
    """Rewards of random size in a random process that never ends, against value iteration."""
    process = drawn(3, 40)
    process = process._replace(ends=np.zeros_like(process.ends))
    config, table = replace(GRAPH, iterations=50), arrays(process)
    search = jax.jit(lambda gamma: uamcts.search(KEY, jnp.int32(0), table, None, replace(config, gamma=gamma)).values)
    for gamma in (0.5, 0.99, 0.999):
        np.testing.assert_allclose(search(gamma), solve(process, gamma, 50_000)[0], rtol=1e-4)


MAZE = ("S.#....", ".#...#.", "...#.#.", "##.#.#.", "....#..", ".##...G")


def test_shortest_paths_through_a_maze():
    """Every step costs 1: values are distances, which a search from the goal finds."""
    cells = {(r, c) for r, row in enumerate(MAZE) for c, letter in enumerate(row) if letter != "#"}
    number = {cell: place for place, cell in enumerate(sorted(cells))}  # the goal is the last
    moves = {
        (number[r, c], a): (number.get((r + down, c + right), number[r, c]), -1.0, 0.0)
        for r, c in cells
        for a, (down, right) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0)))
    }
    maze = table(moves, len(cells), 4)
    distance, queue = {len(cells) - 1: 0}, [len(cells) - 1]
    for cell in queue:
        for before in np.unique(np.nonzero(maze.following == cell)[0]).tolist():
            if before not in distance:
                distance[before] = distance[cell] + 1
                queue.append(before)
    found = find(KEY, maze, replace(GRAPH, iterations=len(cells), gamma=1.0))
    assert found.values.tolist() == [-1.0 - distance[int(after)] for after in maze.following[0]]
    assert distance[int(maze.following[0, int(found.action)])] == distance[0] - 1


# By hand.


def test_one_expansion_by_hand():
    """A coin: 3/4 for a reward of 4 and the end, 1/4 for state 1, which is worth 8."""
    following, ends = jnp.array([[[1, 1]]]), jnp.array([[[True, False]]])
    coin = Chances(following, jnp.array([[[4.0, 0.0]]]), ends, jnp.array([[[0.75, 0.25]]]))
    config = replace(GRAPH, iterations=1, gamma=0.5)
    found = uamcts.search(KEY, jnp.int32(0), coin, None, config, num_actions=1, value=lambda state: 8.0 * state)
    assert found.values.tolist() == [0.75 * 4 + 0.25 * 0.5 * 8]
    assert found.tree.child[0].tolist() == [[END, 3]]
    assert found.visits.tolist() == [0]


DIAMOND = table({(0, 0): (1, 0.0, 0.0), (0, 1): (1, 1.0, 0.0), (1, 0): (0, 0.0, 0.0), (1, 1): (2, 5.0, 0.0)}, 3, 2)
"""Both actions of the start lead to state 1, from where one leads back and one to the end."""


def test_equal_states_share_a_node_and_cycles_are_harmless():
    found = find(KEY, DIAMOND, replace(GRAPH, gamma=0.5))
    assert np.asarray(found.values) == pytest.approx([2.5, 3.5])
    assert int(found.tree.rows) == 2
    assert found.tree.child[:2, :, 0].tolist() == [[2, 2], [ROOT, END]]
    assert int(found.action) == 1


def test_nothing_remains_of_an_estimate_that_a_cycle_keeps_alive():
    """With gamma 1, going in a circle for nothing must not preserve a value that turned out wrong."""
    circle = table({(0, 0): (1, 0.0, 0.0), (0, 1): (2, 3.0, 0.0), (1, 0): (0, 0.0, 0.0), (1, 1): (2, 5.0, 0.0)}, 3, 2)
    found = uamcts.search(KEY, jnp.int32(0), circle.model, None, GRAPH, num_actions=2, value=lambda state: 100.0)
    assert found.values.tolist() == [5.0, 3.0]


def test_of_equal_values_the_one_that_pays_earlier():
    """With gamma 1 the 5 can be had at once or after going in a circle; whatever the draw, it is taken at once."""
    steps = {(0, 0): (1, 0.0, 0.0), (0, 1): (0, 0.0, 0.0), (0, 2): (2, 0.0, 0.0), (1, 0): (3, 5.0, 0.0)}
    ring = table(steps | {(1, 1): (0, 0.0, 0.0), (1, 2): (0, 0.0, 0.0), (2, 1): (0, 0.0, 0.0)}, 4, 3)
    found = jax.jit(jax.vmap(lambda key: find(key, ring, GRAPH)))(jax.random.split(KEY, 16))
    assert found.values.tolist() == [[5.0] * 3] * 16
    assert found.action.tolist() == [0] * 16


CHAIN = table({(0, 0): (1, 1.0, 0.5), (1, 0): (2, 2.0, 0.0), (2, 0): (3, 4.0, 0.5), (3, 0): (4, 8.0, 0.0)}, 5, 1)
"""One action, four steps that pay 1, 2, 4, 8; the first and the third are doubtful."""


@pytest.mark.parametrize("iterations", [1, pytest.param(2, marks=pytest.mark.long), 4])
def test_trust_takes_away_once(iterations):
    """V_min is 0, or -16, three quarters of which come once: 1 + min(14, 14/4 - 12)."""
    config = replace(GRAPH, iterations=iterations, rho=0.75, worst=0.0)
    assert float(find(KEY, CHAIN, config).values[0]) == pytest.approx(1 + 14 / 4)
    assert float(find(KEY, CHAIN, replace(config, worst=-16.0)).values[0]) == pytest.approx(1 + 14 / 4 - 12)


def test_a_state_beyond_doubt_is_another_node():
    """Action 0 is doubtful, action 1 is not; both lead to state 1, whose step is doubtful and pays 8 in state 2."""
    fork = table({(0, 0): (1, 0.0, 0.5), (0, 1): (1, 0.0, 0.0), (1, 0): (2, 0.0, 0.5), (2, 0): (3, 8.0, 0.0)}, 4, 2)
    found = find(KEY, fork, replace(GRAPH, rho=0.75, worst=-8.0))
    # Beyond the first doubtful step 8 becomes 8/4 - 8 * 3/4 = -4, once on either way; where nothing is left to
    # win, the other action of state 1 ends for 0.
    assert found.values.tolist() == [pytest.approx(-4.0), pytest.approx(0.0)]
    doubted = np.asarray(found.tree.doubted)[np.asarray(found.tree.owner[: int(found.tree.rows)])]
    assert sorted(doubted.tolist()) == [False, False, True, True]


# Forms of models.


class Coin:
    """Heads pays 1 and goes on, tails ends."""

    num_actions = 1

    def sample(self, state, action, key):
        heads = jax.random.bernoulli(key, 0.5)
        return uamcts.Transition(state, heads.astype(jnp.float32), ~heads)


def test_a_model_that_samples():
    """The value is exact for the outcomes drawn: V = p (1 + gamma V) with p the share of heads among them."""
    config = replace(GRAPH, iterations=3, outcomes=16, gamma=0.5)
    coin = Coin()
    found = uamcts.search(KEY, jnp.int32(0), coin, None, config)
    heads = float(jnp.mean(found.tree.reward[0]))
    assert 0.1 < heads < 0.9
    assert float(found.values[0]) == pytest.approx(heads / (1 - 0.5 * heads), rel=1e-5)
    assert found.tree.child.shape == (3, 1, 16)
    again = uamcts.search(KEY, jnp.int32(0), coin, None, config)
    assert again.values.tolist() == found.values.tolist()


def test_a_batch_gives_what_single_searches_give():
    keys, states = jax.random.split(KEY, 3), jnp.array([0, 4, 8])
    batch = jax.jit(jax.vmap(lambda key, state: uamcts.search(key, state, LAKE, None, SIX)))(keys, states)
    for index in range(3):
        one = uamcts.search(keys[index], states[index], LAKE, None, SIX)
        np.testing.assert_allclose(one.values, batch.values[index], rtol=1e-6)
        assert one.visits.tolist() == batch.visits[index].tolist()
        assert one.tree.child.tolist() == batch.tree.child[index].tolist()


def test_the_whole_state_decides(monkeypatch):
    """All states have one fingerprint: the table cannot tell them apart, and the answer is right all the same."""
    monkeypatch.setattr(hash_table, "fingerprint", lambda state: (jnp.uint32(7), jnp.uint32(9)))
    found = uamcts.search(KEY, jnp.int32(14), arrays(LAKE), None, replace(GRAPH, iterations=400, gamma=0.2))
    np.testing.assert_allclose(found.values, solve(slippery(0.7), 0.2)[14], atol=1e-5)


# What people bring.


def right(state, key):
    return jnp.where(state == 1, 1, 0)


def test_policy_value_and_prior():
    """Rollouts from state 1 by the policy get 5 at once; a value is mixed in by its weight."""
    one = replace(GRAPH, iterations=1, gamma=0.5)

    def values(config=one, **brought):
        return uamcts.search(KEY, jnp.int32(0), DIAMOND.model, None, config, num_actions=2, **brought).values.tolist()

    assert values(policy=right) == [2.5, 3.5]
    assert values(policy=lambda state, key: jnp.array([0.0, 3.0])) == [2.5, 3.5]
    assert values(value=lambda state: 9.0) == [4.5, 5.5]
    mixed = replace(one, value_weight=0.25)
    assert values(mixed, value=lambda state: 9.0, policy=right) == [0.5 * 6, 1 + 0.5 * 6]


def test_a_prior_guides_the_descent():
    fork = table({(0, a): (a + 1, 0.0, 0.0) for a in range(3)}, 5, 3)
    config = replace(GRAPH, iterations=12, c=1.0)
    found = uamcts.search(
        KEY, jnp.int32(0), fork.model, None, config, num_actions=3, prior=lambda state: jnp.array([0.0, 0.0, 3.0])
    )
    assert found.tree.prior[0].tolist() == [0.0, 0.0, 1.0]
    assert found.visits.tolist()[:2] == [0, 0]


def test_illegal_actions_and_dead_ends():
    """State 1 has no legal action, state 2 has one that pays 3."""
    steps = table({(0, 0): (1, 1.0, 0.0), (0, 1): (2, 0.0, 0.0), (2, 1): (3, 3.0, 0.0)}, 4, 2)
    masks = jnp.array([[True, True], [False, False], [False, True], [True, True]])
    found = uamcts.search(KEY, jnp.int32(0), steps.model, None, GRAPH, num_actions=2, legal=lambda state: masks[state])
    assert found.values.tolist() == [1.0, 3.0]
    with pytest.raises(ValueError, match="no legal action at the root"):
        uamcts.search(KEY, jnp.int32(1), steps.model, None, GRAPH, num_actions=2, legal=lambda state: masks[state])


# Reuse.


def test_a_second_search_goes_on_where_the_first_ended():
    """Six expansions at a time cover the eleven cells in two searches; of the first one all that is reached is kept."""
    first = uamcts.search(KEY, jnp.int32(0), LAKE, None, SIX)
    second = uamcts.search(KEY, jnp.int32(4), LAKE, None, SIX, tree=first)
    third = uamcts.search(KEY, jnp.int32(4), LAKE, None, SIX, tree=second)
    assert int(first.tree.rows) == 6
    assert (int(third.tree.rows), int(third.tree.open)) == (11, 0)
    np.testing.assert_allclose(third.values, solve(slippery(0.7), 0.9)[4], atol=1e-5)
    assert np.sum(second.visits) > 0
    states = np.asarray(third.tree.state)[np.asarray(third.tree.owner)[:11]]
    assert sorted(states.tolist()) == [0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14]


def test_only_what_can_be_reached_is_kept():
    """From state 1 of a chain the start cannot be reached; rows that find no room are expanded again."""
    chain = table({(s, 0): (s + 1, float(s), 0.0) for s in range(8)}, 9, 1)
    config = replace(GRAPH, iterations=8, gamma=0.5)
    first = find(KEY, chain, config)

    def again(state, config, tree):
        return uamcts.search(KEY, jnp.int32(state), chain.model, chain.doubt, config, num_actions=1, tree=tree)

    kept = again(3, replace(config, iterations=2), first)
    worth = [sum(0.5**k * (s + k) for k in range(8 - s)) for s in range(8)]
    assert float(kept.values[0]) == pytest.approx(worth[3])
    owners = np.asarray(kept.tree.owner)[: int(kept.tree.rows)]
    assert np.asarray(kept.tree.state)[owners].tolist() == [3, 4, 5, 6]


def test_a_state_that_was_not_met_starts_afresh():
    first = uamcts.search(KEY, jnp.int32(0), LAKE, None, SIX)
    again = uamcts.search(KEY, jnp.int32(14), LAKE, None, SIX, tree=first)
    fresh = uamcts.search(KEY, jnp.int32(14), LAKE, None, SIX)
    assert again.values.tolist() == fresh.values.tolist()


def test_a_graph_that_does_not_fit_is_refused():
    first = uamcts.search(KEY, jnp.int32(0), LAKE, None, SIX)

    def again(kind=jnp.int32, model=LAKE, config=SIX, tree=first, **brought):
        return uamcts.search(KEY, jnp.zeros((), kind), model, None, config, tree=tree, **brought)

    with pytest.raises(ValueError, match="tree has other actions"):
        again(model=Chances(*(part[:, :3] for part in LAKE)))
    with pytest.raises(ValueError, match="tree has other outcomes per action"):
        again(model=Chances(*(part[:, :, :2] for part in LAKE)))
    with pytest.raises(ValueError, match="tree has other states"):
        again(kind=jnp.int16)
    with pytest.raises(ValueError, match="tree has other prior probabilities"):
        again(prior=lambda state: jnp.ones(4))
    with pytest.raises(ValueError, match="the result of an earlier search with graph=True"):
        again(tree=find(KEY, DIAMOND, uamcts.SearchConfig(iterations=2)))
    with pytest.raises(ValueError, match="another gamma"):
        again(config=replace(SIX, gamma=0.8))


# Bad input.


@pytest.mark.parametrize("chances", [(0.5, 0.6), (-0.5, 1.5), (np.nan, 1.0)])
def test_bad_probabilities(chances):
    coin = Chances(jnp.zeros((1, 1, 2), int), jnp.zeros((1, 1, 2)), jnp.zeros((1, 1, 2), bool), jnp.array([[chances]]))
    with pytest.raises(ValueError, match="do not sum to 1"):
        plan(KEY, 0, coin, GRAPH)


def test_bad_priors_rewards_and_uncertainties():
    search = lambda **brought: uamcts.search(KEY, jnp.int32(0), num_actions=2, config=GRAPH, **brought)  # noqa: E731
    with pytest.raises(ValueError, match="prior"):
        search(model=DIAMOND.model, uncertainty=None, prior=lambda state: jnp.zeros(2))
    with pytest.raises(ValueError, match="uncertainty function returned"):
        search(model=DIAMOND.model, uncertainty=lambda state, action: -1.0 * (state == 1))
    with pytest.raises(ValueError, match="reward that is not a finite number"):
        search(model=DIAMOND._replace(rewards=np.full((3, 2), np.inf, np.float32)).model, uncertainty=None)


def test_no_outcomes_and_no_model():
    empty = Chances(*(jnp.zeros((1, 1, 0), kind) for kind in (int, float, bool, float)))
    with pytest.raises(ValueError, match="at least one outcome"):
        uamcts.search(KEY, jnp.int32(0), empty, None, GRAPH, num_actions=1)
    with pytest.raises(TypeError, match="`outcomes`, `sample` or `step`"):
        uamcts.search(KEY, jnp.int32(0), 3, None, GRAPH, num_actions=1)


def test_too_large_a_graph_is_refused():
    huge = replace(GRAPH, iterations=2**30)
    assert graph_bytes(jnp.int32(0), huge, 4, 3) > 1e12
    with pytest.raises(ValueError, match="give fewer iterations"):
        uamcts.search(KEY, jnp.int32(0), LAKE, None, huge)


def test_explain_tells_how_many_states_share_nodes():
    """The lake has 16 cells; its four holes and the goal end the episode and have no node."""
    few = uamcts.search(KEY, jnp.int32(0), LAKE, None, SIX).explain()
    assert "chosen: worth most" in few
    assert few.endswith(" more can be reached from there")
    assert "equal states share a node: 6 states were expanded" in few
    every = plan(KEY, 0, LAKE, replace(GRAPH, iterations=11, gamma=0.9)).explain()
    assert every.endswith("equal states share a node: 11 states were expanded, no other can be reached")
    tree = uamcts.search(KEY, jnp.int32(0), LAKE, None, uamcts.SearchConfig(iterations=10, rollouts=2, depth=6))
    assert "share a node" not in tree.explain()
    assert "chosen: visited most" in tree.explain()


@pytest.mark.parametrize("few", [0, equals.FEW])
def test_equal_successors_are_found_by_pairs_and_through_buckets(monkeypatch, few):
    """By hand; different ones with the same fingerprint, as all of these, cost rounds and nothing else."""
    monkeypatch.setattr(equals, "FEW", few)
    words = jnp.array([[7], [5], [7], [5], [7], [9]], jnp.uint32)
    wanted = jnp.array([False, True, True, True, True, True])
    for prints in (jnp.zeros((6, 2), jnp.uint32), jnp.repeat(words, 2, axis=1)):
        assert equals.first_equals(words, prints, wanted)[1:].tolist() == [1, 2, 1, 2, 5]
    rows = jnp.array([3, 3, 3 + 32, 3, 3, 0])  # 3 and 35 are one of 32 buckets
    assert equals.count_before(rows, wanted)[1:].tolist() == [0, 0, 1, 2, 0]
