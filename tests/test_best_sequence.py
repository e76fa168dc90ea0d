"""`follow`: formulas by hand, both engines node for node, known answers, and random models."""

import itertools
import random
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engines import HashedDraws
from tables import Table, find, table

import uamcts
from uamcts import reference
from uamcts.agent.searching import FOLLOW
from uamcts.mcts import best_sequence, lockstep_kernel, simulate
from uamcts.mcts.following import FADE, NEAR, steps_ahead
from uamcts.mcts.problem import Problem, make_problem
from uamcts.mcts.search import tree_search
from uamcts.mcts.select import Path
from uamcts.randomness import seed_of
from uamcts.reference.best_sequence import BestSequence
from uamcts.reference.guides import Guides
from uamcts.reference.models import Dynamics
from uamcts.reference.rollouts import Start
from uamcts.reference.setup import Setup

CONFIG = uamcts.SearchConfig(iterations=80, rollouts=4, depth=16, c=1.0, gamma=0.75, rules="trust", worst=-2.0)
BEST = replace(CONFIG, follow=0.75)


class Plain:
    """A table for the plain engine."""

    def __init__(self, table: Table, legal=None):
        self.table, self.num_actions = table, table.num_actions
        if legal is not None:
            self.legal_actions = lambda state: [a for a in range(self.num_actions) if legal[state, a]]

    def step(self, state, action):
        return self.table.step(state, action)


class Certain:
    """U = 0 for whole batches."""

    def empty_cache(self):
        return None

    def __call__(self, state, action):
        return jnp.float32(0.0)

    def lookup(self, cache, state, action):
        return jnp.float32(0.0), jnp.bool_(False)

    def predict_batch(self, cache, states, actions, wanted):
        return jnp.zeros(actions.shape, jnp.float32), cache


def random_table(seed: int, states: int = 40, actions: int = 3) -> Table:
    """A process in which rewards are multiples of 1/8 and a fifth of all steps are doubtful."""
    rng = np.random.default_rng(seed)
    following = rng.integers(0, states, (states, actions)).astype(np.int32)
    rewards = (rng.integers(-8, 9, (states, actions)) / 8).astype(np.float32)
    return Table(following, rewards, (rng.random((states, actions)) < 0.2).astype(np.float32))


# Formulas, against numbers computed by hand.


@pytest.mark.parametrize(
    ("settings", "actions", "steps"),
    [
        ({"depth": 50, "iterations": 80}, 3, 54),
        ({"depth": 2, "iterations": 81}, 3, 6),  # 3^4 = 81
        ({"depth": 2, "iterations": 82}, 3, 7),
        ({"depth": 2, "iterations": 2**31 - 1}, 5, 7),  # more than 1,000 iterations count as 1,000
        ({"depth": 2, "iterations": 100}, 1, 2),
    ],
)
def test_how_far_iterations_look(settings, actions, steps):
    assert steps_ahead(replace(CONFIG, **settings), actions) == steps


def test_a_better_iteration_replaces_the_sequence():
    """Actions 2 and 0 down to the leaf, which pay 1 and 2; from there the best rollout does 1, 1 and returns 4."""
    problem = Problem(lambda state, action: None, None, 3)
    config = replace(BEST, depth=6, gamma=0.5, iterations=1)
    best = best_sequence.begin(config, problem, jnp.array([2, 0, 1, -1]))
    assert best.actions.tolist() == [1, 2, 0, 0, 0, 0], "the rest of the earlier sequence"
    path = Path(jnp.array([0, 3 + 2, 6 + 0, 9, 9]), jnp.int32(3), jnp.int32(6))
    tree = uamcts.mcts.tree.empty(jnp.int32(0), blocks=3, num_actions=3)
    tree = tree._replace(reward=tree.reward.at[1, 2].set(1.0).at[2, 0].set(2.0))
    best = best_sequence.update(best, path, jnp.array([2, 2, 0, 0, 0, 0]), jnp.float32(4.0), tree, config)
    assert (best.actions.tolist(), float(best.value)) == ([3, 1, 2, 2, 0, 0], 1.0 + 0.5 * (2.0 + 0.5 * 4.0))
    equal = best_sequence.update(best, path, jnp.array([1] * 6), jnp.float32(4.0), tree, config)
    assert equal.actions.tolist() == best.actions.tolist(), "an equal one replaced it"
    assert best_sequence.suggest(best, jnp.int32(1), path, config).tolist() == [2, 2, 0, 0, 0, 0]  # from the leaf on
    assert best_sequence.suggest(best, jnp.int32(0), path, config).tolist() == [-2, -2, 0, 0, 0, 0]  # for certain
    assert best_sequence.suggest(best, jnp.int32(4), path, config).tolist() == [0] * 6  # the fifth is random
    limits = [int(best_sequence.stay_at_root(jnp.int32(index), config, 9)) for index in range(4)]
    assert limits == [0, 9, 0, 9]


