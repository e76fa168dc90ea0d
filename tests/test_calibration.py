"""From which U-hat on a transition is doubtful, and when an agent starts to learn again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forks import AT_FORK, FORKS, ON_ROAD, TAKE, WAIT, WRONG, Simulator, State, domain, observe_everything

import uamcts
from uamcts.lab.experiments.learners import make_learner
from uamcts.uncertainty import ESTIMATORS, GATED, make_estimator
from uamcts.uncertainty.calibration import LATEST, Calibrated, Sightings, threshold_between
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.learner import AgentState, UncertaintyLearner, goes_on, train

KEY = jax.random.key(0)
SEARCH = uamcts.SearchConfig(iterations=60, rollouts=2, depth=4, gamma=0.99, rules="trust", c=4.0)
SCHEDULE = uamcts.Schedule(interval=46)  # observe_everything makes 46 steps
TELLS = ("true", "network", "two_part", "trees", "nearest", "ensemble", "dropout")
"""Estimators that can tell the wrong forks from the others."""


def every_estimator(quick, but=()):
    """All names, those that take long to compile marked: all but `quick`."""
    names = [name for name in (*ESTIMATORS, *GATED) if name not in but]
    return [pytest.param(name, marks=[] if name in quick else [pytest.mark.long]) for name in names]


def agent_of(model, estimator, config=SEARCH, **options):
    make = uamcts.Agent.paper if isinstance(model, uamcts.Domain) else uamcts.Agent
    return make(model, estimator, config, SCHEDULE, minibatches=600, memory=False, **options)


def as_state(fork, where):
    return State(jnp.int32(fork), jnp.int32(where))


@pytest.mark.parametrize("name", every_estimator(["network", "linear", "nearest", "none"], but=["true"]))
def test_an_agent_of_a_simulator_looks_further_than_the_next_step(name):
    """1 now or 10 one step later: it waits wherever the simulator was right, whatever else was wrong."""
    agent = agent_of(Simulator(), name)
    observe_everything(agent)
    actions = [agent.act((fork, AT_FORK)) for fork in range(FORKS)]
    assert actions[:WRONG] == [WAIT] * WRONG
    if name in TELLS:
        assert actions[WRONG:] == [TAKE] * (FORKS - WRONG)


@pytest.mark.parametrize("name", every_estimator(["true", "nearest", "none"]))
def test_an_agent_of_a_domain_looks_further_than_the_next_step(name):
    agent = agent_of(domain(), name)
    for _ in range(3):
        observe_everything(agent, as_state)
    actions = [agent.act(as_state(fork, AT_FORK)) for fork in range(FORKS)]
    assert actions[:WRONG] == [WAIT] * WRONG
    if name in TELLS:
        assert actions[WRONG:] == [TAKE] * (FORKS - WRONG)


@pytest.mark.parametrize("name", [pytest.param("network", marks=pytest.mark.long), "linear"])
def test_where_nothing_was_wrong_nothing_is_doubtful(name):
    agent = agent_of(domain(wrong=FORKS), name)
    observe_everything(agent, as_state, wrong=FORKS)
    assert agent.learn()
    assert float(agent.estimator.predict(as_state(3, AT_FORK), jnp.int32(WAIT))) > 0, "it has nothing to cut"
    found = [agent.backend.act(as_state(fork, AT_FORK)) for fork in range(FORKS)]
    assert [int(plan.action) for plan in found] == [WAIT] * FORKS
    np.testing.assert_array_equal(np.stack([plan.uncertainty for plan in found]), 0)


class Told(Estimator):
    """A user's estimator: 0.2 for waiting at a fork whose (standardised) number is large, a little everywhere else."""

    def predict(self, state, action):
        return jnp.where((state[0] > 0.5) & (state[1] < 0) & (action == WAIT), 0.2, 1e-3)


def test_a_users_estimator_is_cut_too():
    agent = agent_of(Simulator(), Told())
    observe_everything(agent)
    expected = [WAIT] * WRONG + [TAKE] * (FORKS - WRONG)
    assert [agent.act((fork, AT_FORK)) for fork in range(FORKS)] == expected
    assert float(agent.backend.uncertainty.threshold) == pytest.approx((1e-3 + 0.2) / 2)


@pytest.mark.parametrize("threshold", [0.0, pytest.param(0.9, marks=pytest.mark.long)])
def test_a_threshold_that_is_given_counts(threshold):
    """0: everything that a network has learned is doubtful, as was asked for; 0.9: nothing is."""
    config = uamcts.SearchConfig(iterations=60, rollouts=2, depth=4, rules="trust", doubt_threshold=threshold)
    of_simulator, of_domain = (agent_of(model, "network", config) for model in (Simulator(), domain()))
    observe_everything(of_simulator)
    observe_everything(of_domain, as_state)
    expected = TAKE if threshold == 0 else WAIT
    assert of_simulator.act((0, AT_FORK)) == expected
    assert of_domain.act(as_state(0, AT_FORK)) == expected
    assert of_simulator.last_plan.uncertainty[WAIT] > 0
    assert of_domain.last_plan.uncertainty[WAIT] > 0


