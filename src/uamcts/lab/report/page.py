"""The report's web page: blocks of content, and the Jinja2 templates that turn them into HTML.

The page stands alone: it contains everything it shows, and its content policy forbids loading anything else. Templates
escape all text. Blocks are plain data, so that figures and numbers can be prepared where Jinja2 is not installed.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from uamcts.colours import INK, LINE, PAPER
from uamcts.lab.analysis.selection import is_number


@dataclass(frozen=True)
class Block:
    """A part of the page; its template shows it."""

    template: ClassVar[str]


@dataclass(frozen=True)
class Heading(Block):
    """A heading, with an anchor to link to."""

    template = "heading.html"
    level: int
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Paragraph(Block):
    """A paragraph; `kind` is its CSS class."""

    template = "paragraph.html"
    text: str
    kind: str = ""


@dataclass(frozen=True)
class Code(Block):
    """A command."""

    template = "code.html"
    text: str


@dataclass(frozen=True)
class Links(Block):
    """Links within the page: anchors and texts."""

    template = "links.html"
    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Pairs(Block):
    """Names and their values."""

    template = "pairs.html"
    entries: Mapping[str, str]


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    value: float | str | None = None
    """What the cell is sorted by. None: its text."""
    kind: str = ""
    """CSS classes."""

    @property
    def sort_value(self) -> float | str:
        return self.text if self.value is None else self.value


@dataclass(frozen=True)
class Table(Block):
    """A table that is sorted by a click on a column's head and scrolls where the screen is too narrow.

    A `filtered` one follows the buttons of the tally.
    """

    template = "table.html"
    label: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    kind: str = ""
    filtered: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, or a moving picture as base64."""

    caption: str
    svg: str = ""
    gif: str = ""
    file: str = ""
    """The path of the figure's SVG file, next to the page."""


@dataclass(frozen=True)
class Gallery(Block):
    """Pictures next to each other; `kind` is a CSS class."""

    template = "gallery.html"
    kind: str
    pictures: Sequence[Picture]

    @property
    def cells(self) -> list[list[Picture]]:
        """The pictures, films that follow each other together."""
        return [
            part
            for film, group in itertools.groupby(self.pictures, lambda one: bool(one.gif))
            for part in ([list(group)] if film else [[one] for one in group])
        ]


@dataclass(frozen=True)
class Legend(Block):
    """What the colours of several figures mean: colours and names."""

    template = "legend.html"
    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Bar:
    """A line of a tile."""

    name: str
    value: str
    colour: str
    share: float
    """The length of its bar, between 0 and 1."""
    words: str = ""
    """What is shown where a reader points at it."""


@dataclass(frozen=True)
class Tiles(Block):
    """The most important numbers: titles, each with a few bars."""

    template = "tiles.html"
    caption: str
    tiles: Sequence[tuple[str, Sequence[Bar]]]


@dataclass(frozen=True)
class Tally(Block):
    """How many claims have each verdict, as one bar: (verdict, CSS class, count)."""

    template = "tally.html"
    counts: Sequence[tuple[str, str, int]]


@dataclass(frozen=True)
class Estimate:
    """A line of a forest plot."""

    text: str
    place: str
    sign: str
    kind: str
    """The CSS class of its verdict."""
    words: str
    """What is shown where a reader points at it."""
    middle: float
    half: float
    """Its interval is middle - half to middle + half, between -1 and 1."""
    band: float = 0.0
    """The tolerance around 0; 0 if there is none."""


@dataclass(frozen=True)
class Forest(Block):
    """Estimates with their intervals around 0."""

    template = "forest.html"
    rows: Sequence[Estimate]


@dataclass(frozen=True)
class Fold(Block):
    """Blocks that a reader opens."""

    template = "fold.html"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Files(Block):
    """Links to files next to the page: names and paths."""

    template = "files.html"
    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Footer(Block):
    """The end of the page."""

    template = "footer.html"
    blocks: Sequence[Block]


def render(title: str, body: Iterable[Block]) -> str:
    """The HTML of the whole page.

    Raises:
        ModuleNotFoundError: If Jinja2 is not installed.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("uamcts.lab.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    folder = files("uamcts.lab.report").joinpath("templates")
    script, style = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("report.js", "report.css"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template("page.html")
    return page.render(title=title, body=list(body), policy=policy, style=style, script=script)


def number(value: object, places: int = 2) -> Cell:
    """A cell with a number; a dash, sorted last, if it is none."""
    if not is_number(value):
        return Cell("–", "", "number")
    return Cell(f"{value:,d}" if isinstance(value, int) else f"{value:,.{places}f}", value, "number")


def interval(ends: Sequence[float | None] | None, places: int = 2) -> Cell:
    """A cell with an interval, sorted by its lower end."""
    found = [end for end in ends or () if is_number(end)]
    if not found or len(found) < len(ends or ()):
        return Cell("–", "", "number")
    return Cell(f"{found[0]:,.{places}f} to {found[1]:,.{places}f}", float(found[0]), "number")


def drawing(svg: str, stem: str, caption: str) -> Picture:
    """A figure in the page's own fonts and colours; `stem` keeps its ids apart from those of other figures."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    svg = re.sub(r'\bid="', f'id="{stem}-', svg)
    svg = svg.replace('href="#', f'href="#{stem}-').replace("url(#", f"url(#{stem}-")
    svg = re.sub(r'width="[^"]*" height="[^"]*" ', "", svg, count=1)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    for colour, own in ((INK, "var(--ink)"), (PAPER, "var(--paper)"), (LINE, "var(--line)")):
        svg = svg.replace(colour, own)
    return Picture(caption, svg=svg, file=f"figures/{stem}.svg")


def film(path: Path, caption: str) -> Picture:
    """A moving picture from a GIF file."""
    return Picture(caption, gif=base64.b64encode(path.read_bytes()).decode())
