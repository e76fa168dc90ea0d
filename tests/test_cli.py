"""The command line, as a person types it."""

import json
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
def test_play_shows_an_episode(name):
    result = runner.invoke(app, ["play", name, "--quiet", "--seed", "3"])
    assert result.exit_code == 0
    assert f"{name}: reward " in result.stdout
    assert "┌" in result.stdout


def test_play_cuts_where_it_is_told():
    result = runner.invoke(app, ["play", "two_way", "--steps", "5"])
    assert result.stdout.count("┌") == 5
    assert "in 5 steps" in result.stdout


def test_an_unknown_domain_is_answered_with_the_nearest():
    result = runner.invoke(app, ["play", "brekout"])
    assert result.exit_code == 2
    assert "did you mean 'breakout'?" in result.stderr
    assert "Traceback" not in result.output


def test_bench_prints_one_json_object():
    command = [sys.executable, "-m", "uamcts", "bench", "--lanes", "8", "--steps", "4", "--seconds", "0.01", "--json"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    result = json.loads(output)
    assert [row["domain"] for row in result["rows"]] == list(uamcts.DOMAINS)
    assert all(row["steps_per_second"] > 0 for row in result["rows"])


def test_help_is_quick_and_needs_no_jax():
    program = (
        "import sys, uamcts, uamcts.cli; assert 'jax' not in sys.modules, 'jax was loaded'; print(uamcts.__version__)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == uamcts.__version__