@pytest.mark.parametrize("rules", ["released", pytest.param("pseudocode", marks=pytest.mark.long)])
def test_the_papers_rules_see_what_the_network_says(rules):
    """No cut: U-hat of a transition seen to be right is what the network says, above 0."""
    config = uamcts.SearchConfig(iterations=10, rollouts=2, depth=4, rules=rules)
    of_simulator, of_domain = (agent_of(model, "network", config) for model in (Simulator(), domain()))
    observe_everything(of_simulator)
    observe_everything(of_domain, as_state)
    assert type(of_domain.backend.knowledge.learner) is UncertaintyLearner
    assert of_domain.backend.knowledge.learner.surprise is None
    of_simulator.act((0, AT_FORK))
    of_domain.act(as_state(0, AT_FORK))
    said = of_domain.estimator.predict(as_state(0, AT_FORK), jnp.int32(WAIT))
    assert float(of_domain.last_plan.uncertainty[WAIT]) == pytest.approx(float(said), rel=1e-5)
    assert of_simulator.last_plan.uncertainty[WAIT] > 0


# The cut


SIZE = 24
threshold_of = jax.jit(threshold_between)


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ([0.1, 0.2], [0.6, 0.9], 0.4),  # half-way between noise and signal
        ([0.1, 0.2], [0.15, 0.3, 0.9], 0.25),  # one that is taken for right does not count
        ([0.0, 0.0], [1e-6, 0.9], 0.0),  # no noise: the smallest counts
        ([0.1, 0.2], [], np.inf),  # nothing was ever wrong
        ([0.1, 0.2], [0.05, 0.2], np.inf),  # wrong is not told from right
        ([], [0.3], 0.0),  # nothing was ever right
        ([0.01] * 19 + [0.8], [0.05, 0.9], 0.03),  # one false alarm in twenty, or miss one of two: 1 - 10 / 20 = 0.5
        ([0.01] * 18 + [0.8], [0.05, 0.9], 0.85),  # in nineteen: 1 - 10 / 19 < 0.5
        ([0.0] * 11 + [0.5], [0.5, 0.5], 0.0),  # one right one in twelve looks wrong
        ([0.0] * 8 + [0.5], [0.5, 0.5], np.inf),  # one in nine
        ([], [], 0.0),
    ],
)
def test_the_cut_by_hand(right, wrong, expected):
    seen = len(right) + len(wrong)
    answers = np.array([*right, *wrong, *[0.7] * (SIZE - seen)], np.float32)  # the last ones are neither
    place = np.arange(SIZE)
    conditions = place < len(right), (place >= len(right)) & (place < seen)
    assert float(threshold_of(answers, *conditions)) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["nearest", pytest.param("trees", marks=pytest.mark.long)])
def test_a_small_error_is_doubted_beside_a_large_one(name):
    """U of 1e-4 and of 1, both seen: both are doubtful, and what was right is not."""
    world = domain()
    calibrated = Calibrated.around(make_estimator(name, KEY, world, capacity=64), world.reset(KEY))
    absorb = jax.jit(lambda one, *sample: one.absorb(*sample))
    for fork in range(FORKS):
        for action in (TAKE, WAIT):
            error = {(2, WAIT): 1e-4, (5, TAKE): 1.0}.get((fork, action), 0.0)
            calibrated = absorb(calibrated, as_state(fork, AT_FORK), jnp.int32(action), jnp.float32(error))
    calibrated = jax.jit(lambda one: one.learn(KEY)[0])(calibrated).finish_on_host()
    ask = jax.jit(lambda one, fork, action: one.predict(as_state(fork, AT_FORK), action))
    said = {(f, a): float(ask(calibrated, np.int32(f), np.int32(a))) for f in range(FORKS) for a in (TAKE, WAIT)}
    assert {transition for transition, number in said.items() if number > 0} == {(2, WAIT), (5, TAKE)}


class Echo(Estimator):
    """Says the state itself."""

    def predict(self, state, action):
        return state.astype(jnp.float32)


