"""The page of the inspector: a template, its style and its scripts, and a trace in the middle."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from html import escape
from importlib.resources import files
from pathlib import Path

from uamcts.inspector.trace import Record, pack, read_trace
from uamcts.runtime.atomic import write_whole

SCRIPTS = ("parts.js", "timeline.js", "boards.js", "actions.js", "icicle.js", "app.js")
"""In the order in which they are joined."""
PAGES = (".html", ".htm")
"""How the names of pages end, so that browsers open them as such."""
HEIGHT = 860
"""Pixels of the page in a notebook."""


class Inspection:
    """A trace as a web page. In a notebook it shows itself.

    Args:
        trace: What to show: a trace, or the path of a file that holds one.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The trace is not one, or the file is damaged.

    Example:
        ```python
        Inspection("trace.uamcts").save("plan.html")
        ```
    """

    def __init__(self, trace: Record | str | os.PathLike[str]):
        self.trace: Record = read_trace(trace) if isinstance(trace, (str, os.PathLike)) else trace
        self._packed = pack(self.trace)

    @property
    def html(self) -> str:
        """The whole page."""
        folder = files("uamcts.inspector").joinpath("web")
        style, page = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("inspector.css", "page.html"))
        script = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
        script = f'"use strict";\n(() => {{\n{script}}})();\n'
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = (
            "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        )
        title = f"{self.trace['title']}: what the planner thought"
        parts = {
            "policy": policy, "title": escape(title), "style": style, "script": script,
            "trace": base64.b64encode(self._packed).decode(),
        }  # fmt: skip
        return re.sub("{(policy|title|style|trace|script)}", lambda mark: parts[mark[1]], page)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page to a file, which is replaced as a whole.

        Raises:
            ValueError: The file cannot be written there.
        """
        path = Path(path)
        check_page(path)
        write_whole(path, self.html.encode())
        return path

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="inspector" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        moves = sum(len(episode["moves"]) for episode in self.trace["episodes"])
        noun = "move" if moves == 1 else "moves"
        return f"<Inspection of {self.trace['title']}: {moves} {noun}; save(path) writes the page>"


def check_page(path: Path, argument: str = "path") -> None:
    """Raises a ValueError if no page can be written to this file."""
    check_file(path, argument)
    if path.suffix.lower() not in PAGES:
        raise ValueError(f"{argument} is {path}; give the name of a file that ends in .html, like plan.html")


def check_file(path: Path, argument: str) -> None:
    """Raises a ValueError if no file can be written there."""
    if path.is_dir():
        raise ValueError(f"{argument} is {path}, which is a folder; give a file")
    if not path.parent.is_dir():
        raise ValueError(f"{argument} is {path}; there is no folder {path.parent}: create it, or give another file")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{argument} is {path}; nothing can be written into {path.parent}: give another folder")
