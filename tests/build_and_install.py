"""Builds wheel and sdist, installs each in an empty environment, and tries README and quickstart there.

    python tests/build_and_install.py           # needs hatchling; `make package` runs it

The wheel is installed with the extras `lab` and `gym`, the sdist without any: what the pages promise of `pip install .`
must work with the core alone. uv installs where there is one, else pip.

Exit status: 0 if both work, 1 if one does not, 75 (a temporary failure) if the package index cannot be reached: then
nothing is known about what was built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNREACHABLE = 75
KINDS = (("wheel", "*.whl", "[lab,gym]"), ("sdist", "*.tar.gz", ""))


def run(*command: str | Path, **options: object) -> bool:
    """Whether a command succeeds."""
    return subprocess.run([*map(str, command)], **options).returncode == 0


def build(dist: Path) -> None:
    if not run(sys.executable, "-m", "hatchling", "build", "--directory", dist, cwd=ROOT, stdout=subprocess.DEVNULL):
        raise SystemExit("wheel and sdist could not be built: pip install '.[dev]' brings hatchling")


def make_environment(home: Path) -> Path:
    """An empty environment; returns its Python."""
    venv.create(home, with_pip=True)
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: Path, what: str) -> bool:
    uv = Path(sys.executable).with_name("uv.exe" if os.name == "nt" else "uv")
    if uv.exists() and run(uv, "pip", "install", "--quiet", "--python", python, what):
        return True
    return run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what)


def index_answers(python: Path, folder: Path) -> bool:
    """Whether a small package can be downloaded at all."""
    arguments = ("--quiet", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--dest", folder)
    return run(python, "-m", "pip", "download", *arguments, "typing_extensions")


def try_out(python: Path, home: Path) -> bool:
    """Runs tests/installed.py for somebody who has no other packages, no settings and no caches."""
    ours = ("PYTHON", "JAX_", "XLA_", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return run(python, ROOT / "tests" / "installed.py", cwd=home, env={**environment, "HOME": str(home)})


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder / "dist")
        for kind, pattern, extras in KINDS:
            (built,) = (folder / "dist").glob(pattern)
            print(f"{built.name}{extras}", flush=True)
            python = make_environment(folder / kind)
            if not install(python, f"{built}{extras}"):
                if index_answers(python, folder / "index"):
                    raise SystemExit(f"{built.name} could not be installed")
                print("the package index cannot be reached: wheel and sdist were built, but not tried", file=sys.stderr)
                raise SystemExit(UNREACHABLE)
            (folder / f"home of {kind}").mkdir()
            if not try_out(python, folder / f"home of {kind}"):
                raise SystemExit(f"{built.name} is installed, but does not work")


if __name__ == "__main__":
    main()
