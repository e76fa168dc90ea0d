"""Builds the web page of a results folder: what the paper says, what was measured, and how to measure it again.

`build(out)` reads `summary.json` and, if they exist, `bandit.json` and `gifs/`; it draws the figures into `figures/`
and writes `index.html`, which stands alone. The same data give the same page, to the byte. If a command was interrupted
before it wrote a summary, the page shows its finished units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from uamcts import names
from uamcts.lab.analysis.results import Summary, read
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.report import page, style
from uamcts.lab.report.bandit_section import bandit_section
from uamcts.lab.report.claims_section import claims_section
from uamcts.lab.report.families import families_of, family_section, title_of_family
from uamcts.lab.report.field_section import field_overview, field_section
from uamcts.lab.report.overview import head, title_of_page
from uamcts.lab.report.page import Block, Code, Fold, Footer, Heading, Links, Pairs, Paragraph, Table
from uamcts.lab.report.sections import anchor_of, describe, experiment_section, title_of
from uamcts.runtime.atomic import write_whole

TITLE = "Planning that works even when the simulator is wrong"


def build(out: Path) -> Path:
    """Draws the figures of a results folder, writes its page and returns the page's path.

    Raises:
        ValueError: If the folder has no results, or a file in it is damaged.
        ModuleNotFoundError: If Jinja2 is not installed. The figures are drawn nevertheless.
    """
    out = Path(out)
    found = read(out)
    body: list[Block] = [*head(found, out), _contents(found), *claims_section(found)]
    families = families_of(found)
    if families.keys() & FIELD.keys():
        body += fold_tables(field_overview(found, out / "figures"))
    for name, declared in families.items():
        section = field_section if name in FIELD else family_section
        body += fold_tables(section(found, name, declared, out / "figures"))
    for experiment, domain in found.experiments():
        body += experiment_section(found, experiment, domain, out / "figures")
    if found.bandit:
        body += fold_tables(bandit_section(found.bandit, out / "figures"))
    body.append(_footer(found))
    path = out / "index.html"
    write_whole(path, page.render(f"{title_of_page(found)} (uamcts)", body).encode())
    return path


def write_report(out: Path) -> str:
    """Builds the page and returns a sentence that says where it is, or why it was not written."""
    try:
        return f"the report is {build(out).resolve().as_uri()}"
    except ModuleNotFoundError as missing:
        if missing.name != "jinja2":
            raise
        return (
            "the results are stored, but the page was not written because Jinja2 is not installed: "
            f"pip install 'uamcts[lab]', then run `uamcts report {out}`"
        )


def _contents(found: Summary) -> Links:
    links = [("claims", "Claims")] if found.claims else []
    links += [(style.slug([name]), title_of_family(name)) for name in families_of(found)]
    links += [(anchor_of(pair[0]), title_of(found, *pair)) for pair in found.experiments()]
    links += [("bandit", "Corrupted bandits")] if found.bandit else []
    links += [("provenance", "How it was made")]
    return Links(links)


def fold_tables(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with every table, its heading and its note folded, and without commands: the footer has it."""
    waiting: Heading | None = None
    table: list[Block] = []
    for block in (block for block in blocks if not isinstance(block, Code)):
        if table and isinstance(block, Paragraph) and block.kind == "soft":
            table.append(block)
            continue
        if table:
            yield Fold(_title(waiting, table[0]), table)
            table, waiting = [], None
        if isinstance(block, Table):
            table = [block]
            continue
        if waiting is not None:
            yield waiting
        waiting = block if isinstance(block, Heading) and block.level == 3 else None
        if waiting is None:
            yield block
    if table:
        yield Fold(_title(waiting, table[0]), table)
    elif waiting is not None:
        yield waiting


def _title(heading: Heading | None, table: Block) -> str:
    label = heading.text if heading is not None else getattr(table, "label", "")
    return f"Numbers: {label}"


def _footer(found: Summary) -> Footer:
    hidden = ("settings", "command", "versions", "quick", "interrupted")
    plain = {key: value for key, value in found.provenance.items() if key not in hidden}
    settings = found.provenance.get("settings")
    general = (
        {k: v for k, v in settings.items() if k not in ("experiments", "bandit")} if isinstance(settings, dict) else {}
    )
    general["rules"] = [names.rules_title(rules) for rules in general.get("rules") or ()]
    words = {
        key.replace("_", " "): describe(value) for key, value in (plain | general).items() if value not in (None, [])
    }
    versions = found.provenance.get("versions")
    more = [Fold("Versions", [Pairs({k: str(v) for k, v in versions.items()})])] if isinstance(versions, dict) else []
    return Footer(
        (
            Heading(3, "How it was made", "provenance"),
            Code(str(found.provenance.get("command", "the command was not recorded"))),
            Pairs(words),
            *more,
            Paragraph(f"{TITLE}: uamcts. Every episode is in episodes.parquet.", "soft"),
        )
    )
