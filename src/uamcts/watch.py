"""`uamcts play`: one or several algorithms on the same episode, side by side in the terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jax

from uamcts import show
from uamcts.domains import make
from uamcts.episode import Move, moves
from uamcts.paper import planned_in, search_config

RANDOM = "random"


class Player:
    """One algorithm on its way through an episode."""

    def __init__(self, name: str, algorithm: str, seed: int, steps: int | None, settings: dict[str, Any]):
        domain = make(name)
        self.algorithm = algorithm
        if algorithm == RANDOM:
            self.domain, config = domain, None
        else:
            self.domain = planned_in(domain, algorithm)
            config = search_config(domain, algorithm, **{k: v for k, v in settings.items() if v is not None})
        self.moves = moves(jax.random.key(seed), self.domain, config, steps)
        self.last: Move | None = None
        self.reward, self.steps = 0.0, 0

    def advance(self) -> bool:
        """One move more; False if there is none, because the episode is over or was cut."""
        move = next(self.moves, None)
        if move is None:
            return False
        self.last = move
        self.reward += move.reward
        self.steps += 1
        return True

    def panel(self, with_plan: bool) -> list[str]:
        state = "over" if self.last and self.last.terminal else "goes on"
        title = f"{self.algorithm}: reward {self.reward:g}, step {self.steps}, {state}"
        assert self.last is not None  # noqa: S101 (every episode has a first move)
        return show.panel(self.domain, self.last, title, with_plan)


def watch(
    name: str,
    algorithms: list[str],
    seed: int,
    steps: int | None,
    settings: dict[str, Any],
    gif: Path | None,
    delay: float,
    quiet: bool,
) -> None:
    """Plays, prints and, if asked, draws."""
    if gif is not None and not gif.parent.is_dir():
        raise ValueError(f"gif is {gif}; there is no folder {gif.parent}")
    players = [Player(name, algorithm, seed, steps, settings) for algorithm in algorithms]
    frames = []
    while True:
        advanced = [player.advance() for player in players]
        if not any(advanced):
            break
        if not quiet:
            print(show.beside([player.panel(with_plan=True) for player in players]) + "\n", flush=True)
            time.sleep(delay)
        if gif is not None:
            frames.append(show.frame(players[0].domain, [p.last.following for p in players if p.last]))
    if quiet:
        print(show.beside([player.panel(with_plan=False) for player in players]))
    for player in players:
        print(f"{name}, {player.algorithm}: reward {player.reward:g} in {player.steps} steps (seed {seed})")
    if gif is not None:
        show.write_gif(gif, frames)
        print(f"{gif}: {len(frames)} frames")
