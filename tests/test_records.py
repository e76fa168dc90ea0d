"""What is stored says what it is and where it comes from, and nothing that was changed since passes for it."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episode_tables import rows, together
from tiny_runs import ABOUT, BASE, UNIT, episodes, run_tiny, same

from uamcts import versions
from uamcts.episodes.offline import Score
from uamcts.lab.experiments import beyond, paper
from uamcts.lab.run import bandit, provenance, runner
from uamcts.lab.run.compute import compute_unit, resume, scratch_files
from uamcts.lab.run.enumeration import enumerate_units
from uamcts.lab.run.grid import offline_grid, online_grid
from uamcts.lab.run.online import Runs
from uamcts.lab.run.store import Store
from uamcts.lab.run.tables import as_parquet, from_parquet
from uamcts.lab.run.units import OfflineUnit, OnlineUnit

pytestmark = pytest.mark.usefixtures("without_pictures")


# Identity


@pytest.mark.parametrize(
    ("table", "name"),
    [("ENGINE_VERSIONS", "search"), ("ENGINE_VERSIONS", "offline"), ("RULE_VERSIONS", "released"),
     ("DOMAIN_VERSIONS", "two_way")],
)  # fmt: skip
def test_a_new_version_is_another_unit(table, name, monkeypatch):
    before = UNIT.name
    monkeypatch.setitem(getattr(versions, table), name, 99)
    assert OfflineUnit(**BASE).name != before


def test_a_new_version_of_something_else_is_the_same_unit(monkeypatch):
    before = UNIT.name
    monkeypatch.setitem(versions.RULE_VERSIONS, "trust", 99)
    monkeypatch.setitem(versions.LEARNER_VERSIONS, "network", 99)
    monkeypatch.setitem(versions.DOMAIN_VERSIONS, "breakout", 99)
    assert OfflineUnit(**BASE).name == before


def test_presets_belong_to_the_identity(monkeypatch):
    """What a unit takes from a preset and does not name itself still decides its numbers."""
    from uamcts import presets

    trust = {**BASE, "pairs": (("trust", 4.0),), "rules": "trust"}
    before = OfflineUnit(**trust).name
    monkeypatch.setitem(presets.TRUST, "rho", 0.5)
    assert OfflineUnit(**trust).name != before


def test_an_online_unit_has_the_versions_of_its_learner(monkeypatch):
    def name():
        return OnlineUnit("a", "two_way", "combined", "linear+memory", "released", 1.4, 2, 40, 0, 20, 5).name

    before = name()
    for part in ("linear", "memory"):
        with monkeypatch.context() as patch:
            patch.setitem(versions.LEARNER_VERSIONS, part, 99)
            assert name() != before
    assert name() == before


def test_after_a_new_version_the_same_folder_is_computed_again(tmp_path, monkeypatch, capsys):
    """The old unit stays, is not used and is mentioned."""
    out = tmp_path / "out"
    run_tiny(out)
    monkeypatch.setitem(versions.RULE_VERSIONS, "released", 99)
    capsys.readouterr()
    summary = run_tiny(out)
    assert len(list((out / "units").glob("*.parquet"))) == 2
    assert "also holds 1 file(s) of other versions or from elsewhere, which are not used" in capsys.readouterr().out
    assert summary["provenance"]["units"] == 1
    assert summary["provenance"]["versions"]["rules released"] == 99


# Checksums


def test_no_flipped_bit_goes_unnoticed(tmp_path):
    store = Store(tmp_path / "out", {})
    store.write(UNIT, episodes(40), ABOUT)
    path = store.path(UNIT.name)
    whole = path.read_bytes()
    assert same(store.read(UNIT)[0], episodes(40))
    for bit in range(0, 8 * len(whole), 29):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"is damaged .*remove it to have it computed again"):
            store.read(UNIT)
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="remove it to have it computed again"):
            store.read(UNIT)


def test_a_unit_under_anothers_name_is_refused(tmp_path):
    store = Store(tmp_path / "out", {})
    other = OfflineUnit(**{**BASE, "seed": 1})
    store.write(other, episodes(), ABOUT)
    shutil.copy(store.path(other.name), store.path(UNIT.name))
    with pytest.raises(ValueError, match="not hold the unit that its name says: --seed 1 there, 0 here; remove it"):
        store.read(UNIT)


def test_a_table_that_says_nothing_about_itself_is_refused(tmp_path):
    store = Store(tmp_path / "out", {})
    store.path(UNIT.name).write_bytes(as_parquet(episodes(), {}))
    with pytest.raises(ValueError, match="it does not say what it holds"):
        store.read(UNIT)


def test_a_damaged_unit_is_told_of_before_anything_is_computed(tmp_path, monkeypatch):
    out = tmp_path / "out"
    run_tiny(out, ("corrupted", "trust"))
    damaged, missing = sorted((out / "units").glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    missing.unlink()
    monkeypatch.setattr(runner, "run", lambda *_: pytest.fail("it began to compute"))
    with pytest.raises(ValueError, match="is damaged"):
        run_tiny(out, ("corrupted", "trust"))


def interrupted(folder, **other):
    """An online unit, stopped after its first round as by a crash; what it kept is in `folder`."""
    settings = {"seed": 0, **other}
    unit = OnlineUnit("a", "two_way", "combined", "linear", "released", 1.4, 2, 80, interval=40, minibatches=5,
                      **settings)  # fmt: skip

    class Crash(Exception):
        pass

    def crash(share, words):
        if share > 0.5:
            raise Crash

    with pytest.raises(Crash):
        compute_unit(unit, crash, folder)
    return unit


def outcome(unit, runs, folder):
    """The episodes that a unit would resume from, or why not."""
    try:
        return resume(unit, runs, *scratch_files(unit, folder))
    except ValueError as error:
        return str(error)


def test_no_flipped_bit_in_what_an_online_unit_resumes_from_goes_unnoticed(tmp_path):
    """Both files: a change is refused by name, or it is one of bytes that mean nothing."""
    unit = interrupted(tmp_path)
    runs = Runs(unit)
    whole = outcome(unit, runs, tmp_path)
    before = runs.runs
    for path in scratch_files(unit, tmp_path):
        content = path.read_bytes()
        refused = 0
        for bit in range(3, 8 * len(content), 8 * len(content) // 15):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            found = outcome(unit, runs, tmp_path)
            if isinstance(found, str):
                assert path.name in found
                refused += 1
            else:
                assert same(found, whole)
                assert jax.tree.all(jax.tree.map(lambda one, other: bool(jnp.all(one == other)), runs.runs, before))
        assert refused > 10
        path.write_bytes(content)


def test_foreign_files_to_resume_from_are_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    mine, other = interrupted(tmp_path / "mine"), interrupted(tmp_path / "other", seed=1)
    runs = Runs(mine)
    pairs = zip(scratch_files(mine, tmp_path / "mine"), scratch_files(other, tmp_path / "other"), strict=True)
    for path, foreign in pairs:
        content = path.read_bytes()
        shutil.copy(foreign, path)
        found = outcome(mine, runs, tmp_path / "mine")
        assert "seed" in found
        assert path.name in found
        path.write_bytes(content)


@pytest.fixture
def quick_bandit(monkeypatch):
    """The bandit experiment without its work."""
    monkeypatch.setattr(bandit, "regret_over_time", lambda *_: None)
    monkeypatch.setattr(bandit, "losing_case", lambda *_: None)
    monkeypatch.setattr(bandit, "regret_against_delta", lambda *_: None)
    monkeypatch.setattr(bandit, "_case", lambda *_: {"ucb": {"mean": [1.25, 2.5]}})
    monkeypatch.setattr(bandit, "_against_delta", lambda *_: {"delta": [0.5]})
    return lambda out, is_quick=True, seed=0: bandit.measure_bandits(out, is_quick, seed, lambda share, words: None)


def test_bandit_results_are_checked_too(tmp_path, quick_bandit, monkeypatch):
    first = quick_bandit(tmp_path)
    assert quick_bandit(tmp_path) == first
    path = tmp_path / "bandit.json"
    text = path.read_text()
    for damaged in (text.replace("2.5", "2.6"), text[:-3], "[1, 2]", "[" * 100_000):
        path.write_text(damaged)
        with pytest.raises(ValueError, match=r"bandit.json is damaged.*remove it to have it computed again"):
            quick_bandit(tmp_path)
    path.write_text(text)
    with pytest.raises(ValueError, match="--seed 0 there, 1 here"):
        quick_bandit(tmp_path, seed=1)
    monkeypatch.setitem(versions.ENGINE_VERSIONS, "bandit", 99)
    assert quick_bandit(tmp_path)["about"]["unit"]["versions"] == {"engine bandit": 99}


# Provenance


def test_provenance_is_that_of_all_units():
    def piece(commit, device, seconds, rules):
        about = {"commit": commit, "device": device, "seconds": seconds, "started": f"2024-0{int(seconds)}"}
        return {"unit": {"versions": {f"rules {rules}": 1}}, "provenance": about}

    pieces = [piece("a", "gpu", 3.0, "released"), piece("b", "gpu", 1.0, "trust"), piece("a", "gpu", 2.0, "trust")]
    found = provenance.collect([*pieces, piece(None, "gpu", 4.0, "trust")])
    assert found["commit"] == "a (2 units); b (1 unit); unknown (1 unit)"
    assert found["device"] == "gpu"
    assert found["seconds"] == 10.0
    assert found["started"] == "2024-01"
    assert found["versions"] == {"rules released": 1, "rules trust": 1}
    assert found["units"] == 4


def test_a_summary_names_the_commits_of_its_units(tmp_path, monkeypatch):
    """One unit is computed at one commit, another at the next; the second command's is not written over both."""
    out = tmp_path / "out"
    monkeypatch.setattr(provenance, "commit", lambda package: "first")
    run_tiny(out, ("corrupted", "trust"))
    next((out / "units").glob("*trust*.parquet")).unlink()
    monkeypatch.setattr(provenance, "commit", lambda package: "second (modified)")
    run_tiny(out, ("corrupted", "trust"))
    found = json.loads((out / "summary.json").read_text())["provenance"]
    assert found["commit"] == "first (1 unit); second (modified) (1 unit)"
    for name in ("versions", "device", "command", "seconds"):
        assert found[name]


