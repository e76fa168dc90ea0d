"""The zoo of benchmarks/agent_worlds.py: its worlds, and the figures computed from results."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def zoo():
    folders = [str(ROOT / "benchmarks"), str(ROOT / "examples")]
    before = sys.path[:]
    sys.path[:0] = folders
    yield importlib.import_module("agent_worlds")
    sys.path[:] = before


def result(row, number, reward):
    return {"row": row, "number": number, "rewards": [9.0, 9.0, reward], "act_ms": 1.0, "observe_ms": 0.1, "report": ""}


def test_the_share_of_the_gap_is_that_of_the_last_third(zoo):
    means = {"wrong": 0.0, "agent": 3.0, "true": 4.0}
    results = [result(row, n, mean + (-0.1, 0.1)[n % 2]) for row, mean in means.items() for n in range(4)]
    found = zoo.summarise("boat", results)
    assert found["closed"] == pytest.approx(0.75)
    assert found["difference"] == pytest.approx(3.0)
    assert "closed 75%" in zoo.show(found)
    worse = [result(row, n, {"wrong": 0.0, "agent": -1.0, "true": 0.0}[row]) for row in means for n in range(4)]
    found = zoo.summarise("boat", worse)
    assert "closed" not in found
    assert "BELOW" in zoo.show(found)


def test_rows_of_two_runs_make_one_table(zoo):
    table = importlib.import_module("worlds_table")
    means = {"wrong": 0.0, "agent": 3.0, "true": 4.0}
    rows = {row: [result(row, n, mean + (-0.1, 0.1)[n % 2]) for n in range(4)] for row, mean in means.items()}
    beside = {**zoo.summarise("boat", rows["wrong"] + rows["true"]), "seed": 7}
    alone = {**zoo.summarise("boat", rows["agent"]), "seed": 7}
    page = "before\n<!-- table worlds -->\n\nold\n\n<!-- end -->\nafter"
    written = table.write_table(page, table.join([[beside], [alone]]))
    assert "| 0.00 [-0.10, 0.10] | 3.00 [2.90, 3.10] | 4.00 [3.90, 4.10] | 75 % |" in written
    assert written.startswith("before")
    assert written.endswith("after")
    assert "old" not in written
    with pytest.raises(ValueError, match="boat was run with the seeds 7 and 8"):
        table.join([[beside], [{**alone, "seed": 8}]])


@pytest.mark.parametrize("name", ["right_grid", "unknown_slip", "street_closes", "house", "tanks", "late"])
def test_a_job_plays_its_world(zoo, name):
    played = [zoo.run(zoo.Job(name, row, 0, 0, 2, 1, row == "agent")) for row in ("wrong", "true")]
    assert not any("error" in life for life in played)
    assert all(len(life["rewards"]) == 2 and life["act_ms"] > 0 for life in played)
    if name == "right_grid":
        assert played[0]["rewards"] == played[1]["rewards"] == pytest.approx([4.1, 4.1])  # ten steps, nine of them cost


def test_a_planner_that_is_told_of_a_delay_plans_from_where_its_action_takes_effect(zoo):
    class Line:
        def step(self, place, action):
            return place + action, 0.0, place + action >= 10

    class Planner:
        asked = ()

        def act(self, state):
            self.asked += (state,)
            return 1

    told = zoo.Told(Planner(), Line(), (2, 3))
    told.act(0)
    told.observe(0, 1, 2, reward=0.0, terminal=False)
    told.act(2)  # 3 and 1 are still to come
    told.begin()
    told.act(0)
    told.act(8)  # the episode ends before the action takes effect
    assert told.planner.asked == (5, 6, 5, 8)


def test_an_error_is_part_of_the_result(zoo):
    assert "KeyError" in zoo.run(zoo.Job("nowhere", "wrong", 0, 0, 1, 1, False))["error"]
