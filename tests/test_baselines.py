"""CMAX and its kin on worlds small enough to count by hand, the worlds they are shown on, and the ports into MCTS."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.baselines import (
    AdaptiveCmaxPlus,
    Cmax,
    CmaxMcts,
    CmaxPlus,
    CmaxPlusMcts,
    NearestResidual,
    Penalised,
    PlainAstar,
    Problem,
    alpha_schedule,
    repetitions,
)
from uamcts.baselines.cmax import lookahead
from uamcts.corrections.facts import Patched
from uamcts.lab.experiments.learners import check_learner, make_learner
from uamcts.mcts.api import no_uncertainty, run_search
from uamcts.mcts.problem import Problem as SearchProblem
from uamcts.types import Transition
from uamcts.uncertainty import make_estimator
from uamcts.uncertainty.learner import UncertaintyLearner
from uamcts.uncertainty.prediction_cache import PredictionCache

KEY = jax.random.key(0)
DOWN, RIGHT, UP = 1, 0, 3


@pytest.fixture(scope="module")
def two_way():
    """By hand: down, six times right, up: 8 steps. Up leads to the unknown wall at (0, 2)."""
    return Problem.of(uamcts.make("two_way"))


@pytest.fixture(scope="module")
def icy():
    """By hand: down, right, right, right over the ice and on to (2, 4), right, right, up: 7 steps."""
    return Problem.of(uamcts.make("two_way_icy"))


@pytest.fixture(scope="module")
def obstacles():
    return [Problem.of(uamcts.make("hidden_obstacles", size=8, seed=seed)) for seed in range(4)]


# The searches


def test_a_problem_is_its_domain(two_way):
    domain = uamcts.make("two_way")
    state = domain.from_features((0, 1))
    assert two_way.world[1].tolist() == [int(domain.world(state, action).state.cell) for action in range(4)]
    assert two_way.model[1].tolist() == [int(domain.model(state, action).state.cell) for action in range(4)]
    assert (two_way.start, np.flatnonzero(two_way.goal).tolist()) == (7, [13])
    assert two_way.heuristic[[7, 0, 20, 13]].tolist() == [6, 7, 1, 0]
    assert two_way.optimum() == 8
    with pytest.raises(ValueError, match="breakout, which has 107 features"):
        Problem.of(uamcts.make("breakout"))


def line_of(cells):
    """A line 0 .. cells - 1 with the goal at its end; action 0 back, action 1 on. Heuristic 0."""
    table = np.stack([np.maximum(np.arange(cells) - 1, 0), np.minimum(np.arange(cells) + 1, cells - 1)], axis=1)
    table[-1] = cells - 1
    return Problem(table, table, np.arange(cells) == cells - 1, 1, np.zeros(cells))


def test_a_lookahead_by_hand():
    """From 1 of 0 .. 5 with V = 0 and three expansions: 1, then 2 and 0 (newest first), then best is 3 with p = 2.

    So V(1) = 2 and V(2) = V(0) = 1.
    """
    problem = line_of(6)
    edges = PlainAstar(problem).edges
    found = lookahead(problem, 1, problem.heuristic, edges, 3)
    assert found.action == 1
    assert found.values == {1: 2.0, 2: 1.0, 0: 1.0}
    assert lookahead(problem, 1, problem.heuristic, edges, np.inf).values[1] == 4


def test_a_transition_that_leads_nowhere_ends_the_search_when_it_is_the_best():
    """Action 1 of state 1 is known to cost 2.5 in all: then V(1) = 2.5, and V(0) = 1 + 2.5 - 1."""
    problem = line_of(6)
    agent = CmaxPlus(problem, expansions=50)
    agent.q[1, 1] = 2.5
    assert agent.act(1) == 1
    assert agent.values[[0, 1]].tolist() == [1.5, 2.5]


def test_plain_search_in_the_wrong_model_never_arrives_and_cmax_does(two_way):
    assert repetitions(PlainAstar(two_way), two_way, 1, limit=300) == [(300, False)]
    agent = Cmax(two_way, expansions=5)
    done = repetitions(agent, two_way, 5, limit=300)
    assert all(one.reached for one in done)
    assert agent.wrong == {(1, RIGHT)}
    assert done[-1].steps == 8


def test_cmax_is_stuck_where_every_way_has_an_error_in_it_and_cmax_plus_is_not(icy):
    """Both ways of Icy have a wrong transition: once both are known, CMAX pays |S| to run into the wall forever."""
    assert not all(one.reached for one in repetitions(Cmax(icy, expansions=10), icy, 10, limit=300))
    done = repetitions(CmaxPlus(icy, expansions=10), icy, 10, limit=300)
    assert all(one.reached for one in done)
    assert done[-1].steps == 7


def test_cmax_plus_gets_better_with_repetitions_until_it_is_optimal(two_way, obstacles):
    for problem in (two_way, *obstacles):
        done = repetitions(CmaxPlus(problem, expansions=5), problem, 40, limit=2000)
        assert all(one.reached for one in done)
        assert done[0].steps > done[-1].steps == problem.optimum()


def test_values_never_say_more_than_the_truth(obstacles):
    """The model is optimistic: V of CMAX++ and Q never exceed the real cost, after every repetition."""
    for problem in obstacles:
        truth = problem.cost_to_go(problem.world)
        agent = CmaxPlus(problem, expansions=5)
        for _ in range(10):
            repetitions(agent, problem, 1, limit=2000)
            assert np.all(agent.values <= truth)
            assert all(value <= 1 + truth[problem.world[pair]] for pair, value in agent.q.items())
        assert agent.values[problem.start] > problem.heuristic[problem.start]


def test_values_of_cmax_stay_consistent_in_the_penalised_model(obstacles):
    """V(s) <= cost of (s, a) + V of where the model says it leads, for every s and a, after every step."""
    for problem in obstacles:
        agent = Cmax(problem, expansions=5)
        prices = np.ones(problem.model.shape)
        state = problem.start
        for _ in range(200):
            action = agent.act(state)
            onward = prices + agent.values[problem.model]
            onward[problem.goal] = np.inf
            assert np.all(agent.values[:, None] <= onward)
            following = int(problem.world[state, action])
            agent.observe(state, action, following)
            for pair in agent.wrong:
                prices[pair] = problem.states
            state = problem.start if problem.goal[following] else following
        assert agent.wrong


def test_the_adaptive_one_uses_both(icy):
    """It begins as CMAX does, step for step, and ends at the optimum, when alpha is near 1 and CMAX would be stuck."""
    agent = AdaptiveCmaxPlus(icy, expansions=10)
    done = repetitions(agent, icy, 12, limit=300)
    assert done[0] == repetitions(Cmax(icy, expansions=10), icy, 1)[0]
    assert done[-1] == (7, True)
    assert min(agent.chosen.values()) > 0
    always = AdaptiveCmaxPlus(icy, alpha=lambda repetition: 1e9)
    repetitions(always, icy, 1)
    assert always.chosen["cmax_plus"] == 0


def test_arguments_of_the_searches():
    assert [alpha_schedule(9.0, 0.5)(repetition) for repetition in (0, 1, 3)] == [9.0, 5.0, 2.0]
    problem = line_of(4)
    with pytest.raises(ValueError, match="expansions is 0"):
        Cmax(problem, 0)
    with pytest.raises(ValueError, match=r"alpha is 0\.5 in repetition 0"):
        repetitions(AdaptiveCmaxPlus(problem, alpha=lambda repetition: 0.5), problem, 1)
    with pytest.raises(ValueError, match="goal is False everywhere"):
        Problem(problem.world, problem.model, np.zeros(4, bool), 0, problem.heuristic)
    with pytest.raises(ValueError, match="not 0 at the goal"):
        Problem(problem.world, problem.model, problem.goal, 0, np.ones(4))


# The worlds


def test_obstacles_are_hidden_and_leave_a_way(obstacles):
    for problem in obstacles:
        assert problem.cost_to_go(problem.model)[problem.start] == 7 < problem.optimum() < np.inf
    first, again, other = (uamcts.make("hidden_obstacles", seed=seed).world_rules.walls for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    assert 0.1 < first.mean() < 0.5


def test_on_ice_one_moves_to_the_right_hand_side():
    """From an icy cell in the middle: `right` leads down, `down` left, `left` up, `up` right. From others as meant."""
    domain = uamcts.make("slippery")
    moves = {0: (1, 0), 1: (0, -1), 2: (-1, 0), 3: (0, 1)}
    meant = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}
    seen = set()
    for row, column in [(6, 4), *((r, c) for r in (4, 5) for c in (4, 5))]:
        slips = bool(domain.world_rules.ice[row, column])
        seen.add(slips)
        for action in range(4):
            for step, expected in ((domain.world, moves if slips else meant), (domain.model, meant)):
                after = domain.features(step(domain.from_features((row, column)), action).state)
                assert (after - jnp.array([row, column])).tolist() == list(expected[action])
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hidden_obstacles", {"size": 3}, "size is 3; it must be a whole number from 4"),
        ("hidden_obstacles", {"density": 0.7}, "density is 0.7: in none of 1000 worlds of size 12"),
        ("hidden_obstacles", {"density": 1}, "density is 1: in none"),
        ("slippery", {"density": 1e-9}, "density is 1e-09: in none"),
        ("slippery", {"density": 1.5}, "density is 1.5; it is a share"),
        ("slippery", {"seed": -1}, "seed is -1"),
        ("shortcut", {"size": 1001}, "size is 1001"),
        ("shortcut", {"door": False, "trap": True}, "trap is True and door is False"),
    ],
)
def test_worlds_that_cannot_be_drawn(name, options, message):
    with pytest.raises(ValueError, match=message):
        uamcts.make(name, **options)


@pytest.mark.parametrize("name", ["hidden_obstacles", "slippery"])
def test_without_density_nothing_is_wrong(name):
    problem = Problem.of(uamcts.make(name, size=5, density=0))
    np.testing.assert_array_equal(problem.world, problem.model)


def test_everything_may_be_ice():
    domain = uamcts.make("slippery", size=5, density=1)
    assert domain.world_rules.ice.all()
    assert Problem.of(domain).optimum() == 4


@pytest.mark.parametrize(("size", "columns"), [(5, [2]), (6, [2, 3])])
def test_every_way_leads_over_a_belt_of_ice(size, columns):
    """With nothing but the belt, and with other ice beside it: no way to the goal but over it."""
    bare = uamcts.make("slippery", size=size, density=0, belt=True).world_rules.ice
    assert np.flatnonzero(bare.all(axis=0)).tolist() == np.flatnonzero(bare.any(axis=0)).tolist() == columns
    domain = uamcts.make("slippery", size=size, density=0.2, belt=True, seed=1)
    ice = domain.world_rules.ice
    assert np.all(ice >= bare)
    assert ice.sum() > bare.sum()
    problem = Problem.of(domain)
    assert problem.optimum() == size - 1  # for those who know where to turn
    dry = np.where(ice.reshape(-1)[problem.world], np.arange(size**2)[:, None], problem.world)
    assert problem.cost_to_go(dry)[problem.start] == np.inf


@pytest.mark.parametrize(
    ("ice", "steps"),
    [
        (((2, 3),), 7),  # the paper's: down, right, right, over (2, 3), right, right, up
        (((2, 2), (2, 4)), 6),  # down, right, over (2, 2), over (2, 4), right, up
        (tuple((2, column) for column in range(7)), 5),  # down, over (2, 1), over (2, 3), over (2, 5), up
    ],
)
def test_ice_that_cannot_be_avoided(ice, steps):
    problem = Problem.of(uamcts.make("two_way_icy", broken=((0, 2),), ice=ice))
    assert problem.optimum() == steps
    right = np.where(problem.world == problem.model, problem.world, np.arange(21)[:, None])
    assert problem.cost_to_go(right)[problem.start] == np.inf, "there is a way on which the model is right"


# size, then steps around the wall and through the door: 2 size - 3 and size - 1 where size is even
@pytest.mark.parametrize(("size", "around", "through"), [(4, 5, 3), (5, 8, 4), (12, 21, 11)])
def test_a_shortcut_is_where_the_planner_sees_a_wall(size, around, through):
    problem = Problem.of(uamcts.make("shortcut", size=size))
    assert (problem.cost_to_go(problem.model)[problem.start], problem.optimum()) == (around, through)
    believed = np.unique(np.argwhere(problem.world != problem.model)[:, 0])
    middle = size // 2
    beside = [(middle - 1, middle), (middle, middle - 1), (middle, middle + 1), (middle + 1, middle)]
    assert set(believed.tolist()) == {size * row + column for row, column in beside if column < size - 1}
    shut = Problem.of(uamcts.make("shortcut", size=size, door=False))
    np.testing.assert_array_equal(shut.world, problem.model)
    np.testing.assert_array_equal(shut.model, problem.model)


def test_a_trap_looks_like_a_door_and_leads_back_to_the_start():
    door, problem = (Problem.of(uamcts.make("shortcut", size=6, trap=trap)) for trap in (False, True))
    np.testing.assert_array_equal(problem.model, door.model)
    assert problem.optimum() == 9  # around
    places, actions = np.nonzero(problem.world != problem.model)
    assert (problem.world[places, actions] == problem.start).all()
    assert (6 * 3 + 2, RIGHT) in zip(places.tolist(), actions.tolist(), strict=True)


def test_pictures_of_a_shortcut():
    """The bottom row is free, and the place straight ahead looks like what it is."""
    worlds = {"▯": {}, "█": {"door": False}, "x": {"trap": True}}
    for glyph, options in worlds.items():
        domain = uamcts.make("shortcut", size=4, **options)
        rows = domain.text(domain.reset(KEY)).split("\n")[1:-1]
        assert rows == ["│··█·│", "│··█·│", f"│@·{glyph}G│", "│····│"]


# The ports


@pytest.fixture(scope="module")
def grid():
    """2-Way and, compiled, all that a learner's model says: transitions [21, 4]."""
    domain = uamcts.make("two_way")
    cells = jnp.array([(row, column) for row in range(3) for column in range(7)])

    @jax.jit
    def says(learner):
        model, _ = learner.planner(domain)
        every = jax.vmap(jax.vmap(model, (None, 0)), (0, None))
        return every(jax.vmap(domain.from_features)(cells), jnp.arange(4))

    return domain, says


