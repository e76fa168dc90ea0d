"""The field's comparisons in the lab: units, choice of settings, tables, figures, the command line."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from uamcts import versions
from uamcts.cli import app
from uamcts.field import make_grid, play_agent
from uamcts.lab.analysis.results import read
from uamcts.lab.experiments.field import FIELD, choose_experiments
from uamcts.lab.experiments.field_worlds import GRID_PLANNERS, PLANNERS, SETTINGS
from uamcts.lab.report.field_section import field_tables, terminal_lines
from uamcts.lab.run.engines import make_engine
from uamcts.lab.run.enumeration import enumerate_units
from uamcts.lab.run.field import compute_field
from uamcts.lab.run.reproduce import run_all

CELLS = [
    replace(cell, planners=("exact_learner", "rats"), episodes=30, learner_episodes=10, tuning_episodes=8)
    for cell in FIELD["slip10"].experiments[:2]
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("field")
    return out, run_all(CELLS, False, False, "released", 3, out, make_engine("local"), Console(quiet=True))


def test_a_setting_is_chosen_on_other_seeds_than_it_is_reported_on(finished):
    _, summary = finished
    swept = [row for row in summary["rows"] if row["algorithm"] == "rats" and row["purpose"] == "sweep"]
    told = [row for row in summary["rows"] if row["algorithm"] == "rats" and row["purpose"] == "field"]
    assert sorted({row["c"] for row in swept}) == sorted(SETTINGS[PLANNERS["rats"].tuned])
    for row in told:
        own = [one for one in swept if one["experiment"] == row["experiment"]]
        assert next(one["mean"] for one in own if one["c"] == row["c"]) == max(one["mean"] for one in own)
        assert row["runs"] == 30


def test_units_with_nothing_to_choose_are_not_swept():
    units = enumerate_units(CELLS, ("released",), 0)
    assert {(unit.planner, unit.purpose) for unit in units} == {("exact_learner", "field"), ("rats", "sweep")}


def test_a_second_run_computes_nothing_and_says_the_same(finished, monkeypatch):
    out, summary = finished
    monkeypatch.setattr("uamcts.lab.run.field.play", None)
    again = run_all(CELLS, False, False, "released", 3, out, make_engine("local"), Console(quiet=True))
    assert again["rows"] == summary["rows"]


def test_every_table_has_the_exact_rewards_and_the_published_ones(finished):
    out, summary = finished
    tables = {table.name: table for table in field_tables(read(out))}
    names = [line[0].text for line in tables["field slip10"].lines]
    assert names == ["Exact optimum", "Exact plan, old model", "Exact plan, parameter learned", "RATS, old model",
                     "published: MCTS stale", "published: total variation", "published: Wasserstein",
                     "published: chi-square"]  # fmt: skip
    assert [cell.text for cell in tables["field slip10"].lines[0][1:]] == ["0.896", "0.785", "1.000"]
    assert any("published: Wasserstein" in line and "0.970" in line for line in terminal_lines(summary["rows"]))
    assert (out / "figures" / "field_slip10.png").stat().st_size > 10_000
    assert (out / "figures" / "field_scores.svg").exists()
    assert "The field at a glance" in (out / "index.html").read_text()


def test_the_agent_plays_in_blocks_that_make_up_its_episodes():
    cell = replace(CELLS[0], planners=("agent",), agent_episodes=25, agent_block=10)
    units = enumerate_units([cell], ("released",), 0)
    assert [(unit.first, unit.episodes) for unit in units] == [(0, 10), (10, 10), (20, 5)]
    assert len({unit.name for unit in units}) == 3
    one = compute_field(replace(units[1], episodes=2), lambda share, words: None)
    assert one["seed"].tolist() == [10, 11]
    whole = play_agent(make_grid("4x4", "anywhere", (1.0, 0.0, 0.0)), 0.1, 0.1, 0.99, 12, 100, 100, 1_000_000)
    assert one["steps"].tolist() == whole.steps[10:].tolist()


def test_versions_are_part_of_a_unit(monkeypatch):
    before = enumerate_units(CELLS, ("released",), 0)[0].name
    monkeypatch.setitem(versions.FIELD_VERSIONS, "exact_learner", 99)
    assert enumerate_units(CELLS, ("released",), 0)[0].name != before
    assert versions.FIELD_VERSIONS.keys() == {"field", "cart_pole", "pole_agent", *GRID_PLANNERS}


def test_published_numbers_have_a_level_each():
    for family in FIELD.values():
        for column in family.published.values():
            assert list(column) == [cell.level for cell in family.experiments]
            assert all(family.worst <= value <= (1 if family.is_exact else 1000) for value in column.values())


def test_quick_is_small_and_all_is_all():
    assert len(choose_experiments([], False)) == sum(len(family.experiments) for family in FIELD.values())
    assert {cell.tuning_episodes for cell in choose_experiments(["lake"], True)} == {0}
    assert np.all([cell.iterations == 7 for cell in choose_experiments(["cliff"], False, 7)])
    assert [cell.iterations for cell in choose_experiments(["cartpole_mass"], False, 7)] == [50, 100, 300]
    assert {cell.planners for cell in choose_experiments(["cliff"], False, None, ["rats", "mcts"])} == {
        ("mcts", "rats")
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lak"], "did you mean 'lake'?"),
        (["--planner", "rat"], "did you mean 'rats'?"),
        (["cartpole_mass", "--planner", "rats"], "rats does not play in cartpole_mass; planners there are agent,"),
        (["--iterations", "0"], "iterations"),
        (["--seed=-3"], "seed is -3"),
    ],
)
def test_wrong_arguments_are_named(arguments, said, tmp_path):
    result = CliRunner().invoke(app, ["field", *arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out").exists()
