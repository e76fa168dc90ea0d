"""The planners of the field, against answers that are known by hand, by exact plans, or by a general solver."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from uamcts import field, make
from uamcts.domains.exact import best_plan, evaluate, tabulate
from uamcts.field.exact import action_values
from uamcts.field.planner import parameter_values, posterior
from uamcts.field.rats import worst_case
from uamcts.field.tree import search
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.experiments.field_worlds import GRID_PLANNERS
from uamcts.lab.report.field_section import yardsticks

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
KEY = jax.random.key(0)
MEASURES = {name: jax.jit(measure) for name, measure in field.MEASURES.items()}
LEAST = jax.jit(worst_case)
CROSSING = ("FFF", "SHG", "FFF")
"""The short way from S to G is through a hole; the way around takes four moves."""


def place(cell, left=100):
    return field.Place(jnp.asarray(cell), jnp.asarray(left))


def act(planner, grid, believed, cell, memory=None, seed=0):
    memory = planner.begin(grid, jnp.asarray(believed)) if memory is None else memory
    return int(jax.jit(planner.act)(jax.random.key(seed), grid, jnp.asarray(believed), memory, place(cell)))


@pytest.mark.parametrize("name", ["frozen_lake", "cliff", "bridge"])
def test_grids_are_those_of_the_domains(name):
    """Two independent tables of the same world have the same optimum."""
    grid = field.make_grid({"frozen_lake": "4x4"}.get(name, name))
    table = tabulate(make(name, p=0.6, model_p=0.7)).world
    ours = best_plan(grid.table(0.6), 0.998, 100).values[int(grid.start)]
    assert ours == pytest.approx(best_plan(table, 0.998, 100).values[0], abs=1e-6)


def test_exact_rewards_are_the_published_ones():
    """Independent measurements of the optimum and of the exact plan in the old model."""
    lake = [yardsticks(cell) for cell in FIELD["lake"].experiments]
    assert [round(one.optimum, 3) for one in lake] == [0.578, 0.626, 0.635, 0.708, 0.835, 0.990]
    assert [round(one.stale, 3) for one in lake] == [0.149, 0.383, 0.549, 0.656, 0.555, 0.000]
    teleport = [yardsticks(cell) for cell in FIELD["teleport"].experiments]
    assert [round(one.optimum, 3) for one in teleport] == [0.872, 0.973, 0.998, 1.000]
    assert [round(one.stale, 3) for one in teleport] == [0.749, 0.960, 0.998, 1.000]
    slips = [yardsticks(cell) for cell in FIELD["slip10"].experiments]
    assert [round(one.optimum, 2) for one in slips] == [0.90, 0.78, 0.67, 0.54, 0.42]


@pytest.mark.parametrize("expect", [None, lambda values, chances, cells: values @ chances])
def test_tree_values_converge_to_the_exact_ones(expect):
    """One move from the goal, walking into it is worth p now; with expectations backed up, also what follows a slip."""
    grid = field.make_grid(("SG",))
    chances, gamma = grid.probabilities(0.5), 0.0 if expect is None else 0.9
    tree = search(KEY, grid, grid.start, lambda _: chances, field.Settings(3000, 50, gamma, 0.2), expect)
    best = best_plan(grid.table(0.5), gamma)
    assert np.argmax(tree.visits[0]) == best.actions[0] == 2
    assert float(tree.values[0, 2]) == pytest.approx(best.values[0], abs=0.03)


def test_tree_is_the_same_in_a_batch():
    grid = field.make_grid("4x4")
    chances = grid.probabilities(0.7)

    @jax.jit
    def plan(key):
        return search(key, grid, grid.start, lambda _: chances, field.Settings(50, 30, 0.99)).visits[0]

    keys = jax.random.split(KEY, 3)
    assert np.array_equal(jax.vmap(plan)(keys), jnp.stack([plan(key) for key in keys]))


@pytest.mark.parametrize("planner", [field.Mcts, field.GraphSearch])
def test_search_goes_around_the_hole(planner):
    grid = field.make_grid(CROSSING)
    assert act(planner(field.Settings(400, 20, 0.95)), grid, 1.0, 3) in (1, 3)


def test_rats_fears_the_hole_beside_the_way():
    """Along a hole plain expectations risk a slip for the goal; an adversary turns every slip into a fall."""
    grid = field.make_grid(("SFG", "HHH"))
    calm, fearful = (field.Rats(field.Settings(gamma=1.0), lipschitz=one) for one in (0.0, 5.0))
    assert float(calm.values(grid, jnp.asarray(0.9)).max(axis=1)[0]) > 0
    # An adversary makes every later move fall, except up, so that it is best never to leave the first cell.
    assert int(jnp.argmax(fearful.values(grid, jnp.asarray(0.9))[0])) == 3


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.lists(st.floats(0.05, 1), min_size=3, max_size=3),
       st.floats(0, 2))  # fmt: skip
def test_worst_case_stays_within_its_bound(values, weights, bound):
    chances = np.array(weights) / sum(weights)
    distance = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    found = np.asarray(LEAST(jnp.array(values), jnp.array(chances), jnp.arange(3), jnp.array(distance), bound))
    assert found.sum() == pytest.approx(1.0, abs=1e-5)
    assert (found >= -1e-6).all()
    moved = np.abs(np.cumsum(found - chances))[:-1].sum()  # the Wasserstein distance on a line
    assert moved <= bound + 1e-4
    assert found @ np.array(values) <= chances @ np.array(values) + 1e-5


@settings(max_examples=40, deadline=None)
@example([0.0, 1.0, 1.0, 0.25], [1.0, 1.0, 1.0, 0.5], 0.75)  # the best price lies where two others cost the same
@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.lists(st.floats(0.05, 1), min_size=4, max_size=4),
       st.floats(0.02, 0.8))  # fmt: skip
def test_robust_expectations_solve_their_programs(values, weights, radius):
    """Total variation, Wasserstein and CVaR are linear programs; SciPy solves them too."""
    values, chances = np.array(values), np.array(weights) / sum(weights)
    distance = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    arguments = jnp.array(values), jnp.array(chances), jnp.array(distance), radius
    # total variation: q >= 0, sum q = 1, sum t <= 2 radius with t >= |q - p|
    eye = np.eye(4)
    left = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, 4)), np.ones((1, 4))]])
    right = np.concatenate([chances, -chances, [2 * radius]])
    whole = np.concatenate([np.ones(4), np.zeros(4)])[None]
    exact = linprog(np.concatenate([values, np.zeros(4)]), left, right, whole, [1.0], bounds=(0, None))
    assert float(MEASURES["total_variation"](*arguments)) == pytest.approx(exact.fun, abs=1e-5)
    # Wasserstein: transport plans from p, with a bounded cost
    marginal = np.kron(np.eye(4), np.ones((1, 4)))
    exact = linprog(np.tile(values, 4), distance.reshape(1, -1), [radius], marginal, chances, bounds=(0, None))
    assert float(MEASURES["wasserstein"](*arguments)) == pytest.approx(exact.fun, abs=1e-5)
    # CVaR: q <= p / (1 - radius)
    limits = [(0, chance / (1 - radius)) for chance in chances]
    exact = linprog(values, None, None, np.ones((1, 4)), [1.0], bounds=limits)
    assert float(MEASURES["cvar"](*arguments)) == pytest.approx(exact.fun, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.lists(st.floats(0.1, 1), min_size=3, max_size=3),
       st.floats(0.01, 2))  # fmt: skip
def test_chi_square_is_the_least_of_its_set(values, weights, radius):
    """No point of a fine grid inside of the set is lower, and one of them is about as low."""
    values, chances = np.array(values), np.array(weights) / sum(weights)
    found = float(MEASURES["chi_square"](jnp.array(values), jnp.array(chances), None, radius))
    first, second = np.meshgrid(np.linspace(0, 1, 301), np.linspace(0, 1, 301))
    points = np.stack([first, second, 1 - first - second], axis=-1).reshape(-1, 3)
    points = points[points[:, 2] >= 0]
    inside = points[((points - chances) ** 2 / chances).sum(axis=1) <= radius]
    lowest = (inside @ values).min() if len(inside) else chances @ values
    assert lowest - 0.02 <= found <= lowest + 1e-4


def test_robust_search_keeps_away_from_holes():
    """A radius of 0 is the plain expectation; with total variation 1 every move is as bad as its worst outcome."""
    grid = field.make_grid(("FFF", "SFG", "HHH"), rewards=(1.0, -1.0, 0.0))
    bold, careful = (field.RobustUct(field.Settings(600, 20, 0.9), "total_variation", radius) for radius in (0.0, 1.0))
    assert act(bold, grid, 0.95, 3) == best_plan(grid.table(0.95), 0.9).actions[3] == 2
    assert act(careful, grid, 0.95, 3) == 3


def test_posterior_is_that_of_a_binomial():
    """Successes and slips where both can be told apart: the posterior of p is a beta distribution."""
    grid = field.make_grid(("FFF", "FSF", "FFG"))
    planner = field.Bamcp()
    memory = planner.begin(grid, jnp.asarray(0.7))
    for outcome in (0, 0, 0, 1, 2, 0):
        memory = planner.learn(grid, memory, jnp.asarray(4), jnp.asarray(0), jnp.asarray(outcome))
    mean = float(posterior(memory) @ parameter_values())
    assert mean == pytest.approx((4 + 1) / (6 + 2), abs=0.002)


def test_posterior_ignores_what_cannot_be_told_apart():
    """In a corner two outcomes stay in place; one of them is the intended move."""
    grid = field.make_grid(("SF", "FG"))
    planner = field.Bamcp()
    memory = planner.learn(grid, planner.begin(grid, jnp.asarray(0.7)), *map(jnp.asarray, (0, 0, 0)))
    expected = parameter_values() + (1 - parameter_values()) / 2
    assert np.allclose(posterior(memory), expected / expected.sum(), atol=1e-5)


@pytest.mark.parametrize(("p", "action"), [(1.0, 2), (0.2, 3)])
def test_bamcp_plans_for_the_worlds_of_its_posterior(p, action):
    """Above a row of holes, moves that succeed lead to the goal; where most of them slip, only up cannot fall."""
    grid = field.make_grid(("SFG", "HHH"))
    known = jnp.where(jnp.abs(parameter_values() - p) < 1e-3, 0.0, -1e9)
    assert act(field.Bamcp(field.Settings(300, 20, 0.95)), grid, 0.7, 0, known) == action


def test_ada_mcts_turns_from_fear_to_what_it_learned():
    """Unknown, a move beside a hole is taken for a fall; once p = 1 is known, it is safe."""
    grid = field.make_grid(("SFG", "HHH"))
    planner = field.AdaMcts(field.Settings(300, 20, 0.95))
    memory = planner.begin(grid, jnp.asarray(0.7))
    right = (0, 2)
    first = planner.chances(grid, jnp.asarray(0.7), memory)[right]
    assert float(first[np.asarray(grid.reward[right]) < 0].sum()) > 0.5
    for _ in range(40):
        memory = planner.learn(grid, memory, *map(jnp.asarray, (0, 2, 0)))
    later = planner.chances(grid, jnp.asarray(0.7), memory)[right]
    assert float(later[np.asarray(grid.reward[right]) < 0].sum()) < 0.05
    assert act(planner, grid, 0.7, 0, memory) == 2


def test_pa_mcts_is_the_stale_policy_at_alpha_one():
    grid = field.make_grid("4x4")
    stale = np.argmax(action_values(grid, 0.7, 0.998), axis=1)
    planner = field.PaMcts(field.Settings(20, 20, 0.998), alpha=1.0, stale=0.7)
    assert [act(planner, grid, 1.0, cell) for cell in (4, 8, 14)] == [int(stale[cell]) for cell in (4, 8, 14)]


def test_exact_learner_is_the_exact_plan_once_it_knows():
    grid = field.make_grid("4x4")
    planner = field.ExactLearner(field.Settings(gamma=0.998))
    certain = jnp.where(jnp.abs(parameter_values() - 0.9) < 1e-3, 0.0, -1e9)
    plan = best_plan(grid.table(0.9), 0.998, 100)
    for cell in (0, 4, 8, 9, 14):
        q = grid.table(0.9).action_values(best_plan(grid.table(0.9), 0.998, 99).values, 0.998)[cell]
        assert q[act(planner, grid, 0.7, cell, certain)] == pytest.approx(plan.values[cell], abs=1e-4)


def test_counts_are_frequencies():
    grid = field.make_grid("4x4")
    planner = field.Counts()
    memory = planner.begin(grid, None)
    for outcome in (0, 0, 1):
        memory = planner.learn(grid, memory, *map(jnp.asarray, (0, 2, outcome)))
    assert np.allclose(planner.chances(memory)[0, 2], [2 / 3, 1 / 3, 0])
    assert np.allclose(planner.chances(memory)[0, 1], [1 / 3, 1 / 3, 1 / 3])


def test_episodes_of_a_plan_have_its_exact_reward():
    """PA-MCTS at alpha 1 follows the old model's plan, whose reward in the world is known exactly."""
    grid = field.make_grid("4x4")
    planner = field.PaMcts(field.Settings(1, 1, 0.998), alpha=1.0, stale=0.7)
    score = field.play(KEY, planner, grid, 0.9, 0.9, 0.998, episodes=4000, steps=100)
    plan = np.asarray(jnp.argmax(action_values(grid, 0.7, 0.998), axis=1))
    exact = evaluate(grid.table(0.9), plan, 0.998, 100)[0]
    error = float(score.reward.std()) / 4000**0.5
    assert float(score.reward.mean()) == pytest.approx(exact, abs=4 * error)
    assert float(score.steps[score.ended].max()) <= 100


