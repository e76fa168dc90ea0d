"""The command line, as a person types it."""

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import uamcts
from uamcts.cli import app

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
    assert result.stdout.count("┌") == 5
    assert result.stdout.count("visits") == 5
    assert "two_way, combined: reward 0 in 5 steps (seed 0)" in result.stdout
    for line in result.stdout.splitlines():
        if "*" in line:
            assert int(line.split("*")[1].split()[1]) > 0  # the action taken was visited


def test_play_several_side_by_side_and_as_a_moving_picture(tmp_path):
    from PIL import Image

    path = tmp_path / "episode.gif"
    options = ["--algorithm", "corrupted", "--algorithm", "combined", "--steps", "4", "--quiet", "--gif", str(path)]
    result = runner.invoke(app, ["play", "two_way", *options])
    assert result.exit_code == 0, result.output
    assert "corrupted: reward 0, step 4, goes on    combined: reward 0, step 4, goes on" in result.stdout
    with Image.open(path) as picture:
        assert 1 < picture.n_frames <= 4  # frames that are the same are joined
        assert picture.size == (7 * 16 * 2 + 8, 3 * 16)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["two_way", "--algorithm", "cominbed"], "did you mean 'combined'?"),
        (["two_way", "--tau", "0"], "tau is 0.0"),
        (["two_way", "--rules", "x"], "rules is 'x'"),
        (["two_way", "--gif", "nowhere/x.gif"], "there is no folder nowhere"),
    ],
)
def test_wrong_options_are_told_in_one_line(options, words):
    result = runner.invoke(app, ["play", *options])
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


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


def test_an_unknown_domain_is_answered_with_the_nearest():
    result = runner.invoke(app, ["play", "brekout"])
    assert result.exit_code == 2
    assert "did you mean 'breakout'?" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "part", ["reference", *(pytest.param(part, marks=pytest.mark.long) for part in ("random_play", "moves"))]
)
def test_bench_prints_one_json_object(part):
    command = [sys.executable, "-m", "uamcts", "bench", "--only", part, "--lanes", "8"]
    command += ["--search-lanes", "1", "--steps", "4", "--seconds", "0.01", "--json"]
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "two_way", "--learner", "forest"], "unknown learner 'forest'"),
        (["run", "two_way", "--scenario", "offlin"], "scenario is 'offlin'"),
        (["run", "pong"], "pong"),
    ],
)
def test_run_refuses_what_it_does_not_know(arguments, message):
    found = runner.invoke(app, arguments)
    assert found.exit_code == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr
