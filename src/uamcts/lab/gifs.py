"""Moving pictures of typical episodes, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jax

from uamcts.devices import on_a_core
from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.episode import moves
from uamcts.lab.experiments import Options
from uamcts.lab.tables import Episodes
from uamcts.paper import planned_in, search_config
from uamcts.show import frame, write_gif

TRIES, LONGEST = 5, 150


def draw_typical(out: Path, episodes: Episodes, worlds: Mapping[str, Options]) -> None:
    """For those experiments that have offline episodes: an episode of the corrupted and one of the combined agent.

    `worlds` holds the options of each experiment's domain, by the experiment's name.

    Typical: of a few seeds, the one whose reward comes nearest to the mean of the runs.
    """
    folder = out / "gifs"
    for experiment, options in worlds.items():
        offline = (episodes["experiment"] == experiment) & (episodes["scenario"] == "offline")
        for algorithm in ("corrupted", "combined"):
            mine = offline & (episodes["algorithm"] == algorithm) & (episodes["rules"] == "released")
            path = folder / f"{experiment}_{algorithm}.gif"
            if not mine.any() or path.exists():
                continue
            folder.mkdir(exist_ok=True)
            tau = float(episodes["tau"][mine][0])
            mean = float(episodes["reward"][mine & (episodes["tau"] == tau)].mean())
            with on_a_core():
                _draw(path, make(str(episodes["domain"][mine][0]), **dict(options)), algorithm, tau, mean)


def _draw(path: Path, world: Domain, algorithm: str, tau: float, mean: float) -> None:
    domain = planned_in(world, algorithm)
    config = search_config(domain, algorithm, tau=tau)
    played = [list(moves(jax.random.key(seed), domain, config, LONGEST)) for seed in range(TRIES)]
    typical = min(played, key=lambda episode: abs(sum(move.reward for move in episode) - mean))
    states = [typical[0].state, *(move.following for move in typical)]
    write_gif(path, [frame(domain, [state], 12) for state in states])
