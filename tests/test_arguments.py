"""Wrong types and values of every argument are refused in a sentence that names the argument and what it got."""

import copy
import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.arguments import legal_actions
from uamcts.presets import search_config


class Line:
    num_actions = 2

    def step(self, state, action):
        return state + (1 if action else -1), 0.0, False


def jax_step(state, action):
    return uamcts.Transition(state + action, jnp.float32(0), state > 9)


def long_step(state, action):
    return uamcts.Transition(state + action, jnp.float32(0), state[0] > 9)


AGENT = {
    "estimator": [5, 1.5, ["nearest"], uamcts.Estimator],
    "config": [5, {"iterations": 3}, "trust"],
    "schedule": [5, 200, "often"],
    "num_actions": [0, -1, 1.5, True, "2", 10**9, 2**70, [2]],
    "features": [5, "all"],
    "identity": [5, "all"],
    "discrepancy": [5, "large"],
    "parts": ["state", 5, [], ["colour"], None],
    "tolerance": [float("nan"), float("inf"), -1.0, "small", None, True, 1j, [0.1]],
    "budget_seconds": [0, -1, float("nan"), float("inf"), "1", True, [1.0]],
    "seed": [1.5, "0", None, True, 2**64, 2**63, -(2**63) - 1, [1]],
    "minibatches": [0, -3, 1.5, "many", True],
    "memory": ["no", 0, -1, 1.5, "yes", [True]],
    "iterations": [0, 1.5, "many", 10**9, 2**40, True],
    "rollouts": [0, 10**12],
    "c": [[1.0, 2.0], 1j, "2", float("nan"), True, object(), np.array([1.0, 2.0]), {}],
}


OF_SIMULATORS = ("num_actions", "features", "identity", "discrepancy", "parts", "tolerance")
WRONG = [
    (kind, name, value)
    for kind in ("plain", "domain")
    for name, values in AGENT.items()
    for value in values
    if kind == "plain" or name not in OF_SIMULATORS
]


@pytest.mark.parametrize(("kind", "name", "value"), WRONG)
def test_agents(kind, name, value):
    model = Line() if kind == "plain" else uamcts.make("two_way")
    with pytest.raises((TypeError, ValueError), match=rf"{name} (is|holds)|a search of .* takes about") as caught:
        uamcts.Agent(model, **{name: value})
    assert len(str(caught.value)) < 400


def test_an_unknown_argument_is_answered_with_the_nearest():
    with pytest.raises(TypeError, match=r"no argument 'iteration'; did you mean 'iterations'\?"):
        uamcts.Agent(Line(), iteration=5)


