"""What a world of the zoo consists of, and the register of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from worlds_apart import World


@dataclass(frozen=True)
class Setting:
    """What is believed and what is real.

    `trues` and `worlds` have one element each, or several where the world changes: each is real for an equal part of
    the episodes.
    """

    wrong: Any
    trues: list[Any]
    worlds: list[Any]
    drifts: bool = False
    """Whether the true simulator changes at every step: a planner in it must not go on from earlier searches."""
    waiting: tuple[int, ...] = ()
    """Where actions take effect later: those that do before the first one of an episode. The true row is told."""


def setting(wrong: Any, true: Any, start: Any, sensor: Any = None) -> Setting:
    """The setting of a simulator and a true simulator, or a list of these, that the real world follows."""
    trues = true if isinstance(true, list) else [true]
    return Setting(wrong, trues, [World(simulator, start, sensor) for simulator in trues])


class Queued(World):
    """A world in which actions wait in a queue before they take effect; `rest` are those before the first one."""

    def __init__(self, simulator: Any, start: Any, rest: tuple[int, ...]) -> None:
        super().__init__(simulator, start)
        self.rest = rest

    def reset(self, seed: int) -> Any:
        self.queue = list(self.rest)
        return super().reset(seed)

    def step(self, action: int) -> Any:
        self.queue.append(action)
        return super().step(self.queue.pop(0))


def delayed(wrong: Any, true: Any, start: Any, waiting: tuple[int, ...]) -> Setting:
    """The setting of a world in which actions take effect later, and `waiting` before the first of them."""
    return Setting(wrong, [true], [Queued(true, start, waiting)], waiting=waiting)


@dataclass(frozen=True)
class Entry:
    """A world of the zoo: what is wrong in it, how to make it, and how it is played."""

    about: str
    make: Callable[[], Setting]
    episodes: int
    longest: int
    told: bool
    """Whether agents are told how many steps are left."""
    parameters: list[str] | None
    """What the agent is told may be off; None: it finds out by itself."""
    lives: int
    """Fresh agents per agent counted, where a life is a single episode and one says little."""
    discount: float
    """Of the rewards that are counted."""
    budget: dict[str, Any] = field(default_factory=dict)


ZOO: dict[str, Entry] = {}


def world(
    name: str,
    about: str,
    *,
    episodes: int = 9,
    longest: int = 60,
    told: bool = False,
    parameters: list[str] | None = None,
    lives: int = 1,
    discount: float = 1.0,
    **budget: Any,
) -> Callable[[Callable[[], Setting]], Callable[[], Setting]]:
    """Registers the function below it, which makes the setting, under a name."""

    def register(make: Callable[[], Setting]) -> Callable[[], Setting]:
        if name in ZOO:
            raise ValueError(f"there are two worlds named {name!r}; give one of them another name")
        ZOO[name] = Entry(about, make, episodes, longest, told, parameters, lives, discount, budget)
        return make

    return register
