"""`uamcts play`: what is on the screen, on a terminal and through a pipe."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import uamcts
from uamcts.cli import app
from uamcts.domains.heat import as_digits
from uamcts.inspector import read_trace
from uamcts.lab.console import boards, play

runner = CliRunner()


def framed(text):
    """The framed boards in a text, each a list of rows."""
    return [[row[1:-1] for row in part.split("\n")[1:-1]] for part in re.findall(r"┌─+┐\n(?:│.*│.*\n)+└─+┘", text)]


def on_a_terminal(arguments, columns, rows=24):
    """What the command writes to a terminal of this size, control codes and all."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "CI"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "uamcts", *arguments]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    written = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(master)
    assert process.wait(timeout=120) == 0, written
    return written.decode().replace("\r\n", "\n")


def screen_of(written, columns):
    """The lines that a terminal shows in the end, and the most that it showed; carries out what is needed here."""
    lines, row, most = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", written):
        if token == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif token.startswith("\x1b["):
            if token.endswith("A"):
                row -= int(token[2:-1] or 1)
            elif token.endswith("K"):
                lines[row] = ""
        elif token != "\r":
            lines[row] += token
            assert len(lines[row]) <= columns, lines[row]
        most = max(most, len(lines))
    return lines, most


@pytest.mark.parametrize("columns", [pytest.param(80, marks=pytest.mark.long), 60])
def test_two_algorithms_are_redrawn_in_place_and_fit_the_terminal(columns):
    arguments = ["play", "two_way", "--algorithm", "mcts", "--algorithm", "ua-mcts", "--steps", "6"]
    written = on_a_terminal(arguments, columns)
    lines, most = screen_of(written, columns)
    assert most <= 24, "it scrolled"
    shown = [line.rstrip() for line in lines if line.strip()]
    assert sum("cut: step 6" in line for line in shown) == 1  # both heads in one line
    assert "two_way, MCTS: reward 0 in 6 steps (seed 0)" in shown
    assert written.count("visits") >= 2 * 6
    assert "\x1b[1;31m" in written  # what is broken is red


def test_three_games_stack_where_the_terminal_is_narrow():
    sizes = ((160, 24, 13, 133), (100, 24, 19, 91), (60, 50, 38, 60), (50, 50, 39, 43), (60, 24, 13, 40))
    heads, board = [boards.Text("MCTS")], [boards.Text("x" * 12)] * 12
    plan = [boards.Text("y" * 29)] * 6
    panels = [(heads, board, plan)] * 3
    for width, height, lines, widest in sizes:
        page = boards.arrange(panels, width, height)
        assert (len(page), boards.width_of(page)) == (lines, widest), width


def test_the_plan_is_that_of_the_board_that_is_shown():
    """Through a pipe: a board for every move, the state in which it was made, and one for the end."""
    result = runner.invoke(app, ["play", "two_way", "--steps", "5", "--algorithm", "mcts-true"])
    assert result.exit_code == 0, result.output
    found = framed(re.sub(r"(?m)^([┌│└].*[┐│┘]).*$", r"\1", result.stdout))
    assert len(found) == 6
    assert result.stdout.count("visits") == 5
    rules = {"right": (0, 1), "left": (0, -1), "up": (-1, 0), "down": (1, 0)}
    taken = re.findall(r"\* (\w+) ", result.stdout)
    places = [next((row, line.index("@")) for row, line in enumerate(board) if "@" in line) for board in found]
    for before, action, after in zip(places[:-1], taken, places[1:], strict=True):
        moved = tuple(np.add(before, rules[action]))
        inside = 0 <= moved[0] < 3 and 0 <= moved[1] < 7
        free = inside and found[0][moved[0]][moved[1]] not in "█▓"
        assert after == (moved if free else before)
    assert places[0] == (1, 0)


def test_u_of_every_action_is_shown_and_broken_cells_are_marked():
    """The cannon of Space Invaders starts in a broken column: there `fire` does nothing, and costs a bullet."""
    for algorithm in ("ua-mcts", "random"):
        result = runner.invoke(app, ["play", "space_invaders", "--steps", "1", "--algorithm", algorithm])
        doubts = {line.split("  ")[-1] for line in result.stdout.splitlines() if " fire " in line}
        (fire,) = (line for line in result.stdout.splitlines() if " fire " in line)
        (left,) = (line for line in result.stdout.splitlines() if " left " in line)
        assert float(fire.split()[-1]) > 0, doubts
        assert float(left.split()[-1]) == 0
        assert "│··999▲9···│" in result.stdout  # U if the cannon stood there
        assert boards.LEGEND in result.stdout


