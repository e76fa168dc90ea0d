"""`uamcts play`: one or several algorithms on the same episode, side by side in the terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from uamcts import names
from uamcts.domains import make
from uamcts.domains.heat import UncertaintyMap
from uamcts.episodes.offline import Move, moves
from uamcts.lab.console import boards
from uamcts.lab.console.films import Film, Scene, write_gif, write_svg
from uamcts.lab.console.inspected import Pages
from uamcts.lab.experiments.paper import IN_WORDS
from uamcts.presets import planning_domain, search_config
from uamcts.uncertainty.true import true_uncertainty

RANDOM = "random"
ENDLESS = 10**9
"""The height of a page if the output is not a terminal."""

Shower = Callable[[boards.Lines], None]


class Player:
    """An algorithm that plays an episode."""

    def __init__(self, name: str, algorithm: str, seed: int, steps: int | None, settings: dict[str, Any]):
        self.domain = make(name)
        self.key = RANDOM if algorithm.lower() == RANDOM else names.algorithm_key(algorithm)
        self.title = names.title(self.key)
        if self.key == RANDOM:
            planned, config = self.domain, None
        else:
            planned = planning_domain(self.domain, algorithm)
            given = {name: value for name, value in settings.items() if value is not None and name != "steps_left"}
            config = search_config(self.domain, algorithm, **given)
        self.planned, self.config = planned, config
        self.moves = moves(jax.random.key(seed), planned, config, steps, settings.get("steps_left", False))
        known = true_uncertainty(planned)
        self._uncertainty = jax.jit(jax.vmap(known, (None, 0)))
        self._map = UncertaintyMap(planned)
        self.last: Move | None = None
        self.reward, self.steps, self.playing = 0.0, 0, True

    def advance(self) -> bool:
        """Makes a move; returns False if there is none, because the episode is over or was cut."""
        move = next(self.moves, None)
        if move is None:
            self.playing = False
            return False
        self.last = move
        self.reward += move.reward
        self.steps += 1
        return True

    @property
    def move(self) -> Move:
        """The last move."""
        assert self.last is not None  # noqa: S101 (every episode has a first move)
        return self.last

    def start(self) -> Scene:
        """What a film shows before the first move."""
        return Scene(self.key, 0.0, 0, self.domain.board(self.move.state))

    def scene(self) -> Scene:
        """What a film shows after the last move."""
        end = ("over" if self.move.terminal else "") if self.playing else self.end
        return Scene(self.key, self.reward, self.steps, self.domain.board(self.move.following), end)

    @property
    def end(self) -> str:
        """Why the episode ended, in a word."""
        return "over" if self.move.terminal else "cut"

    def panel(self) -> boards.Panel:
        """Head, board and plan of the last move, or of the end of the episode."""
        return self.before() if self.playing else self.after()

    def before(self) -> boards.Panel:
        """The panel of the state before the last move, with the plan."""
        uncertainty = np.asarray(self._uncertainty(self.move.state, jnp.arange(self.domain.num_actions))).tolist()
        head = [Text(self.title, "bold"), Text(f"step {self.steps}, reward {self.reward - self.move.reward:g}")]
        board = boards.board_lines(self.domain, self.move.state, self._map(self.move.state))
        return head, board, boards.plan_lines(self.domain, self.move, uncertainty)

    def after(self) -> boards.Panel:
        """The panel of the state after the last move, without a plan."""
        head = [Text(self.title, "bold"), Text(f"{self.end}: step {self.steps}, reward {self.reward:g}")]
        return head, boards.board_lines(self.domain, self.move.following), []


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


def page(panels: list[boards.Panel], console: Console, legend: bool) -> boards.Lines:
    """The panels of all players in the layout that fits the console."""
    height = console.height - 2 if console.is_terminal else ENDLESS
    lines = boards.arrange(panels, console.width, height)
    return [*lines, Text(boards.LEGEND)] if legend else lines


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
) -> None:
    """Plays an episode with each algorithm, prints it, and writes films and the inspector's files if asked."""
    check_film("gif", gif)
    check_film("svg", svg)
    pages.check()
    console = Console(file=sys.stdout, highlight=False)
    players = [Player(name, algorithm, seed, steps, settings) for algorithm in algorithms]
    record = pages.recorder(players, seed, steps, settings.get("steps_left", False))
    marks = players[0].domain.wrong_cells() is not None
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
                show_page(page([player.panel() for player in players], console, marks))
                time.sleep(delay)
        show_page(page([player.panel() for player in players], console, False))
    for player in players:
        print(f"{name}, {player.title}: reward {player.reward:g} in {player.steps} steps (seed {seed})")
    if filmed:
        film = Film(IN_WORDS.get(name, name), players[0].domain.summary, frames)
        for path, write in ((gif, write_gif), (svg, write_svg)):
            if path is not None:
                write(path, film)
                print(f"{path}: {len(frames)} frames")
    if record is not None:
        pages.write(record)
