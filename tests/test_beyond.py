"""Experiments that the paper does not have: their declarations, their units, and their sections of the report."""

import importlib.util
import json
import threading
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest
from rich.console import Console

from uamcts.domains import make
from uamcts.episode import Move
from uamcts.lab import beyond, gifs, online, report, runner
from uamcts.lab.engines import engine_of
from uamcts.lab.experiments import Experiment, Offline
from uamcts.lab.grid import domain_options, offline_grid, online_grid
from uamcts.lab.learners import check_learner
from uamcts.lab.reproduce import run_all
from uamcts.lab.units import OfflineUnit
from uamcts.paper import switches
from uamcts.show import frame, write_gif

TINY = (("iterations", 3), ("rollouts", 2), ("depth", 6))


def test_every_declaration_can_be_run():
    experiments = beyond.chosen([], False, "both")
    assert {e.family for e in experiments} == set(beyond.FAMILIES)
    assert len({e.name for e in experiments}) == len(experiments)
    for experiment in experiments:
        options = dict(experiment.options)
        make(experiment.domain, **(options | {"seed": 3} if experiment.drawn else options))
        for part in experiment.offline:
            for algorithm in part.algorithms:
                switches(algorithm)
        for part in experiment.online:
            for algorithm, learner in part.learners:
                switches(algorithm)
                check_learner(learner)


def test_quick_is_small_and_a_scenario_is_one_of_two():
    quick = beyond.chosen(["budget", "planners"], True, "offline")
    assert not any(e.online for e in quick)
    assert max(dict(part.budget).get("iterations", 0) for e in quick for part in e.offline) <= 1000
    assert not any(e.offline for e in beyond.chosen([], False, "online"))
    with pytest.raises(ValueError, match="unknown experiment 'severe'; there are planners, estimators, severity"):
        beyond.chosen(["severe"], False, "both")
    with pytest.raises(ValueError, match="scenario is 'on'"):
        beyond.chosen([], False, "on")


def test_a_learner_that_is_not_installed_is_refused_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    experiments = beyond.chosen(["estimators"], True, "online")
    assert [e.domain for e in experiments] == ["two_way"]
    with pytest.raises(ValueError, match=r"learner 'trees' needs scikit-learn: pip install scikit-learn"):
        run_all(experiments, False, True, "released", 0, tmp_path / "out", engine_of("local"), Console(quiet=True))
    assert not (tmp_path / "out").exists()


def test_every_run_of_a_drawn_experiment_has_a_world_of_its_own():
    unit = OfflineUnit(
        "severity", "breakout", "released", 0.1, "sweep", (("true", 1.0), ("corrupted", 1.0)), 0, 6, 0,
        options=(("severity", 0.5),), drawn=True,
    )  # fmt: skip
    jobs = unit._jobs()
    broken = [int(job.domain.world_rules) for job in jobs]
    assert broken[0::2] == broken[1::2], "planners of one seed met different worlds"
    assert len(set(broken)) > 2
    assert all(mask.bit_count() == 5 for mask in broken)
    assert [int(job.domain.model_rules) for job in jobs] == [m if i % 2 == 0 else 0 for i, m in enumerate(broken)]
    same = replace(unit, drawn=False)._jobs()
    assert len({int(job.domain.world_rules) for job in same}) == 1


def test_options_of_a_domain_in_words():
    assert domain_options(["severity=0.5", "belt=true", "ice=[[2, 3]]"]) == (
        ("severity", 0.5), ("belt", True), ("ice", ((2, 3),))
    )  # fmt: skip
    assert offline_grid(["breakout"], ["true"], [], [0.1], [], 2, (("severity", 0.5),))[0].options
    for wrong in ("severity", "severity=", "=3", "broken=(2,4)", "severity=half"):
        with pytest.raises(ValueError, match="give NAME=VALUE"):
            domain_options([wrong])
    with pytest.raises(TypeError, match="breakout has no option 'density'"):
        online_grid(["breakout"], ["combined"], [], [], 2, 40, None, None, (("density", 0.5),))


def test_options_reach_the_learning_runs():
    experiment = next(e for e in beyond.chosen(["mandatory"], False, "online") if e.name == "mandatory_two")
    unit = runner.online_units(experiment, ("released",), 0)[0]
    domain = online.Experiment("two_way_icy", options=unit.options).complete().made()
    assert int(domain.world_rules.ice) == 1 << (14 + 2) | 1 << (14 + 4)


