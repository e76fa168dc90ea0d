"""What is stored says what it is and where it comes from, and nothing that was changed since passes for it."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from uamcts import atomic, compiled, versions
from uamcts.lab import bandit, provenance, runner
from uamcts.lab.differences import differences, in_words
from uamcts.lab.engines import engine_of
from uamcts.lab.gifs import draw_typical
from uamcts.lab.grid import default_folder, domain_options, offline_grid, online_grid, run_grid
from uamcts.lab.store import Store
from uamcts.lab.tables import as_parquet, from_parquet, nothing
from uamcts.lab.units import OfflineUnit, OnlineUnit

BASE = {"experiment": "a", "domain": "two_way", "rules": "released", "tau": 0.1, "purpose": "sweep",
        "pairs": (("corrupted", 1.0),), "first_seed": 0, "seeds": 3, "seed": 0,
        "budget": (("iterations", 2),)}  # fmt: skip
UNIT = OfflineUnit(**BASE)
ABOUT = {"seconds": 1.0, "commit": "abc", "device": "1 x cpu", "started": "2024"}


def episodes(count=3):
    table = nothing()
    fill = {name: np.full(count, "word", object) for name, column in table.items() if column.dtype == object}
    return {name: fill.get(name, np.arange(count).astype(column.dtype)) for name, column in table.items()}


def same(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def run_tiny(out, algorithms=("corrupted",), rules="released", runs=2, seed=0, exploration=()):
    grid = offline_grid(["two_way"], list(algorithms), list(exploration), [0.1], [2], runs)
    return run_grid(grid, rules, seed, out, engine_of("local"), Console(quiet=True))


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
    from uamcts import paper

    trust = {**BASE, "pairs": (("trust", 4.0),), "rules": "trust"}
    before = OfflineUnit(**trust).name
    monkeypatch.setitem(paper.TRUST, "rho", 0.5)
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
    for bit in range(0, 8 * len(whole), 7):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"is damaged .*remove it, and it will be computed again"):
            store.read(UNIT)
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="remove it, and it will be computed again"):
            store.read(UNIT)


def test_a_unit_under_anothers_name_is_refused(tmp_path):
    store = Store(tmp_path / "out", {})
    other = OfflineUnit(**{**BASE, "seed": 1})
    store.write(other, episodes(), ABOUT)
    shutil.copy(store.path(other.name), store.path(UNIT.name))
    with pytest.raises(ValueError, match="holds another unit than its name says: --seed 1 there, 0 here; remove it"):
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
        unit.compute(crash, folder)
    return unit


def test_no_flipped_bit_in_what_an_online_unit_resumes_from_goes_unnoticed(tmp_path):
    """Both files: each change is refused by name, or is one of bytes that mean nothing."""
    unit = interrupted(tmp_path)
    for end in (".so-far", ".runs"):
        path = tmp_path / f"{unit.name}{end}"
        whole = path.read_bytes()
        refused = 0
        for bit in range(3, 8 * len(whole), 8 * len(whole) // 60):
            changed = bytearray(whole)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            try:
                parts = unit.kept(tmp_path)
            except ValueError as error:
                assert str(path) in str(error)
                refused += 1
            else:
                path.write_bytes(whole)
                assert same(parts, unit.kept(tmp_path))
        assert refused > 40
        path.write_bytes(whole)


def test_foreign_files_to_resume_from_are_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    mine, other = interrupted(tmp_path / "mine"), interrupted(tmp_path / "other", seed=1)
    for end in (".so-far", ".runs"):
        path = tmp_path / "mine" / f"{mine.name}{end}"
        whole = path.read_bytes()
        shutil.copy(tmp_path / "other" / f"{other.name}{end}", path)
        with pytest.raises(ValueError, match="seed"):
            mine.kept(tmp_path / "mine")
        path.write_bytes(whole)


@pytest.fixture
def quick_bandit(monkeypatch):
    """The bandit experiment without its work."""
    monkeypatch.setattr(bandit, "regret_over_time", lambda *_: None)
    monkeypatch.setattr(bandit, "losing_case", lambda *_: None)
    monkeypatch.setattr(bandit, "regret_against_delta", lambda *_: None)
    monkeypatch.setattr(bandit, "_case", lambda *_: {"ucb": {"mean": [1.25, 2.5]}})
    monkeypatch.setattr(bandit, "_against", lambda *_: {"delta": [0.5]})
    return lambda out, is_quick=True, seed=0: bandit.measured(out, is_quick, seed, lambda share, words: None)


def test_bandit_results_are_checked_too(tmp_path, quick_bandit, monkeypatch):
    first = quick_bandit(tmp_path)
    assert quick_bandit(tmp_path) == first
    path = tmp_path / "bandit.json"
    text = path.read_text()
    for damaged in (text.replace("2.5", "2.6"), text[:-3], "[1, 2]", "[" * 100_000):
        path.write_text(damaged)
        with pytest.raises(ValueError, match=r"bandit.json is damaged.*remove it, and it will be computed again"):
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


def git(folder, *words):
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A small repository of uamcts: its root, its package and its commit."""
    pytest.importorskip("shutil")
    if shutil.which("git") is None:
        pytest.skip("no git")
    root = tmp_path / "checkout"
    package = root / "src" / "uamcts"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (root / "pyproject.toml").write_text('[project]\nname = "uamcts"\n')
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    provenance.commit.cache_clear()
    yield root, package, git(root, "rev-parse", "HEAD")
    provenance.commit.cache_clear()


