"""The colours of planners and of things on boards: one table each, for figures, films, pages and terminals.

A planner has the same colour everywhere. Its contrast is at least 3 : 1 on white and on the dark pages of the report.
Boards are dark in both; every thing on them has at least 3 : 1 against the background. `tests/test_colours.py` checks
both.
"""

from __future__ import annotations

from collections.abc import Sequence

INK, PAPER, LINE = "#222222", "#ffffff", "#d9d9d9"
"""Text, background and grid of a figure; a page replaces them by its own."""
NIGHT = "#14171b"
"""The background of a dark page."""

PLANNERS = {
    "true": "#009e73",
    "corrupted": "#d55e00",
    "backpropagation": "#c2649a",
    "selection": "#b8860b",
    "expansion": "#2f95b4",
    "simulation": "#868686",
    "combined": "#2b6fd6",
    "trust": "#9467bd",
    "agent": "#c4148c",
}
"""The planners, by the keys of `uamcts.names`: Okabe and Ito's palette, darkened where it is too pale for white."""
OTHERS = ("#c2649a", "#b8860b", "#2f95b4", "#868686", "#7d8f1f")
"""For planners that have no colour of their own."""

BOARD, GRID, HATCH, CHALK = "#11151b", "#2b333d", "#ff7849", "#f2f4f7"
"""A board's background, its grid lines, the hatching of cells in which world and model differ, and its text."""
PLAYER, SHOT, DANGER, TARGET, SOLID, SOFT = "#ffd43b", "#ffffff", "#ff6b9a", "#63d297", "#9aa5b4", "#7c8797"
THINGS = {
    **dict.fromkeys(("paddle", "cannon", "chicken", "agent", "player"), PLAYER),
    **dict.fromkeys(("ball", "friendly_bullet"), SHOT),
    **dict.fromkeys(("enemy_bullet", "trap"), DANGER),
    **dict.fromkeys(("goal", "alien", "alien_left"), TARGET),
    "alien_right": "#4cc3b5",
    **dict.fromkeys(("wall", "unknown_wall"), SOLID),
    **dict.fromkeys(("trail", "start"), SOFT),
    **dict.fromkeys(("brick", "car"), "#5b9df0"),
    "hole": "#8b7cf0",
    "ice": "#8fd8ff",
    "door": "#d19cff",
    "speed1": "#3f6aa8",
    "speed2": "#4777ba",
    "speed3": "#4f84cc",
    "speed4": "#568fde",
    "speed5": "#7db4ff",
}
"""The things on the boards of this package, by the names of their channels."""
MORE_THINGS = (
    "#ffd43b",
    "#5b9df0",
    "#63d297",
    "#ff6b9a",
    "#d19cff",
    "#8fd8ff",
    "#f2a65a",
    "#9aa5b4",
    "#4cc3b5",
    "#ffffff",
)
"""For things that have no colour of their own, one after another."""


def things(names: Sequence[str], count: int | None = None) -> tuple[str, ...]:
    """The colours of a board's channels, by their names; `count` is the number of channels if they have no names."""
    names = [*names, *(f"thing {number}" for number in range(len(names), count or 0))]
    used = {THINGS[name] for name in names if name in THINGS}
    free = [colour for colour in MORE_THINGS if colour not in used] or list(MORE_THINGS)
    unknown = [name for name in names if name not in THINGS]
    return tuple(THINGS.get(name) or free[unknown.index(name) % len(free)] for name in names)


def rgb(colour: str) -> tuple[int, int, int]:
    """A colour like `#ffd43b` as red, green and blue bytes."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue
