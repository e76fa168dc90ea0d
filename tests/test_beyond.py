"""Experiments that the paper does not have: their declarations, their units, and their sections of the build."""

import importlib.util
import json
import threading
from dataclasses import asdict, replace
from pathlib import Path

import jax
import numpy as np
import pytest
from episode_tables import rows, together
from PIL import Image
from rich.console import Console

from uamcts.domains import make
from uamcts.episodes.offline import Move
from uamcts.lab.analysis.results import read
from uamcts.lab.console.films import Film, write_gif
from uamcts.lab.experiments import beyond
from uamcts.lab.experiments.learners import check_learner
from uamcts.lab.experiments.paper import Experiment, OfflineGrid
from uamcts.lab.report import build, gifs, markdown
from uamcts.lab.run.compute import compile_unit, compute_unit, jobs_of
from uamcts.lab.run.engines import make_engine
from uamcts.lab.run.enumeration import enumerate_units, split_seeds
from uamcts.lab.run.grid import domain_options, offline_grid, online_grid
from uamcts.lab.run.reproduce import run_all
from uamcts.lab.run.units import OfflineUnit
from uamcts.names import planner_title
from uamcts.presets import switches

ROOT = Path(__file__).parents[1]
TINY = (("iterations", 3), ("rollouts", 2), ("depth", 6))


def test_every_declaration_can_be_run():
    experiments = beyond.choose_experiments([], False, "both")
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


def test_every_planner_has_the_same_choice_of_c():
    """None has a c of its own; what is reported was not used to choose; all planners meet the same seeds."""
    for experiment in beyond.choose_experiments([], False, "offline"):
        first = experiment.offline[0]
        assert set(first.algorithms) in (set(beyond.PLANNERS), {"combined", "trust"})
        for part in experiment.offline:
            assert part.exploration == (0.5, 1.0, 2**0.5, 2.0, 4.0, 8.0)
            assert (part.runs, part.reported_runs) == (first.runs, first.reported_runs)
        made_up = [
            rows(experiment.name, algorithm, [c == 4.0] * 2, c=c, domain=experiment.domain, tau=part.tau, rules=rules)
            for part in experiment.offline
            for algorithm in part.algorithms
            for c in part.exploration
            for rules in ("released", "trust")
        ]
        choosing = enumerate_units([experiment], ("released",), 0)
        fresh = enumerate_units([experiment], ("released",), 0, together(*made_up))[len(choosing) :]
        assert {c for unit in fresh for _, c in unit.pairs} == {4.0}
        assert not _seeds(choosing) & _seeds(fresh)
        for units, runs in ((choosing, first.runs), (fresh, first.reported_runs)):
            by_planner = {}
            for unit in units:
                for pair in unit.pairs:
                    by_planner.setdefault((unit.tau, pair), []).extend(_seeds([unit]))
            assert all(sorted(seeds) == sorted(_seeds(units)) for seeds in by_planner.values())
            assert len(_seeds(units)) == runs
    for experiment in beyond.choose_experiments([], True, "offline"):
        assert {part.exploration for part in experiment.offline} == {(beyond.QUICK_C,)}


def _seeds(units):
    return {seed for unit in units for seed in range(unit.first_seed, unit.first_seed + unit.seeds)}


def test_a_thousand_runs_where_an_episode_is_cheap():
    runs = {
        e.name: e.offline[0].reported_runs
        for e in beyond.choose_experiments(["planners", "mandatory"], False, "offline")
    }
    assert {name for name, count in runs.items() if count < 1000} == {
        "planners_hidden_obstacles", "planners_slippery", "mandatory_belt"
    }  # fmt: skip


def test_units_hold_as_many_episodes_as_an_accelerator_plays_side_by_side():
    assert split_seeds(1000, 4) == [(0, 350), (350, 350), (700, 300)]
    assert split_seeds(100, 28) == [(0, 50), (50, 50)]
    assert split_seeds(120, 100) == [(0, 50), (50, 50), (100, 20)]


def test_a_discount_reaches_the_search():
    experiment = next(e for e in beyond.choose_experiments(["discount"], False, "offline") if e.name == "discount_95")
    unit = enumerate_units([experiment], ("released",), 0)[0]
    configs = [job.config for job in jobs_of(replace(unit, seeds=1))]
    assert {(config.gamma, config.iterations) for config in configs} == {(0.95, 100)}