def test_the_commit_of_a_checkout(checkout):
    root, package, commit = checkout
    assert provenance.commit(package) == commit


@pytest.mark.parametrize("command", [("pack-refs", "--all"), ("checkout", "-q", "--detach"), ("gc", "-q")])
def test_packed_and_detached(checkout, command):
    root, package, commit = checkout
    git(root, *command)
    assert provenance.commit(package) == commit


@pytest.mark.parametrize("packed", [False, True])
def test_the_commit_of_a_worktree(checkout, tmp_path, packed):
    root, _, first = checkout
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    package = tmp_path / "side" / "src" / "uamcts"
    (package / "more.py").write_text("")
    git(tmp_path / "side", "add", ".")
    git(tmp_path / "side", "commit", "-qm", "second")
    if packed:
        git(root, "pack-refs", "--all")
    found = provenance.commit(package)
    assert found == git(tmp_path / "side", "rev-parse", "HEAD")
    assert found != first


@pytest.mark.parametrize("name", ["src/uamcts/__init__.py", "src/uamcts/new.py", "pyproject.toml"])
def test_a_modified_tree_says_so(checkout, name):
    root, package, commit = checkout
    with open(root / name, "a") as file:
        file.write("# changed\n")
    assert provenance.commit(package) == f"{commit} (modified)"


def test_results_written_into_the_tree_do_not_modify_the_package(checkout):
    root, package, commit = checkout
    (root / "results").mkdir()
    (root / "results" / "summary.json").write_text("{}")
    assert provenance.commit(package) == commit


def test_without_git_nobody_knows_whether_the_tree_is_modified(checkout, monkeypatch):
    root, package, commit = checkout
    monkeypatch.setenv("PATH", "")
    assert provenance.commit(package) == f"{commit} (unknown whether modified)"


def test_no_commit_of_somebody_elses_repository(checkout):
    """Installed in an environment inside another project; or copied into one; or not in a repository at all."""
    root, package, _ = checkout
    (root / "pyproject.toml").write_text('[project]\nname = "somebodys-robot"\n')
    installed = root / ".venv" / "lib" / "python3.11" / "site-packages" / "uamcts"
    shutil.copytree(package, installed)
    assert provenance.commit(installed) is None
    assert provenance.commit(package) is None
    (root / "pyproject.toml").write_text('[project]\nname = "uamcts"\n')
    assert provenance.commit(installed) is None
    provenance.commit.cache_clear()
    shutil.rmtree(root / ".git")
    assert provenance.commit(package) is None


