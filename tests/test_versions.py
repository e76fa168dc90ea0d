"""A change of behaviour needs a new version, or stored results of the old behaviour would pass for new ones."""

import math

import pytest
from behaviour import SUBJECTS, numbers_of, version_of
from record_behaviour import differences, numbers_compiled, recorded

import uamcts
from uamcts import versions
from uamcts.lab.experiments.learners import BASELINES
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
    """The numbers that were recorded for a version are still those of the code.

    Quickly compiled programs round differently, which may decide between two actions. So where their numbers differ,
    they are recorded too. On another processor both may differ: then the numbers are computed again, compiled as users
    compile.
    """
    if subject == "learner trees":
        pytest.importorskip("sklearn", reason="no scikit-learn: pip install scikit-learn")
    record = recorded()[subject]
    assert record["version"] == version_of(subject), f"{subject} has a new version: run {COMMAND} to record it"
    found = numbers_of(subject)
    assert found.keys() == record["numbers"].keys(), f"other numbers are recorded now: run {COMMAND} --all"
    if differences(found, record["numbers"]) and differences(found, record.get("quick", record["numbers"])):
        found = numbers_compiled(subject, xla_flags="")
    wrong = min((differences(found, record[kind]) for kind in ("numbers", "quick") if kind in record), key=len)
    assert not wrong, (
        f"{subject} behaves differently ({', '.join(wrong)}) than when version "
        f"{record['version']} was recorded: raise its version in src/uamcts/versions.py, then run {COMMAND} to record "
        "it anew"
    )
    assert any(value not in (0.0, 1.0) and math.isfinite(value) for values in found.values() for value in values), (
        f"the numbers of {subject} say nothing"
    )
