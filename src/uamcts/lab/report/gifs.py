"""Animated GIFs of typical episodes for the report."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
from PIL import Image

from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.episodes.offline import Move, moves
from uamcts.lab.console.films import Film, Scene, write_gif
from uamcts.lab.experiments.paper import Options
from uamcts.lab.run.tables import Episodes
from uamcts.presets import planning_domain, search_config
from uamcts.runtime.devices import on_a_core
from uamcts.versions import versions_of

TRIES, LONGEST = 5, 150


def draw_typical(out: Path, episodes: Episodes, worlds: Mapping[str, Options]) -> None:
    """Draws a typical episode of MCTS and one of UA-MCTS for every experiment with offline episodes.

    An episode is typical if, among a few seeds, its reward comes closest to the mean of the runs.

    Args:
        out: The results folder; pictures go into `gifs/`. One that was drawn from the same data is not drawn again.
        episodes: All episodes.
        worlds: The domain options of each experiment, by its name.
    """
    folder = out / "gifs"
    for experiment, options in worlds.items():
        offline = (episodes["experiment"] == experiment) & (episodes["scenario"] == "offline")
        for algorithm in ("corrupted", "combined"):
            mine = offline & (episodes["algorithm"] == algorithm) & (episodes["rules"] == "released")
            if not mine.any():
                continue
            path = folder / f"{experiment}_{algorithm}.gif"
            name, tau = str(episodes["domain"][mine][0]), float(episodes["tau"][mine][0])
            mean = float(episodes["reward"][mine & (episodes["tau"] == tau)].mean())
            versions = versions_of(("search", "offline"), name, ("released",), "true")
            comment = json.dumps({"domain": name, "options": options, "tau": tau, "mean": mean, "versions": versions})
            if _comment(path) == comment:
                continue
            folder.mkdir(exist_ok=True)
            with on_a_core():
                _draw(path, make(name, **dict(options)), algorithm, tau, mean, comment)


def _comment(path: Path) -> str:
    """What an existing picture was drawn from; an empty string if there is none or it is damaged."""
    try:
        with Image.open(path) as picture:
            picture.seek(picture.n_frames - 1)  # type: ignore[attr-defined]
            picture.load()
            picture.seek(0)
            return bytes(picture.info.get("comment", b"")).decode()
    except (OSError, ValueError, EOFError, SyntaxError, struct.error):
        return ""


def _draw(path: Path, world: Domain, algorithm: str, tau: float, mean: float, comment: str) -> None:
    domain = planning_domain(world, algorithm)
    config = search_config(domain, algorithm, tau=tau)
    played = [list(moves(jax.random.key(seed), domain, config, LONGEST)) for seed in range(TRIES)]
    typical = min(played, key=lambda episode: abs(sum(move.reward for move in episode) - mean))
    write_gif(path, Film("", "", [[scene] for scene in scenes_of(world, algorithm, typical)]), comment)


def scenes_of(world: Domain, algorithm: str, episode: Sequence[Move]) -> list[Scene]:
    """The scenes of an episode, from its start to its end."""
    scenes, score = [Scene(algorithm, 0.0, 0, world.board(episode[0].state))], 0.0
    for step, move in enumerate(episode, 1):
        score += move.reward
        end = ("over" if move.terminal else "cut") if step == len(episode) else ""
        scenes.append(Scene(algorithm, score, step, world.board(move.following), end))
    return scenes