def test_before_the_first_commit(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("no git")
    package = tmp_path / "src" / "uamcts"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "uamcts"\n')
    git(tmp_path, "init", "-q")
    assert provenance.commit(package) is None


# Rules


def test_trust_is_stored_under_its_own_rules(tmp_path):
    """Under both of the paper's rule sets it is run once, and its best c is chosen among its own runs."""
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
    text = (tmp_path / "out" / "index.html").read_text()
    assert "Released rules" in text
    assert "Trust rules" not in text, "trust is shown beside the others, not by itself"


def test_online_trust_has_its_own_rules_too():
    grid = online_grid(["two_way"], ["combined", "trust"], ["none"], [], 2, 40, 20, 5)
    units = runner.online_units(grid[0], ("released", "pseudocode"), 0)
    assert [(unit.algorithm, unit.rules) for unit in units] == [
        ("combined", "released"), ("trust", "trust"), ("combined", "pseudocode")
    ]  # fmt: skip


# Folders


def test_folders_are_named_after_their_settings():
    def folder(rules="released", seed=0, **changes):
        grid = {"domains": ["breakout"], "algorithms": ["trust"], "exploration": [4.0], "taus": [0.1],
                "iterations": [], "runs": 10, **changes}  # fmt: skip
        return default_folder(offline_grid(**grid), rules, seed)

    first = folder()
    assert str(first).startswith("results/run/breakout-trust-c4-")
    assert len(first.name) == len("breakout-trust-c4-") + 6
    assert folder() == first
    others = {folder(seed=1), folder("both"), folder(runs=11), folder(taus=[1.0]), folder(exploration=[1.0, 2.0]),
              folder(algorithms=["trust", "true"]), folder(domains=["breakout", "freeway"])}  # fmt: skip
    assert len(others | {first}) == 8


def test_what_differs_is_said_in_words():
    def settings(**changes):
        grid = {"domains": ["two_way"], "algorithms": ["trust"], "exploration": [4.0], "taus": [0.1],
                "iterations": [2], "runs": 10, **changes}  # fmt: skip
        from uamcts.lab.reproduce import settings_of

        return json.loads(json.dumps(settings_of(offline_grid(**grid), False, "released", 0)))

    def words(**changes):
        return in_words(differences(settings(), settings(**changes)))

    assert words(runs=20) == "--runs 10 there, 20 here"
    assert words(exploration=[1.0, 2.0]) == "--c 4 there, 1 2 here"
    assert words(iterations=[3]) == "--iterations iterations 2 there, iterations 3 here"
    assert words(runs=20, taus=[1.0], exploration=[]) == (
        "--c 4 there, the default here; --tau 0.1 there, 1 here; --runs 10 there, 20 here"
    )
    several = words(runs=20, taus=[1.0], exploration=[], algorithms=["true"])
    assert several.endswith("; and 1 more")
    assert words(domains=["freeway"]) == "experiments run_two_way there, run_freeway here"
    assert len(words(algorithms=["true", "corrupted", "combined", "selection", "expansion"])) < 120


@pytest.mark.parametrize("content", ["[1, 2]", "3", "{", "", "[" * 100_000])
def test_settings_that_are_none(tmp_path, content):
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(ValueError, match=r"settings.json is damaged or was not written by uamcts; give another folder"):
        Store(tmp_path, {"seed": 0})
    assert (tmp_path / "settings.json").read_text() == content


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exploration": [float("nan")]}, "c is nan"),
        ({"exploration": [-1.0]}, "c is -1.0"),
        ({"runs": 0}, "runs is 0"),
        ({"runs": 10**12}, "runs is 1000000000000"),
        ({"iterations": [10**9]}, "iterations is 1000000000"),
        ({"seed": 2**70}, "seed is 1180591620717411303424"),
        ({"seed": -1}, "seed is -1"),
        ({"rules": "printed"}, "rules is 'printed'"),
    ],
)
def test_everything_is_checked_before_anything_is_written(tmp_path, changes, message):
    grid = {"exploration": [1.0], "runs": 2, "iterations": [2], "seed": 0, "rules": "released", **changes}
    rules, seed = grid.pop("rules"), grid.pop("seed")
    with pytest.raises(ValueError, match=message):
        run_grid(
            offline_grid(domains=["two_way"], algorithms=["corrupted"], taus=[0.1], **grid), rules, seed,
            tmp_path / "out", engine_of("local"), Console(quiet=True),
        )  # fmt: skip
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"exploration": [float("nan")]}, "c is nan"), ({"steps": 10**12}, "steps is 1000000000000"),
     ({"learners": ["forest"]}, "unknown learner 'forest'")],
)  # fmt: skip
def test_online_settings_are_checked_before_anything_is_written(tmp_path, changes, message):
    grid = {"learners": ["none"], "exploration": [], "runs": 2, "steps": 40, "interval": 20, "minibatches": 5}
    with pytest.raises(ValueError, match=message):
        run_grid(online_grid(["two_way"], ["combined"], **{**grid, **changes}), "released", 0, tmp_path / "out",
                 engine_of("local"), Console(quiet=True))  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_options_without_an_end_are_refused():
    with pytest.raises(ValueError, match="give NAME=VALUE"):
        domain_options(["broken=" + "[" * 100_000])