MODELS = {
    "plain": Line,
    "compiled": lambda: uamcts.JaxSimulator(long_step, 4, jnp.zeros(10, jnp.int32)),
    "domain": lambda: uamcts.make("two_way"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_settings_that_are_not_given_keep_the_defaults_of_the_agent(kind):
    """By name, in a config, or both; a default of `SearchConfig` that is given is a setting like any other."""
    model = MODELS[kind]()
    default = uamcts.Agent(model).backend
    assert (default.config.rules, default.config.c) == ("trust", 4.0)
    assert default.config.gamma == (1.0 if kind == "domain" else 0.99)
    config = uamcts.SearchConfig(iterations=7)
    for agent in (uamcts.Agent(model, iterations=7), uamcts.Agent(model, config=config)):
        assert agent.backend.config == dataclasses.replace(default.config, iterations=7)
        assert agent.backend.searching == default.searching
    config = uamcts.SearchConfig(iterations=7, rollouts=10, gamma=1.0, rho=0.99)
    agent = uamcts.Agent(model, config=dataclasses.replace(config, depth=9), iterations=8)
    assert agent.backend.config == dataclasses.replace(default.config, iterations=8, rollouts=10, gamma=1.0, depth=9)
    released = uamcts.Agent(model, config=uamcts.SearchConfig(rules="released", graph=False)).backend
    assert (released.config.c, released.config.gamma) == (2.0**0.5, default.config.gamma)
    assert not released.searching.chooses


def test_settings_that_are_not_given_keep_the_papers():
    domain = uamcts.make("two_way")
    papers = uamcts.Agent.paper(domain).backend.config
    for ours in (uamcts.Agent.paper(domain, depth=7), uamcts.Agent.paper(domain, config=uamcts.SearchConfig(depth=7))):
        assert ours.backend.config == dataclasses.replace(papers, depth=7)
    printed = uamcts.Agent.paper(domain, config=uamcts.SearchConfig(rules="pseudocode")).backend.config
    assert printed == search_config(domain, "combined", rules="pseudocode")
    assert uamcts.Agent.paper(domain, rules="trust").backend.config == search_config(domain, "trust")


def test_a_config_knows_what_was_given():
    config = uamcts.SearchConfig(50, gamma=1.0, c=None)
    assert config.given == {"iterations": 50, "gamma": 1.0}
    assert dataclasses.replace(config, depth=9).given == {"iterations": 50, "depth": 9, "gamma": 1.0}
    assert dataclasses.replace(uamcts.SearchConfig(), rules="trust").given == {"rules": "trust"}
    same = uamcts.SearchConfig(iterations=50, rollouts=10)
    assert (same, hash(same), repr(same)) == (config, hash(config), repr(config))
    assert jax.tree.structure(same) == jax.tree.structure(config)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_copies_of_a_config_know_what_was_given(protocol):
    """Pickling makes other objects of equal floats; a setting is still not given because of that."""
    config = uamcts.SearchConfig(iterations=50, rules="trust")
    pickled = pickle.loads(pickle.dumps(config, protocol))
    for twin in (pickled, copy.copy(config), copy.deepcopy(pickled), dataclasses.replace(pickled)):
        assert twin == config
        assert twin.given == config.given
        assert dataclasses.replace(twin, gamma=0.5).given == {"iterations": 50, "rules": "trust", "gamma": 0.5}


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_tree_that_no_memory_holds_is_refused_with_its_size(kind):
    model = Line() if kind == "plain" else uamcts.JaxSimulator(long_step, 4, jnp.zeros(1000, jnp.int32))
    with pytest.raises(ValueError, match=r"a search of 1,000,000,000 iterations .* takes about [\d.,]+ [GT]B"):
        uamcts.Agent(model, config=uamcts.SearchConfig(iterations=10**9))
    uamcts.Agent(model, config=uamcts.SearchConfig(iterations=10**9), budget_seconds=0.1)  # then time is the limit


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, values in {
            "iterations": [0, -1, 1.5, True, "9", None, 2**31, [5]],
            "rules": ["fast", 5, ["released"]],
            "c": [-1, float("inf"), [1, 2], (1,), 1j, np.array([1j]), "1", True, 10**400, object(), {}],
            "tau": [0, float("nan"), [0.1], 1 + 0j, False],
            "gamma": [1.1, -0.1, [1.0], 1j],
            "selection": ["yes", 2, None, [True], 0.5, 1j],
            "worst": ["low", [0.0], 1j, float("nan")],
            "deletion_scale": [0, [1], 1j],
        }.items()
        for value in values
    ],
)
def test_settings_of_a_search(name, value):
    with pytest.raises(ValueError, match=f"{name} is "):
        uamcts.SearchConfig(**{name: value})


