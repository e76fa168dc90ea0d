"""Parts of a web page that stands alone: everything it shows is in it, and its policy forbids it to load anything else.

Functions take text and return HTML; whatever was not written here is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from uamcts.lab.analysis.results import known
from uamcts.lab.report.plots import INK, LINE, PAPER

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="uamcts">
<title>$title</title>
<link rel="icon" href="data:,">
<style>
$css</style>
</head>
<body>
$body
<script>$js</script>
</body>
</html>
""")


@dataclass(frozen=True)
class Cell:
    """What stands in a table's cell, and the value the cell is sorted by (its text if None)."""

    text: str
    value: float | str | None = None
    kind: str = ""
    """Its classes."""


def document(title: str, body: Iterable[str]) -> str:
    """The whole page."""
    script = files("uamcts.lab.report").joinpath("report.js").read_text(encoding="utf-8")
    style = files("uamcts.lab.report").joinpath("report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.substitute(policy=policy, title=escape(title), css=style, body="\n".join(body), js=script)


def heading(level: int, text: str, anchor: str = "") -> str:
    """A heading, with a place to link to if it has a name."""
    place = f' id="{escape(anchor)}"' if anchor else ""
    return f"<h{level}{place}>{escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def code(text: str) -> str:
    """A command."""
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def pairs(entries: Mapping[str, str]) -> str:
    """Names and what they stand for."""
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in entries.items()) + "</dl>"


def table(
    label: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], sortable: bool = True, kind: str = ""
) -> str:
    """A table in a box of its own, which scrolls where the screen is too narrow. `rows` are rows of cells."""
    button = '<th scope="col" aria-sort="none"><button type="button">{}</button></th>'
    head = "".join((button if sortable else '<th scope="col">{}</th>').format(escape(text)) for text in heads)
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return (
        f'<div class="box {escape(kind)}" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<table{_class('sortable' if sortable else '')}><thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    value = cell.text if cell.value is None else cell.value
    return f'<td{_class(cell.kind)} data-value="{escape(str(value))}">{escape(cell.text)}</td>'


def _class(kind: str) -> str:
    return f' class="{escape(kind)}"' if kind else ""


def number(value: Any, places: int = 2) -> Cell:
    """A number; what is none is a dash, and sorted last."""
    if not known(value):
        return Cell("–", "", "number")
    return Cell(f"{value:,d}" if isinstance(value, int) else f"{value:,.{places}f}", value, "number")


def interval(ends: Any, places: int = 2) -> Cell:
    """An interval, sorted by its lower end."""
    if not ends or not all(map(known, ends)):
        return Cell("–", "", "number")
    return Cell(f"{ends[0]:,.{places}f} to {ends[1]:,.{places}f}", float(ends[0]), "number")


def drawing(svg: str, stem: str, caption: str) -> str:
    """A figure's SVG within the page and in its colours; `stem` keeps its names apart from those of other figures."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    svg = re.sub(r'\bid="', f'id="{stem}-', svg)
    svg = svg.replace('href="#', f'href="#{stem}-').replace("url(#", f"url(#{stem}-")
    svg = re.sub(r'width="[^"]*" height="[^"]*" ', "", svg, count=1)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    for colour, own in ((INK, "var(--ink)"), (PAPER, "var(--paper)"), (LINE, "var(--line)")):
        svg = svg.replace(colour, own)
    return _figure(f'<div class="box" tabindex="0" role="region" aria-label="figure">{svg}</div>', caption)


def film(path: Path, caption: str) -> str:
    """A moving picture within the page."""
    content = base64.b64encode(path.read_bytes()).decode()
    return _figure(f'<img src="data:image/gif;base64,{content}" alt="{escape(caption)}">', caption)


def _figure(content: str, caption: str) -> str:
    return f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>"
