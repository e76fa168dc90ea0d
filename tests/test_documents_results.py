"""Numbers that the pages about the paper take from the committed results (docs/results) are those of the results.

The tables of the other pages are filled in between markers: `tests/test_beyond.py` compares those.
"""

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = {
    name: json.loads((ROOT / "docs" / "results" / name / "summary.json").read_text())
    for name in ("paper", "pseudocode")
}
COLUMNS = {
    "space invaders": "space_invaders",
    "freeway": "freeway",
    "breakout": "breakout",
    "2-way": "two_way",
    "icy": "two_way_icy",
}
"""The heading of a column, and its domain."""
ROWS = {
    "MCTS in the true world": "true",
    "MCTS": "corrupted",
    "UA-Backpropagation": "backpropagation",
    "UA-Selection": "selection",
    "UA-Expansion": "expansion",
    "UA-Simulation": "simulation",
    "UA-MCTS": "combined",
}
"""How a row begins, and its algorithm."""
PAGES = {"docs/results/paper.md": ("paper", "pseudocode")}
AT_LEAST = {"docs/results/paper.md": 50}
NUMBER = re.compile(r"-?\d+\.\d+ \[-?\d+\.\d+, -?\d+\.\d+\]")


def cells(page: str):
    """(first cell of the row, heading of the column, number) of every result in the tables of a page."""
    heading: list[str] = []
    lines = (ROOT / page).read_text().splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        parts = [part.strip().strip("*") for part in line.strip().strip("|").split("|")]
        if following.startswith("|---"):
            heading = [re.sub(r" \(.*", "", part).lower() for part in parts]
        elif line.startswith("|") and len(parts) == len(heading):
            for title, part in zip(heading[1:], parts[1:], strict=True):
                if title in COLUMNS and (found := NUMBER.match(part)):
                    yield parts[0], title, found[0]


def written(row: dict) -> str:
    """A row of the results as the pages write it."""
    low, high = row["ci95"]
    return f"{row['mean']:.2f} [{low:.2f}, {high:.2f}]"


def known(names: tuple[str, ...], domain: str, algorithm: str | None) -> set[str]:
    rows = [row for name in names for row in RESULTS[name]["rows"]]
    chosen = [row for row in rows if row["domain"] == domain and algorithm in (None, row["algorithm"])]
    return {written(row) for row in chosen}


@pytest.mark.parametrize("page", PAGES)
def test_tables_have_the_numbers_of_the_results(page):
    looked = 0
    for row, column, number in cells(page):
        algorithm = next((ROWS[name] for name in ROWS if row.startswith(name)), None)
        assert number in known(PAGES[page], COLUMNS[column], algorithm), f"{row}, {column}: {number}"
        looked += 1
    assert looked >= AT_LEAST[page]


@pytest.mark.parametrize(
    ("page", "result"), [("docs/results/paper.md", "paper"), ("docs/results/paper.md", "pseudocode")]
)
def test_counts_of_verdicts_are_those_of_the_results(page, result):
    verdicts = [claim["verdict"] for claim in RESULTS[result]["claims"] if claim["verdict"] != "not measured"]
    counts = [len(verdicts), *(verdicts.count(name) for name in ("holds", "too close to call", "does not hold"))]
    text = " ".join((ROOT / page).read_text().split())
    pattern = r"[Oo]f (?:the paper's )?(\d+) claims (\d+) hold, (\d+) (?:is|are) too close to call, (\d+) do not hold"
    assert counts in [list(map(int, found)) for found in re.findall(pattern, text)]


def test_the_chart_of_the_readme_shows_the_table():
    """`python benchmarks/kinds_of_error.py docs/concepts/corrections.md docs/kinds_of_error.png` draws it anew."""
    Image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install '.[lab]'")
    chart = runpy.run_path(str(ROOT / "benchmarks" / "kinds_of_error.py"))
    table = chart["read_table"]((ROOT / "docs" / "concepts" / "corrections.md").read_text())
    with Image.open(ROOT / "docs" / "kinds_of_error.png") as picture:
        assert picture.text["Description"] == str(table)


@pytest.mark.parametrize("name", ["planners", "mandatory"])
def test_charts_of_tables_show_them(name):
    """`python benchmarks/table_chart.py docs/results/beyond.md "NAME offline" FILE` draws one anew."""
    Image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install '.[lab]'")
    chart = runpy.run_path(str(ROOT / "benchmarks" / "table_chart.py"))
    table = chart["read_table"]((ROOT / "docs" / "results" / "beyond.md").read_text(), f"{name} offline")
    assert len(table) >= 5
    assert all("Trust search" in planners for planners in table.values())
    with Image.open(ROOT / "docs" / "results" / "beyond" / "figures" / f"{name}.png") as picture:
        assert picture.text["Description"] == str(table)
