"""Folders of results: their names, what is refused before anything is written, locks, and files that are whole."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from tiny_runs import episodes, run_tiny

from uamcts import versions
from uamcts.lab.report.gifs import draw_typical
from uamcts.lab.run.differences import differences, in_words
from uamcts.lab.run.engines import make_engine
from uamcts.lab.run.grid import default_folder, domain_options, offline_grid, online_grid, run_grid
from uamcts.lab.run.store import Store
from uamcts.runtime import atomic, locks

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
        from uamcts.lab.run.reproduce import settings_of

        return json.loads(json.dumps(settings_of(offline_grid(**grid), False, "released", 0)))

    def words(**changes):
        return in_words(differences(settings(), settings(**changes)))

    assert words(runs=20) == "--runs 10 there, 20 here"
    assert words(exploration=[1.0, 2.0]) == "--c 4 there, 1 2 here"
    assert words(iterations=[3]) == "--iterations 2 there, 3 here"
    assert words(iterations=[]) == "--iterations 2 there, the default here"
    assert words(options=(("ice", ((2, 2),)),), domains=["two_way"]) == "--option ice the default there, 2 2 here"
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
            tmp_path / "out", make_engine("local"), Console(quiet=True),
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
                 make_engine("local"), Console(quiet=True))  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_options_without_an_end_are_refused():
    with pytest.raises(ValueError, match="give NAME=VALUE"):
        domain_options(["broken=" + "[" * 100_000])


def test_one_run_and_runs_without_an_episode(tmp_path, without_pictures):
    """A run has no interval, and steps too few for an episode give no rows: both are told, neither fails."""
    from uamcts.lab.console.terminal import result_lines

    one = run_tiny(tmp_path / "one", runs=1)
    assert one["rows"][0]["ci95"] == [None, None]
    assert any(line.split()[-2:][0] == "1" and " - " in line for line in result_lines(one["rows"]))
    short = online_grid(["two_way"], ["combined"], ["none"], [], 1, 2, 1, 1)
    none = run_grid(short, "released", 0, tmp_path / "none", make_engine("local"), Console(quiet=True))
    assert none["rows"] == []
    assert (tmp_path / "none" / "index.html").exists()


# Files


def test_what_killed_writers_leave_is_removed_and_what_others_write_is_not(tmp_path):
    """A process is killed while it writes, another is still at it: the next write removes the first one's part."""
    program = """
import sys, time
from pathlib import Path
from uamcts.runtime.atomic import _temporary
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
    from uamcts.lab.report import gifs

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


class WindowsLocks:
    """The part of `msvcrt` that locks a byte of a file, for the handles of one process."""

    LK_NBLCK = 2

    def __init__(self):
        self.locked = {}

    def locking(self, handle, mode, count):
        assert (mode, count, os.lseek(handle, 0, os.SEEK_CUR)) == (self.LK_NBLCK, 1, 0)
        if self.locked.setdefault(os.fstat(handle).st_ino, handle) != handle:
            raise PermissionError(errno.EACCES, "Permission denied")


def test_folders_work_without_fcntl(tmp_path, monkeypatch):
    """As on Windows, where an open file cannot be renamed either."""
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", WindowsLocks())
    opened, replace = [], os.replace
    temporary = atomic._temporary
    monkeypatch.setattr(atomic, "_temporary", lambda path: opened.append(temporary(path)) or opened[-1])

    def rename(source, target):
        assert all(file.closed for file, _ in opened), "an open file is renamed"
        replace(source, target)

    monkeypatch.setattr(os, "replace", rename)
    store = Store(tmp_path / "out", {"runs": 2})
    assert opened
    with store.working_on("unit") as first, store.working_on("unit") as second, store.working_on("other") as third:
        assert (first, second, third) == (True, False, True)
    atomic.write_whole(tmp_path / "table", b"whole")
    assert (tmp_path / "table").read_bytes() == b"whole"
    assert not list(tmp_path.glob(".*.part"))


def test_a_system_without_locks_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", None)
    store = Store(tmp_path / "out", {})
    with pytest.raises(ValueError, match="neither fcntl nor msvcrt"), store.working_on("unit"):
        pytest.fail("it went on without a lock")


# Ray


def test_a_wrong_address_is_told_at_once(tmp_path, capsys, monkeypatch):
    ray = pytest.importorskip("ray", reason="no Ray: pip install ray")
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray waits more than a minute for it"))
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "localhost:1"):
        with pytest.raises(ValueError, match=r"nothing answers there .*: start a cluster with"):
            run_grid(offline_grid(["two_way"], ["corrupted"], [], [0.1], [2], 2), "released", 0,
                     tmp_path / "out", make_engine("ray", address), Console(quiet=True))  # fmt: skip
        assert f"connecting to Ray at {address}" in capsys.readouterr().out


def test_what_ray_says_about_an_address_is_one_line(monkeypatch):
    ray = pytest.importorskip("ray", reason="no Ray: pip install ray")
    from uamcts.lab.run.engines import connect

    def fail(**_):
        raise ConnectionError("Could not find any running Ray instance.\nAnd more")

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(ValueError, match=r"address is 'auto'; Ray cannot connect .*instance\.\): start a cluster"):
        connect("auto")
