"""A change of behaviour needs a new version, or stored results of the old behaviour would pass for new ones."""

import math

import numpy as np
import pytest
from behaviour import SUBJECTS, numbers_of, version_of
from record_behaviour import recorded

import uamcts
from uamcts import versions
from uamcts.lab.learners import BASELINES
from uamcts.mcts.rules import RULES
from uamcts.uncertainty import ESTIMATORS

COMMAND = "python tests/record_behaviour.py"


def test_everything_has_a_version():
    assert set(versions.RULE_VERSIONS) == set(RULES)
    assert set(versions.DOMAIN_VERSIONS) == set(uamcts.DOMAINS)
    assert set(versions.LEARNER_VERSIONS) == {*ESTIMATORS, *BASELINES, "transition", "gate", "penalty", "bonus"}
    assert set(recorded()) == set(SUBJECTS), f"run {COMMAND}"


def test_versions_of_a_learner_with_parts(monkeypatch):
    found = versions.versions_of(("search",), "two_way", ("trust",), "transition_8_units+memory+penalty=2")
    assert list(found) == ["engine search", "domain two_way", "rules trust", "learner transition", "learner memory",
                           "learner penalty"]  # fmt: skip
    assert versions.versions_of((), "somebody's own", (), "none")["domain somebody's own"] == 0


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_version_belongs_to_the_behaviour(subject):
    """The numbers that were recorded for a version are still those of the code."""
    if subject == "learner trees":
        pytest.importorskip("sklearn", reason="no scikit-learn: pip install scikit-learn")
    record = recorded()[subject]
    assert record["version"] == version_of(subject), f"{subject} has a new version: run {COMMAND} to record it"
    found = numbers_of(subject)
    assert found.keys() == record["numbers"].keys(), f"other numbers are recorded now: run {COMMAND} --all"
    for name, values in record["numbers"].items():
        same = len(values) == len(found[name]) and np.allclose(found[name], values, 2e-3, 1e-4, equal_nan=True)
        assert same, (
            f"{subject} behaves differently ({name}) than when version {record['version']} was recorded: raise its "
            f"version in src/uamcts/versions.py, then run {COMMAND} to record it anew"
        )
    assert any(value not in (0.0, 1.0) and math.isfinite(value) for values in found.values() for value in values), (
        f"the numbers of {subject} say nothing"
    )