def test_a_learner_remembers_within_an_episode():
    """In a world of p = 1 the exact plan for 0.7 never reaches the goal; one that learns p does, every time."""
    grid = field.make_grid("4x4")
    score = field.play(
        KEY, field.ExactLearner(field.Settings(gamma=0.998)), grid, 1.0, 0.7, 0.998, episodes=20, steps=60
    )
    assert bool(score.ended.all())
    assert float(score.reward.min()) > 0.9


def test_simulator_has_the_probabilities_of_the_grid():
    grid = field.make_grid("4x4", "anywhere", (1.0, 0.0, 0.0))
    simulator = field.GridSimulator(grid, 0.2)
    outcomes = simulator.outcomes(14, 2)
    assert sum(chance for chance, _ in outcomes) == pytest.approx(1.0)
    assert sum(chance for chance, (_, reward, ends) in outcomes if reward == 1 and ends) == pytest.approx(0.85)
    simulator.p = 0.0
    assert simulator.outcomes(14, 2) == [(1.0, (15, 1.0, True))]


def test_agent_learns_the_parameter_on_the_way():
    """At p = 1 the old plan paces for ever; the agent reaches the goal in its first episode."""
    grid, luck = field.make_grid("4x4"), runpy.run_path(str(BENCHMARKS / "field_luck.py"))
    costs = luck["Costs"](luck["action_values"](grid.table(1.0), 0.998, 100), 0.998)
    rewards, steps, ended = field.play_agent(grid, 1.0, 0.7, 0.998, 2, 100, 100, seed=1, watch=costs.watch)
    assert ended.all()
    assert (rewards > 0.8).all()
    assert (steps < 100).all()
    optimum = 0.998**5  # six moves; nothing slips, so that an episode lacks exactly what its actions cost
    np.testing.assert_allclose(rewards, optimum - np.array(costs.each), atol=1e-12)


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="slips is 'up'; give sideways or anywhere"):
        field.make_grid("4x4", "up")
    with pytest.raises(ValueError, match="exactly one S"):
        field.make_grid(("FF", "FG"))
    with pytest.raises(ValueError, match="unknown measure 'wassertein'; did you mean 'wasserstein'"):
        field.RobustUct(measure="wassertein")


def test_every_planner_of_the_lab_can_be_made():
    from uamcts.lab.run.field import make_planner

    world = FIELD["lake"].experiments[0].world
    made = [make_planner(name, world.settings(name)[0], 7, world) for name in GRID_PLANNERS if name != "agent"]
    assert all(planner.settings.iterations == 7 for planner in made)
