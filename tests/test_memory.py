"""Facts: exactly what was seen and nothing else, in the table, in planning, in an agent, in its file."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamcts
from uamcts.agent import checkpoint
from uamcts.corrections.fact_table import Facts
from uamcts.corrections.facts import Patched
from uamcts.corrections.patched_model import PatchedModel
from uamcts.episodes.online import Run, advance, over_runs
from uamcts.mcts.state_hash import fingerprint
from uamcts.presets import search_config
from uamcts.types import Transition
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.learner import UncertaintyLearner
from uamcts.uncertainty.prediction_cache import PredictionCache

KEY = jax.random.key(0)


class Place(NamedTuple):
    """A state of several arrays, for tables."""

    where: jax.Array
    heat: jax.Array


def place(number):
    return Place(jnp.stack([number // 3, -(number % 3)]).astype(jnp.int8), (number * 0.5).astype(jnp.float32))


NUMBERS, ACTIONS = 9, 3
EVERYTHING = [(number, action) for number in range(NUMBERS) for action in range(ACTIONS)]


@pytest.fixture(scope="module")
def table():
    """An empty table of 16 rows, and compiled: put all of a padded list, look everything up."""
    empty = Facts.empty(place(jnp.int32(0)), Place(jnp.int32(0), jnp.float32(0)), 16)

    @jax.jit
    def fill(facts, numbers, actions, values, wanted):
        def one(facts, each):
            number, action, value, wanted = each
            return facts.put(place(number), action, Place(value, value / 2), wanted), None

        return jax.lax.scan(one, facts, (numbers, actions, values, wanted))[0]

    @jax.jit
    def everything(facts):
        numbers, actions = jnp.array(EVERYTHING).T
        return jax.vmap(facts.find)(jax.vmap(place)(numbers), actions)

    def put(facts, rows):
        padded = rows + [(0, 0, -1)] * (40 - len(rows))
        numbers, actions, values = jnp.array(padded).T
        return fill(facts, numbers, actions, values, jnp.arange(40) < len(rows))

    def look(facts):
        value, known = everything(facts)
        np.testing.assert_array_equal(value.heat, value.where / 2)
        return {pair: int(value.where[i]) for i, pair in enumerate(EVERYTHING) if known[i]}

    return empty, put, look


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, NUMBERS - 1), st.integers(0, ACTIONS - 1), st.integers(1, 99)), max_size=40))
def test_the_table_is_a_dictionary(table, rows):
    """The last value counts; a full table updates what it has and takes nothing new; nothing else is known."""
    empty, put, look = table
    expected = {}
    for number, action, value in rows:
        if (number, action) in expected or len(expected) < 16:
            expected[number, action] = value
    facts = put(empty, rows)
    assert look(facts) == expected
    assert int(facts.count) == len(expected)


def test_a_table_grows_and_forgets_nothing(table):
    """16 rows, then room for 11 more: all 27 transitions. With an axis for runs it is the same for each of them."""
    empty, put, look = table
    rows = [(number, action, 10 + index) for index, (number, action) in enumerate(EVERYTHING)]
    full = put(empty, rows)
    assert len(look(full)) == 16
    assert full.reserve(0) is full
    roomy = full.reserve(11)
    assert look(roomy) == look(full)
    assert look(put(roomy, rows)) == {(number, action): value for number, action, value in rows}
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), full, put(empty, rows[:2])).reserve(20)
    assert both.keys.shape[1] == 36 + 1
    assert look(jax.tree.map(lambda leaf: leaf[0], both)) == look(full)
    assert look(jax.tree.map(lambda leaf: leaf[1], both)) == look(put(empty, rows[:2]))


def test_keys_that_start_at_the_same_slot_are_told_apart():
    """Six states of one hash among 16 slots: each finds its own, and a seventh nothing."""
    facts = Facts.empty(jnp.uint32(0), jnp.int32(0), 7)
    keys = jnp.stack([jnp.arange(400, dtype=jnp.uint32), jnp.zeros(400, jnp.uint32)], axis=1)
    first, _ = jax.jit(jax.vmap(fingerprint))(keys)
    crowd = np.flatnonzero(np.asarray(first) % facts.slots.size == 15)[:7]  # the last slot: probing goes round the end
    assert len(crowd) == 7
    put, find = jax.jit(Facts.put), jax.jit(Facts.find)
    for state in crowd[:6]:
        facts = put(facts, jnp.uint32(state), jnp.int32(0), jnp.int32(state))
    for state in crowd[:6]:
        value, known = find(facts, jnp.uint32(state), jnp.int32(0))
        assert bool(known)
        assert int(value) == state
    assert not bool(find(facts, jnp.uint32(crowd[6]), jnp.int32(0))[1])


def test_lookups_of_marked_facts_skip_nearly_all_others():
    """200 facts, every tenth marked: all of these are found, and hardly any other, also in a table that has grown."""
    numbers = jnp.arange(200, dtype=jnp.uint32)

    def put(number, facts):
        return facts.put(numbers[number], jnp.int32(0), number, marked=number % 10 == 0)

    @jax.jit
    def found(facts):
        look = jax.vmap(lambda number: facts.find(number, jnp.int32(0), marked=True))
        every = jax.vmap(lambda number: facts.find(number, jnp.int32(0)))
        return look(numbers), every(numbers)

    facts = jax.jit(lambda: jax.lax.fori_loop(0, 200, put, Facts.empty(numbers[0], jnp.int32(0), 200)))()
    for table in (facts, facts.reserve(100), facts.reindex()):
        (values, known), (all_values, all_known) = found(table)
        assert np.asarray(known)[::10].all()
        assert known.sum() < 40  # the filter lets a few others pass
        np.testing.assert_array_equal(np.asarray(values)[known], np.arange(200)[np.asarray(known)])
        assert all_known.all()
        np.testing.assert_array_equal(all_values, np.arange(200))


# Planning


class Constant(Estimator):
    """U-hat = 0.25 everywhere, asked for many at once where `many` is true."""

    many: bool = eqx.field(static=True)

    def predict(self, state, action):
        return jnp.float32(0.25)

    def uncertainty(self):
        return PredictionCache(self.predict, remember=True) if self.many else self.predict


@pytest.fixture(scope="module")
def icy():
    """Icy 2-Way, the states and actions of a walk on it, and everything that can be asked."""
    domain = uamcts.make("two_way_icy")
    walk = [((1, 0), 3), ((0, 0), 0), ((0, 1), 0), ((2, 2), 0), ((2, 6), 3)]
    states = jax.jit(jax.vmap(domain.from_features))(
        jnp.array([(r, c) for r in range(3) for c in range(7) for _ in range(4)])
    )
    return domain, walk, states, jnp.tile(jnp.arange(4), 21)


@pytest.mark.parametrize("many", [False, True])
def test_facts_override_the_model_and_its_doubt_where_they_were_seen_and_nowhere_else(icy, many):
    """The ends and rewards of the real step are kept as well, also where they contradict the domain's rules."""
    domain, walk, states, actions = icy
    learner = Patched.fresh(domain.reset(KEY), UncertaintyLearner(Constant(many)))
    see = jax.jit(lambda learner, state, action, real: learner.observe(domain, state, action, real, 1))
    odd = Transition(domain.from_features((2, 1)), jnp.float32(-3.5), jnp.bool_(True))
    facts = {}
    for cell, action in walk:
        state = domain.from_features(cell)
        real = odd if cell == (1, 0) else domain.world(state, action)
        learner = see(learner, state, jnp.int32(action), real)
        facts[7 * cell[0] + cell[1], action] = real

    @jax.jit
    def asked(learner):
        model, doubt = learner.planner(domain)
        if not many:
            return jax.vmap(model)(states, actions), jax.vmap(doubt)(states, actions)
        found, table = doubt.predict_batch(doubt.empty_cache(), states, actions, actions >= 0)
        again, known = jax.jit(jax.vmap(doubt.lookup, (None, 0, 0)))(table, states, actions)
        one = jax.jit(jax.vmap(doubt))(states, actions)
        return jax.vmap(model)(states, actions), jnp.where(known & (found == again) & (one == found), found, jnp.nan)

    patched, doubt = asked(learner)
    given = jax.jit(jax.vmap(domain.model))(states, actions)
    for index, (cell, action) in enumerate(zip(states.cell.tolist(), actions.tolist(), strict=True)):
        expected = facts.get((cell, action), jax.tree.map(lambda leaf, index=index: leaf[index], given))
        found = jax.tree.map(lambda leaf, index=index: leaf[index], patched)
        assert jax.tree.all(jax.tree.map(lambda a, b: bool(a == b), found, expected)), (cell, action)
        assert float(doubt[index]) == (0.0 if (cell, action) in facts else 0.25)
    assert bool(jnp.any(given.state.cell != patched.state.cell)), "no fact contradicted the model"