# Rules


def made_up(jobs, seed):
    """Scores without playing: the smaller c is better under the rules of trust, the larger one under the others."""
    better = [-job.config.c if job.config.rules == "trust" else job.config.c for job in jobs]
    return Score(np.array(better), np.full(len(jobs), 10), np.ones(len(jobs), bool), np.zeros(len(jobs), np.int32))


def test_trust_is_stored_under_its_own_rules(tmp_path, monkeypatch):
    """Under both of the paper's rule sets it is run once, and its best c is chosen among its own runs."""
    monkeypatch.setattr("uamcts.lab.run.compute.play_jobs", made_up)
    monkeypatch.setattr("uamcts.lab.run.compute.compile_jobs", lambda jobs, seed: None)
    summary = run_tiny(tmp_path / "out", ("corrupted", "trust"), "both", exploration=(1.0, 2.0))
    counts = {}
    for row in summary["rows"]:
        counts.setdefault((row["algorithm"], row["rules"], row["purpose"]), []).append(row["runs"])
    assert counts == {
        (*setting, purpose): [2] * times
        for setting in (("corrupted", "released"), ("corrupted", "pseudocode"), ("trust", "trust"))
        for purpose, times in (("sweep", 2), ("fresh", 1))
    }
    table = from_parquet(tmp_path / "out" / "episodes.parquet")[0]
    assert set(table["rules"][table["algorithm"] == "trust"]) == {"trust"}
    assert set(table["c"][(table["purpose"] == "fresh") & (table["algorithm"] == "trust")]) == {1.0}
    assert set(table["c"][(table["purpose"] == "fresh") & (table["algorithm"] == "corrupted")]) == {2.0}
    text = (tmp_path / "out" / "index.html").read_text()
    assert "Rules: authors&#39; program" in text
    assert "Rules: trust" not in text, "trust is shown beside the others, not by itself"


