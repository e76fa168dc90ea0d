"""docs/notebook.ipynb runs from top to bottom, and shows what it is stored with."""

import re

import pytest

from notebook import NOTEBOOK, printed, read_notebook, run_notebook, shown

# Jupyter's own packages, in whatever versions are installed, may warn about one another.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def new():
    return run_notebook()


def test_the_notebook_prints_what_it_is_stored_with(new):
    stored = read_notebook()
    assert printed(new) == printed(stored), "python tests/notebook.py rewrites the outputs"
    assert sum(map(bool, printed(stored))) >= 3
    assert "hill_minutes is about 6, not 1: corrected" in "".join(printed(stored))


def test_the_notebook_shows_a_figure_and_the_inspector(new):
    assert shown(new) == shown(read_notebook()) == ["text/html", "text/plain", "image/png", "text/plain"]
    pages = [
        out.data["text/html"]
        for cell in new.cells
        for out in cell.get("outputs", ())
        if "text/html" in out.get("data", ())
    ]
    assert len(pages) == 1
    assert pages[0].startswith("<iframe srcdoc=")


def test_the_stored_notebook_is_small_and_links_to_pages_that_exist():
    assert NOTEBOOK.stat().st_size < 400_000
    words = "".join(cell.source for cell in read_notebook().cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([\w./]+)\)", words)
    assert len(links) >= 4
    assert all((NOTEBOOK.parent / link).exists() for link in links)