def test_pictures_show_the_world_of_the_experiment(tmp_path, monkeypatch):
    """A wall at (2, 3) instead of the paper's (0, 2): it stands in the first picture."""
    domain = make("two_way", broken=((2, 3),))

    def one_move(key, domain, config, limit):
        state = domain.reset(key)
        yield Move(state, None, 0, 0.0, state, False)

    monkeypatch.setattr(gifs, "moves", one_move)
    episodes = {"experiment": ["run_two_way"], "scenario": ["offline"], "algorithm": ["combined"], "tau": [0.1],
                "rules": ["released"], "domain": ["two_way"], "reward": [0.0]}  # fmt: skip
    table = {name: np.array(values) for name, values in episodes.items()}
    gifs.draw_typical(tmp_path, table, {"run_two_way": (("broken", ((2, 3),)),)})
    state = domain.reset(jax.random.key(0))
    pictures = []
    for number, shown in enumerate((domain, make("two_way"))):
        write_gif(tmp_path / f"{number}.gif", [frame(shown, [state], 12)] * 2)
        pictures.append((tmp_path / f"{number}.gif").read_bytes())
    drawn = (tmp_path / "gifs" / "run_two_way_combined.gif").read_bytes()
    assert drawn == pictures[0] != pictures[1]


def test_what_another_thread_has_compiled_is_not_compiled_again():
    unit = OfflineUnit(
        "a", "two_way", "released", 0.1, "sweep", (("corrupted", 1.0), ("combined", 1.0)), 0, 3, 0,
        (("iterations", 3), ("rollouts", 2), ("depth", 7)),
    )  # fmt: skip
    compilations = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compilations.append(event) if event.endswith("backend_compile_duration") else None
    )
    try:
        thread = threading.Thread(target=unit.prepare)
        thread.start()
        thread.join()
        before = len(compilations)
        assert before >= 1
        assert len(unit.compute(lambda share, words: None, None)["reward"]) == 6
        assert len(compilations) == before
    finally:
        jax.monitoring.clear_event_listeners()


def test_a_family_from_the_first_unit_to_the_page(tmp_path):
    """Two levels of ice, really run: a figure, a table with the numbers of the summary, no section of its own."""
    part = Offline(("corrupted", "combined"), (), runs=3, budget=TINY)
    levels = {1: ((2, 3),), 2: ((2, 2), (2, 4))}
    experiments = [
        Experiment(f"ice_{n}", "ice", "two_way_icy", (part,), (), (("ice", ice),), family="ice", level=n)
        for n, ice in levels.items()
    ]
    summary = run_all(experiments, False, True, "released", 0, tmp_path, engine_of("local"), Console(quiet=True))
    assert len(summary["rows"]) == 4
    assert summary["claims"] == []
    page = (tmp_path / "index.html").read_text()
    assert (tmp_path / "figures" / "ice_two_way_icy.svg").exists()
    assert not (tmp_path / "gifs").exists()
    for row in summary["rows"]:
        assert f"{row['mean']:.2f} [" in page
    assert 'id="ice"' in page
    assert 'id="ice_1"' not in page
    assert report.build(tmp_path).read_text() == page


def test_planners_side_by_side(tmp_path):
    """Made-up numbers: every planner a line, every experiment a column, a dash where nothing was measured."""
    base = {"rules": "released", "c": 1.0, "tau": 0.1, "runs": 5, "episodes": 5, "std": 1.0, "iqm": 1.0, "steps": 20.0,
            "iqm_ci95": [0.5, 1.5], "goal_share": 0.5, "best": False}  # fmt: skip
    rows = [
        {**base, "experiment": "planners_a", "domain": "two_way", "scenario": scenario, "algorithm": algorithm,
         "learner": learner, "purpose": "sweep" if scenario == "offline" else "online", "mean": mean,
         "ci95": [mean - 1, mean + 1]}
        for scenario, algorithm, learner, mean in (
            ("offline", "corrupted", "true", 3.25), ("online", "corrupted", "none", 4.25),
            ("online", "corrupted", "memory", 5.25), ("online", "trust", "two_part", 6.25),
        )
    ]  # fmt: skip
    rows += [{**rows[1], "experiment": "planners_b", "mean": 7.75, "ci95": None}]
    declared = {
        name: asdict(Experiment(name, title, "two_way", family="planners"))
        for name, title in (("planners_a", "First world"), ("planners_b", "Second world"))
    }
    about = {"command": "uamcts beyond planners", "settings": {"experiments": declared}}
    summary = {"rows": rows, "claims": [], "curves": [], "provenance": about}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    page = report.build(tmp_path).read_text()
    table = page[page.index("Online: what it needs") :]
    table = table[: table.index("</table>")]
    lines = [line for line in table.split("<tr>") if "<td" in line]
    assert [line.count("<td") for line in lines] == [3, 3, 3]
    assert "First world" in table
    assert "Second world" in table
    assert "4.25 [3.25, 5.25] in 20" in lines[0]
    assert "7.75 in 20" in lines[0]
    assert "memory" in lines[1]
    assert "–" in lines[1]
    assert "Trust search" in lines[2]
    assert "3.25 [2.25, 4.25] in 20" in page
    assert [line.count("7.75 in 20") for line in lines] == [1, 0, 0]