def test_quick_is_small_and_a_scenario_is_one_of_two():
    quick = beyond.choose_experiments(["budget", "planners"], True, "offline")
    assert not any(e.online for e in quick)
    assert max(dict(part.budget).get("iterations", 0) for e in quick for part in e.offline) <= 1000
    assert not any(e.offline for e in beyond.choose_experiments([], False, "online"))
    with pytest.raises(
        ValueError,
        match=r"unknown experiment 'severe'; did you mean 'severity'\? there are planners, estimators, severity",
    ):
        beyond.choose_experiments(["severe"], False, "both")
    with pytest.raises(ValueError, match="scenario is 'on'"):
        beyond.choose_experiments([], False, "on")


def test_a_learner_that_is_not_installed_is_refused_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    experiments = beyond.choose_experiments(["estimators"], True, "online")
    assert [e.domain for e in experiments] == ["two_way"]
    with pytest.raises(ValueError, match=r"learner 'trees' needs scikit-learn: pip install scikit-learn"):
        run_all(experiments, False, True, "released", 0, tmp_path / "out", make_engine("local"), Console(quiet=True))
    assert not (tmp_path / "out").exists()


def test_every_run_of_a_drawn_experiment_has_a_world_of_its_own():
    unit = OfflineUnit(
        "severity", "breakout", "released", 0.1, "sweep", (("true", 1.0), ("corrupted", 1.0)), 0, 6, 0,
        options=(("severity", 0.5),), drawn=True,
    )  # fmt: skip
    jobs = jobs_of(unit)
    broken = [int(job.domain.world_rules) for job in jobs]
    assert broken[0::2] == broken[1::2], "planners of one seed met different worlds"
    assert len(set(broken)) > 2
    assert all(mask.bit_count() == 5 for mask in broken)
    assert [int(job.domain.model_rules) for job in jobs] == [m if i % 2 == 0 else 0 for i, m in enumerate(broken)]
    same = jobs_of(replace(unit, drawn=False))
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
    experiment = next(e for e in beyond.choose_experiments(["mandatory"], False, "online") if e.name == "mandatory_two")
    unit = enumerate_units([experiment], ("released",), 0)[0]
    assert int(unit.world().world_rules.ice) == 1 << (14 + 2) | 1 << (14 + 4)


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
    for number, shown in enumerate((domain, make("two_way"))):
        scenes = gifs.scenes_of(shown, "combined", [Move(state, None, 0, 0.0, state, False)])
        write_gif(tmp_path / f"{number}.gif", Film("", "", [[scene] for scene in scenes]))
    paths = (tmp_path / "gifs" / "run_two_way_combined.gif", tmp_path / "0.gif", tmp_path / "1.gif")
    pictures = []
    for path in paths:
        with Image.open(path) as picture:
            pictures.append(np.asarray(picture.convert("RGB")))
    drawn, wanted, papers = pictures
    assert np.array_equal(drawn, wanted)
    assert not np.array_equal(drawn, papers)


def test_what_another_thread_has_compiled_is_not_compiled_again():
    unit = OfflineUnit(
        "a", "two_way", "released", 0.1, "sweep", (("corrupted", 1.0), ("combined", 1.0)), 0, 3, 0,
        (("iterations", 3), ("rollouts", 2), ("depth", 7)),
    )  # fmt: skip
    compilations = []

    def listen(event, *_, **__):
        if event.endswith("backend_compile_duration"):
            compilations.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        thread = threading.Thread(target=compile_unit, args=(unit,))
        thread.start()
        thread.join()
        before = len(compilations)
        assert before >= 1
        assert len(compute_unit(unit, lambda share, words: None, None)["reward"]) == 6
        assert len(compilations) == before
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_a_family_from_the_first_unit_to_the_page(tmp_path):
    """Two levels of ice, really run: a figure, tables with the fresh seeds' numbers, no section of its own.

    As many episodes choose c as are reported, so that one program plays both.
    """
    part = OfflineGrid(("corrupted", "combined"), (1.0, 4.0), runs=2, fresh_runs=4, budget=TINY)
    levels = {1: ((2, 3),), 2: ((2, 2), (2, 4))}
    experiments = [
        Experiment(f"ice_{n}", "Ice", "two_way_icy", (part,), (), (("ice", ice),), family="ice", level=n)
        for n, ice in levels.items()
    ]
    summary = run_all(experiments, False, True, "released", 0, tmp_path, make_engine("local"), Console(quiet=True))
    fresh = [row for row in summary["rows"] if row["purpose"] == "fresh"]
    assert (len(summary["rows"]), len(fresh)) == (2 * 2 * 2 + 2 * 2, 2 * 2)
    assert {(row["purpose"], row["runs"]) for row in summary["rows"]} == {("sweep", 2), ("fresh", 4)}
    assert summary["claims"] == []
    assert summary["verdicts"]["tested"] == 0
    assert [one["runs"] for one in summary["differences"]] == [4, 4]
    page = (tmp_path / "index.html").read_text()
    assert (tmp_path / "figures" / "ice_two_way_icy.svg").exists()
    assert not (tmp_path / "gifs").exists()
    for row in fresh:
        ends = "[{:.2f}, {:.2f}]".format(*row["ci95"])
        assert f"{row['mean']:.2f} {ends} in {row['steps']:.0f}, c {row['c']:g}" in page
    assert 'id="ice"' in page
    assert 'id="ice_1"' not in page
    assert build.build(tmp_path).read_text() == page
    table = markdown.tables_of(read(tmp_path))["ice two_way_icy"]
    assert [line[0].text for line in table.lines] == ["1", "2"]


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
    page = build.build(tmp_path).read_text()
    assert page.count('class="tile"') == 3  # a tile for each world that was measured, offline and online
    table = page[page.index("Online: U is learned on the way</h3>") :]
    table = table[: table.index("</table>")]
    lines = [line for line in table.split("<tr>") if "<td" in line]
    assert [line.count("<td") for line in lines] == [3, 3, 3]
    assert "First world" in table
    assert "Second world" in table
    assert "4.25 [3.25, 5.25] in 20, c 1" in lines[0]
    assert "7.75 in 20" in lines[0]
    assert "memory" in lines[1]
    assert "–" in lines[1]
    assert "Trust search" in lines[2]
    assert "3.25 [2.25, 4.25] in 20" in page
    assert [line.count("7.75 in 20") for line in lines] == [1, 0, 0]


