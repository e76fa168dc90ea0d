"""Kinds of errors that are in no example: an agent must correct them, survive them, or say so."""

import random
import warnings

import numpy as np
import pytest

import uamcts
from uamcts.agent.feature_names import leaf_names, number_names
from uamcts.corrections.evidence import SMALLEST_OF_REST, SMALLEST_OF_STATE, Evidence, doubtful

BUDGET = {"iterations": 10, "rollouts": 1, "depth": 5}


def live(agent, world, state, steps, actions=None):
    """Real steps with given actions, or those of the agent."""
    for number in range(steps):
        action = agent.act(state) if actions is None else actions[number % len(actions)]
        after, reward, over = world.step(state, action)
        agent.observe(state, action, after, reward=reward, terminal=over)
        state = after
    return state


class Cart:
    """(x, v); thrust to the left, none, to the right; every step pays for being near 0."""

    num_actions = 3

    def step(self, state, action):
        v = state[1] + 0.2 * (action - 1)
        x = state[0] + 0.2 * v
        return (x, v), -abs(x), False


class Tolled(Cart):
    """A thrust to the right costs 2 more."""

    def step(self, state, action):
        after, reward, over = super().step(state, action)
        return after, reward - 2.0 * (action == 2), over


def test_rewards_of_states_that_never_recur_are_corrected():
    agent = uamcts.Agent(Cart(), **BUDGET)
    live(agent, Tolled(), (0.0, 0.0), 90, random.Random(1).choices(range(3), k=90))
    variant = agent.backend.corrector.variant()
    for action in range(3):
        (after, reward, _), expected = variant.step((0.0, 0.1), action), Tolled().step((0.0, 0.1), action)
        assert after == pytest.approx(expected[0])
        assert reward == pytest.approx(expected[1])
    assert "next states and rewards are corrected: reward by -2 after action 2" in str(agent.report(0))


def test_noise_of_rewards_is_not_corrected():
    rng = random.Random(0)

    class Noisy(Cart):
        def step(self, state, action):
            after, reward, over = super().step(state, action)
            return after, reward + rng.gauss(0, 0.5), over

    agent = uamcts.Agent(Cart(), **BUDGET)
    live(agent, Noisy(), (0.5, 0.0), 120, [2, 0, 1, 0, 2, 1, 1])
    assert agent.backend.corrector.in_use == "none"


class Demand:
    """A shop; its demand is a table of probabilities, each of which is an attribute that may be off."""

    num_actions = 3

    def __init__(self, table):
        self.table = tuple(table)

    def outcomes(self, stock, order):
        have = min(stock + order, 6)
        return [(p, (max(have - d, 0), float(min(have, d)) - 0.3 * order, False)) for d, p in enumerate(self.table)]


def test_a_table_of_probabilities_stays_one_when_an_entry_is_fitted():
    agent, real = uamcts.Agent(Demand((0.5, 0.3, 0.2)), seed=1, **BUDGET), Demand((0.05, 0.15, 0.8))
    rng, stock = random.Random(3), 3
    for _ in range(60):
        order = agent.act(stock)
        outcomes = real.outcomes(stock, order)
        ((_, (after, reward, over)),) = rng.choices(outcomes, [p for p, _ in outcomes])
        agent.observe(stock, order, after, reward=reward, terminal=over)
        stock = after
    variant = agent.backend.corrector.variant("parameters")
    assert agent.backend.corrector.fit is not None
    assert sum(p for p, _ in variant.outcomes(3, 1)) == pytest.approx(1.0)


class Brittle:
    """A tank whose level must not fall below 0, where its simulator fails. It leaks, which the simulator ignores."""

    num_actions = 2

    def step(self, state, action):
        if state[0] < 0:
            raise ValueError("the level is below 0")
        return (state[0] + (0.05, 0.2)[action],), -state[0], False


class Leaking(Brittle):
    def step(self, state, action):
        after, reward, over = super().step(state, action)
        return (max(after[0] - 0.3, 0.0) if action == 0 else after[0] - 0.15,), reward, over