def only(places):
    """Conditions [21, 4] that hold at these (cell, action) and nowhere else."""
    mask = np.zeros((21, 4), bool)
    for place in places:
        mask[place] = True
    return mask


def walked(domain, learner, steps):
    for cell, action in steps:
        state = domain.from_features(cell)
        learner = learner.observe(domain, state, jnp.int32(action), domain.world(state, action), 1)
    return learner


STEPS = [((1, 0), UP), ((0, 0), RIGHT), ((0, 1), RIGHT), ((0, 1), RIGHT)]


def test_cmax_mcts_ends_at_the_worst_where_the_model_was_seen_to_be_wrong(grid):
    domain, says = grid
    given = says(UncertaintyLearner(make_estimator("none", KEY, domain)))
    learner = walked(domain, CmaxMcts.fresh(domain.reset(KEY), 8), STEPS)
    found, wrong = says(learner), only([(1, RIGHT)])
    np.testing.assert_array_equal(found.terminal, given.terminal | wrong)
    np.testing.assert_array_equal(found.reward, np.where(wrong, -1.0, given.reward))
    assert int(learner.facts.count) == 1
    assert int(learner.reserve(20).facts.count) == 1


def test_cmax_plus_mcts_pays_q_where_the_model_was_seen_to_be_wrong(grid):
    """At the wall Q is the mean return of 32 rollouts; where the real step ended the episode it is what it paid."""
    domain, says = grid
    given = says(UncertaintyLearner(make_estimator("none", KEY, domain)))
    learner = walked(domain, CmaxPlusMcts.fresh(domain.reset(KEY), 8), STEPS[:3])
    goal = Transition(domain.from_features((1, 6)), jnp.float32(10), jnp.bool_(True))
    learner = learner.observe(domain, domain.from_features((2, 2)), jnp.int32(DOWN), goal, 1)
    found, wrong = says(learner), only([(1, RIGHT), (16, DOWN)])
    np.testing.assert_array_equal(found.terminal, given.terminal | wrong)
    np.testing.assert_array_equal(np.asarray(found.reward)[~wrong], np.asarray(given.reward)[~wrong])
    assert float(found.reward[16, DOWN]) == 10.0
    learned = float(found.reward[1, RIGHT])
    assert 0 <= learned < 10
    assert (learned * 32 / 10).is_integer()
    again = walked(domain, learner, STEPS[2:3])
    assert float(says(again).reward[1, RIGHT]) != learned  # other rollouts, and some of them end here and are paid Q


