"""`best_weight` and `follow`: formulas by hand, both engines node for node, a known answer, and random models."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engines import HashedDraws
from tables import Table, find, table

import uamcts
from uamcts import reference
from uamcts.agent.searching import BEST_WEIGHT, FOLLOW
from uamcts.mcts import best_sequence, lockstep_kernel, simulate
from uamcts.mcts.problem import Problem, make_problem
from uamcts.mcts.rules.trust import Trust
from uamcts.mcts.search import tree_search
from uamcts.mcts.select import Path
from uamcts.randomness import seed_of

RULES = Trust()
CONFIG = uamcts.SearchConfig(iterations=40, rollouts=4, depth=8, c=1.0, gamma=0.5, rules="trust", worst=-2.0)
BEST = replace(CONFIG, best_weight=0.75, follow=0.75)


class Plain:
    """A table for the plain engine."""

    def __init__(self, table: Table, legal=None):
        self.table, self.num_actions = table, table.num_actions
        if legal is not None:
            self.legal_actions = lambda state: [a for a in range(self.num_actions) if legal[state, a]]

    def step(self, state, action):
        return self.table.step(state, action)


def random_table(seed: int, states: int = 40, actions: int = 3) -> Table:
    """A process in which rewards are multiples of 1/8 and a fifth of all steps are doubtful."""
    rng = np.random.default_rng(seed)
    following = rng.integers(0, states, (states, actions)).astype(np.int32)
    rewards = (rng.integers(-8, 9, (states, actions)) / 8).astype(np.float32)
    return Table(following, rewards, (rng.random((states, actions)) < 0.2).astype(np.float32))


# Formulas, against numbers computed by hand.


def test_a_value_mixes_the_mean_with_the_best():
    """Q = 6 in 3 visits, the best of them 4: 2 + 3/4 * (4 - 2). Returns 1, 2, 6: 3 + 3/4 * (6 - 3)."""
    for number in (float, jnp.float32):
        assert float(RULES.value(number(3), number(6), number(4), BEST)) == 3.5
        assert float(RULES.value(number(3), number(6), number(4), CONFIG)) == 2.0
    assert RULES.plain_leaf_value([1.0, 2.0, 6.0], [0.0] * 3, BEST) == 5.25
    assert float(RULES.leaf_value(jnp.array([1.0, 2.0, 6.0]), jnp.zeros(3), BEST)) == 5.25


def test_the_best_of_a_node_is_that_of_its_visits():
    for number in (float, jnp.float32):
        assert float(RULES.tally(number(0), number(0), number(-3), 0.0)) == -3.0  # a first visit, whatever stood there
        assert float(RULES.tally(number(-3), number(1), number(-5), 0.0)) == -3.0
        assert float(RULES.tally(number(-3), number(2), number(-1), 0.0)) == -1.0


def test_a_better_iteration_replaces_the_sequence():
    """Its actions down to the leaf (2, then 0), and those of the best rollout from there (1, 1, then over)."""
    problem = Problem(lambda state, action: None, None, 3)
    config = replace(BEST, depth=3)
    best = best_sequence.none_yet(config, problem, 4)
    path = Path(jnp.array([0, 3 + 2, 6 + 0, 0, 0]), jnp.int32(3), jnp.int32(6))
    tree = uamcts.mcts.tree.empty(jnp.int32(0), blocks=3, num_actions=3)
    tree = tree._replace(stats=tree.stats.at[0, 0, 2].set(1.5))
    best = best_sequence.update(best, path, jnp.array([2, 2, 0]), tree)
    assert (best.actions.tolist(), float(best.value)) == ([3, 1, 2, 2, 0, 0, 0, 0], 1.5)
    worse = best_sequence.update(best, path, jnp.array([1, 1, 1]), tree)
    assert worse.actions.tolist() == best.actions.tolist(), "an equal one replaced it"
    assert best_sequence.suggest(best, jnp.int32(0), path, config).tolist() == [2, 2, 0]  # from the leaf on
    assert best_sequence.suggest(best, jnp.int32(4), path, config).tolist() == [0, 0, 0]  # the fifth is random


def test_how_often_a_rollout_follows():
    """Of 6,000 steps at follow 3/4 with two actions, 1 - 1/4 * 1/2 take what is suggested; 5 standard deviations."""
    table = random_table(0, actions=2)
    problem = make_problem(table.model, None, num_actions=2)
    suggested = jnp.tile(jnp.array([1, 2], jnp.int32), 10)

    def rolled(number):
        start = simulate.Start(seed_of(jax.random.key(0)), number, jnp.int32(0), jnp.bool_(False), None, suggested)
        return simulate.simulate(start, problem, replace(BEST, rollouts=1, depth=20)).actions[0]

    taken = np.asarray(jax.jit(jax.vmap(rolled))(jnp.arange(400)))
    counts = taken > 0
    assert counts.sum() > 6000
    share = (taken == np.asarray(suggested))[counts].mean()
    assert abs(share - 0.875) < 5 * np.sqrt(0.875 * 0.125 / counts.sum())


# Both engines.


def same_node(tree, node, number=0):
    """Compares a node and all below it; returns how many there are."""
    row, column = divmod(number, tree.num_actions)
    assert tree.visits[row, column] == node.visits
    np.testing.assert_allclose(tree.total[row, column], node.total, rtol=1e-9, atol=1e-12)
    if node.visits:
        np.testing.assert_allclose(tree.tally[row, column], node.tally, rtol=1e-9, atol=1e-12)
    block = int(tree.children[row, column])
    assert (block != 0) == bool(node.children)
    return 1 + sum(same_node(tree, child, block * tree.num_actions + child.action) for child in node.children)


@pytest.mark.parametrize("masked", [False, True])
def test_both_engines_build_the_same_tree(masked):
    """With the same draws, for all switches, with and without illegal actions, in four tables."""
    switches = np.array(list(itertools.product((False, True), repeat=3)))
    names = ("selection", "simulation", "backpropagation")
    keys, nodes, differ = jax.random.split(jax.random.key(3), len(switches)), 0, 0
    legal = np.random.default_rng(1).random((40, 3)) < 0.7 if masked else None
    with jax.enable_x64(True):

        @jax.jit
        @jax.vmap
        def program(key, table, lanes, config):
            allowed = None if legal is None else (lambda state: jnp.asarray(legal)[state])
            problem = make_problem(table.model, table.doubt, legal=allowed, num_actions=3)
            return tree_search(key, jnp.int32(0), problem, replace(config, **lanes))

        tables = [random_table(seed) for seed in range(len(switches))]
        lanes = dict(zip(names, switches.T, strict=True))
        config = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, len(switches)), BEST)
        stacked = Table(*(np.stack(parts) for parts in zip(*tables, strict=True)))
        results = jax.device_get(program(keys, stacked, lanes, config))
        for lane, table in enumerate(tables):
            draws = HashedDraws(keys[lane])
            draws.rollouts = BEST.rollouts
            chosen = replace(BEST, **dict(zip(names, switches[lane].tolist(), strict=True)))
            plain = reference.search(draws, 0, Plain(table, legal), table.plain_doubt, chosen)
            found = jax.tree.map(lambda leaf, lane=lane: leaf[lane], results)
            assert int(found.action) == plain.action
            np.testing.assert_allclose(found.values, plain.values, rtol=1e-9)
            nodes += same_node(found.tree, plain.tree)
            draws = HashedDraws(keys[lane])
            draws.rollouts = BEST.rollouts
            random = reference.search(draws, 0, Plain(table, legal), table.plain_doubt, replace(chosen, follow=0.0))
            differ += random.values != plain.values
    assert nodes > 8 * 40, "hardly a tree was built"
    assert differ == 8, "some search did not follow anything"


def test_rollouts_in_lockstep_and_one_by_one_are_equal():
    table = random_table(5)

    class Batched(Plain):
        def step_batch(self, states, actions):
            return zip(*(self.step(*both) for both in zip(states, actions, strict=True)), strict=True)

    class Doubts:
        def __call__(self, state, action):
            return table.plain_doubt(state, action)

        def batch(self, states, actions):
            return [self(state, action) for state, action in zip(states, actions, strict=True)]

    key = jax.random.key(0)
    draws = [HashedDraws(key), HashedDraws(key)]
    for one in draws:
        one.rollouts = BEST.rollouts
    found = reference.search(draws[0], 0, Plain(table), table.plain_doubt, BEST)
    batched = reference.search(draws[1], 0, Batched(table), Doubts(), BEST)
    assert (found.values, found.visits) == (batched.values, batched.visits)


def test_the_kernel_gives_the_same_rollouts(monkeypatch):
    """Each search follows a sequence of its own, with a probability of its own."""
    table, calls, original = random_table(2), [], lockstep_kernel.run
    problem = make_problem(table.model, None, num_actions=3)

    def rolled(key, sequence, follow):
        start = simulate.Start(seed_of(key), jnp.int32(0), jnp.int32(0), jnp.bool_(False), None, sequence)
        return simulate.simulate(start, problem, replace(BEST, rollouts=31, follow=follow))

    lanes = jax.random.split(jax.random.key(0), 3), jnp.arange(24).reshape(3, 8) % 4, jnp.array([0.9, 0.5, 1.0])
    by_loop = jax.jit(jax.vmap(rolled))(*lanes)
    monkeypatch.setattr(lockstep_kernel, "usable", lambda *arguments: True)
    interpreted = lambda *arguments: calls.append(1) or original(*arguments, interpret=True)  # noqa: E731
    monkeypatch.setattr(lockstep_kernel, "run", interpreted)
    by_kernel = jax.jit(jax.vmap(rolled))(*lanes)
    assert calls, "the kernel was not used"
    np.testing.assert_array_equal(by_kernel.actions, by_loop.actions)
    np.testing.assert_allclose(by_kernel.returns, by_loop.returns, rtol=1e-6)


# Known answers.


LENGTH = 8
LEDGE = table(
    {
        **{(step, 1): (step + 1, 0.0, 0.0) for step in range(LENGTH - 1)},
        (LENGTH - 1, 1): (LENGTH, 10.0, 0.0),
        **{(step, 2): (LENGTH, -5.0, 0.0) for step in range(LENGTH)},
        **{(step, 0): (LENGTH, 1.0 + step / 8, 0.0) for step in range(LENGTH)},
    },
    LENGTH + 1,
    3,
)
"""A ledge of eight steps: action 1 leads on and pays 10 at its end, action 2 falls for -5, and action 0 leaves for 1
and an eighth more for each step that was made."""


@pytest.mark.parametrize("engine", ["jax", "python"])
def test_the_end_of_a_ledge_is_reached(engine):
    """The optimum is 10, by action 1. One random rollout in 6,561 gets there: their mean says to leave at once.

    To random actions, a place on the ledge is worth a third of what leaving pays, of -5, and of what the next place is
    worth: below 0 everywhere but before the last step.
    """
    config = uamcts.SearchConfig(iterations=300, rollouts=5, depth=LENGTH, c=1.0, rules="trust")

    def plan(seed, **changed):
        chosen = replace(config, **changed)
        if engine == "jax":
            found = find(jax.random.key(seed), LEDGE, chosen)
            return int(found.action), np.asarray(found.values)
        found = reference.search(seed, 0, Plain(LEDGE), None, chosen)
        return found.action, np.asarray(found.values)

    for seed in range(5):
        action, values = plan(seed)
        assert action == 0
        action, values = plan(seed, best_weight=1.0, follow=0.9)
        assert action == 1
        np.testing.assert_allclose(values[[0, 1]], [1.0, 10.0], rtol=1e-6)


@pytest.mark.parametrize("engine", ["jax", "python"])
def test_a_doubtful_best_counts_as_little_as_a_doubtful_mean(engine):
    """Action 1 pays 5 in doubt, of which a quarter is kept at once: 5 / 4 + 3/4 * -4 is below the certain 1."""
    doubted = table({(0, 0): (1, 1.0, 0.0), (0, 1): (2, 0.0, 1.0), (2, 0): (3, 5.0, 0.0), (2, 1): (3, 5.0, 0.0)}, 4, 2)
    doubted.following[1] = 3
    config = uamcts.SearchConfig(
        iterations=20, rollouts=2, depth=3, rules="trust", rho=0.75, worst=-4.0, best_weight=1.0, follow=0.9
    )
    if engine == "jax":
        values = np.asarray(find(jax.random.key(0), doubted, config).values)
    else:
        values = reference.search(0, 0, Plain(doubted), doubted.plain_doubt, config).values
    np.testing.assert_allclose(values, [1.0, 5 / 4 - 3.0], rtol=1e-6)


# Where they have no effect, and where they are refused.


def slippery(state, action):
    """Action 1 leads on with probability 3/4."""
    after = jnp.stack([jnp.minimum(state + action, 5), state])
    outcomes = uamcts.Transition(after, (after == 5) * 1.0, after == 5)
    return outcomes, jnp.where(action == 1, jnp.array([0.75, 0.25]), jnp.array([1.0, 0.0]))


class Slippery:
    """The same for both engines."""

    num_actions = 2

    def outcomes(self, state, action):
        if isinstance(state, int):
            after = min(state + action, 5)
            listed = [(0.75, after), (0.25, state)] if action else [(1.0, after)]
            return [(chance, (place, float(place == 5), place == 5)) for chance, place in listed]
        return slippery(state, action)


def test_in_a_random_model_nothing_changes():
    """Its best return is luck."""
    config = replace(CONFIG, gamma=0.9, worst=None)
    changed = replace(config, best_weight=0.75, follow=0.75)
    key = jax.random.key(0)
    found = [uamcts.search(key, jnp.int32(0), Slippery(), None, one) for one in (config, changed)]
    np.testing.assert_array_equal(found[0].values, found[1].values)
    plain = [reference.search(0, 0, Slippery(), None, one) for one in (config, changed)]
    assert (plain[0].values, plain[0].visits) == (plain[1].values, plain[1].visits)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rules": "released", "best_weight": 0.5}, "best_weight is 0.5, but rules='released' does not read it"),
        ({"rules": "pseudocode", "follow": 0.5}, "follow is 0.5, but rules='pseudocode' does not read it"),
        ({"rules": "trust", "follow": 1.5}, r"follow is 1.5; it must lie in \[0, 1\]"),
        ({"rules": "trust", "best_weight": -1}, r"best_weight is -1; it must lie in \[0, 1\]"),
        ({"graph": True, "best_weight": 0.5}, "best_weight is 0.5, which is for trees"),
        ({"graph": True, "follow": 0.5}, "follow is 0.5, which is for trees"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        uamcts.SearchConfig(**settings)


# The agent.


class Drift:
    """(place, speed) on a line: no state is met twice."""

    num_actions = 2

    def step(self, state, action):
        speed = state[1] + (-0.1, 0.13)[action]
        return (state[0] + speed, speed), -abs(state[0] - 1.0), False


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (BEST_WEIGHT, FOLLOW)),
        ({"best_weight": 0.5}, (0.5, FOLLOW)),
        ({"config": uamcts.SearchConfig(follow=0.25, rules="trust")}, (BEST_WEIGHT, 0.25)),
        ({"follow": 0.0, "best_weight": 0.0}, (0.0, 0.0)),
        ({"graph": True}, (0.0, 0.0)),
        ({"value": lambda state: 0.0, "value_weight": 0.5}, (0.0, 0.0)),
        ({"policy": lambda state, rng: 0}, (0.0, 0.0)),
        ({"prior": lambda state: [0.5, 0.5]}, (0.0, 0.0)),
    ],
)
def test_what_an_agent_sets(given, expected):
    agent = uamcts.Agent(Drift(), iterations=12, rollouts=2, depth=4, **given)
    agent.act((0.0, 0.0))
    used = agent.backend._previous.plan.config
    assert (used.best_weight, used.follow) == expected


class Balance:
    """A pole of a kind: every step pays the same as long as it stands. `bonus` is what the fall pays in addition."""

    num_actions = 2

    def __init__(self, pay=1.0, bonus=0.0):
        self.pay, self.bonus = pay, bonus

    def step(self, state, action):
        lean, speed = state
        speed += 0.05 * lean + (-0.02, 0.023)[action]
        over = abs(lean + speed) > 1.0
        return (lean + speed, speed), self.pay + self.bonus * over, over


def balance(state, action):
    speed = state[1] + 0.05 * state[0] + jnp.array([-0.02, 0.023])[action]
    over = jnp.abs(state[0] + speed) > 1.0
    return uamcts.Transition(jnp.stack([state[0] + speed, speed]), jnp.float32(1.0), over)


SURVIVAL = {
    "the same for every step": (Balance(), True),
    "less for the fall": (Balance(bonus=-1.0), True),
    "more for the end": (Balance(bonus=5.0), False),
    "nothing": (Balance(pay=0.0), False),
    "a cost for every step": (Balance(pay=-1.0), False),
    "distances": (Drift(), False),
    "compiled": (uamcts.JaxSimulator(balance, 2, jnp.zeros(2)), True),
}


@pytest.mark.parametrize("name", SURVIVAL)
def test_where_only_survival_pays_means_count(name, tmp_path):
    """The agent finds out before its first search, and a saved one knows it."""
    simulator, survival = SURVIVAL[name]
    agent = uamcts.Agent(simulator, iterations=4, rollouts=1, depth=60)
    state = jnp.array([0.3, 0.0]) if name == "compiled" else (0.3, 0.0)
    agent.act(state)
    assert agent.backend.planner.tried.survival == survival
    used = agent.backend._settings(None)
    assert (used.best_weight, used.follow) == ((0.0, 0.0) if survival else (BEST_WEIGHT, FOLLOW))
    agent.save(tmp_path / "agent.npz")
    again = uamcts.Agent(simulator, iterations=4, rollouts=1, depth=60)
    again.load(tmp_path / "agent.npz")
    assert again.backend.planner.tried.survival == survival
