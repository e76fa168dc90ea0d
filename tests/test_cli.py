"""The command line, as a person types it."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import uamcts
from uamcts import names
from uamcts.cli import app
from uamcts.presets import planning_domain, search_config

runner = CliRunner()


def test_domains_are_listed_a_line_each():
    result = runner.invoke(app, ["domains"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(uamcts.DOMAINS)
    assert "4      306" in lines[0]


@pytest.mark.parametrize("name", uamcts.DOMAINS)
def test_play_random(name):
    result = runner.invoke(app, ["play", name, "--quiet", "--seed", "3", "--algorithm", "random"])
    assert result.exit_code == 0
    assert f"{name}, random: reward " in result.stdout
    assert "┌" in result.stdout


def test_play_shows_the_planners_thoughts():
    result = runner.invoke(app, ["play", "two_way", "--steps", "5"])
    assert result.stdout.count("┌") == 6
    assert result.stdout.count("visits") == 5
    assert "two_way, UA-MCTS: reward 0 in 5 steps (seed 0)" in result.stdout
    for line in result.stdout.splitlines():
        if "*" in line:
            assert int(line.split("*")[1].split()[1]) > 0  # the action taken was visited


def test_play_in_a_random_world_on_graphs_and_trees():
    for options in (
        ["--graph", "--steps-left", "--algorithm", "trust", "--algorithm", "mcts"],
        ["--algorithm", "mcts"],
    ):
        result = runner.invoke(app, ["play", "frozen_lake", "--quiet", "--steps", "2", *options])
        assert result.exit_code == 0, result.output
        assert ("frozen_lake, Trust search: reward " in result.stdout) == ("trust" in options)
        assert "frozen_lake, MCTS: reward " in result.stdout


def test_a_grid_on_graphs_knows_the_time_limit(tmp_path, without_pictures):
    """Both agents know the world, which is slippery: within 100 steps most of their episodes reach the goal."""
    arguments = ["run", "frozen_lake", "--scenario", "offline", "--graph", "--steps-left", "--algorithm", "mcts-true"]
    arguments += ["--runs", "8", "--iterations", "15", "--option", "p=0.9", "--out", str(tmp_path / "out")]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    (row,) = json.loads((tmp_path / "out" / "summary.json").read_text())["rows"]
    assert row["rules"] == "trust"
    assert row["mean"] > 0.4
    assert "on graphs" in (tmp_path / "out" / "index.html").read_text()


def test_play_several_side_by_side_and_as_a_moving_picture(tmp_path):
    from PIL import Image

    path = tmp_path / "episode.gif"
    options = ["--algorithm", "corrupted", "--algorithm", "UA_MCTS", "--steps", "4", "--quiet", "--gif", str(path)]
    result = runner.invoke(app, ["play", "two_way", *options])
    assert result.exit_code == 0, result.output
    assert "cut: step 4, reward 0  cut: step 4, reward 0" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["episode.gif"]
    with Image.open(path) as picture:
        assert picture.n_frames == 5  # the start, and what follows each move
        assert picture.size[0] > 2 * 7 * 16


@pytest.mark.parametrize(
    ("name", "key"),
    [*((one.name, one.key) for one in names.TABLE), *((one.key, one.key) for one in names.TABLE),
     ("UA-MCTS", "combined"), ("ua_mcts", "combined"), ("Mcts_True", "true"), ("UA_Selection", "selection")],
)  # fmt: skip
def test_every_name_of_an_algorithm_is_understood(name, key):
    """By the command line, and by Python's `search_config`; what is stored is the key."""
    domain = uamcts.make("two_way")
    assert names.algorithm_key(name) == key
    if key == "agent":  # more than a search
        return
    assert search_config(domain, name) == search_config(domain, key)
    assert np.array_equal(planning_domain(domain, name).wrong_cells(), planning_domain(domain, key).wrong_cells())


def test_the_names_of_the_documents_are_in_the_help_and_in_the_table():
    assert names.ALGORITHM_NAMES == (
        "mcts-true", "mcts", "ua-backpropagation", "ua-selection", "ua-expansion", "ua-simulation", "ua-mcts", "trust",
        "agent",
    )  # fmt: skip
    assert len({one.title for one in names.TABLE}) == len(names.TABLE)
    assert tuple(uamcts.DOMAINS) == names.DOMAIN_NAMES
    for command in ("play", "run"):
        for flag in ("-h", "--help"):
            shown = runner.invoke(app, [command, flag], env={"COLUMNS": "200"}).stdout
            assert all(f"`{name}`" in shown for name in names.ALGORITHM_NAMES), command


