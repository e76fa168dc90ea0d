"""What the documents say is so: their programs print what is shown, their commands, names, files and links exist.

`documents.py` says how a page is read; `python tests/documents.py` rewrites the outputs. Left to `make test-all` are
the blocks marked `long`: the tables of docs/guides/examples.md and the thousand episodes in docs/results/appendix.md.
"""

import argparse
import ast
import builtins
import functools
import importlib
import importlib.util
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import uamcts
import uamcts.gym
from documents import PAGES, QUOTES, ROOT, Block, blocks, commands, name_of, printed, run_command, shown_outputs
from uamcts.cli import app

SOURCE = ROOT / "src" / "uamcts"
WITH_CODE = [page for page in PAGES if any(b.language == "python" and not b.is_long for b in blocks(page.read_text()))]
WITH_LONG = [page for page in PAGES if any(b.is_long for b in blocks(page.read_text()))]
SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
PLACEHOLDERS = {"DOMAIN": "breakout", "ALGORITHM": "trust", "LEARNER": "memory", "NAME": "linear", "WORLD": "two_way"}
"""Words that stand for a choice of the reader's, and a choice."""


def long_blocks(page: Path, language: str) -> list[Block]:
    return [block for block in blocks(page.read_text()) if block.is_long and block.language == language]


def prose(page: Path) -> str:
    """A page without its blocks and comments."""
    return re.sub(r"^```.*?^```$|<!--.*?-->", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def spans(page: Path) -> list[str]:
    """What stands in backticks, on one line."""
    return [" ".join(span.split()) for span in SPAN.findall(prose(page))]


def compare(page: Path, with_long: bool) -> int:
    run = 0
    for block, output in printed(page, with_long):
        if block.shown is None:
            assert output == "", f"line {block.line} prints, and the page does not show it"
        else:
            assert block.masked(output) == block.masked(block.shown), f"line {block.line}"
        run += 1
    return run


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_programs_print_what_is_shown(page):
    assert compare(page, with_long=False) >= 1


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in WITH_LONG if long_blocks(page, "python")], ids=name_of)
def test_long_programs_print_what_is_shown(page):
    compare(page, with_long=True)


LONG_COMMANDS = [(page, block) for page in WITH_LONG for block in long_blocks(page, "bash") if block.shown is not None]


@pytest.mark.long
@pytest.mark.parametrize(("page", "block"), LONG_COMMANDS, ids=[block.text.split()[1] for _, block in LONG_COMMANDS])
def test_long_commands_print_what_is_shown(page, block, tmp_path, monkeypatch):
    """One by one: each of them takes minutes, and all that are out of date are named."""
    monkeypatch.chdir(tmp_path)
    output = "".join(run_command(command) for command in commands(block.text))
    assert block.masked(output) == block.masked(block.shown), f"{name_of(page)}, line {block.line}"


@pytest.mark.parametrize("page", WITH_LONG, ids=name_of)
def test_what_long_programs_import_exists(page):
    """They are run by `make test-all` only, which would notice a name that is gone much too late."""
    for block in blocks(page.read_text()):
        for node in ast.walk(ast.parse(block.text)) if block.is_long and block.language == "python" else ():
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                assert not [name.name for name in node.names if not hasattr(module, name.name)], f"line {block.line}"


def test_the_pages_have_programs_and_outputs():
    """Else the tests above would pass on pages that are no longer read."""
    assert {"README.md", "docs/start/quickstart.md", "docs/guides/simulators.md", "docs/concepts/estimators.md"} <= {
        *map(name_of, WITH_CODE)
    }
    found = [block for page in PAGES for block in blocks(page.read_text())]
    assert sum(block.shown is not None for block in found) >= 15
    assert sum(block.language == "python" for block in found) >= 20


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_is_read(page):
    text = page.read_text()
    read = sum(1 + (block.shown is not None) for block in blocks(text) if text[: block.end].endswith("```"))
    assert len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)) == 2 * read


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: quote.page)
def test_sentences_quote_what_is_printed(quote):
    found = re.search(quote.words, (ROOT / quote.page).read_text())
    assert found, f"{quote.page} has no sentence like {quote.words!r}"
    assert found.groups() == quote.expected(shown_outputs(quote.source))


@pytest.mark.long
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_moving_picture_shows_what_its_caption_says(page):
    text = " ".join((ROOT / page).read_text().split())
    command, left, right = re.search(CAPTION, text).group("command", "left", "right")
    assert played(command.partition(" --gif")[0]) == [left, right]


CAPTION = r"Left: MCTS, (?P<left>\d+) bricks\. Right: UA-MCTS, (?P<right>\d+)\. Made by `(?P<command>uamcts play[^`]+)`"


@functools.cache
def played(command: str) -> list[str]:
    """The rewards that `uamcts play` prints."""
    return re.findall(r"reward (\d+) in \d+ steps", run_command(command.split()))


# Commands


