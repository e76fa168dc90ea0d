"""`rules="pseudocode"`: Algorithms 1 to 5 as the paper prints them, with rewards kept on the way up.

selection        score_i = x_i + c sqrt(ln N(v) / N(v_i)) bias_i, x_i not scaled
expansion        the root starts as a leaf; a random child is rolled out; deletion with probability 1 - tau / 10
backpropagation  Q(v) += keep value;  value <- gamma value + r(v)
"""

from __future__ import annotations

from uamcts.mcts.rules.softmax import SoftmaxRules
from uamcts.types import Number


class Pseudocode(SoftmaxRules):
    """UA-MCTS as printed."""

    name = "pseudocode"
    title = "as printed"
    expands_root = False
    normalizes = False
    picks_at_random = True
    deletion_scale = 10.0

    def score(self, value: Number, exploration: Number, bias: Number) -> Number:
        return value + exploration * bias

    def credit(self, value: Number, keep: Number) -> Number:
        return keep * value
