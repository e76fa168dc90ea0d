"""`Agent.replace`: another simulator takes the place of the last one."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

import uamcts
from uamcts.field.cart_pole import Pole, has_fallen, push

SMALL = {"iterations": 8, "rollouts": 1, "depth": 5, "seed": 3, "corrections": ("parameters",)}
POLE = uamcts.JaxSimulator(
    push, 2, jnp.zeros(4), params=Pole(), terminal=lambda state, pole: has_fallen(state), name="pole"
)


@pytest.fixture
def compilations():
    """The names of the programs that JAX compiles in the meantime.

    Conversions of numbers do not count: any earlier test may have had them compiled, and JAX forgets old ones.
    """
    found = []

    def listen(event, duration, fun_name="unknown", **_):
        if event == "/jax/core/compile/backend_compile_duration" and fun_name != "jit(convert_element_type)":
            found.append(fun_name)

    monitoring.register_event_duration_secs_listener(listen)
    yield found
    monitoring.unregister_event_duration_listener(listen)


def live(agent, pole, steps):
    """The actions of an agent in a world."""
    state, actions = np.array([0.01, 0.0, 0.02, 0.0], np.float32), []
    for _ in range(steps):
        actions.append(agent.act(state))
        after = push(state, actions[-1], pole)
        agent.observe(state, actions[-1], np.asarray(after.state), reward=float(after.reward), terminal=False)
        state = np.asarray(after.state)
    return actions


def test_other_params_of_the_same_functions_need_no_new_programs(compilations):
    agent = uamcts.Agent(POLE, **SMALL)
    live(agent, Pole(gravity=20.0), 12)
    assert compilations
    compilations.clear()
    agent.replace(replace(POLE, params=Pole(masspole=1.0)), keep=False)
    live(agent, Pole(gravity=20.0, masspole=1.0), 12)
    assert compilations == []
    assert agent.backend.planner.parameters() == pytest.approx(Pole(masspole=1.0)._asdict())
    assert agent.backend.corrector.in_use == "parameters", "they were fitted without new programs as well"


def test_other_params_are_planned_with_and_not_those_that_were_compiled_first():
    force = replace(POLE, params=Pole(force=-10.0))  # left is right
    believed = [uamcts.Agent(one, **SMALL).backend.planner for one in (POLE, force)]
    state = np.zeros(4, np.float32)
    speeds = [float(planner.predict(state, 1, None)[1].features[1]) for planner in believed]
    assert speeds[0] > 0 > speeds[1]
    steps = [jax.device_get(planner._compiled.walk(planner._believed.arrays, state)) for planner in believed]
    assert np.array_equal(steps[0][1], steps[1][1])
    np.testing.assert_allclose(steps[0][2][0], -steps[1][2][0], rtol=1e-6)


def test_what_was_seen_is_forgotten_if_the_world_has_changed():
    agent = uamcts.Agent(POLE, **SMALL)
    live(agent, Pole(gravity=20.0), 5)
    agent.replace(POLE)
    assert len(agent.experience) == 5
    agent.replace(POLE, keep=False)
    assert (agent.experience, agent.steps) == ([], 5)
    with pytest.raises(ValueError, match="keep is 1; it must be True or False"):
        agent.replace(POLE, keep=1)
