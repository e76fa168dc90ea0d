"""Corrections of random simulators: probabilities, tables of them, rates of outcomes, and the weight of facts."""

import math

import numpy as np
import pytest

import uamcts
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.corrections.fact_weights import (
    IMPOSSIBLE,
    LEAST_WORTH,
    LEVELS,
    NEW,
    PRIOR,
    Question,
    Told,
    Weigher,
    log_evidence,
)
from uamcts.corrections.likelihood_fit import fit_likelihood
from uamcts.corrections.outcome_rates import OutcomeRates, RatedSimulator
from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.python_facts import OutcomeCount

SETTINGS = {"iterations": 10, "rollouts": 1, "depth": 4, "gamma": 0.9}


class Coin:
    """A step succeeds with probability p; else nothing happens. A state is a place on a ring."""

    num_actions = 2

    def __init__(self, p=0.9):
        self.p = p

    def outcomes(self, state, action):
        return [(self.p, ((state + 1 + action) % 5, 1.0, False)), (1 - self.p, (state, 0.0, False))]


class Closed:
    """The same without an attribute that could be fitted."""

    num_actions = 2

    def __init__(self, p=0.9):
        self.outcomes = Coin(p).outcomes


class Shop:
    """A state is what was sold last; the demand has a table of probabilities."""

    num_actions = 1

    def __init__(self, table=(0.5, 0.3, 0.2, 0.0)):
        self.table = table

    def outcomes(self, state, action):
        return [(chance, (sold, float(sold), False)) for sold, chance in enumerate(self.table) if chance > 0]


def live(agent, world, steps, seed=1):
    """Shows an agent what happens in a world; `world(step)` is its simulator at a step."""
    rng, state = np.random.default_rng(seed), 0
    for step in range(steps):
        action = step % agent.backend.planner.num_actions
        found = world(step).outcomes(state, action)
        after, reward, over = found[rng.choice(len(found), p=[chance for chance, _ in found])][1]
        agent.preload([(state, action, after, reward, over)])
        state = after
    return agent.backend.corrector


def chance_of_success(agent, state=0):
    """What the agent plans with for a step from a place."""
    found = agent.backend.planner.patched.outcomes(state, 0)
    return {outcome[0]: chance for chance, outcome in found}[state + 1]


# Parameters


def test_an_unnamed_probability_is_fitted_after_a_few_surprises():
    agent = uamcts.Agent(Coin(), **SETTINGS)
    agent.preload([(0, 0, 0, 0.0, False)] * 5)
    assert agent.backend.corrector.in_use == "parameters"
    assert "p is about 0.4" in str(agent.report(0)), "five failures and a prior of four transitions with 0.9"


@pytest.mark.parametrize("named", [["p"], {"p": (0.0, 1.0)}])
@pytest.mark.parametrize(("outcomes", "mean"), [("---", 1 / 5), ("+", 2 / 3), ("++-+", 4 / 6), ("+" * 20, 21 / 22)])
def test_a_named_probability_has_the_posterior_of_a_uniform_prior(named, outcomes, mean):
    """Laplace's rule: (successes + 1) / (transitions + 2), from the first transition on, whatever was believed."""
    agent = uamcts.Agent(Coin(0.9), parameters=named, **SETTINGS)
    agent.preload([(0, 0, int(one == "+"), float(one == "+"), False) for one in outcomes])
    trials = agent.backend.planner.trials([], agent.backend.experience, [], agent.backend.measure, 1e-6)
    found = fit_likelihood(trials, agent.backend.corrector.choice, len(trials.seen))
    assert found.values["p"] == pytest.approx(mean, abs=2e-3)
    assert agent.backend.corrector.in_use == "parameters", "and it is in use from the first transition on"