def test_a_correction_that_breaks_the_simulator_is_withdrawn():
    agent = uamcts.Agent(Brittle(), corrections=("facts", "residual"), iterations=20, rollouts=2, depth=20)
    state = live(agent, Leaking(), (4.0,), 36, [0, 1])
    assert agent.backend.corrector.in_use == "residual"
    assert agent.act((0.2,)) in (0, 1)  # planning far ahead, the shifted level falls below 0
    assert agent.backend.corrector.in_use == "none"
    live(agent, Leaking(), state, 10)
    assert agent.backend.corrector.in_use == "none"


class Rooms:
    """Two ways from 0 to the goal 9: over 1, and over 5, which the simulator believes to be closed."""

    num_actions = 2

    def __init__(self, closed):
        self.closed = closed

    def step(self, state, action):
        after = {0: (1, 5), 1: (9, 0), 5: (9, 0)}[state][action]
        if (state, after) == self.closed:
            after = state
        return after, 10.0 if after == 9 else -1.0, after == 9


def test_a_way_that_the_simulator_denies_is_found_where_no_other_leads_on():
    agent, real = uamcts.Agent(Rooms((0, 5)), iterations=30, rollouts=1, depth=6), Rooms((1, 9))
    state = 0
    for _ in range(60):
        action = agent.act(state)
        explored = "never tried" in agent.explain()
        after, reward, over = real.step(state, action)
        agent.observe(state, action, after, reward=reward, terminal=over)
        state = after
        if over:
            break
    assert over
    assert not explored  # having gone through the door, it knows the rest of the way
    assert agent.act(0) == 1


def test_a_right_simulator_is_never_explored():
    agent = uamcts.Agent(Rooms(None), iterations=30, rollouts=1, depth=6)
    for _ in range(30):
        live(agent, Rooms(None), 0, 2)
        assert "never tried" not in agent.explain()


def test_errors_that_come_and_go_among_right_transitions_are_no_doubt():
    rng = np.random.default_rng(0)
    points, actions = rng.uniform(-1, 1, (300, 2)), rng.integers(0, 2, 300)
    quiet = [np.zeros(300), np.ones(300, int), np.zeros(300, int)]
    scattered = np.where(rng.random(300) < 0.12, 1.0, 0.0)
    assert doubtful(Evidence(points, actions, scattered, *quiet), 0.0).sum() < 0.1 * scattered.sum()
    local = np.where((points[:, 0] > 0.5) & (actions == 0), 1.0, 0.0)
    np.testing.assert_array_equal(doubtful(Evidence(points, actions, local, *quiet), 0.0), local > 0)


def test_errors_that_half_of_all_transitions_have_are_a_matter_of_place_only_if_they_have_one():
    """45 % are wrong either way. Where no state shows which, the nearest to a wrong one is wrong about as often."""
    rng = np.random.default_rng(1)
    points, actions = rng.uniform(-1, 1, (300, 2)), rng.integers(0, 2, 300)
    quiet = [np.zeros(300), np.ones(300, int), np.zeros(300, int)]
    hidden = np.where(rng.random(300) < 0.45, 1.0, 0.0)
    hidden[1::4] = hidden[::4]  # neighbours in time share what is hidden,
    points[1::4] = points[::4] + 0.01  # and are neighbours in space
    actions[1::4] = actions[::4]
    assert doubtful(Evidence(points, actions, hidden, *quiet), 0.0).sum() < 0.1 * hidden.sum()
    local = np.where(points[:, 0] > 0.1, 1.0, 0.0)
    np.testing.assert_array_equal(doubtful(Evidence(points, actions, local, *quiet), 0.0), local > 0)


def test_what_was_wrong_twice_is_doubtful_whatever_is_near():
    points, actions = np.arange(40.0)[:, None], np.zeros(40, int)
    errors = np.where(np.arange(40) % 5 == 0, 1.0, 0.0)
    seen = Evidence(points, actions, errors, np.zeros(40), np.full(40, 2), np.where(errors > 0, 2, 0))
    np.testing.assert_array_equal(doubtful(seen, 0.0), errors > 0)


