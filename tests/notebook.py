"""Runs docs/notebook.ipynb in a kernel of its own, and rewrites the outputs that it is stored with.

python tests/notebook.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
SECONDS = 300
"""For one cell, on a machine that does other things as well."""


def read_notebook() -> nbformat.NotebookNode:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


def run_notebook() -> nbformat.NotebookNode:
    """The notebook with new outputs. A cell that fails is a `CellExecutionError` with its traceback."""
    notebook = read_notebook()
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
        client.execute(cwd=folder, env={**os.environ, "IPYTHONDIR": folder, "JUPYTER_CONFIG_DIR": folder})
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell prints, without pictures and pages."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return ["".join(out.text for out in cell.outputs if out.output_type == "stream") for cell in cells]


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """The kinds of what cells show besides."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    outputs = (out for cell in cells for out in cell.outputs if out.output_type != "stream")
    return [kind for out in outputs for kind in sorted(out.data)]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    nbformat.write(run_notebook(), NOTEBOOK)
    print(f"wrote {NOTEBOOK.name}: {NOTEBOOK.stat().st_size // 1000} kB")
