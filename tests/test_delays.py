"""Actions that take effect later than the simulator believes."""

import random

import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.corrections.delays import Delays, Trial, relabel

BUDGET = {"iterations": 10, "rollouts": 1, "depth": 5}


class Cart:
    """(x, v): thrust to the left, none, to the right."""

    num_actions = 3

    def __init__(self, mass=1.0):
        self.mass = mass

    def step(self, state, action):
        v = state[1] + 0.2 * (action - 1) / self.mass
        x = state[0] + 0.2 * v
        return (x, v), -abs(x), False


class Swapped(Cart):
    """Left is right."""

    def step(self, state, action):
        return super().step(state, 2 - action)


def live(agent, simulator, delay, actions, rest=1, state=(0.0, 0.0)):
    """One episode in which actions take effect so many steps later, and `rest` does before."""
    queue = [rest] * delay
    for action in actions:
        queue.append(action)
        after, reward, over = simulator.step(state, queue.pop(0))
        agent.observe(state, action, after, reward=reward, terminal=over)
        state = after
    return state


def choices(seed, count=40):
    return random.Random(seed).choices(range(3), k=count)


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_a_delay_is_found_and_what_was_seen_is_learned_from_anew(delay):
    agent = uamcts.Agent(Cart(), **BUDGET)
    live(agent, Cart(), delay, choices(delay))
    assert agent.backend.delays.delay == delay
    assert not any(seen.error for seen in agent.experience)
    assert all(Cart().step(seen.state, seen.action)[0] == seen.next_state for seen in agent.experience)
    assert agent.steps == 40
    assert f"actions take effect {'one step' if delay == 1 else f'{delay} steps'} later than believed" in str(
        agent.report()
    )


def test_a_delay_and_another_mass_are_found_together():
    agent = uamcts.Agent(Cart(), **BUDGET)
    live(agent, Cart(1.7), 1, choices(3, 80))
    assert agent.backend.delays.delay == 1
    assert "mass is about 1.7, not 1: corrected" in str(agent.report())


@pytest.mark.parametrize("world", [Cart(), Cart(1.7), Swapped()])
def test_what_is_not_late_is_not_taken_for_it(world):
    agent = uamcts.Agent(Cart(), **BUDGET)
    for seed in range(3):
        live(agent, world, 0, choices(seed))
        assert agent.backend.delays.delay == 0


def test_noise_is_not_taken_for_a_delay():
    rng = random.Random(0)

    class Noisy(Cart):
        def step(self, state, action):
            (x, v), reward, over = super().step(state, action)
            return (rng.gauss(x, 0.1), rng.gauss(v, 0.1)), reward, over

    agent = uamcts.Agent(Cart(), **BUDGET)
    for seed in range(3):
        live(agent, Noisy(), 0, choices(seed))
        assert agent.backend.delays.delay == 0


def test_the_agent_plans_from_where_an_action_takes_effect():
    agent = uamcts.Agent(Cart(), **BUDGET)
    state = live(agent, Cart(), 2, [*choices(1), 2, 0])
    expected = Cart().step(Cart().step(state, 2)[0], 0)[0]
    assert agent.backend._where_it_acts(state, 9) == (expected, 7)
    elsewhere = 1.0, 0.0  # an episode that begins: nothing is known that is still to come
    assert agent.backend._where_it_acts(elsewhere, 9) == (elsewhere, 9)


def test_the_action_before_the_first_is_learned():
    agent = uamcts.Agent(Cart(), **BUDGET)
    live(agent, Cart(), 1, choices(1), rest=2)
    live(agent, Cart(), 1, [0, 0, 1], rest=2, state=(1.0, 0.0))
    assert agent.backend.delays.first == {2}
    assert agent.backend._where_it_acts((1.0, 0.5), None)[0] == Cart().step((1.0, 0.5), 2)[0]


def test_a_world_that_is_no_longer_late_is_noticed():
    agent = uamcts.Agent(Cart(), **BUDGET)
    live(agent, Cart(), 1, choices(1))
    live(agent, Cart(), 0, choices(2, 80))
    assert agent.backend.delays.delay == 0


