"""What a maintainer runs before a release: `pip install '.[release]'`, then `nox`, or `nox -s build` for one session.

`make test` needs none of this. Every session has an environment of its own, made by uv; sessions for Pythons that are
not installed are skipped. `nox -s tests-3.12 -- tests/test_search.py` runs one file only.
"""

import tempfile
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.sessions = ["tests", "lowest", "newest", "build", "docs"]

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST, LATEST = PYTHONS[0], PYTHONS[-1]
CORE = ("tests/test_search.py", "tests/test_engines_agree.py", "tests/test_agent.py", "tests/test_corrections.py",
        "tests/test_estimators.py", "tests/test_gym.py", "tests/test_gym_simulator.py", "tests/test_report.py",
        "tests/test_lab.py", "tests/test_package.py")  # fmt: skip
"""Files that use every dependency, in a few minutes."""
TEST = ("pytest>=8.3", "pytest-xdist>=3.7", "hypothesis>=6.115", "beartype>=0.19")
OPTIONS = ("-n", "2", "--dist", "loadfile", "-m", "not long")


def run_tests(session: nox.Session, *arguments: str) -> None:
    session.run("pytest", *OPTIONS, *arguments)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The files of CORE on each Python; `make test` runs all files on one."""
    session.install("--editable", ".[lab,gym,trees]", *TEST)
    run_tests(session, *(session.posargs or CORE))


@nox.session(python=OLDEST)
def lowest(session: nox.Session) -> None:
    """The oldest versions that pyproject.toml allows, with what they say about newer ones ignored."""
    session.install("--resolution", "lowest-direct", ".[lab,gym,trees]", *TEST)
    session.run("python", "tests/installed.py")
    run_tests(session, "-W", "ignore::DeprecationWarning", *(session.posargs or CORE))


@nox.session(python=LATEST)
def newest(session: nox.Session) -> None:
    """The newest versions there are."""
    session.install("--upgrade", ".[lab,gym,trees]", *TEST)
    session.run("python", "tests/installed.py")
    run_tests(session, *(session.posargs or CORE))


@nox.session(python=OLDEST)
def build(session: nox.Session) -> None:
    """Builds wheel and sdist, installs each in an empty environment, and runs README and quickstart from it."""
    session.install("uv")
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        session.run("uv", "build", "--quiet", "--out-dir", str(dist))
        for kind, pattern in (("wheel", "*.whl"), ("sdist", "*.tar.gz")):
            (built,) = dist.glob(pattern)
            home = Path(folder) / kind
            session.run("uv", "venv", "--quiet", "--python", OLDEST, str(home))
            python = next(path for path in (home / "bin" / "python", home / "Scripts" / "python.exe") if path.exists())
            session.run("uv", "pip", "install", "--quiet", "--python", str(python), f"{built}[lab,gym]")
            session.run(str(python), "tests/installed.py", external=True, env={"PYTHONPATH": ""})


@nox.session(python=OLDEST)
def docs(session: nox.Session) -> None:
    """The site, with warnings as errors."""
    session.install("--editable", ".[lab,gym,docs]")
    session.run("python", "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", "site")


@nox.session(python=OLDEST)
def coverage(session: nox.Session) -> None:
    """Which lines and branches the tests reach: several times as slow as the tests alone."""
    session.install("--editable", ".[dev]", "coverage[toml]>=7.10")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", "-m", "not long", *session.posargs)
    session.run("coverage", "combine")
    session.run("coverage", "report")
