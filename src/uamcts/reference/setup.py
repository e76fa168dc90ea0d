"""What the searches on trees and on graphs share: the model, the rule set, the settings, the rollouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from uamcts.mcts.config import SearchConfig, longest_path
from uamcts.mcts.following import steps_ahead
from uamcts.mcts.rules import find_rules
from uamcts.reference.guides import Guides
from uamcts.reference.models import Dynamics
from uamcts.reference.rollouts import Simulator
from uamcts.reference.tree import Draws


class Setup:
    """A search before its first iteration."""

    def __init__(
        self,
        draws: Draws,
        dynamics: Dynamics,
        uncertainty: Callable[[Any, int], float] | None,
        config: SearchConfig,
        guides: Guides,
        horizon: int | None,
    ):
        self.draws, self.dynamics, self.uncertainty, self.guides, self.horizon = (
            draws, dynamics, uncertainty, guides, horizon,
        )  # fmt: skip
        self.rules = find_rules(config.rules)
        self.follows, self.deepest = bool(config.follow) and not dynamics.random, config.depth
        """Whether it looks for the best sequence of actions: in a random model the best return is luck. And the most
        steps of a rollout."""
        if self.follows:
            self.deepest = steps_ahead(config, dynamics.num_actions)
            self.horizon = horizon = self.deepest if horizon is None else min(self.deepest, horizon)
        self.longest = config.tree_depth if horizon is None else min(horizon, config.tree_depth)
        """How many transitions a path may have."""
        rng = None if guides.policy is None else draws.generator()
        self.simulator = Simulator(draws, dynamics, guides, rng, uncertainty, self.rules, config)
        self.use(config)

    def use(self, config: SearchConfig) -> None:
        """Takes over settings."""
        self.config = config
        self.simulator = self.simulator._replace(config=config)
        self.below_doubt = self.rules.below_doubt(config, True)

    def settle_worst(self, state: object) -> None:
        """Finds V_min where a rule set needs it and it is not given."""
        if not self.config.reads("worst") or self.config.worst is not None or self.uncertainty is None:
            return
        longest = longest_path(self.config, self.dynamics.num_actions, self.dynamics.legal is not None)
        self.use(replace(self.config, worst=self.simulator.worst_return(state, longest)))

    def settings(self, doubted: bool) -> SearchConfig:
        """The settings below a node."""
        return self.below_doubt if doubted else self.config

    def rollout_depth(self, depth: int) -> int:
        """How many steps a rollout may have that starts after `depth` transitions."""
        return self.deepest if self.horizon is None else min(self.deepest, self.horizon - depth)
