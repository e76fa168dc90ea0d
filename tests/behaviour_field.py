"""What the planners of the field do with fixed seeds, in a few numbers each: what is their own, not what they share.

The tree that most of them search with is recorded once, with the grids. So this compiles hardly anything.
"""

import jax
import jax.numpy as jnp
import numpy as np

import uamcts
from uamcts import field
from uamcts.field.cart_pole import has_fallen, push
from uamcts.field.exact import action_values
from uamcts.field.planner import posterior
from uamcts.field.tree import search

SMALL = field.Settings(iterations=30, depth=12, gamma=0.95)
MOVES = ((0, 2, 0), (1, 2, 1), (5, 1, 0), (4, 2, 2), (0, 1, 0))
"""Cells, actions and outcomes that a learner sees."""


def after_moves(planner, grid):
    """What a planner remembers after some moves."""
    memory = planner.begin(grid, jnp.asarray(0.7))
    for move in MOVES:
        memory = planner.learn(grid, memory, *map(jnp.asarray, move))
    return memory


def expectations(measure):
    """A robust expectation over outcomes, for several radii."""
    values, chances = jnp.array([0.3, -1.0, 0.9, 0.0]), jnp.array([0.4, 0.1, 0.3, 0.2])
    distance = jnp.abs(jnp.subtract.outer(jnp.array([0.0, 1.0, 3.0, 2.0]), jnp.array([0.0, 1.0, 3.0, 2.0])))
    return [field.MEASURES[measure](values, chances, distance, radius) for radius in (0.05, 0.2, 0.4)]


def cart_pole():
    """A trajectory, the plan in the old model, and searches from a tilted state."""
    state, states = jnp.array([0.1, -0.2, 0.05, 0.3]), []
    for step, action in enumerate((1, 0, 0, 1, 1)):
        state = push(state, jnp.asarray(action), field.Change(20.0, 0.1).pole(step)).state
        states.append(state)
    plan = field.StalePlan.of(field.Pole())
    planner = field.PolePlanner(iterations=12, depth=6, alpha=0.5, stale=plan)
    starts = field.draw_starts(0, 3, 2)
    keys = jax.random.split(jax.random.key(0), 2)
    score = field.play_pole(keys, starts, planner, field.Change(50.0, 0.1), 12, True)
    return {"states": states, "fallen": [has_fallen(20 * state)], "plan": plan.table[::4, 6, ::5, 7],
            "starts": starts, "steps": score.steps}  # fmt: skip


def numbers_of_planner(name):
    """The numbers of a planner, or of what all of them share: `field` and `cart_pole`."""
    grid, believed = field.make_grid("4x4"), jnp.asarray(0.7)
    if name == "field":
        chances = grid.probabilities(0.6)
        tree = search(jax.random.key(0), grid, grid.start, lambda _: chances, SMALL)
        score = field.play(jax.random.key(1), field.Rats(SMALL), grid, 0.6, 0.7, 0.95, 4, 12, 2)
        return {"visits": tree.visits[:6], "values": tree.values[:6], "reward": score.reward, "steps": score.steps,
                "slips": field.make_grid("cliff", "anywhere", teleport=True).probabilities(0.3)[36]}  # fmt: skip
    if name == "cart_pole":
        return cart_pole()
    if name == "agent":
        score = field.play_agent(grid, 0.5, 0.7, 0.95, 1, 12, 20, 0)
        return {"reward": score.reward, "steps": score.steps}
    if name == "pole_agent":
        pole = uamcts.JaxSimulator(push, 2, jnp.zeros(4), params=field.Pole())
        agent = uamcts.Agent(pole, iterations=20, rollouts=1, depth=5, gamma=0.999)
        agent.act(jnp.array([0.01, 0.02, 0.03, 0.04]))
        return {"visits": agent.last_plan.visits, "values": agent.last_plan.values}
    if name in field.MEASURES:
        return {"expectations": expectations(name)}
    kinds = {"ada_mcts": field.AdaMcts, "counts": field.Counts}
    if name in kinds:
        planner = kinds[name](SMALL)
        memory = after_moves(planner, grid)
        given = (memory,) if name == "counts" else (grid, believed, memory)
        return {"chances": np.asarray(planner.chances(*given))[[0, 1, 4, 5]]}
    if name in ("bamcp", "exact_learner"):
        planner = field.Bamcp(SMALL) if name == "bamcp" else field.ExactLearner(SMALL)
        weights = posterior(after_moves(planner, grid))
        return {
            "posterior": weights[::10],
            "values": action_values(grid, weights @ jnp.linspace(0, 1, 101), 0.95, 20)[0],
        }
    if name.startswith("rats"):
        return {"values": field.Rats(SMALL).values(grid, believed)[::3]}
    if name == "pa_mcts":
        return {"stale": action_values(grid, 0.7, 0.95)[::3]}
    planner = field.Mcts(SMALL) if name.startswith("mcts") else field.GraphSearch(SMALL)
    p = 0.5 if name.endswith("told") else 0.7
    act = jax.jit(jax.vmap(planner.act, (0, None, None, None, None)))
    place = field.Place(jnp.asarray(9), jnp.asarray(30))
    return {"actions": act(jax.random.split(jax.random.key(0), 8), grid, jnp.asarray(p), (), place), "p": [p]}