def test_a_penalty_of_nothing_is_plain_mcts_and_others_cost_what_they_say(grid):
    domain, says = grid
    truth = UncertaintyLearner(make_estimator("true", KEY, domain))
    given, found = says(truth), says(Penalised(truth, 3.0))
    np.testing.assert_array_equal(found.reward, given.reward - 3.0 * 0.5 * only([(1, RIGHT), (3, 2), (9, UP)]))
    np.testing.assert_array_equal(found.state.cell, given.state.cell)
    config = uamcts.SearchConfig(iterations=20, rollouts=3, depth=10, selection=False, expansion=False,
                                 simulation=False, backpropagation=False)  # fmt: skip

    @jax.jit
    def searched(key, weight):
        model, _ = truth.planner(domain)
        penalised = Penalised(truth, weight).planner(domain)[0]
        plain, other = (
            uamcts.search(key, domain.from_features((0, 0)), planned, None, config, num_actions=4)
            for planned in (model, penalised)
        )
        return plain.visits, plain.values, other.visits, other.values

    plain, values, other, others = searched(KEY, 0.0)
    np.testing.assert_array_equal(plain, other)
    np.testing.assert_array_equal(values, others)
    _, values, _, others = searched(KEY, 50.0)
    assert np.any(values != others)


class Batched(eqx.Module):
    """Says of every cell how uncertain its transitions are, in batches, as networks do."""

    levels: jax.Array

    def planner(self, domain):
        return domain.model, PredictionCache(lambda state, action: self.levels[state.cell, action], remember=True)

    def observe(self, domain, state, action, real, copies):
        return self


