"""Domains whose steps are random: Gymnasium's tables, frequencies of draws, U, the public check, and the loops."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.toy_text import cliffwalking, frozen_lake
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import uamcts
from uamcts.baselines.problem import Problem
from uamcts.cli import app
from uamcts.domains.exact import best_plan, evaluate, tabulate
from uamcts.domains.frozen_lake import DOWN, LEFT, RIGHT, UP, State
from uamcts.domains.outcomes import distance, draw_outcome
from uamcts.episodes import offline
from uamcts.types import Transition

KEY = jax.random.key(0)
NAMES = ("frozen_lake", "cliff", "bridge")
SIGMAS = 4.9
"""A normal variable is farther from its mean with a probability of 1e-6."""


def cell(number):
    return State(jnp.uint32(number))


@partial(jax.jit, static_argnames="outcomes")
def in_every_cell(domain, outcomes):
    """The outcomes of all actions in all cells, [cells, actions, 3]."""
    places = jax.vmap(cell)(jnp.arange(np.prod(domain.shape)))
    return jax.vmap(jax.vmap(getattr(domain, outcomes), (None, 0)), (0, None))(places, jnp.arange(4))


def distributions(domain, outcomes="world_outcomes"):
    """For every cell and action the outcomes, equal ones added up: {(cell, reward, terminal): probability}."""
    after, probabilities = in_every_cell(domain, outcomes)
    rows = np.stack([probabilities, after.state.cell, after.reward, after.terminal], axis=-1).tolist()
    return [[added_up(outcomes) for outcomes in actions] for actions in rows]


def added_up(outcomes):
    """The same of one entry, which is like those of Gymnasium's tables."""
    total = Counter()
    for probability, following, reward, terminal in outcomes:
        if probability > 0:
            total[int(following), float(reward), bool(terminal)] += probability
    return dict(total)


# The tables of others.


@pytest.mark.parametrize("map_name", ["4x4", "8x8"])
@pytest.mark.parametrize("p", [1 / 3, 0.8])
def test_the_lake_is_gymnasiums(map_name, p):
    env = frozen_lake.FrozenLakeEnv(map_name=map_name, success_rate=p, reward_schedule=(1, -1, 0))
    domain = uamcts.make("frozen_lake", p=p, map=map_name)
    found = distributions(domain)
    assert found == distributions(uamcts.make("frozen_lake", p=p, map=env.desc))  # an array of bytes
    compared = 0
    for number in range(env.observation_space.n):
        if env.desc.reshape(-1)[number] in b"GH":
            continue  # Gymnasium's terminals lead to themselves with other rewards
        for action in range(4):
            expected = added_up(env.P[number][action])
            assert found[number][action] == pytest.approx(expected, abs=1e-6), (number, action)
            compared += 1
    assert compared == 4 * np.isin(env.desc, [b"S", b"F"]).sum()
    assert (
        domain.time_limit
        == gymnasium.spec("FrozenLake-v1" if map_name == "4x4" else "FrozenLake8x8-v1").max_episode_steps
    )


@pytest.mark.parametrize(("slippery", "p"), [(True, 1 / 3), (False, 1.0)])
def test_the_cliff_can_be_gymnasiums(slippery, p):
    env = cliffwalking.CliffWalkingEnv(is_slippery=slippery)
    options = {"goal_reward": -1, "hole_reward": -100, "step_reward": -1, "teleport": True}
    found = distributions(uamcts.make("cliff", p=p, **options))
    for number in range(37):  # all cells but the cliff and the goal
        for theirs, ours in enumerate((UP, RIGHT, DOWN, LEFT)):
            expected = added_up(env.P[number][theirs])
            assert found[number][ours] == pytest.approx(expected, abs=1e-6), (number, theirs)


