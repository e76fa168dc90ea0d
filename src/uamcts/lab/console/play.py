"""`uamcts play`: one or several algorithms on the same episode, side by side in the terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from uamcts.lab.console import boards
from uamcts.lab.console.films import Film, Scene, write_gif, write_svg
from uamcts.lab.console.inspected import Pages
from uamcts.lab.console.player import KnowingPlayer, Player
from uamcts.lab.experiments.paper import IN_WORDS

ENDLESS = 10**9
"""The height of a page if the output is not a terminal."""

Shower = Callable[[boards.Lines], None]


def check_film(kind: str, path: Path | None) -> None:
    """Raises a ValueError if no film of this kind, `gif` or `svg`, can be written to this file."""
    if path is None:
        return
    if path.suffix.lower() != f".{kind}":
        raise ValueError(f"{kind} is {path}; give a file name that ends in .{kind}")
    if not path.parent.is_dir():
        raise ValueError(f"{kind} is {path}; there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"{kind} is {path}, which is a folder; give a file")


@contextlib.contextmanager
def screen(console: Console) -> Iterator[Shower]:
    """Shows pages in place on a terminal, and below each other anywhere else."""
    if not console.is_terminal:
        yield lambda lines: print("\n".join([*(line.plain for line in lines), ""]), flush=True)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda lines: live.update(Text("\n").join(lines), refresh=True)


def page(panels: list[boards.Panel], console: Console, legend: str) -> boards.Lines:
    """The panels of all players in the layout that fits the console."""
    height = console.height - 2 if console.is_terminal else ENDLESS
    lines = boards.arrange(panels, console.width, height)
    return [*lines, Text(legend)] if legend else lines


def make_players(
    name: str, algorithms: list[str], seed: int, steps: int | None, settings: dict[str, Any], practice: int
) -> list[Player]:
    """The players of an episode."""
    learning = [algorithm.strip().lower() == "agent" for algorithm in algorithms]
    if practice and not any(learning):
        raise ValueError(
            f"practice is {practice}; only an agent learns from it: give --algorithm agent, or leave it out"
        )
    players: list[Player] = []
    for algorithm, learns in zip(algorithms, learning, strict=True):
        if learns:
            from uamcts.lab.console.agent_player import AgentPlayer

            players.append(AgentPlayer(name, seed, steps, settings, practice))
        else:
            players.append(KnowingPlayer(name, algorithm, seed, steps, settings))
    return players


def watch(
    name: str,
    algorithms: list[str],
    seed: int,
    steps: int | None,
    settings: dict[str, Any],
    gif: Path | None,
    delay: float,
    quiet: bool,
    svg: Path | None = None,
    pages: Pages = Pages(),  # noqa: B008 (frozen)
    practice: int = 0,
) -> None:
    """Plays an episode with each algorithm, prints it, and writes films and the inspector's files if asked."""
    check_film("gif", gif)
    check_film("svg", svg)
    pages.check()
    console = Console(file=sys.stdout, highlight=False)
    players = make_players(name, algorithms, seed, steps, settings, practice)
    record = pages.recorder(players, seed, steps, settings.get("steps_left", False))
    legend = boards.legend(players[0].domain, any(player.learns for player in players))
    filmed = gif is not None or svg is not None
    frames: list[list[Scene]] = []
    with screen(console) as show_page:
        while True:
            advanced = [player.advance() for player in players]
            if not any(advanced):
                break
            if record is not None:
                record.add(advanced)
            if filmed:
                frames += [[player.start() for player in players]] * (not frames) + [[p.scene() for p in players]]
            if not quiet:
                show_page(page([player.panel() for player in players], console, legend))
                time.sleep(delay)
        show_page(page([player.panel() for player in players], console, ""))
    for player in players:
        print(f"{name}, {player.title}: reward {player.reward:g} in {player.steps} steps (seed {seed})")
    if filmed:
        frames[-1] = [player.scene() for player in players]  # which episodes were cut is known now
        world = players[0].domain
        film = Film(IN_WORDS.get(name, name), world.summary, frames, world.broken_name)
        for path, write in ((gif, write_gif), (svg, write_svg)):
            if path is not None:
                write(path, film)
                print(f"{path}: {len(frames)} frames")
    if record is not None:
        pages.write(record)
