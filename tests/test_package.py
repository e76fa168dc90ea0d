"""The package as a whole: its names, its versions, what an import does."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

import uamcts

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there():
    assert set(uamcts.__all__) == set(uamcts._HOMES)
    for name in uamcts.__all__:
        assert getattr(uamcts, name) is not None
        assert name in dir(uamcts)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        uamcts.serach  # noqa: B018


def test_the_version_is_written_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE).group(1) == uamcts.__version__
    assert f"## {uamcts.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version = {{{uamcts.__version__}}}" in (ROOT / "README.md").read_text()


def test_the_paper_is_cited_the_same_everywhere():
    citation, readme = ((ROOT / name).read_text() for name in ("CITATION.cff", "README.md"))
    for field in ("doi", "volume", "url", "title"):
        pattern = rf"^\s+(?:- )?{field}: \"?(.+?)\"?$"
        found = re.search(pattern, citation[citation.index("references:") :], re.MULTILINE)
        assert f"{field} = {{{found.group(1)}}}" in readme, field
    assert re.search(r"start: (\d+)\n\s+end: (\d+)", citation).groups() == re.search(r"(\d+)--(\d+)", readme).groups()


def test_the_readme_is_short():
    """What does not fit belongs to docs/."""
    assert (ROOT / "README.md").read_text().count("\n") <= 80


def test_nothing_is_unpickled_or_evaluated():
    """Data files are arrays and JSON; a file from a stranger must not run."""
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text()
        assert not re.search(r"\bpickle\b|allow_pickle=True|\beval\(|\bexec\(", source), path


POSIX_ONLY = {"curses", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def test_nothing_that_windows_lacks_is_imported():
    """`runtime/locks.py` asks for `fcntl` by name, and goes on without it."""
    found = {}
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            found.setdefault(path.name, set()).update(name.partition(".")[0] for name in names)
    assert "os" in found["locks.py"] | found["atomic.py"], "imports are not recognised"
    assert not {name: imported & POSIX_ONLY for name, imported in found.items() if imported & POSIX_ONLY}


LONG_DOCSTRINGS = {"mcts/api.py search", "mcts/many.py search_many", "reference/engine.py search"}
"""The public functions with a dozen documented arguments each: their docstrings do not count as lines."""


def lines_of(function):
    doc = function.body[0]
    documented = isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) and isinstance(doc.value.value, str)
    return function.end_lineno - function.lineno + 1, doc.end_lineno - doc.lineno + 1 if documented else 0


def test_no_file_has_over_300_lines_and_no_function_over_50():
    home, long = ROOT / "src" / "uamcts", {}
    for path in sorted(home.rglob("*.py")):
        source, name = path.read_text(), path.relative_to(home).as_posix()
        if source.count("\n") > 300:
            long[name] = source.count("\n")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                (lines, docstring), place = lines_of(node), f"{name} {node.name}"
                lines -= docstring if place in LONG_DOCSTRINGS else 0
                if lines > 50:
                    long[place] = lines
    assert not long


ANY = {"agent": 86, "bandits": 1, "corrections": 23, "domains": 6, "gym": 20, "lab": 7, "mcts": 6, "reference": 9,
       "uncertainty": 1}  # fmt: skip
"""How many parameters of each folder may be annotated with a bare `Any`: lower it when there are fewer."""


def parameters(function):
    given = function.args
    more = [one for one in (given.vararg, given.kwarg) if one is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *more]


def test_no_more_parameters_are_annotated_with_any():
    """`object` promises nothing either and is checked; an alias such as `PyTree` says what is meant."""
    home, found = ROOT / "src" / "uamcts", {}
    for path in sorted(home.rglob("*.py")):
        folder, name = path.relative_to(home).parts[0], path.relative_to(home).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                bare = [one.arg for one in parameters(node) if one.annotation and ast.unparse(one.annotation) == "Any"]
                found.setdefault(folder, []).extend(f"{name} {node.name}({arg})" for arg in bare)
    counts = {folder: len(places) for folder, places in found.items() if places}
    assert counts.get("agent", 0) > 0, "annotations are not recognised"
    more = {folder: places for folder, places in found.items() if len(places) > ANY.get(folder, 0)}
    assert not more, f"{counts}: use object, a protocol, or an alias that says what is meant"


@pytest.mark.parametrize("imports", ["uamcts", "uamcts.agent", "uamcts.agent.agent", "uamcts.episodes.offline"])
def test_an_import_brings_nothing_that_was_not_asked_for(imports):
    program = f"import {imports}, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"gymnasium", "sklearn", "scipy", "matplotlib", "rich", "uamcts.gym", "uamcts.lab"} & set(loaded)
    assert ("jax" in loaded) == (imports == "uamcts.episodes.offline")
    assert {"equinox", "optax"}.isdisjoint(loaded), "a known U needs no networks"


WITHOUT_JAX = """
import sys, uamcts