def test_tiny_errors_are_no_reason_to_avoid_a_transition():
    zeros, times = np.zeros(20), np.ones(20, int)
    errors = np.zeros(20)
    errors[3] = 0.9
    for small, column in ((SMALLEST_OF_STATE, 0), (SMALLEST_OF_REST, 1)):
        for factor, found in ((1.0, 0), (2.0, 1)):
            parts = [zeros, zeros]
            parts[column] = factor * small * (errors > 0)
            seen = Evidence(np.arange(20.0)[:, None], np.zeros(20, int), *parts, times, np.zeros(20, int))
            assert doubtful(seen, 0.0).sum() == found


def test_where_fits_correct_the_simulator_a_lone_error_is_no_doubt():
    rng = np.random.default_rng(0)
    points, errors, zeros = rng.uniform(-1, 1, (40, 2)), np.zeros(40), np.zeros(40)
    errors[7] = 1.0
    lone = Evidence(points, np.zeros(40, int), zeros, errors, np.ones(40, int), zeros)
    assert doubtful(lone, 0.0)[7]
    assert not doubtful(lone, 0.0, corrected=True).any()
    near = np.argsort(np.sum((points - points[7]) ** 2, axis=1))[:5]
    errors[near] = 1.0
    assert doubtful(lone, 0.0, corrected=True)[near].any()


class Hill:
    """(x, v) on the way to a goal at 1 that pays 20. `friction` is no attribute: steps are that much shorter."""

    num_actions = 2

    def __init__(self, friction=0.0):
        self.step = lambda state, action: climb(state, action, friction)


def climb(state, action, friction):
    v = state[1] + 0.05 * (2 * action - 1) - friction
    x = state[0] + v
    return (x, v), 20.0 if x >= 1 else -1.0, x >= 1


def test_a_goal_that_comes_a_little_later_still_pays():
    agent = uamcts.Agent(Hill(), corrections=("facts", "residual"), **BUDGET)
    generator, late = random.Random(0), 0
    for _ in range(120):
        state, action = (generator.uniform(0.7, 1.0), generator.uniform(0.0, 0.2)), generator.randrange(2)
        after, reward, over = Hill(0.03).step(state, action)
        late += Hill().step(state, action)[2] and not over
        agent.preload([(state, action, after, reward, over)])
    assert late >= 8
    assert "states before a step are corrected: state[1] by -0.03" in str(agent.report(0))
    assert "the corrected model is right about all of them" in str(agent.report(0))
    assert agent.backend.corrector.variant().step((0.93, 0.1), 1)[1:] == (20.0, True)


class Shifted(Cart):
    """Nothing that the simulator says is right: the next state is drawn anew."""

    def __init__(self):
        self.random = random.Random(0)

    def step(self, state, action):
        return (self.random.uniform(-3, 3), self.random.uniform(-3, 3)), 0.0, False


