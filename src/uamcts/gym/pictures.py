"""Pictures of an environment's states for the inspector: what it renders itself, or the board of a toy text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from uamcts.gym.state_access import StateAccess
from uamcts.gym.wrappers import copy_layers

if TYPE_CHECKING:
    from uamcts.types import Environment, PyTree

Draw = Callable[[Any], Any]
"""`draw(state)`: a text, a board of names or an image."""
RENDERED = ("rgb_array", "rgb_array_list", "ansi", "ansi_list")
"""The modes in which an environment returns a picture."""
TILES = {"S": "start", "F": "ice", "H": "hole", "G": "goal"}


def find_picture(env: Environment, access: StateAccess, example: PyTree) -> Draw | None:
    """What draws the states of an environment; None if nothing does.

    Args:
        env: The private copy that is planned in. Pictures are drawn in a copy of it: to render may change attributes.
        access: Restores states.
        example: A state to try it on: an environment may lack a library that it renders with.
    """
    base = env.unwrapped
    makers = (_rendered, _tiles, _cliff, _taxi)
    for make in makers:
        try:
            draw = make(env, base, access)
            if draw is not None and draw(example) is not None:
                return draw
        except Exception:  # noqa: S112 (whatever an environment raises: the next way may work, and numbers always do)
            continue
    return None


def _rendered(env: Environment, base: Environment, access: StateAccess) -> Draw | None:
    """The environment's own picture, if it was made with a `render_mode` that returns one."""
    if getattr(base, "render_mode", None) not in RENDERED:
        return None
    twin = copy_layers(env)
    bare: Any = twin.unwrapped
    forward = _forward(bare)

    def draw(state: PyTree) -> Any:
        access.restore(twin, state)
        forward()
        picture = bare.render()
        return picture[-1] if isinstance(picture, list) else picture

    return draw


def _forward(base: Environment) -> Callable[[], None]:
    """What brings the positions that MuJoCo draws up to date with a state."""
    if not (hasattr(base, "model") and hasattr(base, "data") and hasattr(base, "mujoco_renderer")):
        return lambda: None
    import mujoco

    return lambda: mujoco.mj_forward(base.model, base.data)


def _tiles(env: Environment, base: Environment, access: StateAccess) -> Draw | None:
    """The board of an environment with a letter for every state, like FrozenLake."""
    letters = np.asarray(getattr(base, "desc", 0)).astype(str)
    if letters.ndim != 2 or letters.size != len(base.P):
        return None
    board = np.array([[TILES.get(letter, letter) for letter in row] for row in letters], dtype=object)
    return _on(board)


def _cliff(env: Environment, base: Environment, access: StateAccess) -> Draw | None:
    """The board of CliffWalking."""
    cliff = np.asarray(getattr(base, "_cliff", 0))
    if cliff.ndim != 2 or cliff.size != len(base.P):
        return None
    board = np.where(cliff, "cliff", "floor").astype(object)
    board[-1, 0], board[-1, -1] = "start", "goal"
    return _on(board)


def _on(board: np.ndarray) -> Draw:
    """Draws a player on the cell with the number of the state."""

    def draw(state: int) -> np.ndarray:
        found = board.copy()
        found.flat[state] = "player"
        return found

    return draw


def _taxi(env: Environment, base: Environment, access: StateAccess) -> Draw | None:
    """Taxi's map: T is the taxi, or t with the passenger in it; p where the passenger waits, and d the destination."""
    stands = getattr(base, "locs", ())
    letters = np.asarray(getattr(base, "desc", 0)).astype(str)
    if not stands or letters.ndim != 2:
        return None

    def draw(state: int) -> str:
        row, column, passenger, destination = base.decode(state)
        found = letters.copy()
        waits = passenger < len(stands)
        marks = [(stands[destination], "d"), *([(stands[passenger], "p")] if waits else []),
                 ((row, column), "T" if waits else "t")]  # fmt: skip
        for (down, across), letter in marks:
            found[1 + down, 1 + 2 * across] = letter
        return "\n".join("".join(line) for line in found)

    return draw
