"""Episodes as a trace: what was planned, what was believed, and what really happened, move by move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from uamcts.inspector.plans import plan_record, rounded
from uamcts.inspector.trace import FORMAT, VERSION, Record
from uamcts.inspector.views import BelievedOutcome
from uamcts.mcts.config import SearchConfig
from uamcts.names import rules_title
from uamcts.types import PyTree

MOST_MOVES = 3000
"""Moves of a recording; when there are more, the oldest episodes are dropped."""
MOST_NUMBERS = 24
"""Numbers of a state that a move shows, those first that the model has got wrong."""
IMPOSSIBLE = 2.0**-10
"""A real outcome that the model held impossible counts as this likely: ten bits of surprise."""
SLIGHT = 1e-6
"""A difference up to this counts as none: simulators round."""


class Scene(Protocol):
    """What a recorder needs to know about a world."""

    title: str
    summary: str
    actions: Sequence[str]
    chance: bool
    """Whether the model is random."""

    def board(self) -> Record | None: ...

    def frame(self, state: PyTree) -> Record | None:
        """The picture of a state, if there is one."""
        ...

    def vector(self, state: PyTree) -> np.ndarray:
        """The numbers in which states are compared."""
        ...

    def features(self, state: PyTree) -> Sequence[str]:
        """What they are called."""
        ...

    def difference(self, real: PyTree, believed: PyTree) -> float:
        """How far apart two next states are; 0 if they are equal."""
        ...

    def heat(self, state: PyTree, action: object) -> list[list[float]]:
        """U of an action over the cells of the board, [cell, U] where it is above 0."""
        ...


@dataclass(frozen=True)
class Step:
    """What happened in a move."""

    state: PyTree
    action: object
    """Its number, or the action itself if actions are continuous."""
    label: str
    believed: Sequence[BelievedOutcome] = ()
    real: PyTree = None
    reward: float | None = None
    terminal: bool | None = None
    heat: list[list[float]] | None = None
    """What the scene says about U over the cells, if it was asked before."""


def planner_record(name: str, config: SearchConfig | None) -> Record:
    """A planner: its name, and the settings that matter."""
    settings: Record = {}
    if config is not None:
        settings = {"rules": rules_title(config.rules), "graph": "yes" if config.graph else "no"}
        for key in ("iterations", "rollouts", "depth", "c", "gamma"):
            settings[key] = rounded(float(getattr(config, key)))
        if config.reads("tau"):
            settings["tau"] = rounded(float(config.tau))
    return {"name": name[:200], "settings": settings}


@dataclass
class Recorder:
    """Collects the moves of one or several planners in a world."""

    scene: Scene
    planners: list[Record]
    episodes: list[Record] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def start_episode(self, planner: int = 0) -> Record:
        """Starts an episode of a planner."""
        episode: Record = {"planner": planner, "moves": []}
        self.episodes.append(episode)
        return episode

    def add(self, episode: Record, plans: Sequence[Record | None], step: Step, scene: Scene | None = None) -> Record:
        """Adds a move to an episode; `scene` is that of its planner, where planners believe different things."""
        move = move_record(scene or self.scene, plans, step)
        episode["moves"].append(move)
        if not self.names:
            self.names = [name[:200] for name in self.scene.features(step.state)]
        while sum(len(one["moves"]) for one in self.episodes) > MOST_MOVES and len(self.episodes) > 1:
            del self.episodes[0]
        del episode["moves"][:-MOST_MOVES]
        return move

    def trace(self) -> Record:
        """The trace of everything so far."""
        images: dict[str, int] = {}
        episodes = [
            {**episode, "moves": [_number_images(move, images) for move in episode["moves"]]}
            for episode in self.episodes
            if episode["moves"]
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.scene.title[:200],
            "summary": self.scene.summary[:2000],
            "surprise": "bits" if self.scene.chance else "difference",
            "actions": [name[:200] for name in self.scene.actions],
            "features": self.names,
            "board": self.scene.board(),
            "planners": self.planners,
            "images": list(images),
            "episodes": episodes,
        }


def _number_images(move: Record, images: dict[str, int]) -> Record:
    """A move that refers to its images by their numbers: many moves show the same one."""
    found = {
        name: {"image": images.setdefault(move[name]["image"], len(images))}
        for name in ("now", "believed", "real")
        if move[name] is not None and "image" in move[name]
    }
    return {**move, **found} if found else move


def move_record(scene: Scene, plans: Sequence[Record | None], step: Step) -> Record:
    """A move as the trace holds it."""
    likeliest = max(step.believed, key=lambda one: one.chance, default=None)
    expected = None if likeliest is None else likeliest.state
    chance = _chance_of_real(scene, step)
    surprise, mistake = _judge(scene, step, likeliest, chance)
    heat = scene.heat(step.state, step.action) if step.heat is None else step.heat
    return {
        "plans": list(plans),
        "action": step.label[:200],
        "reward": None if step.reward is None else rounded(float(step.reward)),
        "terminal": None if step.terminal is None else bool(step.terminal),
        "now": scene.frame(step.state),
        "believed": scene.frame(expected),
        "real": scene.frame(step.real),
        "believed_reward": None if likeliest is None else rounded(float(likeliest.reward)),
        "believed_terminal": None if likeliest is None else bool(likeliest.terminal),
        "chance": None if chance is None else rounded(chance),
        "numbers": _numbers(scene, step.state, expected, step.real),
        "surprise": None if surprise is None else rounded(surprise),
        "mistake": mistake,
        "heat": [[int(cell), rounded(float(doubt))] for cell, doubt in heat],
    }


def _chance_of_real(scene: Scene, step: Step) -> float | None:
    """The probability that the model gave to what really happened; None if that is not known or it is not random."""
    if step.real is None or not step.believed or not scene.chance:
        return None
    real = scene.vector(step.real)

    def agrees(one: BelievedOutcome) -> bool:
        if step.terminal is not None and one.terminal != bool(step.terminal):
            return False
        return one.state is None or _is_close(scene.vector(one.state), real)

    return min(1.0, sum(one.chance for one in step.believed if agrees(one)))


def _judge(
    scene: Scene, step: Step, likeliest: BelievedOutcome | None, chance: float | None
) -> tuple[float | None, bool]:
    """How surprising a move was, and whether the model was wrong: about the step, or, if random, held it impossible."""
    if step.real is None or likeliest is None:
        return None, False
    if chance is not None:
        return -math.log2(max(chance, IMPOSSIBLE)) + 0.0, chance <= 0
    apart = 0.0 if likeliest.state is None else scene.difference(step.real, likeliest.state)
    ends = step.terminal is not None and bool(step.terminal) != bool(likeliest.terminal)
    pays = step.reward is not None and abs(step.reward - likeliest.reward) > SLIGHT * max(1.0, abs(step.reward))
    return apart, apart > SLIGHT or ends or pays


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-6, atol=1e-9))


def _numbers(scene: Scene, now: PyTree, believed: PyTree, real: PyTree) -> list[list[float | None]]:
    """Numbers of the state, of the believed next one and of the real one: [feature, now, believed, real]."""
    vectors = [
        None if state is None else np.asarray(scene.vector(state), np.float64) for state in (now, believed, real)
    ]
    count = max((vector.size for vector in vectors if vector is not None), default=0)
    places = list(range(count))
    if count > MOST_NUMBERS:
        _, guess, fact = vectors
        if guess is None or fact is None or guess.shape != fact.shape:
            places = []
        else:
            places = np.flatnonzero(np.abs(guess - fact) > SLIGHT)[:MOST_NUMBERS].tolist()
    return [
        [place, *(None if part is None or place >= part.size else rounded(float(part[place])) for part in vectors)]
        for place in places
    ]


def record_plan(
    plan: object, scene: Scene, config: SearchConfig | None, note: str = "", nodes: int | None = None
) -> Record | None:
    """The record of a plan; None where nothing was planned."""
    if plan is None:
        return None
    more = {} if nodes is None else {"nodes": nodes}
    return plan_record(plan, scene.actions, config, note[:3000], **more)  # type: ignore[arg-type]
