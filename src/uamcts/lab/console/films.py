"""Films of episodes: boards side by side with planner, score and step, as an animated GIF or an animated SVG.

A frame is a list of shapes, laid out once for both formats. The SVG holds every distinct shape once, with the times at
which it is seen, so that it stays small.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from uamcts import colours, names
from uamcts.domains.pictures import Board
from uamcts.runtime.atomic import write_whole

if TYPE_CHECKING:
    from PIL import Image, ImageFont

SECONDS, HOLD = 0.12, 2.5
"""How long a frame is shown, and the last one."""
WIDTH = 264
"""About how many pixels wide a board is drawn, and how many high at most, if `scale` is not given."""
SPACE, BAR, SWATCH = 14, 66, 14
"""Pixels between parts, of a title bar's height, and of a swatch in the legend."""
CARD, BAR_COLOUR = "#0a0d11", "#1b2129"
BROKEN = "{}: the model is wrong here"
APPROACH = {
    "random": "moves at random",
    "true": "plans in the true world",
    "corrupted": "trusts its wrong model",
    "combined": "avoids its model's errors",
    "trust": "avoids its model's errors",
    "agent": "corrects its model",
}
"""What a planner does, in a few words."""


class Scene(NamedTuple):
    """What a film shows of one planner at one time."""

    algorithm: str
    """Its key in `uamcts.names`."""
    score: float
    step: int
    board: Board
    end: str = ""
    """Why the episode is over, in a word; empty while it goes on."""


class Film(NamedTuple):
    """What happened: for each frame, a scene of each planner."""

    title: str
    caption: str
    frames: Sequence[Sequence[Scene]]
    broken: str = "broken"
    """What a place is called at which the model is wrong."""


class Shape(NamedTuple):
    """A part of a frame: a `box`, a `hatch`, or a text: `text` and `bold` begin at x, `small` and `score` end there."""

    layer: int
    kind: str
    x: float
    y: float
    width: float
    height: float
    """Of a text, the size of its font; y is its baseline."""
    colour: str
    text: str = ""


def text_width(text: str, size: float) -> float:
    """About how wide a text is."""
    return 0.56 * size * len(text)


