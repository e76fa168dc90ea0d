"""Simulation in plain Python: random rollouts from a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import numpy as np

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.following import FADE, NEAR
from uamcts.mcts.rules import Rules
from uamcts.reference.best_sequence import BestSequence, follower
from uamcts.reference.guides import Guides
from uamcts.reference.models import Dynamics
from uamcts.reference.tree import check_reward, check_uncertainty

Step = tuple[Any, int, float, bool]
"""The state before a step, the action, the reward, and whether it ended the episode."""


class Start(NamedTuple):
    """Where rollouts start, and which draws are theirs: those of the rollouts `numbers` of an iteration."""

    state: Any
    iteration: int
    numbers: range
    depth: int
    """How many steps a rollout may have."""
    ahead: int = 0
    """How many steps from the root it starts."""
    best: BestSequence | None = None
    """The best sequence of the search so far, which gets to know what rollouts did."""
    sequence: Sequence[Any] = ()
    """What it does from here on."""

    def factors(self, gamma: float) -> Iterator[float]:
        """By how much the reward of each step counts less than that of the one before it, from the second one on."""
        if self.best is None:
            return repeat(gamma)
        return chain(repeat(gamma, max(0, NEAR - 1 - self.ahead)), repeat(gamma * FADE))


class Simulator(NamedTuple):
    """Rolls out in a model."""

    draws: Any
    dynamics: Dynamics
    guides: Guides
    generator: np.random.Generator | None
    """What the policy draws from."""
    uncertainty: Any
    rules: Rules
    config: SearchConfig

    def simulate(self, start: Start, config: SearchConfig) -> float:
        """The value of a leaf by rollouts, by the value function, or by both; `config` holds the settings below it."""
        return self.values(start, config)[0]

    def values(self, start: Start, *configs: SearchConfig) -> list[float]:
        """The values by several settings that differ only in what doubt subtracts, from the same rollouts."""
        weight = self.config.value_weight
        if start.depth < 1:
            return [0.0 for _ in configs]
        if self.guides.value is None:
            return self.mean_returns(start, configs)
        value = self.guides.leaf_value(start.state)
        found = [value for _ in configs] if weight == 1 else self.mean_returns(start, configs)
        if start.best is not None:
            start.best.weigh(value, weight)
        return found if weight == 1 else [weight * value + (1.0 - weight) * mean for mean in found]

    def mean_returns(self, start: Start, configs: Sequence[SearchConfig]) -> list[float]:
        """The value that the rule set computes from the returns of rollouts, for each of the settings."""
        asked = self.config.simulation and self.uncertainty is not None
        if (
            hasattr(self.dynamics.model, "step_batch")
            and not self.dynamics.random
            and self.dynamics.legal is None
            and self.guides.policy is None
            and self.dynamics.propose is None
            and (not asked or hasattr(self.uncertainty, "batch"))
        ):
            found = [self.roll_out_in_lockstep(start, config) for config in configs]
        else:
            found = self.roll_out(start, configs)
        return [self.rules.plain_leaf_value(returns, doubts, self.config) for returns, doubts in found]

    def roll_out(self, start: Start, configs: Sequence[SearchConfig]) -> list[tuple[list[float], list[float]]]:
        """g and sigma of all rollouts, for each of the settings.

        An uncertainty that has `many(states, actions)` is asked once for all.
        """
        uncertainty: Any = self.uncertainty if configs[0].simulation else None
        walks: Iterable[Iterable[Step]] = (self.walk(start, number) for number in start.numbers)
        if start.best is not None:
            walks = [list(walk) for walk in walks]
        judged = self.weigh_all(start, walks, uncertainty, configs)
        if start.best is not None:
            start.best.note(judged[0][0], [[step[1] for step in walk] for walk in walks])
        return judged

    def weigh_all(
        self,
        start: Start,
        walks: Iterable[Iterable[Step]],
        uncertainty: Callable | None,
        configs: Sequence[SearchConfig],
    ) -> list[tuple[list[float], list[float]]]:
        """g and sigma of rollouts, for each of the settings."""
        found: Sequence[float] = ()
        if uncertainty is not None:
            walks = [list(walk) for walk in walks]
            steps = [step for walk in walks for step in walk]
            states, actions = [step[0] for step in steps], [step[1] for step in steps]
            many = getattr(uncertainty, "many", None)
            found = list(map(uncertainty, states, actions)) if many is None else many(states, actions)
        if not any(found):  # nothing is doubtful
            rollouts = [self.weigh(start, walk, None, configs[0]) for walk in walks]
            return [_columns(rollouts)] * len(configs)
        judged: list[list[tuple[float, float]]] = [[] for _ in configs]
        answers = iter(found)
        for walk in walks:
            doubts = [*islice(answers, len(walk))]  # type: ignore[arg-type]
            if any(doubts):
                returns = [self.weigh(start, walk, doubts, config) for config in configs]
            else:  # equal for all settings
                returns = [self.weigh(start, walk, None, configs[0])] * len(configs)
            for rollouts, one in zip(judged, returns, strict=True):
                rollouts.append(one)
        return [*map(_columns, judged)]

    def walk(self, start: Start, number: int) -> Iterator[Step]:
        """The steps of a rollout: random ones, or those of the policy."""
        draws, dynamics, guides, rng, state = self.draws, self.dynamics, self.guides, self.generator, start.state
        count, propose = dynamics.num_actions, dynamics.propose
        uniform = dynamics.legal is None and guides.policy is None and propose is None
        below = draws.rollout(start.iteration, number)
        step = dynamics.stepper(draws.chance(start.iteration, number) if dynamics.random else None)
        follow = None if start.best is None else self.follower(start, number)
        for at in range(start.depth):
            if uniform:
                action = below(count)
            elif propose is not None:
                action = propose(state)
            elif not (allowed := dynamics.legal_actions(state)):
                return  # nothing can be done here: a dead end
            else:
                action = allowed[below(len(allowed))] if rng is None else guides.action(state, allowed, rng)
            if follow is not None:
                action = follow(at, state, action)
            following, reward, terminal = step(state, action)
            yield state, action, reward, terminal
            if terminal:
                return
            state = following

    def follower(self, start: Start, number: int) -> Callable[[int, Any, Any], Any]:
        """What decides whether a step of a rollout follows the best sequence."""
        legal, draw = self.dynamics.legal, self.draws.follow(start.iteration, number)

        def allows(state: object, action: object) -> bool:
            return legal is None or action in self.dynamics.legal_actions(state)

        assert start.best is not None  # noqa: S101 (the caller has looked)
        return follower(start.sequence, draw, start.best.chance, allows)

    def weigh(
        self, start: Start, walk: Iterable[Step], doubts: Sequence[float] | None, config: SearchConfig
    ) -> tuple[float, float]:
        """g = sum_k gamma^(k-1) r_k and sigma = sum_k gamma^(k-1) U(s_k, a_k), s_k the state before the step.

        `doubts`: U of every step; None if all are 0.
        """
        rules, factors = self.rules, start.factors(config.gamma)
        weighs = rules.weighs_rollouts and doubts is not None
        returned, sigma, discount = 0.0, 0.0, 1.0
        before, doubt_discount = 0.0, 0.0  # the return up to the first doubtful step, and the discount after it
        certain = repeat(0.0) if doubts is None else doubts
        for (_, _, reward, _), found, gamma in zip(walk, certain, factors, strict=False):
            if found:
                sigma += discount * check_uncertainty(found)
            if reward:
                returned += discount * reward
            discount *= gamma
            if found and weighs and not doubt_discount and rules.doubts(found, config):
                before, returned, doubt_discount = returned, 0.0, discount
        if doubt_discount:
            returned = rules.rollout_return(before, returned, doubt_discount, config)
        return check_reward(returned), sigma

    def roll_out_in_lockstep(self, start: Start, config: SearchConfig) -> tuple[list[float], list[float]]:
        """All rollouts at once. `step_batch` gets a list of equal states first, then what it returned last."""
        rules, count, model = self.rules, len(start.numbers), self.dynamics.model
        streams = [self.draws.rollout(start.iteration, number) for number in start.numbers]
        asked = config.simulation and self.uncertainty is not None
        returns, sigmas, before, doubt_discount = ([0.0] * count for _ in range(4))
        over, discount = [False] * count, 1.0
        states = [start.state] * count
        follows = [] if start.best is None else [self.follower(start, number) for number in start.numbers]
        walks: list[list[int]] = [[] for _ in streams]
        for at, gamma in zip(range(start.depth), start.factors(config.gamma), strict=False):
            actions = [below(model.num_actions) for below in streams]
            if follows:
                actions = [follow(at, *both) for follow, *both in zip(follows, states, actions, strict=True)]
            found = self.uncertainty.batch(states, actions) if asked else None
            states, rewards, terminals = model.step_batch(states, actions)
            for lane in range(count):
                if over[lane]:
                    continue
                walks[lane].append(actions[lane])
                uncertainty = check_uncertainty(found[lane]) if found is not None else 0.0
                returns[lane] += discount * check_reward(rewards[lane])
                sigmas[lane] += discount * uncertainty
                if rules.weighs_rollouts and not doubt_discount[lane] and asked and rules.doubts(uncertainty, config):
                    before[lane], returns[lane], doubt_discount[lane] = returns[lane], 0.0, discount * gamma
                over[lane] = bool(terminals[lane])
            discount *= gamma
            if all(over):
                break
        for lane in range(count):
            if doubt_discount[lane]:
                returns[lane] = rules.rollout_return(before[lane], returns[lane], doubt_discount[lane], config)
        if start.best is not None:
            start.best.note(returns, walks)
        return returns, sigmas

    def worst_return(self, state: object, longest: int) -> float:
        """V_min where `worst` is not given: the worst return of one simulation from the root, at most 0.

        A rollout that is cut at `depth` is taken to go on like that for as many steps as the search can look ahead.
        """
        config = self.config
        counts = [config.gamma**step for step in range(config.depth + longest)]
        rest = sum(counts) / sum(counts[: config.depth])
        worst, start = 0.0, Start(state, config.iterations, range(config.rollouts), config.depth)
        for number in start.numbers:
            walk = list(self.walk(start, number))
            returned = sum(counts[step] * check_reward(reward) for step, (_, _, reward, _) in enumerate(walk))
            cut = len(walk) == config.depth and not walk[-1][3]
            worst = min(worst, returned * (rest if cut else 1.0))
        return worst


def _columns(rollouts: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [returned for returned, _ in rollouts], [sigma for _, sigma in rollouts]