@pytest.mark.parametrize(("graph", "memory"), [(False, False), (True, True)])
def test_what_is_evaluated_in_batches_is_charged_in_batches(graph, memory):
    """Beside a model that charges at every step by itself. What is known costs nothing."""
    domain = uamcts.make("two_way")
    levels = jax.random.uniform(KEY, (21, 4))
    state, wall = domain.from_features((1, 0)), domain.from_features((0, 1))
    config = uamcts.SearchConfig(iterations=30, rollouts=4, depth=12, gamma=0.9, graph=graph, selection=False,
                                 expansion=False, simulation=False, backpropagation=False)  # fmt: skip

    @jax.jit
    def search(key, weight, cache):
        learner = Penalised(Batched(levels), weight)
        if memory:
            real = Transition(wall, jnp.float32(1), jnp.bool_(False))
            learner = Patched.fresh(state, learner, 8).observe(domain, wall, jnp.int32(RIGHT), real, 1)
        model, uncertainty = learner.planner(domain)

        def step(state, action):
            believed, known = model(state, action), memory & (state.cell == 1) & (action == RIGHT)
            price = jnp.where(known, 0.0, weight * levels[state.cell, action])
            return believed._replace(reward=believed.reward - price)

        batched = run_search(key, state, SearchProblem(model, uncertainty, 4), config, cache)
        return batched, run_search(key, state, SearchProblem(step, no_uncertainty, 4), config)

    cache = Penalised(Batched(levels), 1.0).planner(domain)[1].empty_cache()
    found = []
    for number, weight in enumerate((5.0, 5.0, -5.0)):
        batched, single = search(jax.random.key(number), weight, cache)
        np.testing.assert_array_equal(batched.visits, single.visits)
        np.testing.assert_allclose(batched.values, single.values, rtol=1e-5)
        assert not np.any(batched.uncertainty)
        assert not batched.flags
        cache = batched.cache
        found.append(np.nanmean(batched.values))
    assert found[0] < 0 < found[2]