@pytest.mark.parametrize("engine", ["jax", "batched", "python"])
def test_rewards_far_ahead_count_less(engine):
    """Every step pays 1. Of ten steps that begin five steps from the root, the first seven are near."""
    expected = sum(0.5**step * FADE ** max(0, step + 5 - NEAR + 1) for step in range(10))
    assert NEAR == 12
    config = uamcts.SearchConfig(rules="trust", depth=10, rollouts=2, gamma=0.5, follow=0.5)
    if engine == "python":
        model = Plain(Table(np.zeros((2, 2), np.int32), np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)))
        setup = Setup(
            reference.Draws(random.Random(0)), Dynamics(model, None, 8), None, config, Guides(*[None] * 3, 2), 99
        )
        start = Start(0, 0, range(2), 10, 5, BestSequence(0.5))
        assert setup.simulator.simulate(start, config) == pytest.approx(expected, rel=1e-12)
        return
    pays = lambda state, action: uamcts.Transition(state, jnp.float32(1.0), jnp.bool_(False))  # noqa: E731
    doubt = Certain() if engine == "batched" else None
    problem = make_problem(pays, doubt, num_actions=2)
    start = simulate.Start(
        seed_of(jax.random.key(0)), jnp.int32(0), jnp.int32(0), jnp.bool_(False), None, jnp.zeros(10, jnp.int32),
        jnp.int32(5),
    )  # fmt: skip
    found = simulate.simulate(start, problem, config)
    np.testing.assert_allclose(found.returns, expected, rtol=1e-6)


def test_how_often_a_rollout_follows():
    """Of 6,000 steps at follow 3/4 with two actions, 1 - 1/4 * 1/2 take what is suggested; 5 standard deviations."""
    table = random_table(0, actions=2)
    problem = make_problem(table.model, None, num_actions=2)
    suggested = jnp.tile(jnp.array([1, 2], jnp.int32), 10)

    def rolled(number):
        place = (jnp.int32(0), jnp.bool_(False), None, suggested, jnp.int32(0))
        start = simulate.Start(seed_of(jax.random.key(0)), number, *place)
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
    block = int(tree.children[row, column])
    assert (block != 0) == bool(node.children)
    return 1 + sum(same_node(tree, child, block * tree.num_actions + child.action) for child in node.children)


CARRIED = np.array([1, 0, 2, 1, 1, 0, 2, 2, 1])
"""The sequence of an earlier search."""


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
            return tree_search(key, jnp.int32(0), problem, replace(config, **lanes), previous=jnp.asarray(CARRIED))

        tables = [random_table(seed) for seed in range(len(switches))]
        lanes = dict(zip(names, switches.T, strict=True))
        config = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, len(switches)), BEST)
        stacked = Table(*(np.stack(parts) for parts in zip(*tables, strict=True)))
        results = jax.device_get(program(keys, stacked, lanes, config))
        for lane, table in enumerate(tables):
            draws = HashedDraws(keys[lane])
            draws.rollouts = BEST.rollouts
            chosen = replace(BEST, **dict(zip(names, switches[lane].tolist(), strict=True)))
            before = reference.search(0, 0, Plain(table, legal), None, chosen)._replace(sequence=CARRIED.tolist())
            plain = reference.search(draws, 0, Plain(table, legal), table.plain_doubt, chosen, tree=before)
            found = jax.tree.map(lambda leaf, lane=lane: leaf[lane], results)
            assert int(found.action) == plain.action == plain.sequence[0]
            sequence = found.sequence.tolist()
            assert sequence == [*plain.sequence, *[-1] * (steps_ahead(BEST, 3) - len(plain.sequence))]
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
        place = (jnp.int32(0), jnp.bool_(False), None, sequence, jnp.int32(2))
        start = simulate.Start(seed_of(key), jnp.int32(0), *place)
        return simulate.simulate(start, problem, replace(BEST, rollouts=31, follow=follow))

    lanes = jax.random.split(jax.random.key(0), 3), jnp.arange(48).reshape(3, 16) % 4, jnp.array([0.9, 0.5, 1.0])
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


def plan(engine, table, seed, config, before=None, state=0):
    """The action, the sequence as far as it goes, and the whole result of a search."""
    if engine == "python":
        found = reference.search(seed, state, Plain(table), table.plain_doubt, config, tree=before)
    else:
        key, given = jax.random.key(seed), {"num_actions": table.num_actions, "tree": before}
        found = uamcts.search(key, jnp.int32(state), table.model, table.doubt, config, **given)
    return int(found.action), [action for action in np.asarray(found.sequence).tolist() if action >= 0], found