def test_u_is_drawn_on_the_board_in_digits():
    """2-Way: wrong are the moves into the unknown wall, from the cells beside it."""
    result = runner.invoke(app, ["play", "two_way", "--steps", "1", "--algorithm", "random"])
    rows = re.findall(r"│(.{7})│", result.stdout)[:3]
    assert rows == ["·9▓9···", "@█████G", "·······"]
    uncertainty = np.array([[[0.0, 0.1], [np.nan, np.nan], [0.9, 0.2], [0.0, 0.0]]])
    assert as_digits(uncertainty).tolist() == [["1", "", "9", ""]]
    assert as_digits(np.zeros((1, 2))).tolist() == [["", ""]]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("space_invaders", [(9, column) for column in (2, 3, 4, 5, 6)]),
        ("freeway", [(row, 4) for row in (1, 2, 3, 5, 6, 7)]),
        ("breakout", [(9, 2), (9, 4)]),
        ("two_way", [(0, 2)]),
        ("two_way_icy", [(0, 2), (2, 3)]),
        ("shortcut", [(6, 6)]),
    ],
)
def test_wrong_cells_are_where_world_and_model_differ(name, cells):
    domain = uamcts.make(name)
    assert [tuple(cell) for cell in np.argwhere(domain.wrong_cells()).tolist()] == cells
    assert not domain.with_true_model().wrong_cells().any()


def test_wrong_cells_of_drawn_worlds():
    for name in ("hidden_obstacles", "slippery"):
        domain = uamcts.make(name, seed=3)
        rules = domain.world_rules
        assert np.array_equal(domain.wrong_cells(), rules.walls | rules.ice)


def test_a_gif_that_cannot_be_written_is_refused_before_the_game(tmp_path, monkeypatch):
    monkeypatch.setattr(play, "Player", None)  # nobody plays
    (tmp_path / "folder.gif").mkdir()
    for path, words in (("x.mp4", "ends in .gif"), ("no/x.gif", "no folder"), ("folder.gif", "is a folder")):
        result = runner.invoke(app, ["play", "two_way", "--gif", str(tmp_path / path)])
        assert result.exit_code == 2
        assert words in result.stderr


def test_a_finished_player_waits_at_its_last_board(monkeypatch):
    """One algorithm is at the goal long before another: its panel shows the end, not its last plan again and again."""
    player = play.KnowingPlayer("two_way", "random", 0, 2, {})
    assert player.advance()
    assert player.advance()
    assert player.panel()[2]
    assert not player.advance()
    head, _, plan = player.panel()
    assert head[1].plain == "cut: step 2, reward 0"
    assert plan == []
    console = Console(width=80, height=24, force_terminal=True)
    assert len(play.page([player.panel()], console, boards.LEGEND)) == 2 + 5 + 1


def test_an_agent_is_shown_with_the_u_that_it_has_learned(tmp_path):
    """It knows nothing at first. In the first episode it runs into the wall, and from then on U is above 0 there."""
    arguments = ["play", "two_way", "--algorithm", "agent", "--steps", "20", "--trace", str(tmp_path / "t.uamcts")]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    top = re.findall("│(.{7})│", result.output)[::3]  # the first rows of the boards
    met = ["9" in row for row in top].index(True)
    assert met > 2
    assert all(not set("123456789") & set(row) for row in top[:met])
    assert all(row[1] in "9@" for row in top[met:])
    assert "as it has learned so far" in result.output
    moves = read_trace(tmp_path / "t.uamcts")["episodes"][0]["moves"]
    wrong = [move["mistake"] for move in moves]
    assert any(wrong)
    assert not any(wrong[wrong.index(True) + 1 :])  # what it has seen, it believes
    refused = runner.invoke(app, ["play", "two_way", "--practice", "3"])
    assert refused.exit_code == 2
    assert "practice is 3; only an agent learns" in refused.stderr
