"""`uamcts play --html` and `--trace`: an episode for the inspector, with what every planner would do in each state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from uamcts.episodes.offline import LONGEST, plan_move
from uamcts.inspector import Inspection, write_trace
from uamcts.inspector.domain_scene import DomainScene
from uamcts.inspector.page import check_file, check_page
from uamcts.inspector.recorder import Recorder, Step, planner_record, record_plan
from uamcts.inspector.trace import Record

if TYPE_CHECKING:
    from uamcts.lab.console.player import Player

SHARED_NODES = 150
"""Nodes of a search in a trace of several planners, each of which plans in the states of the others too."""


@dataclass(frozen=True)
class Pages:
    """The files that are asked for."""

    html: Path | None = None
    trace: Path | None = None

    def check(self) -> None:
        """Raises a ValueError if one of them cannot be written."""
        if self.html is not None:
            check_page(self.html, "html")
        if self.trace is not None:
            check_file(self.trace, "trace")

    def recorder(
        self, players: Sequence[Player], seed: int, steps: int | None, steps_left: bool
    ) -> EpisodeRecorder | None:
        """What records the episode; None if no file is asked for."""
        if self.html is None and self.trace is None:
            return None
        limit = (steps or players[0].domain.time_limit or LONGEST) if steps_left else None
        return EpisodeRecorder(players, seed, limit)

    def write(self, record: EpisodeRecorder) -> None:
        """Writes the files and says so."""
        trace = record.recorder.trace()
        if self.trace is not None:
            write_trace(self.trace, trace)
            print(f"{self.trace}: the trace; `uamcts inspect {self.trace}` makes a page of it")
        if self.html is not None:
            print(f"{Inspection(trace).save(self.html)}: open it in a browser")


class EpisodeRecorder:
    """Records the moves of players, and what the others would have done there."""

    def __init__(self, players: Sequence[Player], seed: int, limit: int | None):
        self.players, self.limit = players, limit
        self._key = jax.random.split(jax.random.key(seed))[1]
        planned: dict[int, DomainScene] = {}
        self._scenes = [
            one.inspected or planned.setdefault(id(one.planned), DomainScene(one.planned)) for one in players
        ]
        self._nodes = SHARED_NODES if len(players) > 1 else None
        named = [planner_record(player.title, player.config) for player in players]
        self.recorder = Recorder(DomainScene(players[0].domain), named)
        self._episodes = [self.recorder.start_episode(number) for number in range(len(players))]

    def add(self, advanced: Sequence[bool]) -> None:
        """Takes in the latest move of every player that has made one."""
        for number, player in enumerate(self.players):
            if advanced[number]:
                self._add(number, player)

    def _add(self, number: int, player: Player) -> None:
        move, scene = player.move, self._scenes[number]
        plans = [self._plan(other, player) for other in range(len(self.players))]
        believed, heat = player.beliefs(scene)
        label = scene.actions[move.action]
        step = Step(move.state, move.action, label, believed, move.following, move.reward, move.terminal, heat)
        self.recorder.add(self._episodes[number], plans, step, scene)

    def _plan(self, other: int, player: Player) -> Record | None:
        """What a planner has planned, or would have, in the state of a player's move."""
        planner, plan = self.players[other], player.move.plan
        if planner is not player:
            plan = None
            if planner.config is not None and not planner.learns:  # an agent plans where it acts
                step = player.steps - 1
                plan = plan_move(self._key, planner.planned, player.move.state, planner.config, step, self.limit)
        return record_plan(plan, self._scenes[other], planner.config, nodes=self._nodes)
