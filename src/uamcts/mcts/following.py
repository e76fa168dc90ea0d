"""What both engines share of a search for the best sequence of actions: see `uamcts.mcts.best_sequence`."""

from __future__ import annotations

import math

from uamcts.mcts.config import SearchConfig

RANDOM_EVERY, FROM_ROOT_EVERY = 5, 2
"""With `follow`, one of so many iterations rolls out at random, and one of so many from the root."""
NEAR, FADE = 12, 0.8
"""With `follow`, each step of a rollout from this one on, counted from the root, is discounted by so much more.

Few sequences of many steps can be tried, so that the best return far ahead is a matter of luck. Without this, the worse
luck that comes with a change drowns what the change brings at once, and a search that looks further plans worse.
"""
MANY = 1000
"""So many iterations or more count as so many in `steps_ahead`: with a time limit, their number is not known."""


def steps_ahead(config: SearchConfig, num_actions: int) -> int:
    """How far from the root every iteration looks in a search for the best sequence of actions.

    Returns over fewer steps would not compare. It is as far as a rollout of `depth` steps goes from below the levels
    that the iterations can fill with nodes.
    """
    levels = math.ceil(math.log(min(config.iterations, MANY)) / math.log(num_actions)) if num_actions > 1 else 0
    return config.depth + levels
