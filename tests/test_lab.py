"""The lab: what is finished is never lost, whoever is killed, however often, and the numbers stay the same."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from uamcts.lab.experiments import paper
from uamcts.lab.experiments.paper import EXPERIMENTS, NAMES, pairs, quick
from uamcts.lab.run import batches, enumeration, runner
from uamcts.lab.run.compute import compute_unit
from uamcts.lab.run.engines import make_engine
from uamcts.lab.run.enumeration import enumerate_units
from uamcts.lab.run.grid import offline_grid, online_grid, run_grid
from uamcts.lab.run.store import Store
from uamcts.lab.run.tables import from_parquet
from uamcts.lab.run.units import OfflineUnit, OnlineUnit
from uamcts.presets import ALGORITHMS, BEST_C

PROGRAM = """
import sys
from pathlib import Path
from uamcts.runtime.jax_setup import prepare_jax
prepare_jax()
from rich.console import Console
from uamcts.lab.run import enumeration, reproduce
from uamcts.lab.run.engines import make_engine
from uamcts.lab.report import sections
from uamcts.lab.run.grid import offline_grid, run_grid
enumeration.BLOCK, enumeration.EPISODES = 1, 1
reproduce.draw_typical, sections._figures = lambda *_: None, lambda *_: ([], [])
run_grid(offline_grid(["two_way"], ["combined"], [1.0, 2.0], [0.1], [4], 6), "released", 0,
         Path(sys.argv[1]), make_engine("local"), Console(quiet=True))
print("finished", flush=True)
"""


pytestmark = pytest.mark.usefixtures("without_pictures")


def start(out, cache):
    """A process that works on `out`. Its compiled programs are kept, so that it gets to work quickly."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONFAULTHANDLER": "0"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(out)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert "finished" in output


def rows(out):
    return from_parquet(out / "episodes.parquet")[0]


def same(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """One whole run in peace: its folder, and the cache its processes share."""
    folder = tmp_path_factory.mktemp("lab")
    finished(start(folder / "out", folder / "cache"))
    return folder


def test_an_undisturbed_run(undisturbed):
    """6 sweep units and, at the best c, 6 fresh ones; a row an episode; summary and page."""
    out = undisturbed / "out"
    table = rows(out)
    assert len(list((out / "units").glob("*.parquet"))) == 12
    assert len(table["reward"]) == 6 * 2 + 6
    assert set(table["purpose"]) == {"sweep", "fresh"}
    assert not set(table["seed"][table["purpose"] == "fresh"]) & set(table["seed"][table["purpose"] == "sweep"])
    summary = json.loads((out / "summary.json").read_text())
    assert {row["algorithm"] for row in summary["rows"]} == {"combined"}
    for name in ("version", "commit", "command", "device", "seconds", "jax", "started"):
        assert name in summary["provenance"]
    _, about = from_parquet(next((out / "units").glob("*.parquet")))
    assert about["provenance"]["seconds"] > 0
    assert "<table" in (out / "index.html").read_text()


def kill_at_work(process, out, delay):
    """kill -9 a moment after the next file of a unit, or after the first of all files. Whether it was still at work."""
    before = len(list(out.rglob("*.[jp]*")))
    while process.poll() is None and len(list(out.rglob("*.[jp]*"))) == before:
        time.sleep(0.002)
    time.sleep(delay)
    at_work = process.poll() is None
    process.kill()
    process.communicate()
    return at_work


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.long)])
def test_killed_and_finished_by_two_processes(undisturbed, tmp_path, kills):
    """kill -9 at random moments of the work: nothing half-written under a name.

    Two processes at once then do the rest: both end well, and the numbers are those of one that works in peace.
    """
    out, dice, killed = tmp_path / "out", random.Random(0), 0
    for _ in range(kills):
        killed += kill_at_work(start(out, undisturbed / "cache"), out, dice.uniform(0.0, 0.05))
        for path in (out / "units").glob("*.parquet"):
            from_parquet(path)
    assert killed, "the processes were too fast to be killed"
    assert len(list((out / "units").glob("*.parquet"))) < 10, "hardly anything is left for two processes"
    for process in [start(out, undisturbed / "cache") for _ in range(2)]:
        finished(process)
    assert same(rows(out), rows(undisturbed / "out"))


def test_ctrl_c_says_how_to_go_on(tmp_path):
    """The command line, interrupted: status 130, one line, no traceback; the folder can be gone on from."""
    command = [sys.executable, "-m", "uamcts", "run", "breakout", "--scenario", "offline", "--runs", "100", "--out"]
    heeds = "import signal, os, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
    wrapper = f"{heeds}; os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", wrapper, *command, str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(300):
        if (tmp_path / "out" / "settings.json").exists():
            break
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "rerun the same command to resume" in errors
    assert "Traceback" not in errors


# A folder that is not what it should be


def tiny(out, runs=2, seed=0):
    grid = offline_grid(["two_way"], ["corrupted"], [], [0.1], [2], runs)
    return run_grid(grid, "released", seed, out, make_engine("local"), Console(quiet=True))


