"""Writes the table of worlds in docs/concepts/corrections.md from what `agent_worlds.py --json` wrote.

    python benchmarks/agent_worlds.py --agents 8 --seed 71000 --json worlds.json
    python benchmarks/worlds_table.py docs/concepts/corrections.md worlds.json

Several files are put together, row by row, if their agents have the same seeds: `--rows wrong,true` need not run again
when only the agent has changed. The table stands between `<!-- table worlds -->` and `<!-- end -->`; `--table` takes
another word for `worlds`, for a page with several tables.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from agent_worlds import ROWS, compare_rows

HEAD = "| world | what is wrong | MCTS, wrong | agent | MCTS, true | closed |\n|---|---|---|---|---|---|\n"


def join(files: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The worlds of all files, each with the rows of all of them; of equal rows, the one of the last file."""
    worlds: dict[str, dict[str, Any]] = {}
    for found in (world for file in files for world in file):
        known = worlds.setdefault(found["world"], {"world": found["world"], "rows": {}, "seed": found["seed"]})
        if known["seed"] != found["seed"]:
            seeds = f"{known['seed']} and {found['seed']}"
            raise ValueError(f"{found['world']} was run with the seeds {seeds}; use one seed")
        known["about"] = found["about"]
        known["rows"] |= found["rows"]
    return [compare_rows(world) for world in worlds.values()]


def line(world: dict[str, Any]) -> str:
    """A line of the table. The share is left out where wrong and true do not differ credibly."""
    cells = []
    for row in ROWS:
        low, high = world["rows"][row]["interval"]
        cells.append(f"{world['rows'][row]['mean']:.2f} [{low:.2f}, {high:.2f}]")
    share = f"{world['closed']:.0%}".replace("%", " %") if "closed" in world else "no gap"
    return f"| {world['world']} | {world['about']} | {' | '.join(cells)} | {share} |\n"


def write_table(page: str, worlds: list[dict[str, Any]], table: str = "worlds") -> str:
    """The page with the lines of all worlds that have all rows."""
    place = re.compile(rf"(?<=<!-- table {re.escape(table)} -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)
    lines = [line(world) for world in worlds if set(world["rows"]) == set(ROWS)]
    if not place.search(page):
        raise ValueError(f"the page has no table between <!-- table {table} --> and <!-- end -->")
    return place.sub(lambda _: HEAD + "".join(lines), page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="docs/concepts/corrections.md")
    parser.add_argument("files", type=Path, nargs="+", help="JSON files of agent_worlds.py")
    parser.add_argument("--table", default="worlds", help="which table of the page (worlds)")
    given = parser.parse_args()
    found = join([json.loads(file.read_text()) for file in given.files])
    given.page.write_text(write_table(given.page.read_text(), found, given.table))
    gaps = [world["closed"] for world in found if "closed" in world]
    below = [world["world"] for world in found if "difference" in world and world["difference_interval"][1] < 0]
    print(f"{sum(share >= 0.9 for share in gaps)} of {len(gaps)} worlds with a gap close 90 % of it or more")
    print(f"credibly below planning in the wrong simulator: {', '.join(below) or 'none'}")