def test_without_facts_an_outcome_counts_once():
    """Nothing but the latest outcome of each of two transitions is known: a success and a failure."""
    agent = uamcts.Agent(Coin(0.9), parameters=["p"], corrections=["parameters"], **SETTINGS)
    agent.preload([(0, 0, 1, 1.0, False)] * 5 + [(1, 0, 2, 1.0, False)] * 5 + [(1, 0, 1, 0.0, False)])
    assert agent.backend.corrector.fit.values["p"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("model", [Coin, Closed])
def test_what_is_right_is_left_alone(model):
    """150 transitions as believed: nothing is corrected, and searches are those of plain MCTS."""
    agent = uamcts.Agent(model(0.7), **SETTINGS)
    corrector = live(agent, lambda step: Coin(0.7), 150)
    assert corrector.in_use == "none"
    plain = uamcts.Agent(model(0.7), "none", corrections=(), **SETTINGS)
    assert agent.act(0) == plain.act(0)
    assert agent.last_plan.values == plain.last_plan.values


def test_a_table_of_probabilities_is_fitted_as_a_whole():
    """All outcomes are seen, so that the answer is known: counts, and four transitions of what is believed, blurred."""
    agent, seen = uamcts.Agent(Shop(), **SETTINGS), [3, 2, 3, 2, 3, 3, 2, 3, 1, 3] * 4
    agent.preload([(0, 0, sold, float(sold), False) for sold in seen])
    trials = agent.backend.planner.trials([], agent.backend.experience, [], agent.backend.measure, 1e-6)
    corrector = agent.backend.corrector
    found = fit_likelihood(trials, corrector.choice, len(trials.seen)).values
    counts = np.array([0.0, 4.0, 12.0, 24.0]) + 4 * (0.9 * np.array(Shop().table) + 0.1 / 4)
    assert list(found) == [f"table[{place}]" for place in range(4)]
    assert list(found.values()) == pytest.approx(list(counts / counts.sum()), abs=2e-3)
    assert corrector.in_use == "parameters"
    assert corrector.fit.values.keys() == found.keys()


def test_rewards_of_one_outcome_are_told_apart():
    """Both outcomes lead to the same state and differ in what they pay: the fit is that of the frequency."""

    class Bet(Coin):
        def outcomes(self, state, action):
            after = (state + 1) % 5
            return [(self.p, (after, 1.0, False)), (1 - self.p, (after, -1.0, False))]

    corrector = live(uamcts.Agent(Bet(0.9), **SETTINGS), lambda step: Bet(0.3), 120)
    assert corrector.fit.values == {"p": pytest.approx(0.3, abs=0.1)}


# Drift


@pytest.mark.parametrize(("first", "last"), [(0.9, 0.4), (0.4, 0.9)])
@pytest.mark.parametrize("model", [Coin, Closed])
def test_a_probability_that_drifts_slowly_is_followed(model, first, last):
    """300 steps of drift and 60 without: what is planned with is near the present probability, not the believed one.

    The latest 80 transitions lag behind by 0.1, and their share of successes has a standard error of 0.05.
    """
    agent = uamcts.Agent(model(first), **SETTINGS)
    live(agent, lambda step: Coin(first + (last - first) * min(step / 300, 1.0)), 360)
    assert chance_of_success(agent) == pytest.approx(last, abs=0.2)


def test_a_table_that_changes_at_once_is_learned_anew():
    agent = uamcts.Agent(Shop((0.25, 0.25, 0.25, 0.25)), **SETTINGS)
    one, other = (0.05, 0.05, 0.1, 0.8), (0.8, 0.1, 0.05, 0.05)
    corrector = live(agent, lambda step: Shop(one if step < 80 else other), 130)
    assert corrector.in_use == "drift"
    found = {outcome[0]: chance for chance, outcome in agent.backend.planner.patched.outcomes(0, 0)}
    assert found[0] > 0.55
    assert found[3] < 0.3


# Rates of outcomes


def test_rates_by_hand():
    """Ten times the second of two outcomes that were listed with 0.8 and 0.2, next to nothing forgotten."""
    rates = OutcomeRates({})
    for _ in range(10):
        rates = rates.add([0.8, 0.2], [False, True], 0)
    keep = 1 - 1 / 80
    seen = sum(keep**age for age in range(10))
    shared = [(4 * 0.8) / (0.8 * seen + 4 * 0.8), (seen + 4 * 0.2) / (0.2 * seen + 4 * 0.2)]
    assert rates.rates(2, 1) == pytest.approx(shared), "an action that was never taken has the rates of all"
    own = [20 * 0.8 * shared[0] / (0.8 * seen + 20 * 0.8), (seen + 20 * 0.2 * shared[1]) / (0.2 * seen + 20 * 0.2)]
    assert rates.rates(2, 0) == pytest.approx(own)
    weights = [0.8 * own[0], 0.2 * own[1]]
    assert rates.tilt([0.8, 0.2], 0) == pytest.approx([one / sum(weights) for one in weights])
    assert rates.tilt([0.5, 0.3, 0.2], 0) == [0.5, 0.3, 0.2], "lists of another length have rates of their own"
    assert OutcomeRates.of(rates.arrays()) == rates


def test_rates_hold_where_nothing_was_seen():
    """The error is known from other states and holds in all of them; facts alone would know nothing here."""
    agent = uamcts.Agent(Closed(0.9), **SETTINGS)
    for number in range(60):
        place = 2 + number % 3
        agent.preload([(place, 0, place, 0.0, False) if number % 2 else (place, 0, (place + 1) % 5, 1.0, False)])
    assert agent.backend.corrector.in_use == "residual"
    assert chance_of_success(agent, 0) == pytest.approx(0.5, abs=0.08)
    assert "probabilities of outcomes are corrected: 0.5" in str(agent.report(0))


def test_what_is_listed_with_no_probability_may_happen():
    """The second of two outcomes, listed with 1 and 0, where the latter counts as 0.01."""
    rates = OutcomeRates({}).add([1.0, 0.0], [False, True], 0)
    shared = [4 / (1 + 4), (1 + 4 * 0.01) / (0.01 + 4 * 0.01)]
    own = [20 * shared[0] / (1 + 20), (1 + 0.2 * shared[1]) / (0.01 + 0.2)]
    weights = [own[0], 0.01 * own[1]]
    assert rates.tilt([1.0, 0.0], 0) == pytest.approx([one / sum(weights) for one in weights])
    agent = uamcts.Agent(Closed(1.0), **SETTINGS)
    agent.preload([(0, 0, 0, 0.0, False)] * 3)
    assert chance_of_success(agent, 0) < 0.5


def test_rates_without_a_transition_are_those_of_the_others():
    together, others = OutcomeRates({}), OutcomeRates({})
    for number in range(40):
        place, matches = number % 3, [number % 5 == 0, number % 5 > 0]
        together = together.add([0.7, 0.3], matches, 0, place)
        # what is left out lets time pass all the same
        others = others.add([0.7, 0.3], matches, 0, place) if place else OutcomeRates(others.sums, others.now + 1)
    assert together.without(2, 0, 0).rates(2, 0) == pytest.approx(others.rates(2, 0))
    assert together.without(2, 0, 0).rates(2, 1) == pytest.approx(others.rates(2, 1))
    assert together.without(2, 0, 7) is together


def test_one_transition_that_is_seen_often_says_nothing_about_others():
    """Rates would gain log 2 = 0.69 nats each time, shared by all states; a fact knows it just as well."""
    agent = uamcts.Agent(Closed(0.5), **SETTINGS)
    for _ in range(60):
        agent.preload([(0, 0, 0, 0.0, False)])
    assert agent.backend.corrector.in_use == "none"
    assert chance_of_success(agent, 0) < 0.05
    assert chance_of_success(agent, 3) == 0.5


def test_rates_that_change_a_little_keep_what_facts_have_earned():
    model, rates = PythonSimulator(Closed(0.9)), OutcomeRates({}).add([0.9, 0.1], [False, True], 0)
    patched = PatchedModel(model, prior_weight=None)
    patched.weigher = Weigher((-8.0, 0.0, -2.0))
    patched.set_model(RatedSimulator(model, rates))
    assert patched.weigher.scores == (-4.0, 0.0, -1.0), "the first rates make another model"
    patched.set_model(RatedSimulator(model, rates.add([0.9, 0.1], [True, False], 0)))
    assert patched.weigher.scores == (-4.0, 0.0, -1.0)
    patched.set_model(model)
    assert patched.weigher.scores == (-2.0, 0.0, -0.5)


# The weight of facts


def count(following, times, reward=0.0):
    return OutcomeCount(following, False, times, reward, False)


def test_evidence_by_hand():
    told, counts = [Told(0.75), Told(0.25)], [count(3, 1), count(2, 2)]
    found = log_evidence(told, counts)
    assert list(LEVELS) == [math.inf, 10.0, 2.0]
    assert math.exp(found[0]) == pytest.approx(0.75 * 0.25**2)
    assert math.exp(found[1]) == pytest.approx(7.5 * 2.5 * 3.5 / (10 * 11 * 12))
    assert math.exp(found[2]) == pytest.approx(1.5 * 0.5 * 1.5 / (2 * 3 * 4))
    new = log_evidence([Told(0.0)], [count(9, 1)])
    assert [math.exp(one) for one in new] == pytest.approx([IMPOSSIBLE, NEW, NEW])
    paid = log_evidence([Told(1.0, reward=1.0)], [count(3, 2, reward=0.0)])  # it always pays 1, and has never done so
    assert [math.exp(one) for one in paid] == pytest.approx([IMPOSSIBLE**2, NEW, NEW])


def test_what_a_simulator_never_draws_is_believed_when_it_happens():
    """Known from 64 draws, of which `singles` came once, a model makes something new as probable as singles + 0.5."""
    for singles in (0, 30):
        drawn = [(1 / 64, (number if number < singles else -1, 0.0, False)) for number in range(64)]
        question = Question(drawn, lambda state: state, "sample")
        assert question.undrawn == (singles + 0.5) / 64
        odds = [0.8 * question.undrawn, 0.15 * NEW, 0.05 * NEW]
        share = Weigher().model_share(question.evidence([count(99, 1)]), 1, 0.0)
        wrong = LEAST_WORTH / (LEAST_WORTH + 1)  # the share of a model that held it impossible
        assert share == pytest.approx((odds[0] + wrong * sum(odds[1:])) / sum(odds))
        assert share == pytest.approx(0.590 if singles == 0 else 0.983, abs=1e-3)


def test_three_draws_of_what_was_held_impossible_do_not_make_it_certain():
    """Half of the calls come from floor 7, which the model does not know; three in a row may be chance."""
    believed = [(0.5, ("none", 0.0, False)), (0.5, (3, 0.0, False))]
    mixed = Weigher().mix(Question(believed, lambda state: state, "outcomes"), [count(7, 3)])
    chances = {after: chance for chance, (after, _, _) in mixed.outcomes}
    assert chances == {"none": pytest.approx(1 / 14, rel=1e-3), 3: pytest.approx(1 / 14, rel=1e-3),
                       7: pytest.approx(6 / 7, rel=1e-3)}  # fmt: skip


def test_the_share_of_the_model_by_hand():
    odds = np.array(PRIOR) * [0.1, 0.2, 0.4]
    share = (odds @ [1.0, 10 / 14, 2 / 6]) / odds.sum()
    assert Weigher().model_share(np.log([0.1, 0.2, 0.4]), 4, 1.0) == pytest.approx(share)
    assert Weigher((-9.0, 0.0, -0.6)).weights == (-6.0, 0.0, -0.5), "what holds elsewhere counts up to 6 nats"


def test_one_place_that_differs_is_believed_and_others_are_not():
    """A step from 0 fails seven times out of eight; everywhere else the simulator is right, and planned in as it is."""
    agent = uamcts.Agent(Closed(0.9), **SETTINGS)
    for number in range(160):
        place = number % 5
        stays = number % 40 > 0 if place == 0 else (number // 5) % 10 == place
        after, reward = (place, 0.0) if stays else ((place + 1) % 5, 1.0)
        agent.preload([(place, 0, after, reward, False)])
    assert chance_of_success(agent, 0) < 0.4
    elsewhere = {outcome[0]: chance for chance, outcome in agent.backend.planner.patched.outcomes(2, 0)}
    assert elsewhere[3] > 0.75


def test_an_agent_goes_on_alike_after_it_was_saved(tmp_path):
    agent, path = uamcts.Agent(Closed(0.9), **SETTINGS), tmp_path / "agent.npz"
    live(agent, lambda step: Coin(0.4), 60)
    agent.save(path)
    loaded = uamcts.Agent(Closed(0.9), **SETTINGS)
    loaded.load(path)
    for one in (agent, loaded):
        corrector = live(one, lambda step: Coin(0.4), 30, seed=2)
        one.act(0)
    assert loaded.last_plan.values == agent.last_plan.values
    assert loaded.backend.planner.patched.weigher == agent.backend.planner.patched.weigher
    assert corrector.rates == agent.backend.corrector.rates
    assert corrector.in_use == "residual"


class Cards:
    """Action 1 draws a card; action 0 stops, and then the bank draws. The highest card is believed to be a 10."""

    num_actions = 2

    def __init__(self, highest=10):
        self.highest = highest

    def draw(self, rng):
        return int(rng.integers(1, int(self.highest) + 1))

    def sample(self, state, action, rng):
        if action == 1:
            after = state + self.draw(rng)
            return after, -float(after > 21), after > 21
        bank = 0
        while bank < 17:
            bank += self.draw(rng)
        return state, float(bank > 21 or state > bank) - float(bank <= 21 and state < bank), True


@pytest.mark.parametrize("seed", range(3))
def test_values_with_which_no_two_draws_are_equal_do_not_seem_likely_for_that(seed):
    """These are compared by densities, and others by how often each is drawn: both must mean the same."""
    agent, world, rng = uamcts.Agent(Cards(), iterations=5, rollouts=1, depth=3), Cards(6), np.random.default_rng(seed)
    for _ in range(24):
        state, over = 8, False
        while not over:
            action = int(rng.random() < 0.7)
            after, reward, over = world.sample(state, action, rng)
            agent.observe(state, action, after, reward, over)
            state = after
    assert agent.backend.corrector.in_use == "parameters"
    assert 6.0 <= agent.backend.corrector.fit.values["highest"] < 7.0


# Simulators that can only be drawn from, and what is doubted where outcomes are random


class Stall:
    """A state is the stock, of which a random demand sells; what is not sold costs, and so does demand that is not met.

    The demand can only be drawn, and not at all with a rate below 0.
    """

    num_actions = 3

    def __init__(self, rate):
        self.rate = rate

    def sample(self, stock, order, rng):
        wanted = int(rng.poisson(self.rate))
        sold = min(stock, wanted)
        return 2 * order, 3.0 * sold - order - 0.5 * (wanted - sold), False


@pytest.mark.parametrize("seed", range(4))
def test_a_rate_of_draws_is_fitted_by_likelihood_and_never_where_it_fails(seed):
    """What was paid is the demand as well where all is sold. With a rate of -3, nothing is drawn that is wrong."""
    agent, rng, stock = uamcts.Agent(Stall(2.0), **SETTINGS), np.random.default_rng(seed), 2
    log = []
    for number in range(40):
        order = number % 3
        after, reward, over = Stall(4.0).sample(stock, order, rng)
        log.append((stock, order, after, reward, over))
        stock = after
    for one in log:
        agent.preload([one])
        agent.act(2)
    corrector = agent.backend.corrector
    assert corrector.refused == ((), False)
    assert corrector.in_use == "parameters"
    assert 3.0 < corrector.fit.values["rate"] < 5.2


class Field:
    """A walk on a line of 20 cells, with a few slips; what it pays and whether it ends can be wrong at cell 10."""

    num_actions = 1

    def __init__(self, leads=None, ends=False):
        def outcomes(place, action):
            here = place == 10
            found = (place + 1, 0.1 * place, here and ends)
            found = found if leads is None or not here else (leads, *found[1:])
            return [(0.9, found), (0.1, (place, 0.1 * place, False))]

        self.outcomes = outcomes


@pytest.mark.parametrize(("world", "doubts"), [(Field(leads=15), False), (Field(ends=True), True)])
def test_an_unlisted_state_is_no_reason_for_doubt_where_outcomes_are_random(world, doubts):
    """An end that nobody expects is."""
    agent, rng = uamcts.Agent(Field(), **SETTINGS), np.random.default_rng(0)
    for number in range(80):
        place = number % 20
        found = world.outcomes(place, 0)
        after, reward, over = found[rng.choice(2, p=[0.9, 0.1])][1]
        agent.observe(place, 0, after, reward=reward, terminal=over)
    agent.act(0)
    assert agent.backend.experience.simulator_errors(agent.backend.measure).max() > 0.0
    assert (agent.backend.doubt.doubt is not None) == doubts
