"""Rule sets: settings that one would ignore are refused, and a new one takes a few lines."""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tables import find, table

import uamcts
from uamcts import reference
from uamcts.mcts.rules import RULES, Edges, PlainEdges, Rules
from uamcts.mcts.rules.base import SWITCHES


@pytest.mark.parametrize(
    ("rules", "name", "value", "others"),
    [
        ("trust", "tau", 10.0, "'released', 'pseudocode'"),
        ("trust", "deletion_scale", 1.0, "'released', 'pseudocode'"),
        ("released", "rho", 0.5, "'trust'"),
        ("released", "worst", -1.0, "'trust'"),
        ("pseudocode", "penalty", np.array([0.75, 1.0]), "'trust'"),
        ("pseudocode", "root_visits", 1, "'released', 'trust'"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(rules, name, value, others):
    with pytest.raises(ValueError, match=rf"{name} is .*, but rules='{rules}' does not read it; .* that do: {others}"):
        uamcts.SearchConfig(rules=rules, **{name: value})


def test_defaults_may_be_given_and_every_rule_set_has_its_c():
    assert uamcts.SearchConfig(rules="trust", tau=0.1).c == 4.0
    assert uamcts.SearchConfig(rules="released", rho=0.99).c == 2.0**0.5
    assert uamcts.SearchConfig(rules="trust", c=1.0).c == 1.0


def test_tau_is_set_only_where_it_is_read():
    assert uamcts.SearchConfig().with_tau(5.0).tau == 5.0
    assert uamcts.SearchConfig(rules="trust").with_tau(5.0).tau == 0.1


def test_the_pieces_of_a_backup_bound_the_value():
    """Slopes are at least 0, as the climb in backpropagation relies on, and trust never raises a value."""
    for rules in RULES.values():
        config = replace(uamcts.SearchConfig(rules=rules.name), gamma=0.9)
        for keep in (0.0, 0.25, 1.0):
            pieces = rules.pieces(2.0, keep, config)
            assert all(slope >= 0 for slope, _ in pieces)
    trust = RULES["trust"]
    config = uamcts.SearchConfig(rules="trust", gamma=0.9, worst=-3.0)
    for value in (-10.0, -3.0, 0.0, 5.0):
        assert trust.child_value(value, 2.0, 0.25, config) <= 2.0 + 0.9 * value + 1e-12
        assert trust.child_value(value, 2.0, 1.0, config) == pytest.approx(2.0 + 0.9 * value)


# The toy rule set of docs/results/rules.md, word for word.


class Cautious(Rules):
    """Plain MCTS that lowers the score of an uncertain child by U / tau."""

    name = "cautious"
    title = "cautious"
    reads = SWITCHES | {"tau"}

    def edges(self, uncertainty: jax.Array, exists: jax.Array, config: uamcts.SearchConfig) -> Edges:
        return Edges(bias=uncertainty / config.tau, keep=jnp.ones_like(uncertainty))

    def plain_edges(self, uncertainty: Sequence[float], config: uamcts.SearchConfig) -> PlainEdges:
        return PlainEdges(bias=[u / config.tau for u in uncertainty], keep=[1.0] * len(uncertainty))

    def score(self, value, exploration, bias):
        return value + exploration - bias


def test_a_rule_set_of_twenty_lines(monkeypatch):
    """Two equal roads: the uncertain one is visited less, in both engines; without U they share the visits."""
    monkeypatch.setitem(RULES, "cautious", Cautious())
    config = uamcts.SearchConfig(rules="cautious", iterations=60, rollouts=1, depth=3, c=1.0, tau=1.0)
    for uncertainty, fewest, most in ((2.0, 1, 15), (0.0, 25, 35)):
        problem = table({(0, 0): (1, 1.0, uncertainty), (0, 1): (1, 1.0, 0.0)}, 2, 2)
        compiled = find(jax.random.key(0), problem, config).visits.tolist()
        plain = reference.search(0, 0, problem, problem.plain_doubt, config).visits
        assert compiled == plain
        assert fewest <= plain[0] <= most
        assert sum(plain) == 60
