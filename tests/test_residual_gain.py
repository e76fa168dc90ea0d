"""Residuals of actions that do less than believed, and of regions in which a simulator is wrong."""

import numpy as np
import pytest

import uamcts
from uamcts.agent.residual_rows import find_newly_exact
from uamcts.corrections.residual import Residual
from uamcts.corrections.residual_border import fit_border

EFFECTS = np.array([[-0.09, -0.3, 0.0], [0.0, 0.0, 0.0], [0.09, 0.3, 0.0]])
"""What going back, rolling on and going on add to (place, speed) and the reward."""


def loaded_trolley(rows, heavier=0.6):
    """(place, speed, loaded): with a load, a push does less. Only one push forward was seen with a load."""
    rng = np.random.default_rng(0)
    features, actions = rng.uniform(-1, 1, (rows, 3)), np.arange(rows) % 3
    features[:, 2] = np.arange(rows) % 4 == 0
    features[(actions == 2) & (np.arange(rows) > 8), 2] = 0
    assert features[actions == 2, 2].sum() == 1
    differences = np.zeros((rows, 4))
    differences[:, :2] = -heavier * EFFECTS[actions, :2] * features[:, 2:]
    return features, actions, differences


def with_rewards(effects):
    return np.insert(effects, 2, 0.0, axis=1)


def test_an_action_that_was_wrong_once_does_less_by_the_same_share_as_another():
    features, actions, differences = loaded_trolley(60)
    residual = Residual.fit(features, actions, differences, 3, effects=with_rewards(EFFECTS))
    for state in ([0.3, -0.2, 1.0], [-0.5, 0.4, 1.0]):
        for action, expected in enumerate(-0.6 * EFFECTS[:, :2]):
            np.testing.assert_allclose(residual.difference(np.array(state), action)[:2], expected, atol=1e-9)
            assert not residual.difference(np.array([*state[:2], 0.0]), action).any()
    alone = Residual.fit(features, actions, differences, 3)
    assert not alone.difference(np.array([0.3, -0.2, 1.0]), 2).any()


@pytest.mark.parametrize("idle", [True, False])
def test_one_action_speaks_for_others_if_it_is_no_wind(idle):
    """Nobody went on with a load. Where rolling on with one is exact, it is going back that does less."""
    features, actions, differences = loaded_trolley(60)
    kept = ((actions != 2) | (features[:, 2] == 0)) & (idle | (actions != 1) | (features[:, 2] == 0))
    seen = features[kept], actions[kept], differences[kept]
    found = Residual.fit(*seen, 3, effects=with_rewards(EFFECTS)).difference(np.array([0.3, -0.2, 1.0]), 2)
    np.testing.assert_allclose(found[:2], [-0.054 * idle, -0.18 * idle], atol=1e-9)


def test_an_action_that_contradicts_the_share_keeps_its_own_errors():
    features, actions, differences = loaded_trolley(60)
    differences[actions == 2] = 0  # with a load, going on does what it should
    residual = Residual.fit(features, actions, differences, 3, effects=with_rewards(EFFECTS))
    assert not residual.difference(np.array([0.3, -0.2, 1.0]), 2).any()
    np.testing.assert_allclose(residual.difference(np.array([0.3, -0.2, 1.0]), 0)[:2], [0.054, 0.18], atol=1e-9)


def test_rewards_are_still_corrected_where_states_are_by_a_share():
    rng = np.random.default_rng(0)
    features, actions = rng.uniform(-1, 1, (80, 2)), np.arange(80) % 2
    effects = np.array([[-0.2, 0.0], [0.2, 0.0]])
    differences = np.column_stack([-2 * effects[actions], 0.08 * np.sign(features[:, 0]) * (1 - 2 * actions)])
    residual = Residual.fit(features, actions, differences, 2, effects=np.column_stack([effects, np.zeros(2)]))
    for action, sign in enumerate((1.0, -1.0)):
        found = residual.difference(np.array([0.5, 0.1]), action)
        np.testing.assert_allclose(found, [0.4 * sign, 0.0, 0.08 * sign], atol=1e-6)


def test_units_of_effects_and_a_constant_that_all_actions_share_do_not_matter():
    features, actions, differences = loaded_trolley(60)
    first = Residual.fit(features, actions, differences, 3, effects=with_rewards(EFFECTS))
    second = Residual.fit(features, actions, differences, 3, effects=with_rewards(5.0 * EFFECTS + 0.7))
    state = np.array([0.3, -0.2, 1.0])
    for action in range(3):
        np.testing.assert_allclose(first.difference(state, action), second.difference(state, action), atol=1e-9)


class Trolley:
    """(place, speed, loaded) as numbers; loads weigh nothing."""

    num_actions = 3

    def mass(self, loaded):
        return 1.0

    def step(self, state, action):
        place, speed, loaded = state
        speed = 0.95 * speed + 0.3 * (action - 1) / self.mass(loaded)
        return (place + 0.3 * speed, speed, loaded), -abs(place), False


class Heavy(Trolley):
    def mass(self, loaded):
        return 2.5 if loaded else 1.0


def test_an_agent_learns_from_pushes_back_how_a_load_brakes():
    agent, rng = uamcts.Agent(Trolley(), iterations=5, rollouts=1, depth=3), np.random.default_rng(1)
    log = []
    for number in range(60):
        action = number % 3
        loaded = float((action < 2 and number % 2 == 0) or number in (5, 11))
        state = (float(rng.uniform(-1, 1)), float(rng.uniform(-1, 1)), loaded)
        log.append((state, action, *Heavy().step(state, action)))
    agent.preload(log)
    found, _, _ = agent.backend.corrector.variant().step((0.2, -0.4, 1.0), 2)
    assert found == pytest.approx(Heavy().step((0.2, -0.4, 1.0), 2)[0])