def test_moves_on_the_bridge_by_hand():
    """Start at (2, 4) in the right half; (2, 5) is on the bridge, (2, 3) in the left half."""
    domain = uamcts.make("bridge", p=(0.9, 0.6), model_p=0.5)
    world, model = distributions(domain), distributions(domain, "model_outcomes")
    assert world[2 * 8 + 5][RIGHT] == pytest.approx(
        {(22, 0.0, False): 0.6, (29, -1.0, True): 0.2, (13, -1.0, True): 0.2}
    )
    assert world[2 * 8 + 6][RIGHT][23, 1.0, True] == pytest.approx(0.6)
    assert world[2 * 8 + 3][LEFT] == pytest.approx(
        {(18, 0.0, False): 0.9, (11, 0.0, False): 0.05, (27, 0.0, False): 0.05}
    )
    assert model[2 * 8 + 3][LEFT][18, 0.0, False] == pytest.approx(0.5)


# Draws.


@pytest.mark.parametrize("rules", ["world", "model"])
def test_draws_have_the_frequencies_of_the_outcomes(rules):
    """From (2, 1), down: to (3, 1) with p, else to either side."""
    domain, count = uamcts.make("frozen_lake", p=0.7, model_p=0.4), 20_000
    draw = jax.jit(jax.vmap(lambda key: getattr(domain, rules)(cell(9), DOWN, key).state.cell))
    places, counts = np.unique(draw(jax.random.split(KEY, count)), return_counts=True)
    found = dict(zip(places.tolist(), counts.tolist(), strict=True))
    p = {"world": 0.7, "model": 0.4}[rules]
    expected = {13: p, 8: (1 - p) / 2, 10: (1 - p) / 2}
    assert found.keys() == expected.keys()
    for place, probability in expected.items():
        deviation = np.sqrt(count * probability * (1 - probability))
        assert abs(found[place] - count * probability) < SIGMAS * deviation


@pytest.mark.parametrize("probabilities", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.1] * 7 + [0.3, 0.0]])
def test_an_empty_slot_is_never_drawn(probabilities):
    outcomes = Transition(
        jnp.arange(len(probabilities)), jnp.zeros(len(probabilities)), jnp.zeros(len(probabilities), bool)
    )
    keys = jax.random.split(KEY, 5000)
    drawn = jax.jit(jax.vmap(lambda key: draw_outcome((outcomes, jnp.array(probabilities)), key).state))(keys)
    assert set(drawn.tolist()) == set(np.flatnonzero(probabilities).tolist())


def test_a_random_step_needs_a_key_and_a_deterministic_one_does_not():
    lake, grid = uamcts.make("frozen_lake"), uamcts.make("two_way")
    for method in ("world", "model"):
        with pytest.raises(ValueError, match=rf"key is missing.*frozen_lake.*{method}\(state, action, key\)"):
            getattr(lake, method)(cell(0), 1)
    state = grid.from_features((0, 1))
    for method in ("world", "model"):
        plain, keyed = getattr(grid, method)(state, 0), getattr(grid, method)(state, 0, KEY)
        outcomes, probabilities = getattr(grid, f"{method}_outcomes")(state, 0)
        assert int(plain.state.cell) == int(keyed.state.cell) == int(outcomes.state.cell[0])
        assert probabilities.tolist() == [1.0]
    with pytest.raises(NotImplementedError, match="random: ask for outcomes"):
        lake.step(lake.world_rules, cell(0), 1)


def test_a_lane_of_a_batch_carries_its_own_p():
    domains = [uamcts.make("frozen_lake", p=p, model_p=0.5) for p in (0.4, 0.5, 1.0)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *domains)
    chances = jax.jit(jax.vmap(lambda domain: domain.world_outcomes(cell(9), DOWN)[1]))(batch)
    np.testing.assert_allclose(chances, [[0.4, 0.3, 0.3], [0.5, 0.25, 0.25], [1, 0, 0]], rtol=1e-6)
    doubts = jax.jit(jax.vmap(lambda domain: uamcts.true_uncertainty(domain)(cell(9), DOWN)))(batch)
    assert (doubts > 0).tolist() == [True, False, True]


# U.