def return_of(table, state, sequence, gamma):
    """What a sequence of actions pays, up to the end."""
    total, discount, over = 0.0, 1.0, False
    for action in sequence:
        if over:
            break
        state, reward, over = table.step(state, action)
        total, discount = total + discount * reward, discount * gamma
    return total


@pytest.mark.parametrize("engine", ["jax", "python"])
def test_the_end_of_a_ledge_is_reached(engine):
    """The optimum is 10, by action 1. One random rollout in 6,561 gets there: their mean says to leave at once.

    To random actions, a place on the ledge is worth a third of what leaving pays, of -5, and of what the next place is
    worth: below 0 everywhere but before the last step.
    """
    config = uamcts.SearchConfig(iterations=300, rollouts=5, depth=LENGTH, c=1.0, rules="trust")
    for seed in range(5):
        usual = find(jax.random.key(seed), LEDGE, config) if engine == "jax" else plan(engine, LEDGE, seed, config)[2]
        assert int(usual.action) == 0
        action, sequence, _ = plan(engine, LEDGE, seed, replace(config, follow=0.9))
        assert (action, sequence[:LENGTH]) == (1, [1] * LENGTH)


@pytest.mark.parametrize("engine", ["jax", "python"])
def test_a_search_never_begins_with_less(engine):
    """Its ten steps pay at least what the nine that are left of the last sequence do, but for the tenth."""
    settings = {"iterations": 6, "rollouts": 1, "depth": 8, "gamma": 0.9, "rules": "trust", "follow": 0.9}
    better, config = 0, uamcts.SearchConfig(**settings)
    for seed in range(12):
        table, state, before, rest = random_table(seed, states=30), 0, None, []
        certain = table._replace(uncertainty=np.zeros_like(table.uncertainty))
        for step in range(4):
            action, sequence, before = plan(engine, certain, 100 * seed + step, config, before, state)
            found, kept = (return_of(table, state, one, 0.9) for one in (sequence[:9], rest))
            whole = return_of(table, state, sequence, 0.9)
            assert whole >= kept - 0.9**9 - 1e-6, "the tenth step, which the rest lacks, pays at least -1"
            better += found > kept + 1e-6
            state, _, over = table.step(state, action)
            rest = sequence[1:]
            if over:
                break
    assert better > 12, "hardly ever was anything better found"


@pytest.mark.parametrize("engine", ["jax", "python"])
def test_a_doubtful_best_counts_as_little_as_a_doubtful_mean(engine):
    """Action 1 pays 5 in doubt, of which a quarter is kept at once: 5 / 4 + 3/4 * -4 is below the certain 1."""
    doubted = table({(0, 0): (1, 1.0, 0.0), (0, 1): (2, 0.0, 1.0), (2, 0): (3, 5.0, 0.0), (2, 1): (3, 5.0, 0.0)}, 4, 2)
    doubted.following[1] = 3
    settings = {"iterations": 20, "rollouts": 2, "depth": 3, "rules": "trust", "worst": -4.0, "follow": 0.9}
    action, _, found = plan(engine, doubted, 0, uamcts.SearchConfig(rho=0.75, **settings))
    assert action == 0
    np.testing.assert_allclose(found.values, [1.0, 5 / 4 - 3.0], rtol=1e-6)
    assert plan(engine, doubted, 0, uamcts.SearchConfig(rho=0.0, **settings))[0] == 1


