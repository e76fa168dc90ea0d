"""Simulation in plain Python: random rollouts from a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.rules import Rules
from uamcts.reference.tree import Node, PythonModel, check_reward, check_uncertainty

Step = tuple[Any, int, float, bool]
"""The state before a step, the action, the reward, and whether it ended the episode."""


class Simulator(NamedTuple):
    """Rolls out in a model, at most `config.depth` steps each."""

    draws: Any
    model: PythonModel
    uncertainty: Any
    legal: Callable[[Any], Sequence[int]] | None
    rules: Rules
    config: SearchConfig

    def simulate(self, node: Node, iteration: int, config: SearchConfig) -> float:
        """The value of a leaf out of N_S rollouts; `config` holds the settings below this node."""
        if node.terminal:
            return 0.0
        asked = self.config.simulation and self.uncertainty is not None
        if (
            hasattr(self.model, "step_batch")
            and self.legal is None
            and (not asked or hasattr(self.uncertainty, "batch"))
        ):
            returns, doubts = self.roll_out_in_lockstep(node, iteration, config)
        else:
            rollouts = self.roll_out(node, iteration, config)
            returns, doubts = [g for g, _ in rollouts], [sigma for _, sigma in rollouts]
        return self.rules.plain_leaf_value(returns, doubts, self.config)

    def roll_out(self, node: Node, iteration: int, config: SearchConfig) -> list[tuple[float, float]]:
        """g and sigma of each rollout. An uncertainty that has `many(states, actions)` is asked once for all."""
        streams = [self.draws.rollout(iteration, number) for number in range(config.rollouts)]
        uncertainty: Any = self.uncertainty if config.simulation else None
        if not hasattr(uncertainty, "many"):
            return [self.weigh(self.walk(node.state, below), uncertainty, config) for below in streams]
        walks = [list(self.walk(node.state, below)) for below in streams]
        steps = [step for walk in walks for step in walk]
        answers = iter(uncertainty.many([step[0] for step in steps], [step[1] for step in steps]))
        return [self.weigh(walk, lambda state, action: next(answers), config) for walk in walks]

    def walk(self, state: Any, below: Callable[[int], int]) -> Iterator[Step]:
        """Random steps from a state."""
        step, legal, count = self.model.step, self.legal, self.model.num_actions
        for _ in range(self.config.depth):
            if legal is None:
                action = below(count)
            elif allowed := legal(state):
                action = allowed[below(len(allowed))]
            else:
                return  # nothing can be done here: a dead end
            following, reward, terminal = step(state, action)
            yield state, action, reward, terminal
            if terminal:
                return
            state = following

    def weigh(self, walk: Iterable[Step], uncertainty: Callable | None, config: SearchConfig) -> tuple[float, float]:
        """g = sum_k gamma^(k-1) r_k and sigma = sum_k gamma^(k-1) U(s_k, a_k), s_k the state before the step."""
        rules, gamma = self.rules, config.gamma
        weighs = rules.weighs_rollouts and uncertainty is not None
        returned, sigma, discount = 0.0, 0.0, 1.0
        before, doubt_discount = 0.0, 0.0  # the return up to the first doubtful step, and the discount after it
        for state, action, reward, _ in walk:
            found = 0.0 if uncertainty is None else uncertainty(state, action)
            if found:
                sigma += discount * check_uncertainty(found)
            if reward:
                returned += discount * reward
            discount *= gamma
            if weighs and not doubt_discount and rules.doubts(found, config):
                before, returned, doubt_discount = returned, 0.0, discount
        if doubt_discount:
            returned = rules.rollout_return(before, returned, doubt_discount, config)
        return check_reward(returned), sigma

    def roll_out_in_lockstep(self, node: Node, iteration: int, config: SearchConfig) -> tuple[list[float], list[float]]:
        """All rollouts at once. `step_batch` gets a list of equal states first, then what it returned last."""
        rules, count, gamma = self.rules, config.rollouts, config.gamma
        streams = [self.draws.rollout(iteration, number) for number in range(count)]
        asked = config.simulation and self.uncertainty is not None
        returns, sigmas, before, doubt_discount = ([0.0] * count for _ in range(4))
        over, discount = [False] * count, 1.0
        states = [node.state] * count
        for _ in range(config.depth):
            actions = [below(self.model.num_actions) for below in streams]
            found = self.uncertainty.batch(states, actions) if asked else None
            states, rewards, terminals = self.model.step_batch(states, actions)  # type: ignore[attr-defined]
            for lane in range(count):
                if over[lane]:
                    continue
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
        return returns, sigmas

    def worst_return(self, state: Any, longest: int) -> float:
        """V_min where `worst` is not given: the worst return of one simulation from the root, at most 0.

        A rollout that is cut at `depth` is taken to go on like that for as many steps as the search can look ahead.
        """
        config = self.config
        counts = [config.gamma**step for step in range(config.depth + longest)]
        rest = sum(counts) / sum(counts[: config.depth])
        worst = 0.0
        for number in range(config.rollouts):
            walk = list(self.walk(state, self.draws.rollout(config.iterations, number)))
            returned = sum(counts[step] * check_reward(reward) for step, (_, _, reward, _) in enumerate(walk))
            cut = len(walk) == config.depth and not walk[-1][3]
            worst = min(worst, returned * (rest if cut else 1.0))
        return worst