MADE_UP = {"domain": "two_way", "learner": "true", "runs": 5, "episodes": 5, "std": 1.0, "iqm": 1.0, "steps": 20.0,
           "iqm_ci95": [0.5, 1.5], "goal_share": 0.5, "scenario": "offline"}  # fmt: skip


def write_family(folder, rows, differences=()):
    """A folder with a family `planners` of the experiments that the rows name."""
    names = dict.fromkeys(row["experiment"] for row in rows)
    declared = {name: asdict(Experiment(name, name, "two_way", family="planners")) for name in names}
    about = {"command": "uamcts beyond planners", "settings": {"experiments": declared}}
    made = {"rows": rows, "claims": [], "curves": [], "provenance": about, "differences": list(differences)}
    (folder / "summary.json").write_text(json.dumps(made))
    return read(folder)


def made_up_row(algorithm, mean, rules="released", c=1.0, tau=0.1, purpose="fresh", best=False):
    return {**MADE_UP, "experiment": "planners_a", "algorithm": algorithm, "rules": rules, "c": c, "tau": tau,
            "purpose": purpose, "mean": mean, "ci95": [mean - 1, mean + 1], "best": best}  # fmt: skip


def test_tables_show_fresh_seeds_and_not_the_best_of_the_sweep(tmp_path):
    """The sweep's winner has 9 on the seeds that chose it and 5 on others; another tau is another planner."""
    found = write_family(
        tmp_path,
        [
            made_up_row("combined", 9.0, c=2.0, purpose="sweep", best=True),
            made_up_row("combined", 9.5, c=4.0, purpose="sweep"),  # a tie that was broken the other way
            made_up_row("combined", 5.0, c=2.0),
            made_up_row("combined", 6.0, c=8.0, tau=10.0),
            made_up_row("trust", 7.0, c=4.0, rules="trust"),
        ],
    )
    table, adapted = markdown.tables_of(found)["planners offline"], planner_title("combined", "true")
    assert [[cell.text for cell in line] for line in table.lines] == [
        [adapted, "5.00 [4.00, 6.00] in 20, c 2"],
        [f"{adapted}, tau 10", "6.00 [5.00, 7.00] in 20, c 8"],
        [planner_title("trust", "true"), "7.00 [6.00, 8.00] in 20, c 4"],
    ]
    assert "7.00 [6.00, 8.00] in 20, c 4" in build.build(tmp_path).read_text()


def test_one_domain_at_two_budgets_is_two_tables(tmp_path):
    """Breakout at 100 and at 1,000 iterations, each over gamma: neither may stand for the other."""
    experiments = [
        replace(e, name=f"discount_{number}_{e.level}", title=f"Breakout, {number:,} iterations a move")
        for number in (100, 1000)
        for e in beyond.FAMILIES["discount"].experiments
    ]
    rows = [
        {**made_up_row("trust", 100 * e.level + (0.5 if "1000" in e.name else 0.0)), "experiment": e.name}
        for e in experiments
    ]
    about = {"settings": {"experiments": {e.name: asdict(e) for e in experiments}}}
    summary = {"rows": rows, "claims": [], "curves": [], "provenance": about}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    tables = markdown.tables_of(read(tmp_path))
    means = {name: [line[1].text.split()[0] for line in table.lines] for name, table in tables.items()}
    assert means == {
        "discount 100": ["90.00", "95.00", "99.00", "100.00"],
        "discount 1000": ["90.50", "95.50", "99.50", "100.50"],
    }
    build.build(tmp_path)
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == {"discount", "discount_100", "discount_1000"}


