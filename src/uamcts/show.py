"""Episodes for a terminal and as moving pictures: boards, and beside them what the planner thinks."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np

from uamcts.atomic import write_whole
from uamcts.domains.base import Domain
from uamcts.episode import Move


def plan_lines(domain: Domain, move: Move) -> list[str]:
    """What the planner found for each action: visits, value, uncertainty; a star for the one it took."""
    if move.plan is None:
        return [f"took {domain.action_names[move.action]} at random", f"reward {move.reward:g}"]
    plan = move.plan
    lines = [f"{'':1} {'action':7}{'visits':>7}{'value':>9}{'U':>9}"]
    for action, name in enumerate(domain.action_names):
        star = "*" if action == move.action else ""
        if bool(plan.exists[action]):
            value = f"{float(plan.values[action]):9.3f}" if int(plan.visits[action]) else f"{'-':>9}"
        else:
            value = f"{'left out':>9}"
        row = f"{star:1} {name:7}{int(plan.visits[action]):7}{value}{float(plan.uncertainty[action]):9.4f}"
        lines.append(row)
    return [*lines, f"reward {move.reward:g}"]


def panel(domain: Domain, move: Move, title: str, with_plan: bool) -> list[str]:
    """A board after a move under its title, with the plan behind the move on its right."""
    board = domain.text(move.following).split("\n")
    notes = ["", *plan_lines(domain, move)] if with_plan else []
    width = max(map(len, board))
    rows = itertools.zip_longest(board, notes, fillvalue="")
    return [title, *(f"{left:{width}}  {right}".rstrip() for left, right in rows)]


def beside(panels: list[list[str]]) -> str:
    """Several panels next to each other."""
    widths = [max(map(len, lines)) + 4 for lines in panels]
    rows = itertools.zip_longest(*panels, fillvalue="")
    joined = ("".join(f"{part:{width}}" for part, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in joined)


def write_gif(path: Path, frames: list[np.ndarray], seconds_a_frame: float = 0.12, comment: str = "") -> None:
    """An endless moving picture of RGB frames; the last one stays a while. Written whole, or not at all."""
    from PIL import Image

    buffer = io.BytesIO()
    images = [Image.fromarray(frame) for frame in frames]
    durations = [int(1000 * seconds_a_frame)] * (len(images) - 1) + [1500]
    images[0].save(
        buffer, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, comment=comment.encode()
    )
    write_whole(path, buffer.getvalue())


def frame(domain: Domain, states: list, scale: int = 16) -> np.ndarray:
    """One picture of several states of a domain side by side."""
    pictures = [domain.render(state, scale) for state in states]
    gap = np.full((pictures[0].shape[0], scale // 2, 3), 255, np.uint8)
    return np.concatenate([part for picture in pictures for part in (picture, gap)][:-1], axis=1)
