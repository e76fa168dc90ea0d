"""Agents with random simulators, graphs where states recur, reuse, and what users bring to the search."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
import uamcts.gym
from uamcts import reference
from uamcts.agent.chance import RealOutcome, matching_outcome

SMALL = {"iterations": 20, "rollouts": 2, "depth": 10}


class Walk:
    """A walk on a line from 0 to 5, where a step to the right (action 1) fails with probability `slip`."""

    num_actions = 2
    action_names = ("left", "right")
    goal = 5

    def __init__(self, slip=0.25):
        self.slip = slip

    def move(self, place, by):
        after = min(max(place + by, 0), self.goal)
        return after, float(after == self.goal), after == self.goal


class Listed(Walk):
    def outcomes(self, state, action):
        if action == 0:
            return [(1.0, self.move(state, -1))]
        return [(1.0 - self.slip, self.move(state, 1)), (self.slip, self.move(state, 0))]


class Drawn(Walk):
    def sample(self, state, action, rng):
        return self.move(state, -1 if action == 0 else int(rng.random() >= self.slip))


def by_value_iteration(slip, gamma):
    """The value of each place: from 4, V = q (1 + 0) + slip gamma V, and so on down."""
    values = [0.0] * 6
    for place in reversed(range(5)):
        onward = 1.0 if place == 4 else gamma * values[place + 1]
        values[place] = (1.0 - slip) * onward / (1.0 - slip * gamma)
    return values


# Planning


def test_an_agent_plans_in_listed_outcomes():
    agent = uamcts.Agent(Listed(), gamma=0.9, iterations=30)
    assert agent.act(0) == 1
    assert agent.last_plan.values[1] == pytest.approx(by_value_iteration(0.25, 0.9)[0], rel=1e-6)


def test_an_agent_plans_in_draws():
    """Eight draws stand for an action: the value lies near the exact one, and is always the same for a seed."""
    plans = []
    for _ in range(2):
        agent = uamcts.Agent(Drawn(), gamma=0.9, iterations=30, outcomes=64, seed=1)
        assert agent.act(2) == 1
        plans.append(agent.last_plan.values)
    assert plans[0] == plans[1]
    assert plans[0][1] == pytest.approx(by_value_iteration(0.25, 0.9)[2], abs=0.05)


def test_steps_left_decide():
    """A way that pays 1 in two steps, and one that pays 3 in four: with two steps left only the first counts."""

    class Fork:
        num_actions = 2

        def step(self, state, action):
            kind, place = (action, 0) if state == "start" else state
            end = place == 1 + 2 * kind
            return (kind, place + 1), (1.0 + 2.0 * kind) * end, end

        def features(self, state):
            return [-1, -1] if state == "start" else state

    for graph in (True, False):
        agent = uamcts.Agent(Fork(), iterations=60, rollouts=2, depth=8, gamma=1.0, graph=graph, reuse=False)
        assert agent.act("start") == 1
        assert agent.act("start", steps_left=2) == 0
        assert agent.act("start", steps_left=4) == 1
    with pytest.raises(ValueError, match="steps_left is 0; it must be a whole number of at least 1"):
        agent.act("start", steps_left=0)
    domain = uamcts.make("two_way")
    with pytest.raises(ValueError, match="steps_left is 3, which an agent of a domain does not read"):
        uamcts.Agent.paper(domain, "linear").act(domain.reset(jax.random.key(0)), steps_left=3)


def test_a_slippery_lake_from_end_to_end():
    """Gymnasium's own lake: the optimum in 100 steps is 0.744.

    15 episodes: a planner that is as good has a mean of 0.744 with a standard error of 0.11, and stays above 0.4 with
    a probability of 99.8 %. Random actions reach 0.015.
    """
    env = gymnasium.make("FrozenLake-v1")
    simulator = uamcts.gym.Simulator(env)
    agent = uamcts.Agent(simulator, iterations=20, rollouts=2, depth=30)
    reached = []
    for episode in range(15):
        env.reset(seed=episode)
        state, over = simulator.read(env), False
        while not over:
            action = agent.act(state)
            _, reward, terminated, truncated, _ = env.step(action)
            after = simulator.read(env)
            agent.observe(state, action, after, reward=reward, terminal=terminated)
            state, over = after, terminated or truncated
        reached.append(reward)
    assert np.mean(reached) > 0.4
    assert agent.report().wrong == 0, "noise was taken for an error"
    assert agent.estimator is None


# Noise is no error


@pytest.mark.parametrize("model", [Listed(), Drawn()])
def test_outcomes_that_are_possible_are_no_errors(model):
    agent = uamcts.Agent(model, **SMALL)
    for after in (2, 3, 3, 2):
        agent.observe(2, 1, after, reward=0.0, terminal=False)
    assert agent.report().wrong == 0
    agent.observe(2, 0, 4, reward=0.0, terminal=False)  # a step to the left never goes right
    agent.observe(2, 1, 3, reward=9.0, terminal=False)  # nor does it pay
    assert {error.action for error in agent.report()} == {0, 1}
    worst = next(error for error in agent.report() if error.action == 0)
    assert worst.believed.features.tolist() == [1.0]


def test_continuous_noise_is_no_error_but_a_shift_is():
    class Windy:
        num_actions = 1

        def __init__(self, wind):
            self.wind = wind

        def sample(self, state, action, rng):
            return state + self.wind + rng.normal(0.0, 0.1), 0.0, False

    world, rng = Windy(0.0), np.random.default_rng(1)
    for wind, least, most in ((0.0, 0, 4), (2.0, 40, 40)):
        agent = uamcts.Agent(Windy(wind), memory=False, **SMALL)
        places = np.linspace(0, 10, 40)
        agent.preload([(place, 0, world.sample(place, 0, rng)[0], 0.0, False) for place in places])
        assert least <= agent.report().wrong <= most


def test_the_nearest_outcome_by_hand():
    outcomes = [(1.0, 0.0, False), (4.0, 0.0, False), (4.0, 1.0, False), (4.0, 1.0, True)]
    find = lambda *real: matching_outcome(RealOutcome(*real), outcomes, lambda s: np.array([s]), float, False)  # noqa: E731
    assert find(1.2, None, None) == outcomes[0]
    assert find(4.0, 0.1, False) == outcomes[1]
    assert find(4.0, 0.9, False) == outcomes[2]
    assert find(4.0, 0.9, True) == outcomes[3]


# Facts


def test_counts_are_mixed_with_probabilities():
    """(10 * model + counts) / (10 + n), by hand."""
    model = uamcts.PatchedModel(Listed(slip=0.25))
    assert model.outcomes(2, 1) == Listed(slip=0.25).outcomes(2, 1)
    for after in (2, 2, 3, 2, 2):
        model.remember(2, 1, after, reward=0.0, terminal=False)
    found = {after: probability for probability, (after, _, _) in model.outcomes(2, 1)}
    assert found == {3: pytest.approx((10 * 0.75 + 1) / 15), 2: pytest.approx((10 * 0.25 + 4) / 15)}
    rng = np.random.default_rng(0)
    drawn = uamcts.PatchedModel(Drawn(slip=0.25), prior_weight=1.0)
    for _ in range(9):
        drawn.remember(2, 1, 2, reward=0.0, terminal=False)
    share = np.mean([drawn.sample(2, 1, rng)[0] == 2 for _ in range(2000)])
    assert share == pytest.approx((0.25 + 9) / 10, abs=0.03)


def test_what_the_model_holds_impossible_outvotes_it_at_once():
    model = uamcts.PatchedModel(Listed())
    model.remember(2, 0, 2, reward=-1.0, terminal=False)  # really there is a wall
    assert [one for one in model.outcomes(2, 0) if one[0] > 0] == [(1.0, (2, -1.0, False))]
    model.remember(2, 0, 1, reward=0.0, terminal=False)  # half of what was seen is possible: k = 5
    found = {after: probability for probability, (after, _, _) in model.outcomes(2, 0)}
    assert found == {1: pytest.approx(6 / 7), 2: pytest.approx(1 / 7)}


def test_a_continuum_is_not_held_impossible():
    class Noise:
        num_actions = 1

        def sample(self, state, action, rng):
            return state + rng.normal(), 0.0, False

    model = uamcts.PatchedModel(Noise())
    model.remember(0.0, 0, 7.0, reward=0.0, terminal=False)
    rng = np.random.default_rng(0)
    assert np.mean([model.sample(0.0, 0, rng)[0] == 7.0 for _ in range(1000)]) == pytest.approx(1 / 11, abs=0.04)


def test_facts_of_random_simulators_are_saved(tmp_path):
    agent = uamcts.Agent(Listed(), **SMALL)
    for after in (2, 2, 3):
        agent.observe(2, 1, after, reward=0.0, terminal=False)
    agent.save(tmp_path / "agent")
    other = uamcts.Agent(Listed(), **SMALL)
    other.load(tmp_path / "agent")
    assert other.backend.planner.patched.outcomes(2, 1) == agent.backend.planner.patched.outcomes(2, 1)
    assert other.act(1) == agent.act(1)
    assert other.last_plan.values == agent.last_plan.values


# Graphs and trees


class Counting(Walk):
    """The same walk with a clock in its state: no two paths of different lengths meet."""

    def step(self, state, action):
        place, clock = state
        after, reward, over = self.move(place, 1 if action else -1)
        return (after, clock + 1.37 * action + 0.11 * place), reward, over


class Plain(Walk):
    def step(self, state, action):
        return self.move(state, 1 if action else -1)


def test_a_graph_where_states_recur():
    agent = uamcts.Agent(Plain(), **SMALL)
    agent.act(0)
    assert isinstance(agent.last_plan.tree, reference.Graph)
    assert "equal states share a node" in agent.explain().splitlines()[-1]
    agent = uamcts.Agent(Counting(), **SMALL)
    agent.act((0, 0.0))
    assert not isinstance(agent.last_plan.tree, reference.Graph)
    assert "every path has its own nodes" in agent.explain().splitlines()[-1]


def test_what_is_given_overrides_what_was_found_out():
    for settings, graph in (({"graph": False}, False), ({"graph": True}, True)):
        for model, state in ((Plain(), 0), (Counting(), (0, 0.0))):
            agent = uamcts.Agent(model, **SMALL, **settings)
            agent.act(state)
            assert isinstance(agent.last_plan.tree, reference.Graph) == graph
            assert "different steps that were tried" not in agent.explain()
    for config, graph in (({}, True), ({"graph": False}, False), ({"rules": "released"}, False)):
        agent = uamcts.Agent(Plain(), config=uamcts.SearchConfig(**SMALL, **config))
        agent.act(0)
        assert isinstance(agent.last_plan.tree, reference.Graph) == graph


# Reuse


def test_a_search_goes_on_from_the_last_one():
    """A line of 40: each search expands ten nodes. The second knows more than ten, unless it starts afresh."""

    def expanded(**settings):
        line = Plain()
        line.goal = 40
        agent = uamcts.Agent(line, graph=True, iterations=10, rollouts=1, depth=5, **settings)
        action = agent.act(20)
        after, reward, over = line.step(20, action)
        agent.observe(20, action, after, reward=reward, terminal=over)
        agent.act(after)
        return len(agent.last_plan.tree.expanded)

    assert expanded() > 15
    assert expanded(reuse=False) <= 11
    assert expanded(memory=False) > 15


def test_nothing_that_was_found_out_before_a_fact_is_believed_after_it():
    """The way right pays, until it turns out to be closed: values are those of an agent that starts afresh."""
    for graph in (True, False):
        settings = {"graph": graph, "iterations": 40, "rollouts": 2, "depth": 10}
        agents = [uamcts.Agent(Plain(), **settings, reuse=reuse) for reuse in (True, False)]
        for agent in agents:
            agent.act(3)
            agent.observe(3, 1, 3, reward=0.0, terminal=False)
            agent.act(3)
        assert agents[0].last_plan.values == pytest.approx(agents[1].last_plan.values)


def test_counts_change_only_the_state_that_they_are_about():
    """One more failure of (2, right), after seven: only the node of 2 is expanded again, for the corrected model."""
    settings = {"gamma": 0.9, "iterations": 30, "corrections": ("facts",)}
    agent, fresh = (uamcts.Agent(Listed(), reuse=reuse, **settings) for reuse in (True, False))
    for one in (agent, fresh):
        one.preload([(2, 1, 2, 0.0, False)] * 7)
        one.act(2)
        one.observe(2, 1, 2, reward=0.0, terminal=False)
    kept = agent.backend._previous.plan.tree
    assert [node.state for node in kept.outdated] == [2]
    agent.act(2)
    fresh.act(2)
    np.testing.assert_allclose(agent.last_plan.values, fresh.last_plan.values, rtol=1e-6)


def test_a_search_goes_on_after_facts_count_more_everywhere():
    """Facts weigh more from now on: all nodes are asked anew, and the search goes on from them."""
    settings = {"gamma": 0.9, "iterations": 30, "corrections": ("facts",)}
    agent, fresh = (uamcts.Agent(Listed(), reuse=reuse, **settings) for reuse in (True, False))
    for one in (agent, fresh):
        one.preload([(state, 1, state + 1, 0.0, False) for state in (1, 2, 3)] * 3)
        one.act(2)
        one.backend.planner.patched._renew()
        one.backend._forget(None)
        one.act(2)
    assert agent.last_plan.tree.inherited > 0 == fresh.last_plan.tree.inherited
    np.testing.assert_allclose(agent.last_plan.values, fresh.last_plan.values, rtol=1e-6)


# What users bring


def test_policy_value_and_prior_reach_the_search():
    seen = {"policy": 0, "value": 0, "prior": 0}

    def policy(state, rng):
        seen["policy"] += 1
        return int(rng.random() < 0.9)

    def value(state):
        seen["value"] += 1
        return by_value_iteration(0.25, 0.9)[state]

    def prior(state):
        seen["prior"] += 1
        return [0.2, 0.8]

    agent = uamcts.Agent(Listed(), policy=policy, value=value, prior=prior, value_weight=0.5, gamma=0.9, **SMALL)
    assert agent.act(0) == 1
    assert all(seen.values()), seen
    exact = uamcts.Agent(Listed(), value=value, gamma=0.9, iterations=1)
    exact.act(0)
    assert exact.last_plan.values[1] == pytest.approx(by_value_iteration(0.25, 0.9)[0])
    for name in ("policy", "value", "prior"):
        with pytest.raises(TypeError, match=f"{name} is 3; give a function"):
            uamcts.Agent(Listed(), **{name: 3})
        with pytest.raises(TypeError, match=f"Agent has no argument '{name}'"):
            uamcts.Agent.paper(uamcts.make("two_way"), "linear", **{name: value})
    with pytest.raises(ValueError, match="reuse is 1; it must be True or False"):
        uamcts.Agent(Listed(), reuse=1)
    with pytest.raises(uamcts.SimulatorError, match=r"prior gave \[1\.0\]; it must give a finite number"):
        uamcts.Agent(Listed(), prior=lambda state: [1.0], **SMALL).act(0)


# Bad input


def random_simulator(kind, answer):
    """A simulator that gives whatever it is told to."""
    calls = iter(range(10**9))
    functions = {
        "outcomes": lambda self, state, action: answer(next(calls)),
        "sample": lambda self, state, action, rng: answer(next(calls)),
        "step": lambda self, state, action: answer(next(calls)),
    }
    return type("Odd", (), {"num_actions": 2, kind: functions[kind]})()


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        ("outcomes", lambda n: [], r"outcomes\(0, 0\) gave an empty list; give at least one outcome"),
        ("outcomes", lambda n: [(0.5, (0, 0.0, False))], r"sum to 0\.5; they must sum to 1"),
        ("outcomes", lambda n: [(1.5, (0, 0.0, False)), (-0.5, (1, 0.0, False))], r"has a probability of -0\.5"),
        ("outcomes", lambda n: [(float("nan"), (0, 0.0, False))], "has a probability of nan"),
        ("outcomes", lambda n: [(1.0, (n, 0.0, False))], "outcomes gave two lists for the same step"),
        ("outcomes", lambda n: [(1.0, 0, 0.0, False)], "must return a list of"),
        ("outcomes", lambda n: 5, "outcomes returned 5; it must return a list of"),
        ("outcomes", lambda n: [(1.0, (0, 0.0))], r"outcomes returned \(0, 0\.0\); the outcomes that it lists"),
        ("sample", lambda n: (n, 0.0, False), "two generators with the same seed.*draw from `rng` alone"),
        ("sample", lambda n: (0, float("inf"), False), "the reward is inf"),
        ("sample", lambda n: 1 / 0, "sample raised ZeroDivisionError"),
        ("step", lambda n: (n, 0.0, False), r"offer outcomes\(state, action\).*or sample\(state, action, rng\)"),
    ],
)
def test_bad_answers_are_named_at_once(kind, answer, words):
    agent = uamcts.Agent(random_simulator(kind, answer), **SMALL)
    with pytest.raises(uamcts.SimulatorError, match=words) as caught:
        agent.act(0)
    assert str(caught.value).startswith("Odd: ")
    with pytest.raises(uamcts.SimulatorError, match=words):
        agent.observe(0, 0, 0, reward=0.0, terminal=False)
    assert agent.steps == 0


def test_states_without_an_identity_are_named():
    class Opaque(Plain):
        def step(self, state, action):
            return iter([1]), 0.0, False

        def features(self, state):
            return [0.0]

    with pytest.raises(ValueError, match=r"cannot be told from others.*pass identity="):
        uamcts.Agent(Opaque(), graph=True, **SMALL).act(iter([0]))


# Compiled simulators


def jax_walk(kind, slip=0.25, goal=5):
    def after(state, by):
        there = jnp.where(state == goal, state, jnp.clip(state + by, 0, goal))
        return uamcts.Transition(there, jnp.where((there == goal) & (state != goal), 1.0, 0.0), there == goal)

    def outcomes(state, action):
        both = jax.vmap(lambda by: after(state, by))(jnp.where(action == 1, jnp.array([1, 0]), jnp.array([-1, -1])))
        return both, jnp.where(action == 1, jnp.array([1 - slip, slip]), jnp.array([1.0, 0.0]))

    def sample(state, action, key):
        moved = jax.random.uniform(key) >= slip
        return after(state, jnp.where(action == 1, moved.astype(jnp.int32), -1))

    functions = {"outcomes": outcomes, "sample": sample}
    step = (lambda state, action: after(state, 2 * action - 1)) if kind == "step" else None
    return uamcts.JaxSimulator(step, 2, jnp.int32(0), **({} if step else {kind: functions[kind]}))


@pytest.mark.parametrize("kind", ["outcomes", "sample"])
def test_compiled_random_simulators(kind):
    simulator = jax_walk(kind)
    assert simulator.kind == kind
    agent = uamcts.Agent(simulator, gamma=0.9, iterations=16, rollouts=2, depth=10, outcomes=64)
    assert agent.act(jnp.int32(2)) == 1
    tolerance = 1e-4 if kind == "outcomes" else 0.1
    assert float(agent.last_plan.values[1]) == pytest.approx(by_value_iteration(0.25, 0.9)[2], abs=tolerance)
    for after in (2, 3, 2):
        agent.observe(jnp.int32(2), 1, jnp.int32(after), reward=0.0, terminal=False)
    assert agent.report().wrong == 0
    agent.observe(jnp.int32(2), 1, jnp.int32(0), reward=0.0, terminal=False)
    assert agent.report().wrong == 1
    assert uamcts.Agent(simulator, memory=False).report().memory is None


def test_a_compiled_agent_chooses_graphs_and_reuses_them():
    agent = uamcts.Agent(jax_walk("step", goal=40), gamma=0.9, iterations=8, rollouts=2, depth=10)
    state = jnp.int32(20)
    action = agent.act(state)
    assert "equal states share a node" in agent.explain()
    first = int(agent.last_plan.tree.rows)
    agent.observe(state, action, state + 2 * action - 1, reward=0.0, terminal=False)
    agent.act(state + 2 * action - 1)
    assert int(agent.last_plan.tree.rows) > first
    agent.observe(state, 1, state, reward=0.0, terminal=False)  # a wall
    agent.act(state)
    assert int(agent.last_plan.tree.rows) <= first, "a graph from before a fact was gone on from"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"step": None}, "step is None; give a function.*outcomes= or sample="),
        ({"step": None, "sample": 3}, "sample is 3; give a function"),
        ({"step": None, "outcomes": lambda s, a: (uamcts.Transition(s, 0.0, False), 1.0)}, "a leading axis"),
        ({"step": None, "sample": lambda s, a, k: uamcts.Transition((s, s), 0.0, False)}, "sample returns a state of"),
    ],
)
def test_wrong_compiled_simulators_are_named(arguments, words):
    with pytest.raises(TypeError, match=words):
        uamcts.JaxSimulator(num_actions=2, example=jnp.int32(0), **arguments)


def test_bad_probabilities_of_a_compiled_simulator():
    def outcomes(state, action):
        both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), uamcts.Transition(state, jnp.float32(0), False))
        return both, jnp.array([0.9, 0.9])

    agent = uamcts.Agent(uamcts.JaxSimulator(None, 2, jnp.int32(0), outcomes=outcomes), **SMALL)
    with pytest.raises(uamcts.SimulatorError, match="do not sum to 1"):
        agent.act(jnp.int32(0))


# Continuous actions


class Target:
    """One action decides: the nearer to 0.3 the better."""

    num_actions = None
    action_space = (-1.0, 1.0)

    def step(self, state, action):
        return state + 1, -abs(float(np.asarray(action).item()) - 0.3), True


def test_continuous_actions_are_drawn_or_proposed():
    agent = uamcts.Agent(Target(), iterations=300, rollouts=1, depth=2)
    assert abs(agent.act(0) - 0.3) < 0.1
    assert "chosen" in agent.explain()
    policy = lambda state, rng: rng.normal(0.3, 0.01)  # noqa: E731
    assert abs(uamcts.Agent(Target(), iterations=40, rollouts=1, depth=2, policy=policy).act(0) - 0.3) < 0.02
    agent.observe(0, 0.5, 1, reward=-5.0, terminal=True)
    agent.observe(0, 0.25, 1, reward=-0.05, terminal=True)
    assert agent.report().wrong == 1
    assert agent.report().seen == 2
    with pytest.raises(ValueError, match="action is 'fast'; give an action of Target, finite numbers"):
        agent.observe(0, "fast", 1)
    with pytest.raises(ValueError, match="memory is True, but the actions of Target are continuous"):
        uamcts.Agent(Target(), memory=True)
    with pytest.raises(uamcts.SimulatorError, match="graph is True, which needs a finite number of actions"):
        uamcts.Agent(Target(), graph=True, **SMALL).act(0)


def test_a_pendulum_without_a_grid():
    """25 steps of a pendulum that hangs at rest: doing nothing costs 9.87 a step, an agent that swings less."""
    env = gymnasium.make("Pendulum-v1")
    agent = uamcts.Agent(env, iterations=20, rollouts=2, depth=15, gamma=0.95)
    simulator = agent.backend.planner.simulator.model
    assert simulator.num_actions is None
    env.reset(seed=0)
    env.unwrapped.state = np.array([np.pi, 0.0])
    paid = 0.0
    for _ in range(25):
        state = simulator.read(env)
        action = agent.act(state)
        assert env.action_space.contains(action.astype(np.float32))
        _, reward, *_ = env.step(action)
        agent.observe(state, action, simulator.read(env), reward=reward, terminal=False)
        paid += reward
    assert paid > -25 * 9.8
    assert agent.report().wrong == 0