WRONG = [(1, RIGHT), (3, 2), (9, UP)]
"""Where 2-Way's model errs, by half a cell squared."""
OPTIONS = {"capacity": 40, "minibatches": 5, "most_copies": 10}


def test_a_bonus_pays_for_what_is_doubtful(grid):
    domain, says = grid
    given = says(UncertaintyLearner(make_estimator("none", KEY, domain)))
    found = says(make_learner("true+bonus=3", KEY, domain, OPTIONS))
    np.testing.assert_array_equal(found.reward, given.reward + 3.0 * 0.5 * only(WRONG))
    np.testing.assert_array_equal(found.state.cell, given.state.cell)


@pytest.mark.parametrize("name", ["true+bonus=3+memory", "true+memory+bonus=3"])
def test_there_is_no_bonus_for_what_is_known(grid, name):
    """Run into the wall once: that it is there is a fact, and pays no more than it did; the other two still do."""
    domain, says = grid
    given = says(UncertaintyLearner(make_estimator("none", KEY, domain)))
    learner = make_learner(name, KEY, domain, OPTIONS)
    before, after = says(learner), says(walked(domain, learner, STEPS[:3]))
    np.testing.assert_array_equal(before.reward, given.reward + 1.5 * only(WRONG))
    np.testing.assert_array_equal(after.reward, given.reward + 1.5 * only(WRONG[1:]))
    assert (int(before.state.cell[1, RIGHT]), int(after.state.cell[1, RIGHT])) == (2, 1)


