"""What a maintainer runs before a release: `pip install '.[release]'`, then `nox`, or `nox -s build` for one session.

`make test` needs none of this. Every session has an environment of its own, made by uv; sessions for Pythons that are
not installed are skipped. `nox -s tests-3.12 -- tests/test_search.py` runs one file only.
"""

import nox

nox.options.default_venv_backend = "uv"
nox.options.sessions = ["tests", "lowest", "newest", "build", "docs"]

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST, MONITORED, LATEST = PYTHONS[0], PYTHONS[1], PYTHONS[-1]
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
    session.install("uv", "hatchling>=1.25")
    session.run("python", "tests/build_and_install.py")


@nox.session(python=OLDEST)
def docs(session: nox.Session) -> None:
    """The site, with warnings as errors."""
    session.install("--editable", ".[lab,gym,docs]")
    session.run("python", "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", "site")


@nox.session(python=MONITORED)
def coverage(session: nox.Session) -> None:
    """Which lines the tests reach, 22 minutes of one core; some files: `nox -s coverage -- tests/test_search.py`."""
    session.install("--editable", ".[dev]", "coverage[toml]>=7.10")
    session.run("coverage", "erase")
    # Python's own monitoring costs next to nothing; tracing every line takes several times as long as the tests.
    monitored = {"COVERAGE_CORE": "sysmon"}
    session.run("coverage", "run", "-m", "pytest", "-m", "not long", *session.posargs, env=monitored)
    session.run("coverage", "combine")
    session.run("coverage", "report")
