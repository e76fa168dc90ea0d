"""The worked examples of docs/examples.md in a reduced form: two agents, two episodes, a few iterations."""

import importlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = ("frozen_lake", "cliff_walking", "taxi", "cart_pole", "warehouse")
ROWS = ("random", "MCTS, wrong model", "UA-MCTS", "trust", "trust and memory", "MCTS, true model")
REDUCED = ["--runs", "2", "--episodes", "2", "--iterations", "4", "--longest", "4", "--report"]


@pytest.fixture(scope="module", autouse=True)
def _in_reach():
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


SLOW = ("cart_pole",)
"""They compile for long."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in SLOW else n for n in EXAMPLES])
def test_an_example_in_a_reduced_form(name, capsys):
    found = importlib.import_module(name).main(REDUCED)
    printed = capsys.readouterr().out.splitlines()
    assert tuple(found) == ROWS
    for row, line in zip(ROWS, printed[2:], strict=False):
        assert found[row].shape == (2, 2, 2)  # agents, episodes, reward and steps
        assert np.isfinite(found[row]).all()
        assert np.all((found[row][..., 1] >= 1) & (found[row][..., 1] <= 4))
        assert line.startswith(row)
        assert "nan" not in line
        assert f"{found[row][:, -1, 0].mean():.2f} [" in line
    assert printed[8].startswith("the simulator was wrong in")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name):
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) < 80


def test_the_real_worlds_differ_from_the_models_where_the_stories_say():
    lake, cliff, taxi, warehouse = (
        importlib.import_module(name) for name in ("frozen_lake", "cliff_walking", "taxi", "warehouse")
    )
    changed = [a + b for a, b in zip("".join(lake.MAP), "".join(lake.REALLY), strict=True) if a != b]
    assert changed == ["FH"] * 3
    for believed, real, where in (
        (cliff.Cliff(), cliff.Cliff(cliff.WINDY), lambda state, action: state in cliff.WINDY),
        (taxi.Town(), taxi.Town(taxi.CLOSED), lambda state, action: (divmod(state // 20, 5), action) in taxi.CLOSED),
    ):
        for state, actions in believed.P.items():
            for action in actions:
                differs = believed.P[state][action] != real.P[state][action]
                assert differs <= where(state, action)
                if where(state, action) and not differs:  # a step over the edge is a fall with wind and without
                    assert isinstance(real, cliff.Cliff)
    blocked = warehouse.Warehouse().free - warehouse.Warehouse(warehouse.PALLETS).free
    assert blocked == warehouse.PALLETS


def test_the_detour_in_a_reduced_form(monkeypatch, capsys):
    options = ["--runs", "1", "--episodes", "1", "--longest", "3"]
    monkeypatch.setattr(sys, "argv", ["detour.py", *options])
    runpy.run_path(str(FOLDER / "detour.py"))
    assert capsys.readouterr().out.count("0 of 1 arrived") == 5


def test_a_slippery_lake_in_a_reduced_form(capsys):
    shares = importlib.import_module("slippery_lake").main(["--episodes", "2", "--iterations", "5"])
    assert shares["optimum"] == pytest.approx(0.744, abs=0.001)
    assert all(0 <= share <= 1 for share in shares.values())
    assert "iterations reach" in capsys.readouterr().out.splitlines()[-1]


def test_a_trained_policy_halves_the_iterations():
    needed = importlib.import_module("trained_policy").main(["--runs", "1"])
    assert 2 * needed["with the policy"] <= needed["search alone"]