def test_a_bonus_for_what_was_never_tried(grid):
    """Also where the model is right, as `unseen` cannot know: a transition pays the bonus until it is made."""
    domain, says = grid
    given = says(UncertaintyLearner(make_estimator("none", KEY, domain)))
    learner = make_learner("unseen+bonus=0.5+memory", KEY, domain, OPTIONS)
    tried = only([(7, UP), (0, RIGHT), (1, RIGHT)])
    np.testing.assert_array_equal(says(learner).reward, given.reward + 0.5)
    after = says(walked(domain, learner, STEPS))
    np.testing.assert_array_equal(after.reward, given.reward + np.where(tried, 0.0, 0.5))


def test_a_residual_reaches_as_far_as_its_radius(grid):
    """Seen: from (0, 1) `right` stays. So does `right` from (0, 0) and (0, 2), which were not seen; nothing further."""
    domain, says = grid
    given = says(UncertaintyLearner(make_estimator("none", KEY, domain)))
    learner = NearestResidual.fresh(domain, radius=1.0, capacity=4)
    np.testing.assert_array_equal(says(learner).state.cell, given.state.cell)
    learner = walked(domain, learner, [((0, 1), RIGHT), ((2, 6), UP)])
    cells = np.asarray(says(learner).state.cell)
    changed = only([(0, RIGHT), (1, RIGHT), (2, RIGHT)])
    same = ~changed & ~only([(8, RIGHT)])  # below (0, 1), inside the wall
    np.testing.assert_array_equal(cells[same], np.asarray(given.state.cell)[same])
    assert cells[changed].tolist() == [0, 1, 2]
    learner = walked(domain, learner, [((0, 0), RIGHT)])  # nearer than (0, 1): the model was right here
    assert int(says(learner).state.cell[0, RIGHT]) == 1
    assert float(says(learner).reward[20, UP]) == 10.0


def test_a_residual_model_keeps_no_more_than_it_can_look_at():
    learner = NearestResidual.fresh(uamcts.make("two_way"), capacity=10**6)
    assert learner.facts.capacity == 512
    assert learner.reserve(1000) is learner


# Names


def test_learners_by_name():
    domain = uamcts.make("two_way")
    made = make_learner("linear+penalty=2+memory", KEY, domain, OPTIONS)
    assert made.facts.best.capacity == 4
    assert made.learner.weight == 2.0
    assert isinstance(made.learner.learner, UncertaintyLearner)
    assert isinstance(make_learner("cmax_plus", KEY, domain, OPTIONS), CmaxPlusMcts)
    assert make_learner("none+penalty", KEY, domain, OPTIONS).weight == 1.0
    assert make_learner("none+bonus", KEY, domain, OPTIONS).weight == -1.0


@pytest.mark.parametrize("name", ["memori", "linear+memory+", "linear+penalty=x", "linear+penalty=-1", "+memory",
                                  "linear+bonus=-1", "linear+bonuses"])  # fmt: skip
def test_names_that_nobody_has(name):
    with pytest.raises(ValueError, match=r"unknown learner .* cmax_plus"):
        check_learner(name)