def test_the_latest_sightings_are_kept():
    put = jax.jit(lambda ring, number, wanted: ring.put(number, jnp.int32(0), wanted))
    ring = Sightings.empty(jnp.int32(0), places=4)
    for number in range(1, 8):
        ring = put(ring, jnp.int32(number), jnp.bool_(number != 6))
    assert sorted(ring.states[:4].tolist()) == [3, 4, 5, 7]
    said, there = ring.predictions(Echo())
    assert sorted(said[there].tolist()) == [3, 4, 5, 7]
    assert Calibrated.around(Echo(), jnp.int32(0)).right.actions.size == LATEST + 1


# Learning again


class Counted(Estimator):
    """A user's estimator that has learned what it was told last, with a loss of 0."""

    told: jax.Array
    believed: jax.Array

    def predict(self, state, action):
        return self.believed

    def absorb(self, state, action, target, copies=1):
        return Counted(target, self.believed)

    def learn(self, key):
        return Counted(self.told, self.told), jnp.float32(0)


SLOWER = ("bayes", "trees")


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("released", "user"),
        ("trust", "user"),
        ("trust", "nearest"),
        pytest.param("released", "nearest", marks=pytest.mark.long),
        *(pytest.param(rules, name, marks=pytest.mark.long) for rules in ("released", "trust") for name in SLOWER),
    ],
)
def test_it_learns_from_errors_that_come_after_rounds_without_any(rules, name):
    """Five rounds in which the model is right, then 40 steps in which it is wrong."""
    config = uamcts.SearchConfig(iterations=2, rollouts=1, depth=2, rules=rules)
    estimator = Counted(jnp.float32(0), jnp.float32(0)) if name == "user" else name
    world = domain(wrong=0)
    agent = uamcts.Agent.paper(world, estimator, config, uamcts.Schedule(interval=10), minibatches=20)
    right, wrong = as_state(3, ON_ROAD), as_state(3, AT_FORK)
    for _ in range(50):
        agent.observe(right, TAKE, world.world(right, TAKE).state)
    assert agent.loss == 0
    assert not agent.learn(), "there is nothing to learn"
    for _ in range(40):
        agent.observe(wrong, WAIT, world.world(wrong, WAIT).state)
    true = float(uamcts.true_uncertainty(world)(wrong, WAIT))
    assert float(agent.estimator.predict(wrong, jnp.int32(WAIT))) == pytest.approx(true, rel=0.1)


def test_the_papers_network_stops_for_good_and_under_trust_it_does_not():
    """tau at its least and a loss of 0: surprise does not wake the paper's agent."""
    world = domain(wrong=0)
    wrong = as_state(3, AT_FORK)
    for rules, again in (("released", False), ("trust", True)):
        given = {"doubt_threshold": 0.01} if rules == "trust" else {}
        config = uamcts.SearchConfig(iterations=2, rollouts=1, depth=2, rules=rules, **given)
        agent = uamcts.Agent.paper(
            world, "network", config, uamcts.Schedule(interval=50, good_enough=1e9), minibatches=2
        )
        for _ in range(3):
            agent.observe(wrong, WAIT, world.world(wrong, WAIT).state)
            woken = agent.learn()
        assert woken is again


def test_a_round_that_is_not_worth_it_changes_nothing():
    """Under `jit`, as runs have it: no surprise, no round; one surprise, one round."""
    schedule = uamcts.Schedule()
    knowledge = AgentState(
        UncertaintyLearner(Counted(jnp.float32(0), jnp.float32(0))), jnp.float32(0.1), jnp.int32(9), jnp.float32(0)
    )
    world = domain(wrong=0)
    see = jax.jit(
        lambda know, state: uamcts.uncertainty.learner.observe(know, world, state, jnp.int32(1), world.world(state, 1))
    )
    teach = jax.jit(lambda know: train(know, KEY, schedule))
    knowledge = see(knowledge, as_state(1, ON_ROAD))
    assert not bool(goes_on(knowledge, schedule))
    knowledge = see(knowledge, as_state(1, AT_FORK))
    assert bool(goes_on(knowledge, schedule))
    knowledge = teach(knowledge)
    assert float(knowledge.learner.estimator.believed) > 0
    assert not bool(goes_on(knowledge, schedule)), "a round settles the surprise"


def test_runs_of_the_lab_are_calibrated_like_agents():
    """`uamcts run --algorithm trust` learns with the same rule, and the paper's algorithms see the raw U-hat."""
    domain = uamcts.make("two_way")
    options = {"capacity": 8, "minibatches": 1, "most_copies": 1}
    trust = make_learner("network+memory", KEY, domain, options, uamcts.SearchConfig(rules="trust")).learner
    assert isinstance(trust.estimator, Calibrated)
    assert trust.surprise is not None
    paper = make_learner("network", KEY, domain, options, uamcts.SearchConfig())
    assert not isinstance(paper.estimator, Calibrated)
    assert paper.surprise is None