def test_with_memory_the_icy_way_is_found_again_and_again():
    """5 runs of 300 steps, plain MCTS in the patched model: 30 longer runs reached the goal in 99.9 of 100 episodes."""
    domain = uamcts.make("two_way_icy")
    config = search_config(domain, "corrupted")

    def one(key):
        run = Run.fresh(key, domain, Patched.fresh(domain.reset(key), capacity=84), uamcts.Schedule())
        return advance(run, None, domain, config, 300)[2]

    said = jax.jit(over_runs(one))(jax.random.split(KEY, 5))
    reached = said.terminal[:, 100:][said.ended[:, 100:]]
    assert len(reached) > 60
    assert reached.mean() > 0.95


def test_facts_are_saved_and_loaded_into_larger_tables(table, tmp_path):
    empty, put, look = table
    learner = Patched(put(empty, [(1, 2, 7), (4, 0, 9)]), UncertaintyLearner(Constant(False)))
    checkpoint.save(tmp_path / "facts", learner, "test", {})
    larger = Patched(empty.reserve(40), UncertaintyLearner(Constant(False)))
    again = checkpoint.load(tmp_path / "facts", larger, "test", {})
    assert look(again.facts) == {(1, 2): 7, (4, 0): 9}


def test_an_agent_with_a_memory(tmp_path):
    """It plans with what it has seen, more than there was room for at first: at (0, 1), `right` stays there."""
    domain = uamcts.make("two_way")
    options = {"schedule": uamcts.Schedule(interval=4), "memory": True}
    agent = uamcts.Agent.paper(domain, Constant(False), **options)
    for cell, action in [((0, 1), 0), ((0, 6), 1), ((2, 0), 0), ((2, 1), 0), ((2, 2), 0)]:
        after = domain.world(domain.from_features(cell), action)
        agent.observe(domain.from_features(cell), action, after.state, terminal=bool(after.terminal))
    agent.save(tmp_path / "agent")
    again = uamcts.Agent.paper(domain, Constant(False), **options)
    again.load(tmp_path / "agent")
    assert again.estimator == agent.estimator
    model, doubt = again.backend.knowledge.learner.planner(domain)
    believed = jax.jit(jax.vmap(model, (None, 0)))(domain.from_features((0, 1)), jnp.arange(4))
    assert believed.state.cell.tolist() == [1, 1, 0, 1]  # a wall below, the edge above
    assert [float(doubt(domain.from_features((0, 1)), jnp.int32(action))) for action in (0, 2)] == [0.0, 0.25]
    goal = model(domain.from_features((0, 6)), jnp.int32(1))
    assert (float(goal.reward), bool(goal.terminal)) == (10.0, True)
    with pytest.raises(ValueError, match="was written with memory True"):
        uamcts.Agent.paper(domain, Constant(False), **{**options, "memory": False}).load(tmp_path / "agent")


