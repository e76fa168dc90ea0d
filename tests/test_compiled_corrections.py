"""Corrections of JAX simulators: parameters, next states, probabilities, facts, and doubt about the rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
import uamcts.gym
from uamcts.agent import compiled_facts
from uamcts.agent.compiled_parameters import ParameterTree, Shift
from uamcts.agent.compiled_residual import PackedResidual
from uamcts.agent.compiled_words import Fetched
from uamcts.corrections.parameter_fit import fit_parameters
from uamcts.corrections.residual import Residual

SMALL = {"iterations": 16, "rollouts": 2, "depth": 10}


def boat(friction=0.1, wind=(0.0, 0.0), weak_from=np.inf):
    """A boat on a plane: position and speed. Engines push in four directions, the first one less where x is large."""

    def step(state, action, params):
        pushes = jnp.array([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]])
        weak = jnp.where((action == 0) & (state["place"][0] > weak_from), 0.3, 1.0)
        speed = (1.0 - params["friction"]) * state["speed"] + weak * pushes[action] + params["wind"]
        place = state["place"] + speed
        return uamcts.Transition({"place": place, "speed": speed}, -jnp.sum(place**2), jnp.bool_(False))

    params = {"friction": friction, "wind": jnp.array(wind, jnp.float32)}
    example = {"place": jnp.zeros(2), "speed": jnp.zeros(2)}
    reward = lambda state, action, after, params: -jnp.sum(after["place"] ** 2)  # noqa: E731
    return uamcts.JaxSimulator(step, 4, example, name="boat", params=params, reward=reward)


def sail(world, count, seed=0):
    """Real transitions from random states."""
    rng, step = np.random.default_rng(seed), jax.jit(world.step)
    for _ in range(count):
        state = {name: jnp.asarray(rng.uniform(-1, 1, 2), jnp.float32) for name in ("place", "speed")}
        action = int(rng.integers(4))
        after = step(state, action)
        yield state, action, after.state, float(after.reward), bool(after.terminal)


def test_parameters_have_the_names_of_their_places():
    params = {"gravity": 9.8, "wind": np.zeros(2), "arm": [{"length": 2, "locked": True}], "map": np.zeros((3, 3))}
    tree = ParameterTree(params)
    assert tree.believed == {"arm[0].length": 2.0, "gravity": pytest.approx(9.8), "wind[0]": 0.0, "wind[1]": 0.0}
    for changed in (
        tree.with_values({"wind[1]": 0.5, "arm[0].length": 2.7}),
        jax.jit(tree.filled)(tree.vector({"wind[1]": 0.5, "arm[0].length": 2.7})),
    ):
        assert changed["wind"].tolist() == [0.0, 0.5]
        assert int(changed["arm"][0]["length"]) == 3  # whole numbers stay whole
        assert float(changed["gravity"]) == float(np.float32(9.8))
        assert bool(changed["arm"][0]["locked"])


def test_a_simulator_without_params_is_called_with_its_own():
    simulator = boat(wind=(0.5, 0.0))
    state = simulator.example
    assert simulator.step(state, 0).state["speed"][0] == pytest.approx(0.6)
    other = {"friction": 0.1, "wind": jnp.zeros(2)}
    assert simulator.step(state, 0, other).state["speed"][0] == pytest.approx(0.1)
    with pytest.raises(TypeError, match="params is 'much'; give a pytree of numbers"):
        uamcts.JaxSimulator(simulator.step, 4, state, params="much")


@pytest.mark.parametrize("kind", ["step", "sample", "outcomes"])
def test_a_transition_may_be_a_plain_tuple(kind):
    """Five places, and a reward at the right end: who is to the left of the middle goes right."""

    def step(place, action, key=None):
        after = jnp.clip(place + 2 * action - 1, 0, 4)
        return after, 1.0 * (after == 4), after == 4

    def outcomes(place, action):
        return jax.tree.map(lambda leaf: leaf[None], step(place, action)), jnp.ones(1)

    forms = {"step": None, kind: outcomes if kind == "outcomes" else step}
    agent = uamcts.Agent(uamcts.JaxSimulator(num_actions=2, example=jnp.int32(0), **forms), **SMALL)
    agent.observe(jnp.int32(0), 1, jnp.int32(1), reward=0.0, terminal=False)
    assert agent.act(jnp.int32(1)) == 1


def test_states_are_shifted_only_where_features_are_their_numbers():
    example = {"place": jnp.zeros(2), "clock": jnp.int32(0)}
    whole = Shift(lambda state: jnp.stack([state["clock"] * 1.0, *state["place"][::-1]]), example)
    moved = whole.move({"place": jnp.array([1.0, 2.0]), "clock": jnp.int32(7)}, jnp.array([5.0, 10.0, 20.0]))
    assert (moved["place"].tolist(), int(moved["clock"])) == ([21.0, 12.0], 7)
    for features in (lambda s: s["place"][:1], lambda s: jnp.sin(s["place"]), lambda s: jnp.tile(s["place"], 2)):
        assert not Shift(features, example).possible


def test_a_wind_that_nobody_believed_in_is_found():
    agent = uamcts.Agent(boat(), **SMALL)
    agent.preload(sail(boat(wind=(0.0, 0.03)), 30))
    corrector = agent.backend.corrector
    assert corrector.in_use == "parameters"
    assert corrector.fit.values == {"wind[1]": pytest.approx(0.03, abs=1e-4)}
    assert "wind[1] is about 0.03, not 0: corrected" in str(agent.report())
    assert "the corrected model is right about all of them" in str(agent.report())


def test_two_parameters_are_found_together():
    agent = uamcts.Agent(boat(), **SMALL)
    agent.preload(sail(boat(friction=0.3, wind=(0.02, 0.0)), 40))
    values = {"friction": pytest.approx(0.3, abs=1e-3), "wind[0]": pytest.approx(0.02, abs=1e-3)}
    assert agent.backend.corrector.fit.values == values


def test_an_engine_that_is_weak_in_one_place_is_a_residual():
    world = boat(weak_from=0.0)
    agent = uamcts.Agent(boat(), **SMALL)
    agent.preload(sail(world, 250))
    assert agent.backend.corrector.in_use == "residual"
    planner, wrong, total = agent.backend.planner, 0.0, 0.0
    variant = agent.backend.corrector.variant()
    for state, action, after, reward, _ in sail(world, 60, seed=1):
        if abs(float(state["place"][0])) < 0.1:
            continue  # where exactly it begins is not known
        real = uamcts.agent.chance.RealOutcome(after, reward, False)
        state = planner.accept(state, "state")
        _, corrected = planner.predict(state, action, real, variant)
        _, believed = planner.predict(state, action, real)
        wrong += np.sum((corrected.features - planner.features(planner.accept(after, "s"))) ** 2)
        total += np.sum((believed.features - planner.features(planner.accept(after, "s"))) ** 2)
        assert corrected.reward == pytest.approx(reward, abs=1e-2)  # the corrected state is paid for
    assert wrong < 0.01 * total
    agent.act({name: jnp.full(2, 0.5) for name in ("place", "speed")})


def test_a_packed_residual_is_the_same():
    """Splits at all levels, several actions, inside and outside of what was seen."""
    rng = np.random.default_rng(0)
    residual = Residual.zero(3, 5)
    residual.split[:] = rng.integers(-1, 5, residual.split.shape)
    residual.threshold[:] = rng.normal(size=residual.threshold.shape)
    residual.lower[:], residual.upper[:], residual.reach[:] = -1.0, 1.0, rng.uniform(0.5, 2.0, 5)
    residual.centre[:] = rng.normal(size=5)
    for name in ("intercept", "slope"):
        getattr(residual, name)[:] = rng.normal(size=getattr(residual, name).shape)
    residual.low[:], residual.high[:] = -1.0, 1.5
    packed = PackedResidual.of(residual)
    points, actions = rng.uniform(-1.5, 1.5, (200, 5)), rng.integers(0, 3, 200)
    found = jax.jit(jax.vmap(packed.difference))(points.astype(np.float32), actions)
    expected = np.stack([residual.difference(point, action) for point, action in zip(points, actions, strict=True)])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(np.unique(expected)) > 500


def test_numbers_of_all_types_come_back_as_they_were():
    numbers = [True, np.int8(-3), np.uint8(200), np.float16(0.5), np.int32(-(2**31)), np.uint32(2**32 - 1)]
    tree = {"flat": [jnp.asarray(number) for number in numbers], "deep": jnp.arange(6.0).reshape(2, 3) / 7}
    fetch = Fetched(lambda tree: tree)
    for _ in range(2):
        found = fetch(tree)
        assert jax.tree.structure(found) == jax.tree.structure(tree)
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def test_nothing_wrong_is_planned_in_as_by_plain_mcts():
    simulator = boat()
    agent, plain = uamcts.Agent(simulator, **SMALL), uamcts.Agent(simulator, corrections=(), **SMALL)
    step, state = jax.jit(simulator.step), {name: jnp.full(2, 0.7) for name in ("place", "speed")}
    for _ in range(8):
        action = agent.act(state)
        assert action == plain.act(state)
        np.testing.assert_array_equal(agent.last_plan.values, plain.last_plan.values)
        after = step(state, action)
        agent.observe(state, action, after.state, reward=float(after.reward), terminal=False)
        state = after.state
    assert agent.backend.corrector.in_use == "none"


def test_gravity_of_the_cart_pole_is_found():
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make("CartPole-v1")
    heavy = params.replace(gravity=6 * params.gravity)
    simulator = uamcts.gym.from_gymnax(env, params, trial_steps=0)
    assert "max_steps_in_episode" not in simulator.params
    agent = uamcts.Agent(simulator, **SMALL)
    step = jax.jit(lambda state, action: env.step_env(jax.random.key(0), state, action, heavy)[1:4])
    state, steps = simulator.example, 0
    while agent.backend.corrector.in_use == "none" and steps < 60:
        action, steps = agent.act(state), steps + 1
        after, reward, done = step(state, action)
        agent.observe(state, action, after, reward=float(reward), terminal=bool(done))
        state = simulator.example if done else after
    assert agent.backend.corrector.fit.values == {"gravity": pytest.approx(58.8, abs=0.1)}
    before = agent.backend.planner._compiled.search._cache_size()
    agent.act(state)
    assert agent.backend.planner._compiled.search._cache_size() == before, "another value was compiled anew"


def test_a_shifted_cart_pole_falls_where_it_is():
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make("CartPole-v1")
    planner = uamcts.Agent(uamcts.gym.from_gymnax(env, params, trial_steps=0), **SMALL).backend.planner
    assert planner.can_shift
    residual = Residual.zero(2, 4)
    residual.lower[:], residual.upper[:], residual.reach[:] = -10, 10, 1
    residual.intercept[1, :, 2] = residual.low[1, :, 2] = residual.high[1, :, 2] = 0.3
    variant, state = planner.variant({}, residual), planner.accept(planner.simulator.example, "state")
    real = uamcts.agent.chance.RealOutcome(state, None, None)
    for action, by in ((0, 0.0), (1, 0.3)):
        _, believed = planner.predict(state, action, real)
        _, shifted = planner.predict(state, action, real, variant)
        np.testing.assert_allclose(shifted.features - believed.features, [0, 0, by, 0], atol=1e-6)
        assert (believed.terminal, shifted.terminal) == (False, by > 0)


def slippery(kind, slip):
    """A walk from 0 to 6 in which a step to the right stays with probability `slip`."""

    def after(state, by):
        there = jnp.where(state == 6, state, jnp.clip(state + by, 0, 6))
        return uamcts.Transition(there, jnp.where((there == 6) & (state != 6), 1.0, 0.0), there == 6)

    def outcomes(state, action, params):
        both = jax.vmap(lambda by: after(state, by))(jnp.where(action == 1, jnp.array([1, 0]), jnp.array([-1, -1])))
        chance = jnp.stack([1 - params["slip"], params["slip"]])
        return both, jnp.where(action == 1, chance, jnp.array([1.0, 0.0]))

    def sample(state, action, key, params):
        moved = jax.random.uniform(key) >= params["slip"]
        return after(state, jnp.where(action == 1, moved.astype(jnp.int32), -1))

    forms = {"outcomes": outcomes, "sample": sample}
    return uamcts.JaxSimulator(None, 2, jnp.int32(0), params={"slip": slip}, **{kind: forms[kind]})


@pytest.mark.parametrize("kind", ["outcomes", "sample"])
def test_the_probability_of_a_slip_has_a_posterior(kind):
    """12 of 20 steps stay where they are, and any probability was equally likely before: the mean is 13 / 22."""
    agent = uamcts.Agent(slippery(kind, 0.2), parameters=["slip"], **SMALL)
    stays = np.arange(20) % 5 < 3
    agent.preload((jnp.int32(2), 1, jnp.int32(2 if stay else 3), 0.0, False) for stay in stays)
    backend = agent.backend
    assert backend.corrector.in_use == "parameters"
    trials = backend.planner.trials(backend.experience.raw[:1], backend.experience, [0], backend.measure, 1e-6)
    fit = fit_parameters(trials, backend.corrector.choice, len(trials.seen))
    grid = np.linspace(0.0, 1.0, 401)
    weights = np.exp(-trials.losses(["slip"], grid[:, None], np.arange(2)).sum(axis=1))  # by 64 draws of a `sample`
    assert fit.values["slip"] == pytest.approx(grid @ weights / weights.sum(), abs=0.005)
    if kind == "outcomes":
        assert fit.values["slip"] == pytest.approx(13 / 22, abs=0.005)


def weight_of(odds, worths):
    """The share of a model that is worth so many transitions, with these odds, beside two that were seen."""
    return sum(o * w / (w + 2) for o, w in zip(odds, worths, strict=True)) / sum(odds)


@pytest.mark.parametrize("kind", ["outcomes", "sample"])
def test_facts_about_random_simulators_are_mixed_in(kind):
    """State 2, action 1, is a one-way street to 0 in fact, twice. The model, which holds that impossible, keeps 1/5.

    That is what half a transition is worth beside two. A model of 64 draws may be right for all that: it then gives
    what was not drawn a probability of 0.5 / 64, and is worth 64 transitions.
    """
    agent = uamcts.Agent(slippery(kind, 0.2), parameters=(), gamma=0.9, iterations=16, rollouts=2, depth=10)
    for _ in range(2):
        agent.observe(jnp.int32(2), 1, jnp.int32(0), reward=-1.0, terminal=True)
    agent.act(jnp.int32(2))
    right = 1e-6 if kind == "outcomes" else 0.5 * 1.5 / (64 * 65)
    odds = 0.8 * right, 0.15 * 0.5 * 1.5 / (10 * 11), 0.05 * 0.1 * 1.1 / (2 * 3)
    share = float(agent.backend.planner.patched.plans_with(jnp.int32(2), 1).model_share)
    assert share == pytest.approx(weight_of(odds, (1e12, 0.5, 0.5)), abs=2e-3)
    believed = uamcts.Agent(slippery(kind, 0.2), parameters=(), gamma=0.9, iterations=16, rollouts=2, depth=10)
    believed.act(jnp.int32(2))
    other = float(believed.last_plan.values[1])
    assert float(agent.last_plan.values[1]) == pytest.approx(share * other - (1 - share), abs=0.15)


@pytest.mark.parametrize("kind", ["outcomes", "sample"])
def test_how_much_facts_weigh_is_learned(kind, tmp_path):
    """Steps that the simulator holds rare happen most of the time, in all states: facts come to count more."""
    rng = np.random.default_rng(0)
    agent = uamcts.Agent(slippery(kind, 0.1), "none", parameters=(), corrections=("facts",), gamma=0.9, iterations=4)
    for number in range(120):
        here = number % 3 + 1
        after = here + (rng.random() < 0.2)
        agent.observe(jnp.int32(here), 1, jnp.int32(after), reward=0.0, terminal=False)
    facts = agent.backend.planner.patched
    assert facts.weigher.scores[0] < -4.0, "that the simulator is right"
    assert max(facts.weigher.scores) == 0.0
    assert facts.plans_with(jnp.int32(1), 1).model_share < 0.3, "40 times; with k = 10 it is 0.2"
    agent.save(tmp_path / "agent.npz")
    again = uamcts.Agent(slippery(kind, 0.1), "none", parameters=(), corrections=("facts",), gamma=0.9, iterations=4)
    again.load(tmp_path / "agent.npz")
    assert again.backend.planner.patched.weigher == facts.weigher
    assert again.backend.planner.patched.planned_weigher == facts.planned_weigher


def line():
    def step(state, action):
        there = jnp.clip(state + 2 * action - 1, 0, 9)
        return uamcts.Transition(jnp.where(state == 9, state, there), 1.0 * ((there == 9) & (state != 9)), there == 9)

    return uamcts.JaxSimulator(step, 2, jnp.int32(0))


def test_a_street_that_closes_is_planned_with_as_it_is_now():
    agent = uamcts.Agent(line(), **SMALL)
    four, five = jnp.int32(4), jnp.int32(5)

    def chances():
        """The weight of the simulator, and that of every outcome."""
        planner = agent.backend.planner
        planned, known = planner._table.sync(planner.patched, 4).find(four, jnp.int32(1))
        assert bool(known)
        assert bool(planned.active)
        outcomes = zip(planned.outcomes.state.tolist(), planned.probabilities.tolist(), strict=True)
        return float(planned.share), {state: chance for state, chance in outcomes if chance > 0}

    for _ in range(10):
        agent.observe(four, 1, five, reward=0.0, terminal=False)
    assert chances() == (0.0, {5: 1.0})
    agent.observe(four, 1, four, reward=0.0, terminal=False)
    assert chances() == (0.0, {5: pytest.approx(10 / 11), 4: pytest.approx(1 / 11)})
    agent.observe(four, 1, four, reward=0.0, terminal=False)
    assert chances() == (0.0, {4: 1.0}), "two in a row are a change"


def test_a_full_table_of_facts_keeps_the_latest(monkeypatch):
    monkeypatch.setattr(compiled_facts, "ROWS", 8)
    monkeypatch.setattr(compiled_facts, "BATCHES", (2, 4))
    agent = uamcts.Agent(line(), **SMALL)
    for place in range(1, 8):  # nothing moves, whatever the simulator says
        for action in (0, 1):
            agent.observe(jnp.int32(place), action, jnp.int32(place), reward=0.0, terminal=False)
        planner = agent.backend.planner
        table = planner._table.sync(planner.patched, 1)
        assert int(table.count) <= table.capacity == 8
        for action in (0, 1):
            found, known = table.find(jnp.int32(place), jnp.int32(action))
            assert bool(known)
            assert int(found.outcomes.state[0]) == place
    assert len(planner.patched.facts) == 14


def test_transitions_with_several_outcomes_are_probabilities():
    """To 9, where it pays 1, and to 0 in turn, ten times each, beside the simulator's 5 with a weight of 10.

    V(4) = 1/3 + 1/3 0.9 V(0) + 1/3 0.9 V(5), where V(0) = 0.9^4 V(4) and V(5) = 0.9^3: 0.6873.
    """
    agent = uamcts.Agent(line(), gamma=0.9, iterations=32, rollouts=2, depth=10)
    for number in range(20):
        agent.observe(jnp.int32(4), 1, jnp.int32(9 * (number % 2)), reward=float(number % 2), terminal=number % 2 == 1)
    agent.act(jnp.int32(4))
    assert float(agent.last_plan.values[1]) == pytest.approx(0.6873, abs=1e-3)


def test_what_was_learned_survives_a_file(tmp_path):
    def fresh(simulator):
        return uamcts.Agent(simulator, **SMALL)

    state = {name: jnp.full(2, 0.5) for name in ("place", "speed")}
    for believed, world in ((boat(), boat(wind=(0.0, 0.03))), (boat(), boat(weak_from=0.0))):
        agent = fresh(believed)
        agent.preload(sail(world, 250))
        agent.save(tmp_path / "agent")
        again = fresh(believed)
        again.load(tmp_path / "agent")
        assert agent.backend.corrector.in_use == again.backend.corrector.in_use != "none"
        assert str(again.report()) == str(agent.report())
        assert agent.act(state) == again.act(state)
        np.testing.assert_array_equal(agent.last_plan.values, again.last_plan.values)
        for sample in sail(world, 10, seed=3):
            for one in (agent, again):
                one.observe(*sample[:3], reward=sample[3], terminal=sample[4])
        agent.save(tmp_path / "one")
        again.save(tmp_path / "other")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