def test_a_delay_is_saved(tmp_path):
    agent, other = uamcts.Agent(Cart(), **BUDGET), uamcts.Agent(Cart(), **BUDGET)
    state = live(agent, Cart(), 1, choices(1))
    agent.save(tmp_path / "agent")
    other.load(tmp_path / "agent")
    assert other.backend.delays.as_json() == agent.backend.delays.as_json()
    for _ in range(4):
        action = agent.act(state)
        assert other.act(state) == action
        assert other.backend._where_it_acts(state, None) == agent.backend._where_it_acts(state, None)
        after, reward, over = Cart().step(state, agent.backend.delays.pending[0])
        for one in (agent, other):
            one.observe(state, action, after, reward=reward, terminal=over)
        state = after


def test_forget_and_replace():
    agent = uamcts.Agent(Cart(), **BUDGET)
    live(agent, Cart(), 1, choices(1))
    agent.forget(lambda seen: seen.state[0] > 0.1)
    assert agent.backend.delays.delay == 1
    agent.replace(Cart())
    assert agent.backend.delays.delay == 1
    agent.forget()
    assert agent.backend.delays == Delays()


def test_a_delay_of_a_compiled_simulator():
    def step(state, action):
        v = state[1] + 0.25 * (action - 1)
        after = jnp.stack([state[0] + 0.25 * v, v])
        return uamcts.Transition(after, -jnp.abs(after[0]), jnp.bool_(False))

    simulator = uamcts.JaxSimulator(step=step, num_actions=3, example=jnp.zeros(2))
    agent, state, queue = uamcts.Agent(simulator, **BUDGET), jnp.zeros(2), [1]
    for action in choices(5, 30):
        queue.append(action)
        after, reward, over = step(state, queue.pop(0))
        agent.observe(state, action, after, reward=float(reward), terminal=bool(over))
        state = after
    assert agent.backend.delays.delay == 1
    expected = step(state, queue[0])[0]
    np.testing.assert_allclose(agent.backend._where_it_acts(state, None)[0], expected)


def test_relabel():
    log = [("a", 1, "b", 0.0, False, True), ("b", 2, "c", 1.0, False, False), ("c", 0, "d", 2.0, True, False),
           ("a", 2, "e", 3.0, False, True), ("e", 1, "f", 4.0, False, False)]  # fmt: skip
    assert relabel(log, 0) == [one[:5] for one in log]
    assert relabel(log, 1) == [("b", 1, "c", 1.0, False), ("c", 2, "d", 2.0, True), ("e", 2, "f", 4.0, False)]


def test_swapped_actions_explain_the_same_only_where_the_action_changed():
    """Where the action before is right whenever it was another one, but nothing is where it was the same."""
    exact, wrong = -14.0, -2.0
    changed = Trial((0, 2), np.array([[wrong, wrong], [exact, exact]]))
    same = Trial((0, 0), np.array([[wrong, wrong], [wrong, wrong]]))
    right = Trial((0, 0), np.array([[exact, exact], [exact, exact]]))
    assert Delays(tests=(changed, same) * 8).better() is None
    assert Delays(tests=(changed, right) * 8).better() == 1
    assert Delays(tests=(changed, right) * 7).better() is None  # too few


def test_slips_are_not_taken_for_a_delay():
    """An action that slips leads where the one before would have led now and then."""

    class Plane:
        num_actions = 4

        def step(self, state, action):
            return (state[0] + (-1, 0, 1, 0)[action], state[1] + (0, 1, 0, -1)[action]), 0.0, False

    for seed in range(3):
        agent, rng, state = uamcts.Agent(Plane(), **BUDGET), random.Random(seed), (0, 0)
        for _ in range(150):
            action = rng.randrange(4)
            after = Plane().step(state, (action + rng.choice((-1, 0, 1))) % 4)[0]
            agent.observe(state, action, after, reward=0.0, terminal=False)
            assert agent.backend.delays.delay == 0
            state = after if max(map(abs, after)) < 4 else (0, 0)
