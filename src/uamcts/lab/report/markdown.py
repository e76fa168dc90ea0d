"""Tables of families as Markdown: `python -m uamcts.lab.report.markdown FOLDER [FOLDER ...] [DOCUMENT ...]`.

Without a document, all tables of the folders' `summary.json` are printed. In a document, the text between
`<!-- table NAME -->` and `<!-- end -->` is replaced by the table of that name, and the text between
`<!-- mean EXPERIMENT ALGORITHM -->` (online: and the learner) and `<!-- end -->` by that mean reward, with as many
digits as before. `tests/test_beyond.py` checks that the documents agree with the summaries.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from uamcts.lab.analysis.results import Summary, read
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.report.families import USUAL_TAU, FamilyTable, best_rows, families_of, tables_of_family
from uamcts.lab.report.field_section import field_tables
from uamcts.runtime.atomic import write_whole

_PLACE = re.compile(
    r"(?P<begin><!-- (?P<kind>table|mean) (?P<name>[^>]+?) -->)(?P<now>.*?)(?P<end><!-- end -->)", re.DOTALL
)


def tables_of(found: Summary) -> dict[str, FamilyTable]:
    """All tables of the families in a folder of results, by name."""
    tables = [
        table
        for name, declared in families_of(found).items()
        if name not in FIELD
        for table in tables_of_family(found, name, declared)
    ]
    return {table.name: table for table in (*tables, *field_tables(found))}


def means_of(found: Summary) -> dict[str, float]:
    """The mean reward of every planner in every experiment, by the name that a document refers to."""
    means = {}
    for experiment in dict.fromkeys(row["experiment"] for row in found.rows):
        for planner, row in best_rows(row for row in found.rows if row["experiment"] == experiment).items():
            words = [experiment, planner.algorithm]
            words += [planner.learner] if row["scenario"] == "online" else []
            words += [f"tau {planner.tau:g}"] if planner.tau not in (0.0, USUAL_TAU) else []
            means[" ".join(words)] = row["mean"]
    return means


def as_markdown(table: FamilyTable) -> str:
    """The lines of a table, its head first."""
    cells = [table.heads, ["---"] * len(table.heads), *([cell.text for cell in line] for line in table.lines)]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in cells)


def fill(text: str, *sources: Summary) -> str:
    """The text of a document with its tables and means replaced by those of one or several results folders.

    If two folders have the same table or mean, the later one wins.
    """
    tables = {name: table for found in sources for name, table in tables_of(found).items()}
    means = {name: mean for found in sources for name, mean in means_of(found).items()}

    def put(place: re.Match[str]) -> str:
        name, known = place["name"], tables if place["kind"] == "table" else means
        if name not in known:
            raise ValueError(f"there is no {place['kind']} {name!r}; there are {', '.join(known)}")
        if place["kind"] == "table":
            return f"{place['begin']}\n\n{as_markdown(tables[name])}\n\n{place['end']}"
        digits = len(place["now"].partition(".")[2])
        return f"{place['begin']}{means[name]:.{digits}f}{place['end']}"

    return _PLACE.sub(put, text)


def main(arguments: Sequence[str]) -> None:
    """Prints the tables of some folders, or fills them into documents."""
    folders = [Path(argument) for argument in arguments if not argument.endswith(".md")]
    documents = [Path(argument) for argument in arguments if argument.endswith(".md")]
    if not folders:
        raise SystemExit("give a folder of results, and the documents (.md) to fill, if any")
    sources = [read(folder) for folder in folders]
    for path in documents:
        write_whole(path, fill(path.read_text(encoding="utf-8"), *sources).encode())
    if not documents:
        for table in (table for found in sources for table in tables_of(found).values()):
            print(f"{table.title}: `{table.name}`\n\n{as_markdown(table)}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