# Plain Python


class Line:
    """Cells 0 .. 4 in a line; the model walks anywhere, and 4 pays 1 and is the end."""

    num_actions = 2

    def step(self, state, action):
        following = max(0, state[0] - 1) if action == 0 else min(4, state[0] + 1)
        return [following], float(following == 4), following == 4


def test_a_patched_python_model_overrides_exactly_what_was_seen():
    model = PatchedModel(Line(), key=tuple)
    assert model.step([1], 1) == ([2], 0.0, False)
    model.remember([1], 1, [1], 0.5, False)
    model.remember([1], 1, [0], 2, True)  # the last fact wins
    assert model.step([1], 1) == ([0], 2.0, True)
    assert model.step([1], 0) == ([0], 0.0, False)
    assert model.step([2], 1) == ([3], 0.0, False)
    doubt = model.patch_uncertainty(lambda state, action: 0.3)
    assert (doubt([1], 1), doubt([1], 0)) == (0.0, 0.3)
    config = uamcts.SearchConfig(iterations=60, rollouts=4, depth=10)
    found = uamcts.reference.search(0, [1], model, doubt, config)
    assert found.uncertainty == [0.3, 0.0]
    assert found.action == 1  # which ends at once, with 2


def test_a_state_that_cannot_be_a_key_is_refused():
    with pytest.raises(TypeError, match="give PatchedModel a `key`"):
        PatchedModel(Line()).step([1], 1)
