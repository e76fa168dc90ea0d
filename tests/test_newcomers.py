"""What somebody meets who uses the package for the first time: missing extras, and simulators that are nearly right."""

import subprocess
import sys

import pytest

import uamcts
from uamcts.inspector.page import check_page


class Line:
    num_actions = 2

    def step(self, state, action):
        return state + action, float(action), False


class Named(Line):
    """Its actions are words."""

    def step(self, state, action):
        return state + {"left": -1, "right": 1}[action], 0.0, False


class Listed(Named):
    num_actions = None
    actions = ("left", "right")


@pytest.mark.parametrize(
    ("simulator", "error", "message"),
    [
        (Line, TypeError, r"model is the class Line; give an object of it, such as Line\(\)"),
        (Listed(), ValueError, r"model\.actions is \('left', 'right'\); give the model num_actions = 2 and"),
        (Named(), uamcts.SimulatorError, r"step raised KeyError: 0 .*every action, a number from 0 to 1$"),
    ],
)
def test_a_simulator_that_is_nearly_right(simulator, error, message):
    with pytest.raises(error, match=message):
        uamcts.Agent(simulator, iterations=2).act(0)


def test_no_other_name_is_suggested_for_one_that_is_far_from_all():
    with pytest.raises(TypeError, match=r"no argument 'render'; settings of the search are"):
        uamcts.Agent(Line(), render=1)


def test_an_agent_is_saved_into_a_folder_that_exists(tmp_path):
    agent = uamcts.Agent(Line(), iterations=2)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing .*agent\.uamcts"):
        agent.save(tmp_path / "missing" / "agent.uamcts")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"there is no folder .*file"):
        agent.save(tmp_path / "file" / "agent.uamcts")


def test_a_page_in_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_planned(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    with pytest.raises(ValueError, match=r"html is .*plan\.html; nothing can be written into .*: give another folder"):
        check_page(tmp_path / "plan.html", "html")


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_modules_of_the_package_need_no_import_of_their_own():
    found = run("import uamcts; print(uamcts.gym.Simulator.__name__, 'gym' in dir(uamcts), uamcts.field.__name__)")
    assert found.stdout.split() == ["Simulator", "True", "uamcts.field"], found.stderr


@pytest.mark.parametrize("program", ["import uamcts.gym", "uamcts.gym.Simulator"])
def test_without_gymnasium_the_extra_is_named(program):
    found = run("import sys, uamcts; sys.modules['gymnasium'] = None; " + program)
    assert "uamcts.gym needs Gymnasium: pip install 'gymnasium>=1.3'" in found.stderr


def test_without_scikit_learn_an_agent_with_trees_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="`trees` needs scikit-learn: pip install scikit-learn"):
        uamcts.Agent(Line(), "trees")
