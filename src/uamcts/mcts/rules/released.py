"""`rules="released"`: what the authors' published program does.

value            Q / (1 + sum over children of keep_i N(v_i)), which is Q / N where every keep is 1: every visit but the
                 first goes on to a child or is counted as one
selection        score_i = (x_i + c sqrt(ln N(v) / N(v_i))) bias_i, x_i scaled to [0, 1] among the siblings
expansion        the root is expanded before the first iteration; deletion with probability 1 - tau
backpropagation  value <- keep (gamma value + r(v))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uamcts.mcts.rules.softmax import SoftmaxRules
from uamcts.types import Number

if TYPE_CHECKING:
    from uamcts.mcts.config import SearchConfig


class Released(SoftmaxRules):
    """UA-MCTS as in the authors' program, which reproduces the paper's numbers."""

    name = "released"
    title = "authors' program"
    reads = SoftmaxRules.reads | {"root_visits"}
    deletion_scale = 1.0

    def value(self, visits: Number, total: Number, weight: Number) -> Number:
        del visits
        return total / (1.0 + weight)

    def pieces(self, reward: Number, keep: Number, config: SearchConfig) -> tuple[tuple[Number, Number], ...]:
        return ((keep * config.gamma, keep * reward),)

    def score(self, value: Number, exploration: Number, bias: Number) -> Number:
        return (value + exploration) * bias
