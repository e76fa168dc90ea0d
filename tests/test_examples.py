"""The worked examples of docs/guides/examples.md in a reduced form: two agents, two episodes, a few iterations."""

import importlib
import runpy
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import uamcts
from uamcts import bandits
from uamcts.agent.report import ModelError
from uamcts.domains.heat import UncertaintyMap

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = (
    "frozen_lake",
    "cliff_walking",
    "taxi",
    "cart_pole",
    "warehouse",
    "boat",
    "heavy_pendulum",
    "closing_street",
)
ROWS = ("random", "MCTS, wrong model", "UA-MCTS", "agent", "MCTS, true model")
REDUCED = ["--runs", "2", "--episodes", "2", "--iterations", "4", "--longest", "4", "--report", "--map"]


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
    assert len(printed) > 8  # the report
    assert " costs a planner " in printed[-1]
    assert sum(line.startswith("┌") for line in printed) == 1  # the world, twice side by side


def test_the_world_is_drawn_with_u_in_its_cells():
    drawing = importlib.import_module("drawing")
    errors = [
        ModelError(np.array([0.0, 1.0, 7.0]), 0, 1, None, None, 0.5, 0.1),
        ModelError(np.array([0.0, 1.0, 3.0]), 1, 1, None, None, 0.2, 0.9),
        ModelError(np.array([1.0, 2.0, 3.0]), 1, 1, None, None, 4.5, 0.0),
    ]
    plan = drawing.Plan(["S.#", "..G"])
    seen = plan.map(errors, lambda error: error.error)
    assert seen.tolist() == [[0, 0.5, 0], [0, 0, 4.5]]  # the largest in each cell
    assert drawing.frame(plan, seen, "seen")[2:4] == ["│S1#│", "│··9│"]
    plane = drawing.plane((1, 0.0, 2.0), (0, 0.0, 1.0), (3, 2))  # upwards the first feature, across the second
    assert plane.map(errors, lambda error: error.error).tolist() == [[0, 0, 4.5], [0, 0.5, 0]]


def test_arms_and_domains_are_drawn(capsys):
    drawing = importlib.import_module("drawing")
    drawing.draw_arms(bandits.Bandit([0.5, 1.0], [0.5, 0.6]), width=10)
    assert [line[5:16] for line in capsys.readouterr().out.splitlines()[1:]] == ["·····x·····", "······x===o"]
    domain = uamcts.make("two_way")
    start = domain.reset(jax.random.key(0))
    drawing.draw_domain(domain, start, UncertaintyMap(domain)(start), "U")
    assert "│·9▓9···│" in capsys.readouterr().out  # the wall that the model does not know, and U beside it
    policy = importlib.import_module("trained_policy")
    policy.draw(policy.Warehouse(policy.PALLETS), {(0, 1, True, True): [0.0, 0.0, 0.0, 1.0]})
    assert capsys.readouterr().out.splitlines()[1:3] == ["  D←·······", "  ·#·#####·"]


def test_cmax_draws_what_it_found_wrong(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cmax.py", "two_way", "--quick"])
    runpy.run_path(str(FOLDER / "cmax.py"))
    assert "│·9▓" in capsys.readouterr().out


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
    lake = importlib.import_module("slippery_lake")
    chances, outcomes = zip(*lake.Lake(0.4).outcomes((2, 2), 1), strict=True)  # down
    assert chances == pytest.approx((0.4, 0.3, 0.3))
    assert outcomes == (((3, 2), 0.0, False), ((2, 3), -1.0, True), ((2, 1), 0.0, False))
    assert lake.Lake(1.0).outcomes((2, 2), 2) == [(1.0, ((2, 3), -1.0, True))]
    found = lake.main(["--runs", "2", "--iterations", "5", "--percent", "90"])
    assert tuple(found) == ROWS
    assert all(rewards.shape == (2, 1, 2) for rewards in found.values())
    assert capsys.readouterr().out.splitlines()[-1].startswith("Believing p = 0.7 where it is 0.9 costs a planner")


def test_the_conclusion_follows_from_the_numbers():
    conclusion = importlib.import_module("worlds_apart").conclusion

    def lives(*rewards):
        return np.array([[[reward + noise, 1.0]] * 3 for reward in rewards for noise in (-0.01, 0.01)])

    wrong, true = lives(0.0, 0.0), lives(2.0, 2.0)
    for agent, words in ((1.5, "wins back 75 % of it"), (-0.5, "loses another 0.50")):
        found = {"MCTS, wrong model": wrong, "agent": lives(agent, agent), "MCTS, true model": true}
        assert conclusion(found, "fog").startswith("Fog costs a planner 2.00 of reward an episode; in the last")
        assert words in conclusion(found, "fog")
    found = {"MCTS, wrong model": wrong, "agent": lives(1.0, 1.0), "MCTS, true model": wrong}
    assert "nothing that 4 agents can show; in the last episode the agent gets +1.00" in conclusion(found, "fog")


def test_a_world_may_change_half_way_and_the_true_planner_is_told():
    apart, street = (importlib.import_module(name) for name in ("worlds_apart", "closing_street"))
    chosen = apart.options("", ["--runs", "1"], runs=1, episodes=4, iterations=40, longest=30)
    before, after = street.Streets(), street.Streets({street.CLOSED})
    worlds = [apart.World(simulator, street.START) for simulator in (before, after)]

    def make(model, seed):
        return apart.plain_mcts(model, seed, iterations=40, depth=20, gamma=0.95)

    lengths = [steps for _, steps in apart.live_through([before, after], make, worlds, 0, chosen, False)[0]]
    assert lengths == [6, 6, 10, 10]
    assert [steps for _, steps in apart.live_through([before], make, worlds, 0, chosen, False)[0]][2:] == [30, 30]


def test_a_trained_policy_halves_the_iterations():
    needed = importlib.import_module("trained_policy").main(["--runs", "1"])
    assert 2 * needed["with the policy"] <= needed["search alone"]
