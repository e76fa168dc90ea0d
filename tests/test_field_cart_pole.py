"""Cart poles that have changed: the dynamics are Gymnasium's, and planners do what is known of them."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uamcts import field
from uamcts.field.cart_pole import push
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.report.field_section import best_rewards, field_table

KEYS = jax.random.split(jax.random.key(0), 4)
STEPS = 200


@pytest.fixture(scope="module")
def stale():
    return field.StalePlan.of(field.Pole())


def test_a_step_is_that_of_gymnasium():
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=3)
    env.gravity, env.masspole = 50.0, 0.7
    env.total_mass, env.polemass_length = 1.7, 0.35
    pole = field.Change(50.0, 0.2).pole(3)
    state = jnp.array(env.state, jnp.float32)
    for action in (1, 1, 0, *[1] * 12):
        after = push(state, jnp.asarray(action), pole)
        seen, reward, over, _, _ = env.step(action)
        assert np.allclose(after.state, seen, atol=1e-5)
        assert (float(after.reward), bool(after.terminal)) == (reward, over)
        state = after.state
        if over:
            break
    assert over
    assert np.array_equal(push(state, jnp.asarray(0), pole).state, state)  # it has fallen


def test_the_plan_balances_the_pole_it_was_made_for(stale):
    score = field.play_pole(KEYS, field.draw_starts(0, 0, 4), stale, field.Change(), STEPS, False)
    assert score.steps.tolist() == [STEPS] * 4
    assert not score.ended.any()


def test_the_plan_is_as_good_mirrored(stale):
    state = jnp.array([0.3, -0.4, 0.05, 0.6])
    values = jax.jit(lambda state: stale.values(state, field.Pole()))
    left, right = values(state), values(-state)
    assert np.allclose(left, right[::-1], rtol=1e-4)


def test_who_is_told_of_a_strong_gravity_outlives_who_is_not(stale):
    """At fifty times the gravity a pole that is pushed as before falls soon; with an alpha of 1, PA-MCTS does that."""
    starts = 0.2 * field.draw_starts(0, 0, 4)  # near the middle, from where it can be held
    strong = field.Change(500.0)
    mcts, plan = (field.PolePlanner(iterations=30, depth=20, alpha=alpha, stale=stale) for alpha in (0.0, 1.0))
    assert float(field.play_pole(KEYS, starts, mcts, strong, STEPS, True).reward.mean()) > 100
    alone = field.play_pole(KEYS, starts, stale, strong, STEPS, False)
    assert float(alone.reward.mean()) < 30
    assert bool(alone.ended.all())
    assert field.play_pole(KEYS, starts, plan, strong, STEPS, True).steps.tolist() == alone.steps.tolist()


def test_an_episode_is_the_same_in_any_block():
    assert np.array_equal(field.draw_starts(5, 0, 7)[4:], field.draw_starts(5, 4, 3))


def test_the_agent_lives_until_the_pole_falls_or_time_is_up():
    starts = jnp.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.2, 2.0]])  # the second falls at once
    score = field.play_pole_agent(starts, field.Change(), 3, 5, 5, 0.99, 0)
    assert score.steps.tolist() == [3, 1]
    assert score.ended.tolist() == [False, True]


def test_an_agent_with_the_old_plan_holds_the_pole_it_was_made_for(stale):
    """A plan is worth the more the fewer iterations a search has: with four, only the plan tells how to balance."""
    starts = field.draw_starts(0, 0, 1)
    without, with_plan = (
        int(field.play_pole_agent(starts, field.Change(), 120, 2, 2, 0.99, 0, stale=plan).steps[0])
        for plan in (None, stale)
    )
    assert without < with_plan == 120


def test_the_old_plan_falls_when_the_declaration_says(stale):
    keys = jax.random.split(jax.random.key(0), 200)
    score = field.play_pole(keys, field.draw_starts(0, 0, 200), stale, field.Change(gain=0.1), 1000, False)
    assert float(score.steps.mean()) == pytest.approx(FIELD["cartpole_mass"].stale[50.0], abs=5)


def test_scores_are_relative_to_the_planner_that_is_told():
    cell = FIELD["cartpole_mass"].experiments[0]
    rows = {name: {"mean": mean, "ci95": None} for name, mean in (("agent", 450.0), ("mcts_told", 500.0))}
    assert best_rewards({cell: rows}) == [500.0]
    _, lines = field_table("cartpole_mass", {cell: rows})
    found = {line[0].text: [one.text for one in line[1:]] for line in lines}
    assert found["uamcts.Agent"] == ["450", "0.900"]
    assert found["published: MCTS knows"] == ["758", "1.516"]
    assert found["Plan, old model"] == ["157", "0.313"]