@pytest.mark.parametrize(
    ("number", "action", "expected"),
    [
        (9, DOWN, 0.3 * 1.0),  # 0.3 of the mass: from (3, 1) to (2, 0) or (2, 2), one row and one column each
        (0, LEFT, 0.15 * 0.5),  # the model stays; 0.15 goes down, the other 0.15 stays as well
        (0, RIGHT, 0.15 * 0.5 + 0.15 * 1.0),  # from (0, 1) to (0, 0), where the slip upwards stays, or to (1, 0)
        (15, DOWN, 0.0),  # the goal
    ],
)
def test_uncertainty_by_hand(number, action, expected):
    domain = uamcts.make("frozen_lake", p=0.7, model_p=1.0)
    assert float(jax.jit(uamcts.true_uncertainty(domain))(cell(number), action)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
@given(p=st.floats(0, 1))
@settings(max_examples=15)
def test_random_is_not_doubtful(name, p):
    """The model has the world's p: U is exactly 0 everywhere."""
    domain = uamcts.make(name, p=p, model_p=p)
    places = jax.jit(jax.vmap(cell))(jnp.arange(np.prod(domain.shape)))
    doubts = _all_doubts(domain, places)
    assert not np.any(doubts)
    assert not domain.wrong_cells().any()


@jax.jit
def _all_doubts(domain, places):
    return jax.vmap(jax.vmap(uamcts.true_uncertainty(domain), (None, 0)), (0, None))(places, jnp.arange(4))


@given(st.permutations(range(6)), st.lists(st.integers(0, 3), min_size=6, max_size=6), st.integers(0, 2**31))
def test_equal_distributions_are_no_distance_apart(order, places, seed):
    """However their slots are ordered, and however often a state is among them; others are, by at most the maximum."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(6)).astype(np.float32)
    places = np.array(places)

    def outcomes(places, weights):
        return Transition(jnp.asarray(places), jnp.zeros(6), jnp.zeros(6, bool)), jnp.asarray(weights)

    def difference(first, second):
        return jnp.square((first - second).astype(jnp.float32))

    first, second = outcomes(places, weights), outcomes(places[list(order)], weights[list(order)])
    assert float(distance(difference, first, second)) == 0.0
    other = outcomes((places + 1) % 5, weights)
    assert 0 < float(distance(difference, first, other)) <= 16


def test_wrong_cells_are_those_of_the_half_that_is_wrong():
    wrong = uamcts.make("bridge", p=(0.7, 1.0), model_p=1.0).wrong_cells()
    assert wrong[:, :4].sum() == 3 * 4 - 1  # all but the goal
    assert not wrong[:, 4:].any()


# Options.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"p": 1.2}, ["p is 1.2", "between 0 and 1"]),
        ({"p": float("nan")}, ["p is nan"]),
        ({"model_p": "often"}, ["model_p is 'often'"]),
        ({"map": "9x9"}, ["map is '9x9'", "'4x4'"]),
        ({"map": 3}, ["map is 3", "rows"]),
        ({"map": ()}, ["rows of equal length"]),
        ({"map": ("SF", "FFG")}, ["rows of [2, 3] cells"]),
        ({"map": ("SX", "FG")}, ["holds 'X'", "H (hole)"]),
        ({"map": ("SS", "FG")}, ["2 starts"]),
        ({"map": ("SF", "FF")}, ["no goal"]),
        ({"goal_reward": float("inf")}, ["goal_reward is inf"]),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_wrong_options_are_refused(name, options, words):
    with pytest.raises((ValueError, TypeError)) as error:
        uamcts.make(name, **options)
    for word in words:
        assert word in str(error.value)


def test_a_bridge_has_two_halves():
    with pytest.raises(ValueError, match="left and the right half"):
        uamcts.make("bridge", p=(0.7, 0.8, 0.9))


def test_a_map_of_ones_own():
    domain = uamcts.make("frozen_lake", map=["HSF", "FFG"])
    assert domain.text(domain.reset(KEY)) == "┌───┐\n│O@·│\n│··G│\n└───┘"
    assert domain.time_limit == 75
    assert tabulate(domain).world.legal.shape == (4, 4)


# The public check.


@dataclass(frozen=True, eq=False)
class Walk(uamcts.Domain):
    """A random walk on ten cells; rules: the probability of a step to the right."""

    world_rules: float = 0.7
    model_rules: float = 0.5
    name = "walk"
    summary = "a random domain of one's own"
    action_names = ("wait", "walk")
    random = True

    def reset(self, key):
        return {"x": jax.random.randint(key, (), 0, 5)}

    def outcomes(self, rules, state, action):
        ended = state["x"] == 9
        x = jnp.clip(state["x"] + jnp.where(ended, 0, action) * jnp.array([1, -1]), 0, 9)
        reward = jnp.where((x == 9) & ~ended, 1.0, 0.0)
        return Transition({"x": x}, reward, x == 9), self.chances(rules)

    def chances(self, rules):
        return jnp.stack([jnp.float32(rules), 1 - jnp.float32(rules)])

    def features(self, state):
        return state["x"][None]


class Negative(Walk):
    def chances(self, rules):
        return jnp.array([1.5, -0.5])


class NaNChance(Walk):
    def chances(self, rules):
        return jnp.array([jnp.nan, 1.0])


class TooMuch(Walk):
    def chances(self, rules):
        return jnp.array([0.7, 0.4])


class OneChance(Walk):
    def chances(self, rules):
        return jnp.ones(1)


class WholeChances(Walk):
    def chances(self, rules):
        return jnp.array([1, 0])


class NoOutcomes(Walk):
    def outcomes(self, rules, state, action):
        return jax.tree.map(lambda leaf: leaf[:0], super().outcomes(rules, state, action))


class NoChances(Walk):
    def outcomes(self, rules, state, action):
        return super().outcomes(rules, state, action)[0]


class GoesOn(Walk):
    """With a small probability."""

    def outcomes(self, rules, state, action):
        after, chances = super().outcomes(rules, {"x": jnp.minimum(state["x"], 8)}, action)
        return after, chances


class PaysTwice(Walk):
    def outcomes(self, rules, state, action):
        after, chances = super().outcomes(rules, state, action)
        return after._replace(reward=jnp.where(after.terminal, 1.0, 0.0)), chances


class WrongShape(Walk):
    def outcomes(self, rules, state, action):
        after, chances = super().outcomes(rules, state, action)
        return after._replace(reward=after.reward[:, None]), chances


class DrawsSomethingElse(Walk):
    def world(self, state, action, key=None):
        after = super().world(state, action, key)
        return after._replace(reward=after.reward + 0.5)


class StepAlone(uamcts.Domain):
    world_rules: float = 0.7
    model_rules: float = 0.5
    name = "step alone"
    action_names = ("wait",)
    random = True
    reset = features = lambda self, argument: jnp.zeros(1)


class NotSaidToBeRandom(Walk):
    random = False


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (Negative, "gives the probability -0.5; it must be a number of at least 0"),
        (NaNChance, "gives the probability nan"),
        (TooMuch, r"sum to 1.1; they must sum to 1"),
        (OneChance, "every leaf needs 1 in front"),
        (WholeChances, "must be a vector of floating-point numbers"),
        (NoOutcomes, "returns no outcomes"),
        (NoChances, r"returns Transition; return a uamcts.Transition of \[K\] outcomes and their probabilities"),
        (GoesOn, "goes on after the end"),
        (PaysTwice, "pays a reward after the end"),
        (WrongShape, "reward of shape"),
        (DrawsSomethingElse, "world draws a step that is none of world_outcomes"),
        (StepAlone, "random is True and there is no method outcomes"),
        (NotSaidToBeRandom, "random is False; set random = True"),
    ],
)
def test_wrong_random_domains_are_rejected(wrong, sentence):
    wrong = dataclass(frozen=True, eq=False)(type(wrong.__name__, (wrong,), {}))
    with pytest.raises(uamcts.DomainError, match=sentence):
        uamcts.check_domain(wrong(0.7, 0.5), batch=16, steps=60, plain=2)


def test_a_random_domain_of_ones_own_passes():
    report = uamcts.check_domain(Walk(), batch=16, steps=60, plain=2)
    assert report.terminals > 0
    assert report.disagreements > 0
    assert uamcts.check_domain(Walk(0.7, 0.7), batch=16, steps=60, plain=2).disagreements == 0


# The loops.


def follow(policy):
    """A search that takes the actions of a policy by cell."""

    def search(key, state, model, uncertainty, config, horizon=None):
        return SimpleNamespace(action=jnp.asarray(policy)[state.cell], flags=jnp.int32(0))

    return search


def best_by_cell(domain):
    """The best stationary plan as actions of all cells, and what it earns in the time limit, undiscounted."""
    tables = tabulate(domain)
    plan = best_plan(tables.world, 0.998)
    policy = np.zeros(np.prod(domain.shape), np.int32)
    policy[tables.states.cell] = plan.actions
    return policy, evaluate(tables.world, plan.actions, 1.0, domain.time_limit)[0]


def test_episodes_earn_what_the_policy_is_worth(monkeypatch):
    domain, count = uamcts.make("frozen_lake", p=0.8), 4000
    policy, expected = best_by_cell(domain)
    monkeypatch.setattr(offline, "search", follow(policy))
    keys = jax.random.split(KEY, count)
    score = jax.jit(jax.vmap(lambda key: offline.play(key, domain, None)))(keys)
    rewards = np.asarray(score.reward)
    assert set(rewards.tolist()) == {-1.0, 0.0, 1.0}  # fell, was cut, arrived
    assert np.all((rewards == 0) == ~np.asarray(score.ended))
    assert abs(rewards.mean() - expected) < SIGMAS * rewards.std() / np.sqrt(count)

    domains = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), domain)
    config = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), uamcts.SearchConfig())
    turns = jax.jit(offline.play_in_turn)(keys[:5], domains, config, 5)
    for field in ("reward", "steps", "ended"):
        np.testing.assert_array_equal(getattr(turns, field), getattr(score, field)[:5])


def test_planning_neither_sees_nor_changes_the_worlds_draws(monkeypatch):
    """A search that uses up other random numbers, and another model, leave the episode as it is."""
    domain = uamcts.make("frozen_lake", p=0.6)
    policy, _ = best_by_cell(domain)
    seen = []

    def curious(key, state, model, uncertainty, config, horizon=None):
        seen.append(np.asarray(jax.random.key_data(key)).tolist())
        return follow(policy)(key, state, model, uncertainty, config)

    def steps(search, domain):
        monkeypatch.setattr(offline, "search", search)
        config = uamcts.SearchConfig()
        return [(int(move.state.cell), move.action, move.reward) for move in offline.moves(KEY, domain, config)]

    plain = steps(follow(policy), domain)
    assert steps(curious, domain) == plain
    assert steps(follow(policy), replace(domain, model_rules=domain.model_rules._replace(p=np.float32(0.1)))) == plain
    key = jax.random.split(KEY)[1]
    drawn_with = [jax.random.fold_in(jax.random.fold_in(key, offline.WORLD), step) for step in range(len(plain))]
    assert not {tuple(data) for data in seen} & {tuple(np.asarray(jax.random.key_data(k)).tolist()) for k in drawn_with}
    assert len(plain) > 5


def test_learning_in_a_random_domain_is_refused():
    refused = CliRunner().invoke(app, ["run", "cliff", "--steps", "100"])
    assert refused.exit_code == 2
    assert "domain is cliff, whose steps are random" in refused.output
    with pytest.raises(ValueError, match="domain is bridge, whose steps are random"):
        Problem.of(uamcts.make("bridge"))


def test_a_random_world_as_an_environment():
    from uamcts.gym import WorldEnv

    def places(seed):
        env = WorldEnv("cliff", p=0.5)
        env.reset(seed=seed)
        return [env.step(UP)[0].tolist() for _ in range(20)]

    assert places(1) == places(1) != places(2)
    assert {column for _, column in places(1)} != {0}, "nothing slipped"
