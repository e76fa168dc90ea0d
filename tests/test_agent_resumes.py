"""A saved agent goes on as if nothing had happened, in worlds that change while it lives."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

import uamcts

SMALL = {"iterations": 6, "rollouts": 1, "depth": 5, "reuse": False}
CHANGE = 90
"""The step after which the world is another one."""


class Cart:
    """A cart that is pushed: believed with full power. States are tuples of numbers."""

    num_actions = 3

    def __init__(self, power=1.0):
        self.power = power

    def step(self, state, action):
        place, speed = state
        speed = 0.8 * speed + self.power * (action - 1)
        place = max(-9.0, min(9.0, place + 0.1 * speed))
        return (place, speed), -abs(place - 3.0), False


class Doors:
    """A ring of rooms, the last of which pays; some doors between rooms are shut. States are numbers."""

    num_actions = 2

    def __init__(self, shut=()):
        self.shut = shut

    def step(self, state, action):
        after = (state + (1 if action else -1)) % 8
        if (state, action) in self.shut:
            after = state
        return after, float(after == 4), after == 4


def jax_cart():
    """One for all agents, which then share compiled programs."""

    def step(state, action, params):
        place, speed = state
        speed = 0.8 * speed + params["power"] * (action - 1)
        place = jnp.clip(place + 0.1 * speed, -9.0, 9.0)
        return uamcts.Transition((place, speed), -jnp.abs(place - 3.0), False)

    zero = jnp.float32(0)
    return uamcts.JaxSimulator(step, 3, (zero, zero), params={"power": 1.0}, name="cart")


JAX_CART = jax_cart()
DOMAIN = uamcts.make("two_way")
MENDED = dataclasses.replace(DOMAIN, world_rules=DOMAIN.model_rules)
START = jax.device_get(DOMAIN.reset(jax.random.key(0)))


def domain_step(domain):
    step = jax.jit(domain.world)
    return lambda state, action: jax.device_get(step(state, action))


KINDS = {
    "cart": (lambda: uamcts.Agent(Cart(), **SMALL), [Cart(0.6).step, Cart(1.7).step], (0.0, 0.0)),
    "doors": (lambda: uamcts.Agent(Doors(), **SMALL), [Doors({(2, 1)}).step, Doors({(6, 0)}).step], 0),
    "estimator": (
        lambda: uamcts.Agent(Doors(), "nearest", **SMALL), [Doors({(2, 1)}).step, Doors({(6, 0)}).step], 0,
    ),
    "compiled": (lambda: uamcts.Agent(JAX_CART, **SMALL), [Cart(0.6).step, Cart(1.7).step], (0.0, 0.0)),
    "domain": (lambda: uamcts.Agent(DOMAIN, **SMALL), [domain_step(DOMAIN), domain_step(MENDED)], START),
    "paper": (
        lambda: uamcts.Agent.paper(DOMAIN, "linear", iterations=4, rollouts=1, depth=4, minibatches=10,
                                   schedule=uamcts.Schedule(interval=40)),
        [domain_step(DOMAIN), domain_step(MENDED)], START,
    ),
}  # fmt: skip


def live(agent, worlds, state, begin, first, last, most=25):
    """The actions of an agent in steps `first` to `last`, and the state after them; episodes are cut at `most`."""
    actions = []
    for number in range(first, last):
        action = agent.act(state)
        after, reward, over = worlds[number >= CHANGE](state, action)
        agent.observe(state, action, after, reward=float(reward), terminal=bool(over))
        actions.append(action)
        state = begin if over or number % most == most - 1 else after
    return actions, state


@pytest.mark.parametrize(("kind", "moments", "watched"), [
    ("cart", (50, CHANGE + 7, CHANGE + 12), 200), ("doors", (5, CHANGE + 10), 200),
    ("compiled", (CHANGE + 6,), 12),
    *(pytest.param(kind, (CHANGE + 6,), 200, marks=pytest.mark.long)
      for kind in ("compiled", "domain", "paper", "estimator")),
])  # fmt: skip
def test_a_loaded_agent_goes_on_like_one_that_never_stopped(kind, moments, watched, tmp_path):
    """Three agents: one is never saved, one is saved now and then and lives on, one is loaded from its file."""
    make, worlds, begin = KINDS[kind]
    end = max(moments) + watched
    whole, saved, state, lived = make(), make(), begin, 0
    actions, _ = live(whole, worlds, begin, begin, 0, end)
    whole.save(tmp_path / "whole")
    for moment in moments:
        before, state = live(saved, worlds, state, begin, lived, moment)
        assert before == actions[lived:moment]
        saved.save(tmp_path / "half")
        loaded, lived = make(), moment
        loaded.load(tmp_path / "half")
        assert str(loaded.report()) == str(saved.report())
        after, _ = live(loaded, worlds, state, begin, moment, end)
        assert after == actions[moment:]
        loaded.save(tmp_path / "loaded")
        assert (tmp_path / "loaded").read_bytes() == (tmp_path / "whole").read_bytes()
    if kind in ("cart", "doors"):
        assert "changed at" in str(whole.report())


def test_corrections_that_the_simulator_fails_with_stay_withdrawn(tmp_path):
    agent, loaded = uamcts.Agent(Cart(), **SMALL), uamcts.Agent(Cart(), **SMALL)
    agent.observe((0.0, 0.0), 1, (0.0, 0.0), reward=-3.0, terminal=False)
    agent.save(tmp_path / "whole")
    agent.backend.corrector.refuse(["power"], residual=True)
    agent.save(tmp_path / "withdrawn")
    loaded.load(tmp_path / "withdrawn")
    corrector = loaded.backend.corrector
    assert ("power" in corrector.choice.believed, "residual" in corrector.allowed) == (False, False)
    loaded.load(tmp_path / "whole")
    corrector = loaded.backend.corrector
    assert ("power" in corrector.choice.believed, "residual" in corrector.allowed) == (True, True)