def lay_out(film: Film, scale: int | None = None) -> tuple[list[list[Shape]], tuple[int, int]]:
    """The shapes of each frame, and the width and height of the film."""
    boards = [scene.board.top.shape for scene in film.frames[0]]
    largest = max(max(shape) for shape in boards)
    scale = min(40, max(4, WIDTH // largest)) if scale is None else scale
    widths = [max(columns * scale + 1, 230) for _, columns in boards]
    width = sum(widths) + SPACE * (len(widths) + 1)
    lines = textwrap.wrap(film.caption, max(10, int((width - 2 * SPACE) / text_width("x", 12.5))))
    top = SPACE + (22 if film.title else 0) + 17 * len(lines)
    fixed = [Shape(0, "box", 0, 0, width, 0, CARD)]
    if film.title:
        fixed.append(Shape(3, "bold", SPACE, SPACE + 13, 0, 16, colours.CHALK, film.title))
    fixed += [
        Shape(3, "text", SPACE, top - 17 * (len(lines) - number) + 9, 0, 12.5, colours.SOLID, line)
        for number, line in enumerate(lines)
    ]
    places = [(SPACE * (1 + number) + sum(widths[:number]), top) for number in range(len(widths))]
    bottom = top + BAR + max(rows for rows, _ in boards) * scale + SPACE
    legend, bottom = lay_out_legend(film, width, bottom)
    fixed[0] = fixed[0]._replace(height=bottom)
    for scene, place in zip(film.frames[0], places, strict=True):
        fixed += _grid(scene.board, place, scale)
    frames = []
    for scenes in film.frames:
        shapes = [*fixed, *legend]
        for scene, place, wide in zip(scenes, places, widths, strict=True):
            shapes += _title_bar(scene, place, wide) + _things(scene.board, place, scale)
        frames.append(sorted(shapes, key=lambda shape: shape.layer))
    return frames, (int(width), int(bottom))


def lay_out_legend(film: Film, width: float, top: float) -> tuple[list[Shape], float]:
    """The legend, in as many rows as it needs, and where it ends."""
    scenes = [scene for scenes in film.frames for scene in scenes]
    seen = {name.rstrip("0123456789"): colour for scene in scenes for name, colour in scene.board.legend()}
    entries = (
        [(BROKEN.format(film.broken), colours.HATCH)] if any(scene.board.wrong.any() for scene in scenes[:1]) else []
    )
    shapes, x, y = [], float(SPACE), top
    for name, colour in (*entries, *seen.items()):
        wide = SWATCH + 6 + text_width(name, 12) + SPACE
        if x > SPACE and x + wide > width:
            x, y = float(SPACE), y + SWATCH + 7
        kind = "hatch" if colour == colours.HATCH else "box"
        shapes.append(Shape(1, kind, x, y, SWATCH, SWATCH, colour))
        shapes.append(Shape(3, "text", x + SWATCH + 6, y + 11.5, 0, 12, colours.CHALK, name))
        x += wide
    return shapes, y + (SWATCH + SPACE if shapes else 0)


def _title_bar(scene: Scene, place: tuple[float, float], width: float) -> list[Shape]:
    x, y = place
    title, score = names.title(scene.algorithm), f"{scene.score:g}"
    words = APPROACH.get(scene.algorithm, "is careful in one phase")
    colour = colours.PLANNERS.get(scene.algorithm, colours.SOLID)
    shapes = [
        Shape(1, "box", x, y, width, BAR - 6, BAR_COLOUR),
        Shape(2, "box", x, y, 5, BAR - 6, colour),
        Shape(3, "bold", x + 14, y + 18, 0, 14, colours.CHALK, title),
        Shape(3, "text", x + 14, y + 51, 0, 11.5, colours.CHALK, f"step {scene.step}"),
        Shape(3, "small", x + width - 10, y + 18, 0, 11.5, colours.SOLID, "score"),
        Shape(3, "score", x + width - 10, y + 48, 0, 24 if len(score) < 4 else 15, colours.CHALK, score),
    ]
    said = ("bold", colours.PLAYER, scene.end) if scene.end else ("text", colours.SOLID, words)
    return [*shapes, Shape(3, said[0], x + 14, y + 35, 0, 11.5, *said[1:])]


def _grid(board: Board, place: tuple[float, float], scale: int) -> list[Shape]:
    """A board's background, its grid lines and its hatched cells."""
    (rows, columns), (x, y) = board.top.shape, (place[0], place[1] + BAR)
    lines = [Shape(2, "box", x + scale * n, y, 1, scale * rows, colours.GRID) for n in range(columns + 1)]
    lines += [Shape(2, "box", x, y + scale * n, scale * columns, 1, colours.GRID) for n in range(rows + 1)]
    wrong = [
        Shape(1, "hatch", x + scale * column, y + scale * row, scale, scale, colours.HATCH)
        for row, column in np.argwhere(board.wrong).tolist()
    ]
    return [Shape(0, "box", x, y, scale * columns, scale * rows, colours.BOARD), *wrong, *lines]


def _things(board: Board, place: tuple[float, float], scale: int) -> list[Shape]:
    """The things on a board; those in hatched cells are smaller, so that the hatching is seen."""
    shapes = []
    for row, column in np.argwhere(board.top >= 0).tolist():
        edge = scale // 5 if board.wrong[row, column] else 1
        x, y = place[0] + scale * column + edge, place[1] + BAR + scale * row + edge
        size, colour = scale - 2 * edge + 1, board.colours[board.top[row, column]]
        shapes.append(Shape(3, "box", x, y, size, size, colour))
    return shapes


def write_gif(path: Path, film: Film, comment: str = "", scale: int | None = None) -> None:
    """Writes a film as an endless GIF. The file is written atomically."""
    from PIL import Image

    frames, size = lay_out(film, scale)
    painted = [_paint(shapes, size) for shapes in frames]
    sample = painted[0].copy()
    sample.paste(painted[-1].resize((size[0], size[1] // 2)), (0, 0))
    palette = sample.quantize(128)
    images = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in painted]
    durations = [int(1000 * SECONDS)] * (len(images) - 1) + [int(1000 * HOLD)]
    content = io.BytesIO()
    images[0].save(
        content, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, comment=comment.encode()
    )
    write_whole(path, content.getvalue())


@lru_cache
def _font(size: float, bold: bool) -> ImageFont.FreeTypeFont:
    import matplotlib
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def _paint(shapes: Iterable[Shape], size: tuple[int, int]) -> Image.Image:
    """A frame as an RGB image."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", size)
    pen = ImageDraw.Draw(image)
    for shape in shapes:
        ends = (shape.x, shape.y, shape.x + shape.width - 1, shape.y + shape.height - 1)
        if shape.kind == "box":
            pen.rectangle(ends, fill=shape.colour)
        elif shape.kind == "hatch":
            part = Image.new("RGB", (int(shape.width), int(shape.height)), colours.BOARD)
            lines = ImageDraw.Draw(part)
            for start in range(-int(shape.height), int(shape.width), 6):
                lines.line((start, shape.height, start + shape.height, 0), fill=shape.colour, width=2)
            image.paste(part, (int(shape.x), int(shape.y)))
        else:
            font = _font(shape.height, shape.kind in ("bold", "score"))
            anchor = "rs" if shape.kind in ("score", "small") else "ls"
            pen.text((shape.x, shape.y), shape.text, fill=shape.colour, font=font, anchor=anchor)
    return image


def write_svg(path: Path, film: Film, scale: int | None = None) -> None:
    """Writes a film as an endless animated SVG. The file is written atomically."""
    write_whole(path, svg_text(film, scale).encode())


def svg_text(film: Film, scale: int | None = None) -> str:
    """The text of a film's SVG: every distinct shape once, with the times at which it is seen."""
    frames, (width, height) = lay_out(film, scale)
    seen: dict[Shape, list[int]] = {}
    for number, shapes in enumerate(frames):
        for shape in shapes:
            seen.setdefault(shape, []).append(number)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif"><title>{escape(film.title or "Episode")}</title>',
        '<defs><pattern id="broken" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="6" height="6" fill="{colours.BOARD}"/><rect width="2" height="6" fill="{colours.HATCH}"/>'
        "</pattern></defs>",
    ]
    parts += [_svg_shape(shape, _times(seen[shape], len(frames))) for shape in sorted(seen, key=lambda s: s.layer)]
    return "\n".join([*parts, "</svg>\n"])


def _times(frames: Sequence[int], count: int) -> str:
    """The animation of a shape that is seen in some of `count` frames; empty if it is always seen."""
    if len(frames) == count:
        return ""
    visible = np.zeros(count, bool)
    visible[frames] = True
    changes = [0, *(np.flatnonzero(visible[1:] != visible[:-1]) + 1).tolist()]
    total = SECONDS * (count - 1) + HOLD
    values = ";".join("visible" if visible[change] else "hidden" for change in changes)
    times = ";".join(f"{SECONDS * change / total:.5g}" for change in changes)
    return (
        f'<animate attributeName="visibility" calcMode="discrete" dur="{total:g}s" repeatCount="indefinite" '
        f'values="{values}" keyTimes="{times}"/>'
    )


def _svg_shape(shape: Shape, times: str) -> str:
    if shape.kind in ("box", "hatch"):
        fill = "url(#broken)" if shape.kind == "hatch" else shape.colour
        size = f'width="{shape.width:g}" height="{shape.height:g}"'
        return f'<rect x="{shape.x:g}" y="{shape.y:g}" {size} fill="{fill}">{times}</rect>'
    weight = ' font-weight="700"' if shape.kind in ("bold", "score") else ""
    anchor = ' text-anchor="end"' if shape.kind in ("score", "small") else ""
    look = f'font-size="{shape.height:g}" fill="{shape.colour}"{weight}{anchor}'
    return f'<text x="{shape.x:g}" y="{shape.y:g}" {look}>{escape(shape.text)}{times}</text>'