def test_version():
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"uamcts {uamcts.__version__}\n")


@pytest.mark.parametrize(
    ("words", "found"),
    [("uamcts pl", "play"), ("uamcts play br", "breakout"), ("uamcts run two_way --algorithm ua-e", "ua-expansion")],
)
def test_a_shell_completes_commands_domains_and_algorithms(words, found):
    typed = words.split()
    program = "import sys; sys.argv = ['uamcts']; from uamcts.cli import app; app(prog_name='uamcts')"
    environment = {**os.environ, "_UAMCTS_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(typed) - 1)
    command = [sys.executable, "-c", program]
    assert found in subprocess.run(command, env=environment, capture_output=True, text=True).stdout.split()


OFFLINE = ["run", "two_way", "--scenario", "offline", "--out", "out"]
ONLINE = ["run", "two_way", "--out", "out"]
HUGE = str(10**9)
BAD = [
    (["play", "brekout"], "did you mean 'breakout'?"),
    (["play", "two_way", "--algorithm", "ua-mtcs"], "did you mean 'ua-mcts'?"),
    (["play", "two_way", "--algorithm", "cominbed"], "did you mean 'combined'?"),
    (["play", "two_way", "--tau", "0"], "tau is 0.0"),
    (["play", "two_way", "--tau", "nan"], "tau is nan"),
    (["play", "two_way", "--c", "nan"], "c is nan; it must be a finite number"),
    (["play", "two_way", "--c=-1"], "c is -1.0"),
    (["play", "two_way", "--rules", "x"], "rules is 'x'"),
    (["play", "two_way", "--graph"], "algorithm is ua-mcts, which is defined on trees; with --graph give --algorithm"),
    (["play", "two_way", "--gif", "nowhere/x.gif"], "there is no folder nowhere"),
    (["play", "two_way", "--gif", "x.mp4"], "ends in .gif"),
    (["play", "two_way", "--delay", "1e400"], "delay is inf; it must be between 0 and 3600"),
    (["play", "two_way", "--seed", str(2**64)], f"seed is {2**64}; it must be a whole number from 0"),
    (["play", "two_way", "--seed", str(2**32)], f"seed is {2**32}"),
    (["play", "two_way", "--seed", "-1"], "seed is -1"),
    (["play", "two_way", "--steps", HUGE], f"steps is {HUGE}; it must be a whole number from 1 to 10000000"),
    ([*OFFLINE, "--c", "nan"], "c is nan"),
    ([*OFFLINE, "--c", "1", "--c", "inf"], "c is inf"),
    ([*OFFLINE, "--tau", "nan"], "tau is nan"),
    ([*OFFLINE, "--tau=-1"], "tau is -1.0"),
    ([*OFFLINE, "--seed", str(2**70)], "seed is "),
    ([*OFFLINE, "--iterations", HUGE], f"iterations is {HUGE}; it must be a whole number from 1 to 1000000"),
    ([*OFFLINE, "--iterations", "0"], "iterations is 0"),
    ([*OFFLINE, "--graph", "--algorithm", "ua-selection"], "algorithm is ua-selection, which is defined on trees"),
    ([*OFFLINE, "--runs", HUGE], f"runs is {HUGE}"),
    ([*OFFLINE, "--algorithm", "zzz"], "unknown algorithm 'zzz'; there are mcts-true, mcts, "),
    ([*OFFLINE, "--learner", "network"], "learner is network, which --scenario offline does not read; leave --learner"),
    ([*OFFLINE, "--steps", "3"], "steps is 3, which --scenario offline does not read"),
    ([*OFFLINE, "--interval", "3"], "interval is 3, which"),
    ([*OFFLINE, "--minibatches", "3"], "minibatches is 3, which"),
    ([*OFFLINE, "--option", "broken=3"], "broken is 3; give (row, column) pairs, for example broken=[[0, 2]]"),
    ([*OFFLINE, "--option", "broken=[[0]]"], "broken holds (0,)"),
    ([*OFFLINE, "--option", "broken=NaN"], "broken is nan"),
    ([*OFFLINE, "--option", "broken=" + "[" * 5000 + "]" * 5000], "option is 'broken=[[[["),
    ([*OFFLINE, "--option", "broken=" + "[" * 500 + "]" * 500], "option is 'broken=[[[["),
    ([*OFFLINE, "--option", "broken=[[0," + "9" * 4000 + "]]"], "broken holds 9999"),
    ([*OFFLINE, "--option", "broken"], "give NAME=VALUE"),
    ([*OFFLINE, "--option", "holes=1"], "two_way has no option 'holes'"),
    ([*OFFLINE, "--rules", "x"], "rules is 'x'"),
    ([*OFFLINE, "--engine", "x"], "engine is 'x'"),
    ([*OFFLINE, "--address", "x"], "add --engine ray"),
    (["run", "breakout", "--scenario", "offline", "--option", 'severity="x"'], "severity is 'x'"),
    (["run", "slippery", "--scenario", "offline", "--option", "size=1e400"], "size is inf"),
    (["run", "shortcut", "--scenario", "offline", "--option", "door=3"], "door is 3"),
    ([*ONLINE, "--tau", "1"], "tau is 1.0, which --scenario online does not read; leave --tau out, or add --scenario"),
    ([*ONLINE, "--iterations", "3"], "iterations is 3, which --scenario online"),
    ([*ONLINE, "--graph"], "graph is True, which --scenario online does not read; leave --graph out"),
    ([*ONLINE, "--steps-left"], "steps-left is True, which --scenario online does not read; leave --steps-left out"),
    ([*ONLINE, "--c", "nan"], "c is nan"),
    ([*ONLINE, "--steps", HUGE], f"steps is {HUGE}"),
    ([*ONLINE, "--interval", str(10**30)], "interval is 1000"),
    ([*ONLINE, "--minibatches", HUGE], f"minibatches is {HUGE}"),
    ([*ONLINE, "--learner", "forest"], "unknown learner 'forest'"),
    ([*ONLINE, "--scenario", "offlin"], "scenario is 'offlin'"),
    ([*ONLINE, "--rules", "x"], "rules is 'x'"),
    (["run", "pong", "--out", "out"], "unknown domain 'pong'"),
    (["run", "two_way", "--scenario", "offline", "--out", "listed", "--runs", "1"], "settings.json is damaged"),
    (["reproduce", "--seed", str(2**64), "--out", "out"], "seed is "),
    (["reproduce", "nope", "--out", "out"], "unknown experiment 'nope'"),
    (["reproduce", "two_wya", "--out", "out"], "did you mean 'two_way'?"),
    (["beyond", "severty", "--out", "out"], "did you mean 'severity'?"),
    (["bench", "--only", "move"], "unknown benchmark 'move'; did you mean 'moves'?"),
    (["reproduce", "icy", "--rules", "x", "--out", "out"], "rules is 'x'"),
    (["beyond", "--seed=-3", "--out", "out"], "seed is -3"),
    (["report", "nowhere"], "there is no nowhere/summary.json"),
    (["report", "listed"], "listed/summary.json is damaged"),
    (["report", "units"], "no unit in units is finished yet; rerun the command"),
    (["bench", "--batch", str(10**15)], "batch is 1000"),
    (["bench", "--search-batch", "9" * 30], "search_batch is '999"),
    (["bench", "--seconds", "1e400"], "seconds is inf"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=lambda value: " ".join(value)[:60])
def test_wrong_arguments_are_told_in_one_line_before_anything_is_written(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "listed" / "units").mkdir(parents=True)
    (tmp_path / "listed" / "settings.json").write_text("[1]")
    (tmp_path / "listed" / "summary.json").write_text("[1]")
    (tmp_path / "units" / "units").mkdir(parents=True)
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert len(result.stderr) < 1000
    assert result.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["listed", "units"]


@pytest.mark.parametrize(
    "arguments", [["play", "two_way", "--delay", "nan"], ["play", "two_way", "--seed", "9" * 5000]]
)
def test_what_is_no_number_is_refused_by_name(arguments):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert arguments[2] in result.stderr
    assert "Traceback" not in result.stderr


def test_a_grid_of_one_run_is_printed_without_an_interval(tmp_path, without_pictures):
    """One run has no interval, and that is no reason to lose it. What is stored has the old keys."""
    options = ["--runs", "1", "--iterations", "2", "--algorithm", "mcts", "--algorithm", "ua-mcts"]
    result = runner.invoke(app, ["run", "two_way", "--scenario", "offline", *options, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "2-Way GridWorld (run_two_way), offline, authors' program" in lines
    assert lines[-3].split()[:1] + lines[-2].split()[:1] == ["MCTS", "UA-MCTS"]
    assert lines[-2].split()[3:5] == ["-", "1"]
    assert "nan" not in result.stdout
    rows = json.loads((tmp_path / "summary.json").read_text())["rows"]
    assert [row["algorithm"] for row in rows] == ["corrupted", "combined"]


def test_a_reader_that_goes_away_is_no_error():
    """`uamcts domains | head -1`, and a long episode whose reader closes the pipe."""
    for arguments in ("domains", "play two_way --algorithm random --delay 0.01"):
        command = [sys.executable, "-m", "uamcts", *arguments.split()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
            assert process.wait(timeout=120) in (0, 1)
        assert errors == ""


def test_missing_packages_are_named_with_a_command_that_works():
    """The package is not on an index: only what is missing can be installed by name."""
    hide = "import sys; sys.modules['rich'] = None; sys.modules['typer'] = None; sys.argv = ['uamcts', 'domains']; "
    command = [sys.executable, "-c", hide + "from uamcts.__main__ import main; main()"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr == (
        "uamcts: the command line needs typer, rich: pip install typer rich, or in a checkout pip install '.[lab]'\n"
    )


def test_ctrl_c_while_the_command_line_is_imported():
    """The module that it imports first interrupts it, as Ctrl-C would."""
    interrupt = "import sys, types; broken = types.ModuleType('typer'); sys.modules['typer'] = broken; "
    interrupt += "broken.__getattr__ = lambda name: (_ for _ in ()).throw(KeyboardInterrupt); "
    command = [sys.executable, "-c", interrupt + "from uamcts.__main__ import main; main()"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (130, "uamcts: stopped\n")


def test_ctrl_c_ends_quietly():
    command = [sys.executable, "-m", "uamcts", "play", "space_invaders", "--algorithm", "random", "--delay", "5"]
    # Whoever runs the tests may ignore the signal, and that is inherited: as at a terminal, the program must not.
    listen = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen([sys.executable, "-c", listen, *command], env=environment, **pipes) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors.strip() == "uamcts: stopped"


@pytest.mark.parametrize(
    "part", ["reference", *(pytest.param(part, marks=pytest.mark.long) for part in ("random_play", "moves"))]
)
def test_bench_prints_one_json_object(part):
    command = [sys.executable, "-m", "uamcts", "bench", "--only", part, "--batch", "8"]
    command += ["--search-batch", "1", "--steps", "4", "--seconds", "0.01", "--json"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = json.loads(output)["results"][part]["rows"]
    if part == "moves":
        assert [row["search"] for row in rows][:2] == ["plain", "combined"]
    elif part == "random_play":
        assert [row["domain"] for row in rows] == list(uamcts.DOMAINS)
    assert rows
    assert all(row["steps_per_second"] > 0 for row in rows if part != "moves")


def test_help_is_quick_and_needs_no_jax():
    program = (
        "import sys, uamcts, uamcts.cli; assert 'jax' not in sys.modules, 'jax was loaded'; print(uamcts.__version__)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == uamcts.__version__


def test_run_online_goes_on_where_it_was(tmp_path):
    """Rows of what was learned, and the same command twice: the second has nothing left to do."""
    options = [
        "--runs",
        "2",
        "--steps",
        "80",
        "--interval",
        "40",
        "--minibatches",
        "50",
        "--out",
        str(tmp_path / "kept"),
    ]
    first = runner.invoke(app, ["run", "two_way", *options])
    assert first.exit_code == 0, first.output
    rows = [line for line in first.stdout.splitlines() if line.split()[:1] in (["40"], ["80"])]
    assert len(rows) == 2
    assert len(rows[0].split()) == 9
    assert "second half of each run's episodes" in first.stdout
    second = runner.invoke(app, ["run", "two_way", *options])
    assert second.exit_code == 0, second.output
    assert not [line for line in second.stdout.splitlines() if line.split()[:1] == ["40"]]
    assert (tmp_path / "kept" / "episodes.parquet").exists()
    assert (tmp_path / "kept" / "index.html").exists()
    other = runner.invoke(app, ["run", "two_way", *options, "--seed", "1"])
    assert other.exit_code == 2
    assert "give another folder" in other.stderr