def page_commands(page: Path) -> list[list[str]]:
    """All commands of a page, those of its shell blocks and those in backticks in its text."""
    found = [words for block in blocks(page.read_text()) if block.language == "bash" for words in commands(block.text)]
    for span in spans(page):
        words = span.split() if "'" not in span else commands(span)[0]
        while words and re.fullmatch(r"[A-Z_]+=\S+", words[0]):
            words = words[1:]
        if "|" in words:  # a list of commands
            found += [[words[0], word] for word in words[1:] if word != "|"]
        elif words and re.fullmatch(r"(\.venv/bin/)?uamcts|python|make|pytest|pip", words[0]) and len(words) > 1:
            found.append(words)
    return [[re.sub(r"\b[A-Z]{4,}\b", chosen, word) for word in words] for words in found]


def chosen(match: re.Match) -> str:
    return PLACEHOLDERS.get(match[0], match[0])


class Parsed(Exception):
    """The arguments of a script were read."""


def check_script(words: list[str], monkeypatch) -> None:
    """Lets the script read its arguments, and stops it there; of a module, `-m NAME`, only looks whether it exists."""
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1]), f"there is no module {words[1]}"
        return
    path, real = ROOT / words[0], argparse.ArgumentParser.parse_args
    assert path.exists(), f"{words[0]} does not exist"

    def parse(parser, arguments=None, namespace=None):
        real(parser, arguments, namespace)
        raise Parsed

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse)
        patch.setattr(sys, "argv", words)
        patch.syspath_prepend(str(path.parent))
        with pytest.raises(Parsed):
            runpy.run_path(str(path), run_name="__main__")


def check_uamcts(words: list[str]) -> None:
    """Reads the arguments with the real command, and looks the names in them up."""
    group = typer.main.get_command(app)
    if words[0].startswith("-"):
        with pytest.raises(typer.Exit):
            group.make_context("uamcts", list(words))
        return
    command = group.get_command(None, words[0])
    assert command is not None, f"there is no command {words[0]!r}"
    if len(words) == 1 or (words[0] == "run" and words[1].startswith("-")):
        return  # the command is named, without what it needs
    given = command.make_context(words[0], words[1:]).params
    domains = given.get("domain") or []
    for name in [domains] if isinstance(domains, str) else domains:
        assert name in uamcts.DOMAINS
    if words[0] in ("reproduce", "beyond"):
        modules = {"reproduce": "uamcts.lab.run.reproduce", "beyond": "uamcts.lab.experiments.beyond"}
        lab = importlib.import_module(modules[words[0]])
        lab.choose_experiments(given["names"] or [], given["quick"], given["scenario"])
    known = next((option.help for option in command.params if option.name == "algorithm"), "") or ""
    for name in given.get("algorithm") or ():
        names = {*importlib.import_module("uamcts.presets").ALGORITHMS, "trust", "random"}
        assert name in names or name in re.findall(r"[\w-]+", known), f"there is no algorithm {name!r}"
    for name in given.get("learner") or ():
        importlib.import_module("uamcts.lab.experiments.learners").check_learner(name)