def test_one_run_and_runs_without_an_episode(tmp_path):
    """A run has no interval, and steps too few for an episode give no rows: both are told, neither fails."""
    from uamcts.lab.reproduce import table

    one = run_tiny(tmp_path / "one", runs=1)
    assert one["rows"][0]["ci95"] == [None, None]
    assert "1 runs" in table(one)[0]
    short = online_grid(["breakout"], ["combined"], ["none"], [], 1, 2, 1, 1)
    none = run_grid(short, "released", 0, tmp_path / "none", engine_of("local"), Console(quiet=True))
    assert none["rows"] == []
    assert (tmp_path / "none" / "index.html").exists()


# Files


def test_what_killed_writers_leave_is_removed_and_what_others_write_is_not(tmp_path):
    """A process is killed while it writes, another is still at it: the next write removes the first one's part."""
    program = """
import sys, time
from pathlib import Path
from uamcts.atomic import _temporary
file, name = _temporary(Path(sys.argv[1]))
file.write(b"half")
file.flush()
print(name, flush=True)
time.sleep(600)
"""
    path = tmp_path / "table"
    start = [sys.executable, "-c", program, str(path)]
    dead, alive = (subprocess.Popen(start, stdout=subprocess.PIPE, text=True) for _ in range(2))
    try:
        left, busy = (process.stdout.readline().strip() for process in (dead, alive))
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        (tmp_path / ".mine.part").write_text("somebody's own")
        assert os.path.exists(left)
        atomic.write_whole(path, b"whole")
        assert not os.path.exists(left)
        assert os.path.exists(busy)
        assert path.read_bytes() == b"whole"
        assert (tmp_path / ".mine.part").exists()
    finally:
        for process in (dead, alive):
            process.kill()
            process.communicate()
    Store(tmp_path, {})
    assert not os.path.exists(busy), "opening a folder removes all that is left in it"


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "table"
    atomic.write_whole(path, b"old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        atomic.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["table"]


def test_pictures_are_whole_and_belong_to_the_numbers(tmp_path, monkeypatch):
    """One that is damaged, or of other numbers, is drawn again; a finished one is not."""
    from PIL import Image

    drawn = []
    from uamcts.lab import gifs

    draw = gifs._draw
    monkeypatch.setattr(gifs, "TRIES", 1)
    monkeypatch.setattr(gifs, "LONGEST", 3)
    monkeypatch.setattr(gifs, "_draw", lambda path, *rest: (drawn.append(path.name), draw(path, *rest)))
    table = {**episodes(2), "experiment": np.array(["x", "x"], object), "scenario": np.array(["offline"] * 2, object),
             "algorithm": np.array(["corrupted"] * 2, object), "rules": np.array(["released"] * 2, object),
             "domain": np.array(["two_way"] * 2, object), "tau": np.full(2, 0.1)}  # fmt: skip
    path = tmp_path / "gifs" / "x_corrupted.gif"
    for content in (None, b"", "half", "same", "other version"):
        if content == "half":
            content = path.read_bytes()[: path.stat().st_size // 2]
        if isinstance(content, bytes):
            path.write_bytes(content)
        if content == "other version":
            monkeypatch.setitem(versions.RULE_VERSIONS, "released", 99)
        drawn.clear()
        draw_typical(tmp_path, table, {"x": ()})
        assert len(drawn) == (content != "same"), content
        with Image.open(path) as picture:
            assert picture.n_frames > 1


# Locks


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_folder_without_locks_is_refused(tmp_path, monkeypatch, number):
    store = Store(tmp_path / "out", {})

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(ValueError, match="files cannot be locked"), store.working_on("unit"):
        pytest.fail("it went on without a lock")


def test_a_lock_that_is_taken_is_waited_for(tmp_path):
    store = Store(tmp_path / "out", {})
    with store.working_on("unit") as first, store.working_on("unit") as second:
        assert (first, second) == (True, False)


# Ray


def test_a_wrong_address_is_told_at_once(tmp_path, capsys, monkeypatch):
    ray = pytest.importorskip("ray", reason="no Ray: pip install ray")
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray waits more than a minute for it"))
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "localhost:1"):
        with pytest.raises(ValueError, match=r"nobody answers there .*: start a cluster with"):
            run_grid(offline_grid(["two_way"], ["corrupted"], [], [0.1], [2], 2), "released", 0,
                     tmp_path / "out", engine_of("ray", address), Console(quiet=True))  # fmt: skip
        assert f"connecting to Ray at {address}" in capsys.readouterr().out


def test_what_ray_says_about_an_address_is_one_line(monkeypatch):
    ray = pytest.importorskip("ray", reason="no Ray: pip install ray")
    from uamcts.lab.engines import connect

    def fail(**_):
        raise ConnectionError("Could not find any running Ray instance.\nAnd more")

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(ValueError, match=r"address is 'auto'; Ray cannot connect .*instance\.\): start a cluster"):
        connect("auto")


# Compiled programs

COMPILE = """
import sys
from uamcts.startup import prepare_jax
prepare_jax()
import os
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
import jax
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
print(jax.jit(lambda x: (x @ x.T).sum())(jax.numpy.ones((8, 8))))
"""


def compiled_with(cache):
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", COMPILE], env={**environment, "XDG_CACHE_HOME": str(cache)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip


def test_damaged_programs_are_replaced(tmp_path):
    """Every entry is changed, in every way in turn: the result is right, nothing is said, and the entries are new."""
    folder = tmp_path / "uamcts" / "compiled"
    assert compiled_with(tmp_path).stdout.strip() == "512.0"
    whole = {path.name: path.read_bytes() for path in folder.glob("*-cache")}
    assert whole
    assert folder.stat().st_mode & 0o777 == 0o700
    compiled.tidy(folder)  # as the next start does, which then knows what the entries are
    for damage in (lambda content: content[: len(content) // 2], lambda content: bytes([content[0] ^ 1]) + content[1:]):
        for name, content in whole.items():
            (folder / name).write_bytes(damage(content))
        done = compiled_with(tmp_path)
        assert done.stdout.strip() == "512.0"
        assert done.stderr == ""
        assert {path.name for path in folder.glob("*-cache")} == whole.keys()
        compiled.tidy(folder)
        assert {path.name for path in folder.glob("*-cache")} == whole.keys(), "damaged entries were kept"


def test_a_program_that_was_written_by_half_is_removed(tmp_path):
    """By a process that was killed: it was never seen whole."""
    import zlib

    content = zlib.compress(os.urandom(1000))
    (tmp_path / "a-cache").write_bytes(content[:500])
    (tmp_path / "b-cache").write_bytes(content)
    compiled.tidy(tmp_path)
    assert [path.name for path in tmp_path.glob("*-cache")] == ["b-cache"]


def test_the_oldest_programs_go_first(tmp_path):
    import zlib

    for age, name in enumerate(("new", "old", "older")):
        path = tmp_path / f"{name}-cache"
        path.write_bytes(zlib.compress(os.urandom(1000)))
        os.utime(path, (time.time() - 1000 * age,) * 2)
    compiled.tidy(tmp_path, limit=2500)
    assert {path.name for path in tmp_path.glob("*-cache")} == {"new-cache", "old-cache"}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch, capsys, mode):
    folder = tmp_path / "uamcts" / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiled.cache_folder() is None
    assert "can be written to by others: chmod 700" in capsys.readouterr().err
    folder.chmod(0o755)
    assert compiled.cache_folder() == folder


def test_somebody_elses_folder_is_not_used(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert compiled.cache_folder() is None
    assert "belongs to another user" in capsys.readouterr().err


def test_a_file_in_the_folders_place_is_told(tmp_path, monkeypatch, capsys):
    (tmp_path / "uamcts").write_text("mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiled.cache_folder() is None
    assert "compiled programs are not kept this time" in capsys.readouterr().err