def test_one_warning_where_nearly_all_is_wrong():
    agent = uamcts.Agent(Cart(), **BUDGET)
    with pytest.warns(UserWarning, match="of the latest 40 transitions were not what Cart predicts") as caught:
        live(agent, Shifted(), (0.0, 0.0), 60)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_no_warning_where_corrections_explain_it():
    class Windy(Cart):
        def step(self, state, action):
            (x, v), _, over = super().step(state, action)
            return (x + 2.0, v - 1.0), -abs(x + 2.0), over

    agent = uamcts.Agent(Cart(), **BUDGET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        live(agent, Windy(), (0.0, 0.0), 80)


def test_the_memory_is_bounded_by_an_argument():
    agent = uamcts.Agent(Cart(), memory=100, **BUDGET)
    for number in range(400):
        agent.observe((0.01 * number, 0.0), 1, (0.01 * number, 0.0), reward=0.0, terminal=False)
    facts = agent.backend.planner.patched.facts
    assert 100 <= len(facts) <= 164  # dropped every 64 transitions
    assert ((3.99, 0.0), 1) in facts  # the latest ones stay
    assert ((0.0, 0.0), 1) not in facts
    for given in (0, 1.5, "many", -3):
        with pytest.raises((TypeError, ValueError), match="memory"):
            uamcts.Agent(Cart(), memory=given)


def test_states_that_never_recur_take_less_memory(monkeypatch):
    monkeypatch.setattr("uamcts.corrections.patched_model.MOST_UNMET", 100)
    model = uamcts.PatchedModel(Cart())
    for number in range(400):
        model.remember((0.01 * number, 0.0), 1, (0.01 * number, 0.0), 0.0, False)
    assert len(model.facts) <= 164
    for number in range(390, 800):  # the first ten of these were met before: more than one in 200
        model.remember((0.01 * number, 0.0), 1, (0.01 * number, 0.0), 0.0, False)
    assert len(model.facts) > 400


def test_numbers_of_a_state_are_named_as_the_user_writes_them():
    state = {"y": (1.0, np.zeros(2)), "x": 2}
    assert number_names(state) == ["state['x']", "state['y'][0]", "state['y'][1][0]", "state['y'][1][1]"]
    assert number_names((1.0, 2.0)) == ["state[0]", "state[1]"]
    assert number_names(3.0) == ["state"]
    assert leaf_names({"a": np.zeros(2), "b": np.zeros(())}) == ["state['a'][0]", "state['a'][1]", "state['b']"]


class Spread:
    """Only `sample`; the noise is an attribute that is off."""

    num_actions = 1

    def __init__(self, noise=0.05):
        self.noise = noise

    def sample(self, state, action, rng):
        return (float(0.5 * state[0] + self.noise * rng.normal()),), 0.0, False


def test_the_size_of_noise_is_estimated_without_bias():
    agent, real, rng, state = uamcts.Agent(Spread(), **BUDGET), Spread(0.3), np.random.default_rng(5), (0.0,)
    for _ in range(150):
        after, reward, over = real.sample(state, 0, rng)
        agent.observe(state, 0, after, reward=reward, terminal=over)
        state = after
    fit = agent.backend.corrector.fit
    assert fit is not None
    assert 0.25 < fit.values["noise"] < 0.35


def test_rewards_that_vary_count_little_at_first():
    model = uamcts.PatchedModel(Rooms(None))
    for reward in (-3.0, 1.0, -2.0, 0.0):  # -1 on average, as the model says
        model.remember(0, 0, 1, reward, False)
    model.remember(0, 1, 5, 4.0, False)
    ((chance, (after, paid, over)),) = model.planned_model().outcomes(0, 1)
    assert (chance, after, over) == (pytest.approx(1.0), 5, False)
    assert paid == pytest.approx((10 * -1.0 + 4.0) / 11)
    certain = uamcts.PatchedModel(Rooms(None))
    for _ in range(4):
        certain.remember(0, 0, 1, -3.0, False)
    certain.remember(0, 1, 5, 4.0, False)
    ((_, (_, paid, _)),) = certain.planned_model().outcomes(0, 1)
    assert paid == pytest.approx(0.2 * -1.0 + 0.8 * 4.0)


def test_a_search_does_not_go_on_from_a_tree_of_another_kind():
    agent = uamcts.Agent(Cart(), iterations=40, rollouts=1, depth=5, graph=False)
    agent.observe((0.0, 0.0), 2, (5.0, 5.0), reward=0.0, terminal=False)  # contradicts the simulator
    action = agent.act((1.0, 0.0))
    after, reward, over = Cart().step((1.0, 0.0), action)
    for _ in range(2):  # from the first repetition on, the simulator keeps a share of what is contradicted
        agent.observe((1.0, 0.0), action, after, reward=reward, terminal=over)
    assert agent.act(after) in range(3)