def test_settings_that_are_lanes_are_taken():
    lanes = {"c": np.array([1.0, 2.0]), "tau": jnp.array([0.1, np.inf]), "selection": np.array([True, False])}
    assert uamcts.SearchConfig(**lanes).c.shape == (2,)
    assert uamcts.SearchConfig(iterations=np.int64(5), c=np.float32(1), gamma=1, selection=1).iterations == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, values in {
            "interval": [0, 1.5, True, "5", None],
            "start": [0, float("nan"), float("inf"), "1", None, [1.0]],
            "divisor": [0.5, float("nan"), "10", 1j],
            "least": [0, -1, 20.0, float("nan"), "0"],
            "good_enough": [-1, float("nan"), "0", None],
        }.items()
        for value in values
    ],
)
def test_schedules(name, value):
    with pytest.raises(ValueError, match=f"{name} is "):
        uamcts.Schedule(**{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 5}, "step is 5"),
        ({"num_actions": 10**9}, "num_actions is 1000000000"),
        ({"num_actions": 1.5}, "num_actions is 1.5"),
        ({"example": "here"}, "example is 'here'"),
        ({"example": ()}, r"example is \(\)"),
        ({"example": {"a": None, "b": object()}}, "example is "),
        ({"features": 5}, "features is 5"),
        ({"inputs": 5}, "inputs is 5"),
        ({"identity": 5}, "identity is 5"),
        ({"legal": 5}, "legal is 5"),
        ({"legal": lambda state: jnp.array([0, 1])}, "legal returns .*bool"),
        ({"legal": lambda state: jnp.array([True])}, "legal returns .*bool"),
        ({"name": 5}, "name is 5"),
        ({"action_names": "ab"}, "action_names is 'ab'"),
        ({"action_names": ("a",)}, "one name for each of the 2 actions"),
        ({"step": lambda state, action: state}, "must return a uamcts.Transition"),
        ({"step": lambda state, action: (state + 0.5, 0.0, False)}, "every state must have the structure"),
        ({"step": lambda state, action: (state, jnp.zeros(3), False)}, "as reward; it must be one number"),
        ({"step": lambda state, action: (state, 0.0, bool(state))}, "cannot be compiled by JAX"),
    ],
)
def test_compiled_simulators(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        uamcts.JaxSimulator(**{"step": jax_step, "num_actions": 2, "example": jnp.int32(0), **options})


@pytest.mark.parametrize(
    ("given", "actions"),
    [
        ([2, 0], [0, 2]),
        ((1,), [1]),
        ([], []),
        (np.array([], int), []),
        ({2, 1}, [1, 2]),
        (range(3), [0, 1, 2]),
        (np.array([2, 1]), [1, 2]),
        ([np.int8(2), np.array(1)], [1, 2]),
        (np.array([True, False, True]), [0, 2]),
        ([False, False, False], []),
        (jnp.array([False, True, False]), [1]),
        ((action for action in (2, 0)), [0, 2]),
    ],
)
def test_legal_actions_and_masks(given, actions):
    found = legal_actions(given, 3)
    assert found == actions
    assert all(type(action) is int for action in found)


@pytest.mark.parametrize(
    "given",
    [[3], [-1], [0, 0], [0.0], [0.5], ["0"], [True], [True, False], np.array([True, False]), [True, 1, 0], None, 1,
     "01", {0: 1}, np.array([[0, 1]]), np.array(1), [None], [float("nan")]],
)  # fmt: skip
def test_legal_actions_that_are_none(given):
    with pytest.raises(ValueError, match="legal_actions gave"):
        legal_actions(given, 3)


def test_a_mask_is_planned_with_as_a_mask():
    """Only action 1 is legal in a simulator that pays for action 0."""

    class Masked(Line):
        def step(self, state, action):
            assert action == 1
            return state + 1, 1.0, False

        def legal_actions(self, state):
            return np.array([False, True])

    agent = uamcts.Agent(Masked(), iterations=5, rollouts=2, depth=3)
    assert agent.act(0) == 1
    assert list(agent.last_plan.exists) == [False, True]


@pytest.mark.parametrize("most", [-1, 1.5, "all", True, None])
def test_reports(most):
    with pytest.raises(ValueError, match="most is "):
        uamcts.Agent(Line()).report(most)


def test_actions_of_a_domain_are_not_rounded():
    domain = uamcts.make("two_way")
    state = domain.from_features((0, 1))
    for action in (0.7, 1.0, True, "1", np.array([1]), None, np.float32(1)):
        for step in (domain.world, domain.model):
            with pytest.raises(ValueError, match="action is "):
                step(state, action)
    assert domain.world(state, np.int8(1)).state.cell == domain.world(state, jnp.int32(1)).state.cell


class Fork:
    """Action 0 pays 1, action 1 pays 2, and only the first is legal: said by a mask."""

    num_actions = 2

    def step(self, state, action):
        return state, float(action + 1), True

    def legal_actions(self, state):
        return np.array([True, False])


def test_the_plain_search_reads_a_mask():
    found = uamcts.reference.search(0, 0, Fork(), None, uamcts.SearchConfig(iterations=5))
    assert found.action == 0
    assert found.exists == [True, False]


def test_a_search_that_does_not_fit_is_refused():
    domain = uamcts.make("breakout")
    state = domain.reset(jax.random.key(0))
    with pytest.raises(ValueError, match=r"2000000000 iterations.* takes about .* give fewer iterations"):
        uamcts.search(jax.random.key(0), state, domain.model, None, uamcts.SearchConfig(iterations=2_000_000_000))
