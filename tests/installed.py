"""Tries an installed uamcts, from a wheel or an sdist, as somebody would who follows the quickstart.

    python tests/installed.py           # with the Python of the environment that it is installed in

It checks that the package is not the one of this checkout, that every file of src/uamcts is installed (templates,
scripts, styles and `py.typed` as well), that the programs of README.md and docs/start/quickstart.md print what the
pages show, and, if the extra `lab` is installed, that the command line starts.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

from documents import ROOT, name_of, printed

SOURCE = ROOT / "src" / "uamcts"
PAGES = (ROOT / "README.md", ROOT / "docs" / "start" / "quickstart.md")


def files(folder: Path) -> set[str]:
    """The files of a package."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix() for path in found}


def check_files() -> None:
    import uamcts

    home = Path(uamcts.__file__).parent
    if ROOT in home.parents and "site-packages" not in home.parts:
        raise SystemExit(f"uamcts was imported from this checkout, {home}: install a wheel or an sdist")
    missing, more = files(SOURCE) - files(home), files(home) - files(SOURCE)
    if missing or more:
        raise SystemExit(f"{home} lacks {sorted(missing)} and has {sorted(more)} besides")
    if importlib.metadata.version("uamcts") != uamcts.__version__:
        raise SystemExit(f"the metadata say {importlib.metadata.version('uamcts')}, the package {uamcts.__version__}")
    print(f"{home}: {uamcts.__version__}, {len(files(home))} files")


def check_page(page: Path) -> None:
    compared = 0
    for block, output in printed(page):
        if block.masked(output) != block.masked(block.shown or ""):
            raise SystemExit(f"{name_of(page)}, line {block.line}, should print\n{block.shown}but prints\n{output}")
        compared += block.shown is not None
    print(f"{name_of(page)}: {compared} outputs as shown")


def check_command() -> None:
    if importlib.util.find_spec("typer") is None:
        return
    program = Path(sys.executable).with_name("uamcts")
    subprocess.run([str(program), "domains"], check=True, stdout=subprocess.DEVNULL)
    print(f"{program.name} domains: works")


if __name__ == "__main__":
    check_files()
    for page in PAGES:
        check_page(page)
    check_command()