def test_a_batch_may_hold_searches_that_do_not_follow():
    """In one program, follow = 0 is the search without it."""
    config, key = replace(CONFIG, depth=20), jax.random.key(1)
    doubted = random_table(4)

    def searched(follow):
        return find(key, doubted, replace(config, follow=follow))

    none, some = (
        jax.tree.map(lambda leaf, row=row: leaf[row], jax.vmap(searched)(jnp.array([0.0, 0.75]))) for row in (0, 1)
    )
    alone = find(key, doubted, config)
    assert int(none.action) == int(alone.action)
    np.testing.assert_array_equal(none.visits, alone.visits)
    np.testing.assert_allclose(none.values, alone.values, rtol=1e-5)
    assert some.visits.sum() == none.visits.sum() // 2, "every second iteration stays at the root"


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
    changed = replace(config, follow=0.75)
    key = jax.random.key(0)
    found = [uamcts.search(key, jnp.int32(0), Slippery(), None, one) for one in (config, changed)]
    np.testing.assert_array_equal(found[0].values, found[1].values)
    plain = [reference.search(0, 0, Slippery(), None, one) for one in (config, changed)]
    assert (plain[0].values, plain[0].visits) == (plain[1].values, plain[1].visits)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rules": "released", "follow": 0.5}, "follow is 0.5, but rules='released' does not read it"),
        ({"rules": "pseudocode", "follow": 0.5}, "follow is 0.5, but rules='pseudocode' does not read it"),
        ({"rules": "trust", "follow": 1.5}, r"follow is 1.5; it must lie in \[0, 1\]"),
        ({"rules": "trust", "follow": -1}, r"follow is -1; it must lie in \[0, 1\]"),
        ({"graph": True, "follow": 0.5}, "follow is 0.5, which is for trees"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        uamcts.SearchConfig(**settings)


def test_an_earlier_search_must_have_followed_too():
    without = uamcts.search(jax.random.key(0), jnp.int32(0), LEDGE.model, None, CONFIG, num_actions=3)
    with_one = uamcts.search(jax.random.key(0), jnp.int32(0), LEDGE.model, None, BEST, num_actions=3)
    for wrong in (without, with_one.tree):
        with pytest.raises(ValueError, match="without a sequence of actions, from which a search with follow goes on"):
            uamcts.search(jax.random.key(0), jnp.int32(0), LEDGE.model, None, BEST, num_actions=3, tree=wrong)
    plain = reference.search(0, 0, Plain(LEDGE), None, CONFIG)
    with pytest.raises(ValueError, match=r"a search with follow=0\.0, and this one has follow=0\.75"):
        reference.search(0, 0, Plain(LEDGE), None, BEST, tree=plain)


class Anywhere:
    """Any action between -1 and 1."""

    num_actions, action_space = None, (-1.0, 1.0)

    def step(self, state, action):
        return state + action, -abs(state), False


def test_continuous_actions_are_refused():
    with pytest.raises(ValueError, match=r"follow is 0\.75, which needs a finite number of actions"):
        reference.search(0, 0.0, Anywhere(), None, BEST)


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
        ({}, FOLLOW),
        ({"config": uamcts.SearchConfig(follow=0.25, rules="trust")}, 0.25),
        ({"follow": 0.0}, 0.0),
        ({"graph": True}, 0.0),
        ({"value": lambda state: 0.0, "value_weight": 0.5}, 0.0),
        ({"policy": lambda state, rng: 0}, 0.0),
        ({"prior": lambda state: [0.5, 0.5]}, 0.0),
    ],
)
def test_what_an_agent_sets(given, expected):
    agent = uamcts.Agent(Drift(), iterations=12, rollouts=2, depth=4, **given)
    agent.act((0.0, 0.0))
    used = agent.backend._previous.plan.config
    assert used.follow == expected


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
    "nothing but the fall, which costs 1": (Balance(pay=0.0, bonus=-1.0), True),
    "nothing but the end, which pays 1": (Balance(pay=0.0, bonus=1.0), False),
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
    assert used.follow == (0.0 if survival else FOLLOW)
    agent.save(tmp_path / "agent.npz")
    again = uamcts.Agent(simulator, iterations=4, rollouts=1, depth=60)
    again.load(tmp_path / "agent.npz")
    assert again.backend.planner.tried.survival == survival


def drift(state, action):
    speed = state[1] + jnp.array([-0.1, 0.13])[action]
    after = jnp.stack([state[0] + speed, speed])
    return uamcts.Transition(after, -jnp.abs(state[0] - 1.0), jnp.bool_(False))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("reuse", [True, False])
def test_an_agent_goes_on_with_its_sequence(compiled, reuse):
    """With one rollout a search, it takes the rest of its first sequence, unless it is told not to go on from it.

    A search of one iteration tries what is left of the last sequence, and a random action behind it.
    """
    simulator = uamcts.JaxSimulator(drift, 2, jnp.zeros(2)) if compiled else Drift()
    agent = uamcts.Agent(simulator, iterations=1, rollouts=1, depth=12, reuse=reuse, corrections=(), seed=3)
    state, taken, sequences = (jnp.zeros(2) if compiled else (0.0, 0.0)), [], []
    for _ in range(6):
        taken.append(agent.act(state))
        sequences.append(np.asarray(agent.last_plan.sequence).tolist())
        assert len(sequences[-1]) == 12
        following, reward, _ = drift(state, taken[-1]) if compiled else Drift().step(state, taken[-1])
        agent.observe(state, taken[-1], following, reward=float(reward), terminal=False)
        state = following
    assert (taken == sequences[0][:6]) == reuse
