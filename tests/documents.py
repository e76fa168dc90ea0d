"""Runs the code blocks of the Markdown pages, and rewrites the outputs that the pages show.

    python tests/documents.py           # rewrites the outputs; --long: also those that take minutes
    python tests/documents.py docs/start/quickstart.md

How a page is read:

- A `python` block is run. The blocks of a page share their names, like one program, and run in an empty folder.
- A `text` block right behind a code block is what that block prints, to the letter. A block that prints has one.
- A `bash` block holds commands, one a line. They are checked; with a `text` block behind it, it is also run.

Markers are HTML comments, which readers do not see, in front of a block:

- `<!-- hidden ... -->` is Python code that is run and not shown: names that a short block takes for granted.
- `<!-- long: why -->`: the next block takes minutes and is left to the tests marked `long`.
- `<!-- varies: PATTERN -->`: what matches this regular expression in the next block's output is not compared.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
LANGUAGES = ("python", "bash", "text", "bibtex", "{eval-rst}")
TOKEN = re.compile(
    r"^<!-- (?P<marker>hidden|long|varies)\b:?(?P<given>.*?)-->$|^```(?P<language>[\w{}-]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Block:
    """A code block, and what the page says it prints. `at` is where that stands in the page."""

    language: str
    text: str
    line: int
    end: int
    markers: dict[str, str] = field(default_factory=dict)
    shown: str | None = None
    at: tuple[int, int] | None = None

    @property
    def is_long(self) -> bool:
        return "long" in self.markers

    def masked(self, output: str) -> str:
        """An output without what varies from run to run."""
        return re.sub(self.markers["varies"], "~", output, flags=re.MULTILINE) if "varies" in self.markers else output


@dataclass(frozen=True)
class Quote:
    """Numbers on one page that come from what another page's program prints."""

    page: str
    words: str
    source: str
    printed: str

    def expected(self, shown: str) -> tuple[str, ...]:
        found = re.search(self.printed, shown)
        if found is None:
            raise ValueError(f"{self.source} does not print anything like {self.printed!r}")
        return found.groups()


QUOTES = (
    Quote(
        "docs/start/faq.md",
        r"\[quickstart\]\(quickstart\.md\) (\d+) wrong rides in (\d+) steps",
        "docs/start/quickstart.md",
        r"the simulator was wrong in (\d+) of \d+ different transitions \((\d+) real steps\)",
    ),
    Quote(
        "docs/results/appendix.md",
        r"\| c 2, penalty 0\.5 \| [\d.]+ \| ([\d.]+) \|",
        "docs/results/appendix.md",
        r"(?m)^(0\.\d+)$",
    ),
)
"""A sentence's numbers are its groups, in the order of the groups that are printed."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    """The code blocks of a page, hidden ones included."""
    found: list[Block] = []
    markers: dict[str, str] = {}
    for token in TOKEN.finditer(text):
        line = text.count("\n", 0, token.start()) + 1
        marker, language = token["marker"], token["language"]
        if marker == "hidden":
            found.append(Block("python", token["given"], line, token.end()))
        elif marker:
            markers[marker] = token["given"].strip()
        elif language == "text":
            if not found or found[-1].shown is not None or text[found[-1].end : token.start()].strip():
                raise ValueError(f"line {line}: a text block stands right behind the code that prints it")
            found[-1].shown, found[-1].at = token["text"], token.span("text")
        else:
            if language not in LANGUAGES:
                raise ValueError(f"line {line}: the language of a block is {language!r}; there are {LANGUAGES}")
            found.append(Block(language, token["text"], line, token.end(), markers))
            markers = {}
    return found


def printed(page: Path, with_long: bool = False) -> Iterator[tuple[Block, str]]:
    """Runs a page: each block that was run, and what it printed."""
    names = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks(page.read_text()):
            if block.is_long and not with_long:
                continue
            if block.language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    # Empty lines in front: errors then name the line of the page.
                    exec(compile("\n" * block.line + block.text, name_of(page), "exec"), names)
                yield block, out.getvalue()
            elif block.shown is not None:
                yield block, "".join(run_command(command) for command in commands(block.text))


def commands(text: str) -> list[list[str]]:
    """The command lines of a shell block as words, without comments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def run_command(words: list[str]) -> str:
    """What a command of a page prints; `python` and `uamcts` are those of this environment."""
    program, *rest = words
    if program == "python":
        found = [sys.executable, str(ROOT / rest[0]), *rest[1:]]
    elif program.endswith("uamcts"):
        found = [sys.executable, "-m", "uamcts", *rest]
    else:
        raise ValueError(f"only python and uamcts are run, not {program}")
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "80"}
    return subprocess.run(found, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def update(page: Path, with_long: bool) -> None:
    """Writes what the blocks of a page print into it."""
    text = page.read_text()
    for block, output in reversed(list(printed(page, with_long))):
        if block.at is None and output:
            text = f"{text[: block.end]}\n\n```text\n{output}```{text[block.end :]}"
        elif block.at is not None and block.masked(output) != block.masked(block.shown or ""):
            text = text[: block.at[0]] + output + text[block.at[1] :]
    page.write_text(text)


def update_quotes() -> None:
    """Writes what the programs print into the sentences that quote them."""
    for quote in QUOTES:
        page = ROOT / quote.page
        text, expected = page.read_text(), quote.expected(shown_outputs(quote.source))
        found = re.search(quote.words, text)
        if found is None:
            raise ValueError(f"{quote.page} has no sentence like {quote.words!r}")
        for index in range(len(expected), 0, -1):
            text = text[: found.start(index)] + expected[index - 1] + text[found.end(index) :]
        page.write_text(text)


def shown_outputs(page: str) -> str:
    """All outputs that a page shows."""
    return "\n".join(block.shown or "" for block in blocks((ROOT / page).read_text()))


def main() -> None:
    sys.path.insert(0, str(ROOT / "src"))
    import conftest  # noqa: F401 (one thread, as in the tests: the same numbers)

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: all of them")
    parser.add_argument("--long", action="store_true", help="also the blocks that take minutes")
    chosen = parser.parse_args()
    for page in [path.resolve() for path in chosen.pages] or PAGES:
        if any(block.language == "python" or block.shown is not None for block in blocks(page.read_text())):
            print(name_of(page), flush=True)
            update(page, chosen.long)
    update_quotes()


if __name__ == "__main__":
    main()