class Line:
    num_actions, pace = 2, 1

    def step(self, place, action):
        return place + self.pace * (2 * action - 1), -abs(place), place > 8

config = uamcts.SearchConfig(iterations=9, rollouts=1, depth=3)
uamcts.reference.search(0, 0, Line(), None, config)
agent, place = uamcts.Agent(Line(), iterations=9, rollouts=1, depth=3), 0
for _ in range(12):
    action = agent.act(place)
    after = place if action else place - 2     # the way on is closed, and the way back twice as long
    agent.observe(place, action, after, -abs(place), False)
    place = after
assert agent.backend.uncertainty is not None, "nothing is doubtful"
assert not {"jax", "equinox", "optax"} & set(sys.modules)
import jax
print(len(jax.tree.leaves(config)), len(jax.tree.leaves(agent.backend.uncertainty)))
"""


def test_an_agent_of_a_python_simulator_does_without_jax():
    """It acts, learns, corrects and doubts; its classes are pytrees for a program that imports JAX later."""
    found = subprocess.run([sys.executable, "-c", WITHOUT_JAX], capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["13", "6"], found.stderr


class Line:
    """Places 0, 1, ... on a line; action 1 leads on."""

    num_actions = 2

    def step(self, state, action):
        return state + action, float(action), False


def test_old_names_still_work_with_a_warning():
    agent = uamcts.Agent(Line(), iterations=5)
    with pytest.warns(DeprecationWarning, match=r"use Agent\.preload"):
        assert agent.seed([(3, 1, 3, 0.0, False)]) == 1
    report = agent.report()
    with pytest.warns(DeprecationWarning, match=r"use Report\.errors"):
        assert report.lies == report.errors
    assert [(error.features.tolist(), error.action) for error in report.errors] == [([3.0], 1)]
    model = uamcts.PatchedModel(Line())
    model.remember(3, 1, 3, 0.0, False)
    with pytest.warns(DeprecationWarning, match="use patch_uncertainty"):
        uncertainty = model.undoubted(lambda state, action: 0.5)
    assert (uncertainty(3, 1), uncertainty(4, 1)) == (0.0, 0.5)
    with pytest.warns(DeprecationWarning, match="use alpha_schedule"):
        falling = uamcts.baselines.falling
    assert falling is uamcts.baselines.alpha_schedule
    config = uamcts.SearchConfig(iterations=2, rollouts=1, depth=1)
    domain = uamcts.make("two_way")
    state = domain.reset(jax.random.key(0))
    result = uamcts.search(jax.random.key(0), state, domain.model, None, config)
    with pytest.warns(DeprecationWarning, match=r"use SearchResult\.cache"):
        assert result.memory is result.cache
    old = SimpleNamespace(memory=None, glance=None, many=None)
    with pytest.raises(TypeError, match="rename them to empty_cache, lookup and predict_batch"):
        uamcts.search(jax.random.key(0), state, domain.model, old, config)