def test_a_folder_of_other_settings_is_refused(tmp_path):
    tiny(tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="holds results of other settings: --seed 0 there, 1 here"):
        tiny(tmp_path / "out", seed=1)
    with pytest.raises(ValueError, match="--runs 2 there, 3 here"):
        tiny(tmp_path / "out", runs=3)
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table at all"])
def test_a_damaged_unit_is_named(tmp_path, content):
    tiny(tmp_path / "out")
    unit = next((tmp_path / "out" / "units").glob("*.parquet"))
    unit.write_bytes(content)
    with pytest.raises(ValueError, match=r"is damaged .* remove it to have it computed again"):
        tiny(tmp_path / "out")
    assert unit.read_bytes() == content
    unit.unlink()
    tiny(tmp_path / "out")


def test_a_file_in_the_folders_place(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ValueError, match="which is a file; give a folder"):
        tiny(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_full_disk(tmp_path):
    """A file system of 64 kB, filled up: an error, and no unit under its name."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small file system needs more rights than this process has")
    try:
        store = Store(place / "out", {})
        (place / "ballast").write_bytes(b"x" * 4096)
        with pytest.raises(OSError, match="No space left"):
            (place / "ballast").write_bytes(b"x" * 1_000_000)
        unit = OfflineUnit(
            "run", "two_way", "released", 0.1, "sweep", (("corrupted", 1.0),), 0, 2, 0, (("iterations", 2),)
        )
        with pytest.raises(OSError, match="No space left"):
            runner.compute_missing(unit, store, lambda: compute_unit(unit, lambda share, words: None, store.units))
        assert not list(place.rglob("*.parquet"))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_read_only_folder(tmp_path):
    """A file system that nobody may write to: refused at once, whether the folder is there already or not."""
    place = tmp_path / "fixed"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a file system needs more rights than this process has")
    try:
        Store(place / "there", {})
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        for name in ("there", "new"):
            with pytest.raises(ValueError, match=r"cannot be written to \(Read-only file system\): give another"):
                Store(place / name, {})
    finally:
        subprocess.run(["umount", str(place)], check=True)


# Grids


def test_a_grid_of_taus_and_budgets(tmp_path):
    """Several budgets are experiments with names of their own, several taus rows of one."""
    named = offline_grid(["two_way", "freeway"], ["combined"], [], [0.1], [2, 4], 2)
    assert [(one.name, one.offline[0].budget) for one in named][:3] == [
        ("run_two_way_2", (("iterations", 2),)), ("run_two_way_4", (("iterations", 4),)),
        ("run_freeway_2", (("iterations", 2),)),
    ]  # fmt: skip
    grid = offline_grid(["two_way"], ["corrupted"], [], [0.1, 10.0], [2], 2)
    summary = run_grid(grid, "released", 0, tmp_path / "out", make_engine("local"), Console(quiet=True))
    assert sorted((row["experiment"], row["tau"]) for row in summary["rows"]) == [
        ("run_two_way", 0.1),
        ("run_two_way", 10.0),
    ]


def test_a_grid_of_learners(tmp_path):
    grid = online_grid(["two_way"], ["combined", "trust"], ["none", "memory"], [], 2, 40, 20, 5)
    units = enumerate_units(grid, ("released",), 0)
    assert [(unit.algorithm, unit.learner, unit.c) for unit in units] == [
        ("combined", "none", 2**0.5), ("combined", "memory", 2**0.5), ("trust", "none", 4.0), ("trust", "memory", 4.0)
    ]  # fmt: skip
    assert {(unit.runs, unit.steps, unit.interval, unit.minibatches) for unit in units} == {(2, 40, 20, 5)}
    with pytest.raises(ValueError, match="unknown learner 'forest'"):
        online_grid(["two_way"], ["combined"], ["forest"], [], 2, 40, None, None)


# Units


@pytest.mark.long
def test_lanes_and_turns_change_nothing(monkeypatch):
    """With 3 lanes, with one each, and with idle ones as on an accelerator: the numbers of a unit are the same."""
    unit = OfflineUnit(
        "run", "breakout", "released", 0.1, "sweep", (("corrupted", 1.0), ("combined", 2.0)), 0, 5, 0,
        (("iterations", 5), ("rollouts", 2), ("depth", 8)),
    )  # fmt: skip
    found = []
    for lanes in (3, 10, 16):
        monkeypatch.setattr(batches, "batch_size", lambda jobs, devices, lanes=lanes: lanes)
        found.append(compute_unit(unit, lambda share, words: None, None))
    assert same(found[0], found[1])
    assert same(found[0], found[2])
    assert len(set(found[0]["steps"])) > 2


@pytest.mark.parametrize(("jobs", "devices"), [(1, 2), (40, 16), (400, 3), (10_000, 2)])
def test_every_device_has_equally_many_lanes(jobs, devices, monkeypatch):
    """Else results would be exchanged between them, and one that is done waits for the others."""
    lanes = batches.batch_size(jobs, devices)
    assert lanes % devices == 0
    assert devices <= lanes <= batches.BATCH * devices
    assert lanes >= min(jobs / 4, batches.BATCH * devices)
    monkeypatch.setattr(batches.jax, "default_backend", lambda: "gpu")
    wide = batches.batch_size(jobs, devices)
    assert wide % devices == 0
    assert max(jobs, batches.WIDE) <= wide < max(jobs, batches.WIDE) + devices


def test_an_online_unit_goes_on_after_a_crash(tmp_path):
    """Stopped after the first of three rounds, as a crash would: the same episodes in the end as in one go."""
    unit = OnlineUnit.with_defaults("two_way", runs=2, steps=120, interval=40, minibatches=50)
    whole = compute_unit(unit, lambda share, words: None, tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()

    class Crash(Exception):
        pass

    def crash(share, words):
        if share > 0.4:
            raise Crash

    with pytest.raises(Crash):
        compute_unit(unit, crash, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    shares = []
    again = compute_unit(unit, lambda share, words: shares.append(share), tmp_path)
    assert min(shares) > 0.4, "it began anew"
    assert same(whole, again)


def test_names_change_with_every_setting():
    base = {"experiment": "a", "domain": "two_way", "rules": "released", "tau": 0.1, "purpose": "sweep",
            "pairs": (("true", 1.0),), "first_seed": 0, "seeds": 5, "seed": 0}  # fmt: skip
    other = {"tau": 1.0, "pairs": (("true", 2.0),), "seeds": 6, "seed": 1, "budget": (("depth", 3),)}
    names = {OfflineUnit(**base).name, *(OfflineUnit(**{**base, key: value}).name for key, value in other.items())}
    assert len(names) == 1 + len(other)


# Declarations


def test_the_papers_experiments_are_all_there():
    assert NAMES == ("space_invaders", "freeway", "breakout", "two_way", "icy", "bandit")
    for name in paper.GAMES:
        part = EXPERIMENTS[name].offline[0]
        assert len(pairs(EXPERIMENTS[name], part)) == 28
        assert part.runs == 100
        assert EXPERIMENTS[name].online[0].runs == 15
        chosen = pairs(quick(EXPERIMENTS[name]), quick(EXPERIMENTS[name]).offline[0])
        assert dict(chosen) == BEST_C[name]
        assert [algorithm for algorithm, _ in chosen] == list(ALGORITHMS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "pong"], "unknown experiment 'pong'"),
        (["reproduce", "--scenario", "both ways"], "scenario is 'both ways'"),
        (["reproduce", "two_way", "--rules", "printed"], "rules is 'printed'"),
        (["reproduce", "two_way", "--engine", "cloud"], "engine is 'cloud'"),
        (["reproduce", "two_way", "--address", "here"], "add --engine ray"),
        (["report", "nowhere"], "summary.json"),
    ],
)
def test_wrong_arguments_are_named(arguments, message, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from uamcts.cli import app

    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 2
    assert message in found.stderr
    assert not list(tmp_path.rglob("*.parquet"))


# Ray


def test_ray_gives_the_same_numbers_although_a_worker_is_killed(tmp_path, monkeypatch):
    """A real local cluster; a worker is killed while it computes, and its unit is run again elsewhere."""
    pytest.importorskip("ray", reason="no Ray: pip install ray")
    program = """
import os, signal, sys, threading, time
from pathlib import Path
import ray
from rich.console import Console
from uamcts.lab.run import enumeration, reproduce
from uamcts.lab.run.engines import make_engine
from uamcts.lab.report import sections
from uamcts.lab.run.grid import offline_grid, run_grid
enumeration.BLOCK, enumeration.EPISODES = 2, 1
reproduce.draw_typical, sections._figures = lambda *_: None, lambda *_: ([], [])
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
killed = []
def killer():
    for _ in range(600):
        time.sleep(0.05)
        for line in os.popen("ps -eo pid,args").read().splitlines():
            if "ray::" in line and "_compute_remotely" in line and "IDLE" not in line:
                os.kill(int(line.split()[0]), signal.SIGKILL)
                killed.append(line)
                return
threading.Thread(target=killer, daemon=True).start()
run_grid(offline_grid(["two_way"], ["corrupted"], [], [0.1], [2], 6), "released", 0, Path(sys.argv[1]),
         make_engine("ray"), Console(quiet=True))
print("killed", len(killed))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "ray")],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "killed 1" in done.stdout
    monkeypatch.setattr(enumeration, "BLOCK", 2)  # the size of `tiny`, which is compiled already
    monkeypatch.setattr(enumeration, "EPISODES", 1)
    tiny(tmp_path / "local", runs=6)
    by_ray, here = rows(tmp_path / "ray"), rows(tmp_path / "local")
    order = [np.lexsort((table["seed"], table["algorithm"].astype(str))) for table in (by_ray, here)]
    for name in ("algorithm", "seed", "reward", "steps", "ended"):
        np.testing.assert_array_equal(by_ray[name][order[0]], here[name][order[1]])
