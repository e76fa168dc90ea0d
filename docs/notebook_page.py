"""A notebook, with the outputs that it is stored with, as a page of the site."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FENCE = "`" * 8
"""Longer than any in a cell."""


def notebook_page(path: Path, prepare: Callable[[str], str]) -> str:
    """The cells of a notebook as Markdown. `prepare` is applied to those that are Markdown already."""
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(prepare(source))
        else:
            parts += [f"```python\n{source}\n```", *map(_show, cell["outputs"])]
    return "\n\n".join(parts) + "\n"


def _show(output: dict[str, Any]) -> str:
    """What a cell printed or showed: a page or a picture in preference to the words that stand for it."""
    if "text" in output:
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    if "text/html" in data:
        shown = "".join(data["text/html"])
    elif "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        shown = f'<img alt="What the cell above draws" src="data:image/png;base64,{picture}">'
    else:
        return f"```text\n{''.join(data['text/plain'])}\n```"
    return f"{FENCE}{{raw}} html\n{shown}\n{FENCE}"