@pytest.mark.parametrize("box", [[(0, -0.4, 0.3)], [(0, -0.4, 0.3), (1, -0.2, 9.0)]])
def test_errors_in_a_region_have_borders_on_all_sides(box):
    inputs = np.random.default_rng(0).uniform(-1, 1, (150, 3))
    inside = np.all([(low < inputs[:, feature]) & (inputs[:, feature] < high) for feature, low, high in box], axis=0)
    fit = fit_border(inputs, np.where(inside[:, None], [[0.0, -0.25]], 0.0))
    assert sorted(set(fit.low[:, 1].tolist())) == [-0.25, 0.0]
    assert (fit.losses == 0).all()
    sides = fit.threshold[np.isfinite(fit.threshold)]
    assert len(sides) == len(box) + 1
    np.testing.assert_allclose(np.sort(sides)[[0, -1]], [-0.4, 0.3], atol=0.05)


@pytest.mark.parametrize("wrong", [6, 12, 40])
def test_errors_that_are_scattered_have_no_borders(wrong):
    rng = np.random.default_rng(0)
    inputs, outputs = rng.uniform(-1, 1, (120, 4)), np.zeros((120, 1))
    outputs[rng.choice(120, wrong, replace=False)] = 0.5
    assert fit_border(inputs, outputs) is None


class Field:
    """(x, v): it pays to be near 2."""

    num_actions = 2

    def step(self, state, action):
        x, v = state
        v += 0.2 * action - 0.1
        return (x + v, v), -abs(x + v - 2.0), False


class Gust(Field):
    """A wind between 0.4 and 1.2 that the simulator lacks."""

    def step(self, state, action):
        x, v = state
        return super().step((x, v - 0.25 * (0.4 < x < 1.2)), action)


def windy_log(rows):
    rng = np.random.default_rng(3)
    states = [(float(rng.uniform(-0.5, 2)), float(rng.uniform(-0.5, 0.5))) for _ in range(rows)]
    return [(state, number % 2, *Gust().step(state, number % 2)) for number, state in enumerate(states)]


def everywhere(shift):
    """A residual that adds the same to both features before every step."""
    found = Residual.zero(2, 2, 3).before_the_step()
    for bounds in (found.low, found.high, found.intercept):
        bounds[..., :2] = shift
    found.lower[:], found.upper[:] = -5.0, 5.0
    return found


def blamed(agent):
    """The agent, whose residual has predicted badly for long; it is not in use."""
    corrector = agent.backend.corrector
    place = corrector.referee.names.index("residual")
    corrector.residuals, corrector.in_use, corrector._variants = {"residual": everywhere(0.5)}, "none", {}
    for total, sign in ((corrector.referee.sums, -300.0), (corrector.referee.errors, -50.0)):
        total[place, 0], total[0, place] = sign, -sign
    corrector.referee.weight[place, 0] = corrector.referee.weight[0, place] = 60.0
    return agent


def test_a_residual_that_is_exact_is_not_blamed_for_those_before_it():
    log = windy_log(120)
    agent = uamcts.Agent(Field(), iterations=5, rollouts=1, depth=3)
    agent.preload(log[:80])
    blamed(agent).preload(log[80:])
    corrector = agent.backend.corrector
    assert corrector.in_use == "residual"
    for state in ((0.8, 0.1), (0.1, 0.1), (1.6, -0.3)):
        found, expected = corrector.variant().step(state, 1), Gust().step(state, 1)
        assert (*found[0], found[1]) == pytest.approx((*expected[0], expected[1]))


def test_only_exact_constants_clear_the_record_of_a_candidate():
    agent = uamcts.Agent(Field(), iterations=5, rollouts=1, depth=3)
    agent.preload(windy_log(100))
    corrector, experience = agent.backend.corrector, agent.backend.experience
    right, wrong, rows = corrector.residuals["residual"], everywhere(0.5), np.arange(100)
    assert not right.slope.any()
    sloped = Residual.of({**right.arrays(), "slope": right.slope + 1e-12})
    cases = {(wrong, right): {"residual"}, (right, wrong): set(), (right, right): set(), (wrong, sloped): set()}
    for (before, after), expected in cases.items():
        known = {"residual": before}, {"residual": after}
        assert find_newly_exact(corrector.planner, experience, rows, None, *known, corrector.floor) == expected


@pytest.mark.parametrize("shared", [0, 12])
def test_a_region_is_none_where_exact_transitions_lie_at_the_same_place(shared):
    """Errors in the middle third are a region; with as many exact transitions at the same places there is none."""
    wrong, exact = np.linspace(0.4, 0.6, 12), np.concatenate([np.linspace(0.0, 0.3, 20), np.linspace(0.7, 1.0, 20)])
    inputs = np.concatenate([wrong, exact, wrong[:shared]])[:, None]
    outputs = np.where(np.arange(len(inputs)) < 12, 0.5, 0.0)[:, None]
    found = fit_border(inputs, outputs)
    assert (found is None) == bool(shared)


def test_errors_and_exact_transitions_in_one_place_have_no_border():
    outputs = np.repeat([0.5, 0.0], [20, 40])[:, None]
    assert fit_border(np.zeros((60, 2)), outputs) is None