def test_online_trust_has_its_own_rules_too():
    grid = online_grid(["two_way"], ["combined", "trust"], ["none"], [], 2, 40, 20, 5)
    units = enumerate_units(grid, ("released", "pseudocode"), 0)
    assert [(unit.algorithm, unit.rules) for unit in units] == [
        ("combined", "released"), ("trust", "trust"), ("combined", "pseudocode")
    ]  # fmt: skip


NAMES = (
    "space_invaders-offline-released-tau0.1-sweep-0-48f7ff2e",
    "icy-offline-pseudocode-tau10-sweep-0-ae61adeb",
    "breakout-online-released-combined-network-a28ae9e8",
    "two_way-online-released-combined-linear-4ebf521b",
    "severity_breakout_40-offline-trust-tau0.1-sweep-0-8af2110f",
    "discount_95-offline-released-tau0.1-sweep-0-8ab8bc3c",
    "planners_freeway-online-trust-trust-two_part+memory-aa845465",
    "mandatory_two-online-released-corrupted-cmax_plus-e42b4273",
    "estimators_two_way-online-trust-trust-bayes-4a8cc16f",
)


def test_finished_units_are_found_under_the_names_they_were_stored_with():
    """Recorded names. They change only with a version in `uamcts.versions`: then finished work is computed again."""
    wanted = {name.partition("-")[0] for name in NAMES}
    experiments = [
        experiment
        for experiment in (*paper.EXPERIMENTS.values(), *beyond.choose_experiments([], False, "both"))
        if experiment.name in wanted
    ]
    units = enumerate_units(experiments, ("released", "pseudocode"), 0)
    assert set(NAMES) <= {unit.name for unit in units}
    watched = OnlineUnit.with_defaults("space_invaders", "trust").complete()
    assert watched.name == "run_space_invaders-online-trust-trust-two_part+memory-5d946c2a"


def test_units_at_the_chosen_c_come_between_sweeps_and_online_runs():
    """The sweep says c = 2 is best; without it the units on fresh seeds are not known."""
    grid = offline_grid(["two_way"], ["corrupted"], [1.0, 2.0], [0.1], [3], 2)
    grid += online_grid(["two_way"], ["combined"], ["none"], [], 2, 40, 20, 5)
    known = enumerate_units(grid, ("released",), 0)
    sweep = together(*(rows("run_two_way", "corrupted", [c, c], c=c, domain="two_way") for c in (1.0, 2.0)))
    units = enumerate_units(grid, ("released",), 0, sweep)
    assert units[:1] + units[2:] == known
    assert (units[1].purpose, units[1].pairs, units[1].first_seed) == ("fresh", (("corrupted", 2.0),), 1_000_000)