def test_trust_stands_beside_every_rule_set(tmp_path):
    found = write_family(
        tmp_path,
        [
            made_up_row("combined", 5.0),
            made_up_row("combined", 6.0, rules="pseudocode"),
            made_up_row("trust", 7.0, rules="trust"),
        ],
    )
    tables = markdown.tables_of(found)
    assert list(tables) == ["planners offline released", "planners offline pseudocode"]
    assert [[line[1].text[:4] for line in table.lines] for table in tables.values()] == [
        ["5.00", "7.00"],
        ["6.00", "7.00"],
    ]


def test_differences_are_those_of_trust_whichever_was_declared_first(tmp_path):
    def difference(first, second, tau, mean, p):
        return {"experiment": "planners_a", "domain": "two_way", "first_algorithm": first, "second_algorithm": second,
                "first_rules": "released", "second_rules": "released", "first_tau": tau if first != "trust" else 0.1,
                "second_tau": 0.1, "runs": 5, "mean": mean, "ci95": [mean - 1, mean + 2], "p": p / 2,
                "p_holm": p}  # fmt: skip

    made = [difference("combined", "corrupted", 0.1, 9.0, 0.5), difference("trust", "combined", 0.1, 2.0, 0.01)]
    made.append(difference("combined", "trust", 10.0, -3.0, 0.06))
    rows = [made_up_row("combined", 5.0), made_up_row("trust", 7.0), made_up_row("combined", 4.0, tau=10.0)]
    table = markdown.tables_of(write_family(tmp_path, rows, made))["planners differences"]
    adapted = planner_title("combined", "true")
    assert [[cell.text for cell in line] for line in table.lines] == [
        [f"minus {adapted}", "+2.00* [+1.00, +4.00]"],
        [f"minus {adapted}, tau 10", "+3.00 [+1.00, +4.00]"],
    ]
    assert "+2.00* [+1.00, +4.00]" in build.build(tmp_path).read_text()


def test_documents_are_filled_from_the_summary(tmp_path):
    found = write_family(tmp_path, [made_up_row("trust", 7.16, rules="trust")])
    text = "<!-- mean planners_a trust -->1.5<!-- end --> after\n<!-- table planners offline -->\nold\n<!-- end -->\n"
    filled = markdown.fill(text, found)
    assert filled == (
        "<!-- mean planners_a trust -->7.2<!-- end --> after\n<!-- table planners offline -->\n\n"
        "| planner | planners_a |\n| --- | --- |\n"
        f"| {planner_title('trust', 'true')} | 7.16 [6.16, 8.16] in 20, c 1 |\n\n<!-- end -->\n"
    )
    assert markdown.fill(filled, found) == filled
    path = tmp_path / "document.md"
    path.write_text(text)
    markdown.main([str(tmp_path), str(path)])
    assert path.read_text() == filled
    with pytest.raises(ValueError, match="there is no table 'planner'; there are planners offline"):
        markdown.fill("<!-- table planner --><!-- end -->", found)


def test_a_document_may_be_filled_from_several_folders(tmp_path):
    folders = [tmp_path / "first", tmp_path / "second"]
    rows = [made_up_row("trust", 7.16), {**made_up_row("trust", 5.0), "experiment": "planners_b"}]
    for folder, row in zip(folders, rows, strict=True):
        folder.mkdir()
        write_family(folder, [row])
    path = tmp_path / "document.md"
    text = "<!-- mean planners_a trust -->{}<!-- end --> <!-- mean planners_b trust -->{}<!-- end -->"
    path.write_text(text.format("0.0", "0"))
    markdown.main([*map(str, folders), str(path)])
    assert path.read_text() == text.format("7.2", "5")


@pytest.mark.parametrize(
    ("name", "folder"),
    [("docs/results/beyond.md", "beyond"), ("docs/results/field.md", "field")],
)
def test_documents_say_what_the_summary_says(name, folder):
    """`python -m uamcts.lab.report.markdown docs/results/FOLDER` with the documents repairs it."""
    text = (ROOT / name).read_text()
    assert text.count("<!-- end -->") == text.count("<!-- table ") + text.count("<!-- mean ") > 0
    assert markdown.fill(text, read(ROOT / "docs" / "results" / folder)) == text