@pytest.mark.parametrize("page", [page for page in PAGES if page_commands(page)], ids=name_of)
def test_commands_are_understood(page, monkeypatch):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    extras = re.findall(r"^([\w-]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    for words in page_commands(page):
        program, *rest = words
        if program.endswith("uamcts"):
            check_uamcts(rest)
        elif program == "python":
            check_script(rest, monkeypatch)
        elif program == "make":
            assert rest[0] in targets, words
        elif program == "pytest":
            assert (ROOT / rest[0]).exists(), words
        else:
            assert program == "pip", words
            for named in re.findall(r"\[([\w,-]+)\]", " ".join(rest)):
                assert set(named.split(",")) <= set(extras), words


def test_a_wrong_command_is_noticed(monkeypatch):
    for words in (["run", "brakeout"], ["run", "breakout", "--algorithm", "combind"], ["reproduce", "icey"], ["runn"]):
        with pytest.raises((AssertionError, ValueError)):
            check_uamcts(words)
    with pytest.raises(Exception, match="No such option"):
        check_uamcts(["run", "breakout", "--learners", "none"])
    with pytest.raises(SystemExit):
        check_script(["examples/cmax.py", "two_way", "--speed", "3"], monkeypatch)


# Names, files and links

OBJECTS = {"agent": uamcts.Agent, "simulator": uamcts.gym.Simulator}
"""What the names of the documents' programs are."""


def defined(path: Path) -> set[str]:
    """Every name that a module defines, and `Class.member` for the members of its classes."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        found |= {name for target in targets if (name := getattr(target, "name", getattr(target, "id", None)))}
        if isinstance(node, ast.ClassDef):
            for member in ast.walk(node):
                name = getattr(member, "name", None) or getattr(getattr(member, "target", None), "id", None)
                if isinstance(member, ast.Attribute) and getattr(member.value, "id", "") == "self":
                    name = member.attr
                found |= {f"{node.name}.{name}"} if name else set()
    return found


@functools.cache
def modules() -> dict[str, set[str]]:
    """What each module of the package defines. Not computed on import, which every worker of pytest does."""
    return {path.relative_to(SOURCE).as_posix(): defined(path) for path in SOURCE.rglob("*.py")}


@functools.cache
def program_words() -> set[str]:
    folders = (SOURCE, ROOT / "examples", ROOT / "benchmarks")
    return {
        word for folder in folders for path in folder.rglob("*.py") for word in re.findall(r"\w+", path.read_text())
    }


@functools.cache
def names_of_tests() -> set[str]:
    return {name for path in (ROOT / "tests").glob("test_*.py") for name in defined(path)}


def resolve(dotted: str) -> object:
    """The object of a dotted name that begins with `uamcts`."""
    found: object = uamcts
    parts = dotted.split(".")
    for index, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:index]))
        found = getattr(found, part)
    return found


def check_call(span: str) -> None:
    """A name, or a call of it: the name is there, and it takes these arguments."""
    called = re.match(r"[\w.]+", span)[0].rstrip(".")
    root, _, rest = called.partition(".")
    if root == "uamcts":
        found = resolve(called)
    elif root in OBJECTS:
        found = inspect.getattr_static(OBJECTS[root], rest, None)
        members = {member.split(".")[1] for names in modules().values() for member in names if "." in member}
        assert found is not None or rest in members, f"`{span}`: {OBJECTS[root].__name__} has no {rest}"
    else:
        found = getattr(uamcts, root)
    try:
        call = ast.parse(span.replace("...", "*more"), mode="eval").body
    except SyntaxError:
        return
    if isinstance(call, ast.Call) and callable(found):
        names = [keyword.arg for keyword in call.keywords if keyword.arg]
        inspect.signature(found).bind_partial(**dict.fromkeys(names))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_in_backticks_exist(page):
    for span in spans(page):
        if re.match(r"(uamcts|agent|simulator)\.\w", span) or re.match(rf"({'|'.join(uamcts.__all__)})\(", span):
            check_call(span)
        elif re.fullmatch(r"test_\w+", span):
            assert span in names_of_tests(), f"there is no test {span}"
        elif re.fullmatch(r"_?[A-Z][a-z]\w*\.[a-z]\w*", span):
            assert any(span in names for names in modules().values()), f"`{span}` is not there"
        elif re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", span) and not hasattr(builtins, span):
            assert any(span in names for names in modules().values()), f"there is no {span}"
        elif re.fullmatch(r"[a-z]+(_[a-z\d]+)+", span):
            assert span in program_words(), f"`{span}` is nowhere in the program"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_beside_a_module_are_in_it(page):
    """`` `mcts/search.py`, `tree_search` ``: in a table or in a sentence's list, the names are those of the module."""
    for names, module in named_with_modules(page):
        for name in names:
            assert name in modules()[module], f"{module} has no {name}"


def named_with_modules(page: Path) -> list[tuple[list[str], str]]:
    """Lists of names, and the module that stands in front of them, or behind them after `in`."""
    listed = r"((?:`\w+(?:\.\w+)?`(?:, | and )?)+)"
    found = []
    for line in prose(page).splitlines():
        for module, names in re.findall(rf"`([\w/]+\.py)`, {listed}", line):
            found.append((re.findall(r"`([\w.]+)`", names), module))
        for names, module in re.findall(rf"{listed} in `([\w/]+\.py)`", line):
            found.append((re.findall(r"`([\w.]+)`", names), module))
    return [(names, module) for names, module in found if module in modules()]


def test_the_tables_of_the_algorithm_name_modules_and_functions():
    found = {name for names, _ in named_with_modules(ROOT / "docs" / "concepts" / "ua_mcts.md") for name in names}
    assert {"tree_search", "TreeSearch.search", "Simulator.roll_out", "TreeSearch.backpropagate"} <= found
    assert "TreeSearch.rollout" not in modules()["reference/tree_search.py"], "a wrong name is not noticed"


@pytest.mark.parametrize("page", [*PAGES, *SOURCE.rglob("*.py")], ids=name_of)
def test_files_named_in_documents_exist(page):
    """`mcts/select.py`, `docs/concepts/trust.md` and the like, wherever they are named."""
    folders = (ROOT, SOURCE, page.parent)
    for name in re.findall(r"`((?:[\w.]+/)*[\w]+\.(?:py|md|yml|toml|png|gif)|src/[\w/.]+)`", page.read_text()):
        assert any((folder / name).exists() for folder in folders), name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, anchor


def test_the_offline_example_in_a_reduced_form():
    options = ["two_way_icy", "--runs", "2", "--rules", "pseudocode"]
    command = [sys.executable, str(ROOT / "examples" / "offline.py"), *options]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.count("+-") == 7
    assert "mcts-true           10.00 +- 0.00" in output
