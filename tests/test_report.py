"""The report of an output folder: its figures, its page, and the page in a real browser. The numbers are made up."""

import copy
import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import asdict
from html.parser import HTMLParser

import made_up_results
import matplotlib
import numpy as np
import pytest
from markupsafe import escape
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from uamcts import colours
from uamcts.cli import app
from uamcts.lab.analysis.forms import ROW
from uamcts.lab.analysis.results import read
from uamcts.lab.analysis.selection import offline_results
from uamcts.lab.console.terminal import Bars, result_lines, verdict_line
from uamcts.lab.report import bandit_plots, build, plots, style
from uamcts.lab.run import enumeration, reproduce
from uamcts.lab.run.enumeration import enumerate_units
from uamcts.lab.run.grid import offline_grid
from uamcts.lab.run.store import Store

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Outline(HTMLParser):
    """Fails on tags that do not match; notes names, addresses and text."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.addresses, self.text, self.tags = [], [], [], [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "action", "srcset"):
                self.addresses.append(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def outline(path):
    parser = Outline()
    parser.feed(path.read_text())
    parser.close()
    assert not parser.open
    return parser


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = made_up_results.write(tmp_path_factory.mktemp("report"))
    build.build(folder)
    return folder


@pytest.fixture(scope="module")
def quick_summary(tmp_path_factory):
    """The summary of a small folder, which is built in no time."""
    return json.loads((made_up_results.own_grid(tmp_path_factory.mktemp("small")) / "summary.json").read_text())


@pytest.fixture
def change(tmp_path, quick_summary):
    """A folder with an altered summary."""

    def altered(alter):
        summary = copy.deepcopy(quick_summary)
        alter(summary)
        (tmp_path / "summary.json").write_text(json.dumps(summary))
        return tmp_path

    return altered


def text_of(path):
    return " ".join(outline(path).text)


def rows_of(out, experiment, rules="released"):
    return [row for row in read(out).rows if (row["experiment"], row["rules"]) == (experiment, rules)]


def test_every_figure_is_there_as_png_and_svg(out):
    stems = {path.stem for path in (out / "figures").iterdir()}
    for rules in made_up_results.RULES:
        assert {f"{game}_{kind}_{rules}" for game in made_up_results.PAPERS for kind in ("offline", "c")} <= stems
        assert {f"space_invaders_online_reward_{rules}", f"two_way_online_steps_{rules}"} <= stems
    assert {"bandit_wins", "bandit_loses", "bandit_against_delta_shifted", "bandit_against_delta_misleading"} <= stems
    for stem in stems:
        with Image.open(out / "figures" / f"{stem}.png") as image:
            assert image.format == "PNG"
            assert min(image.size) > 400
            assert len(image.convert("RGB").getcolors(1 << 20)) > 50
        svg = ET.parse(out / "figures" / f"{stem}.svg").getroot()
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(list(svg.iter())) > 100


def test_bars_are_fresh_seeds_and_marks_the_sweeps_maximum(out):
    rows = rows_of(out, "two_way")
    axes = plots.offline(rows, "2-Way GridWorld", "released").axes[0]
    shown = offline_results(rows)
    fresh, sweep = {one.algorithm: one.row for one in shown}, {one.algorithm: one.sweep for one in shown}
    assert {row["purpose"] for row in fresh.values()} == {"fresh"}
    assert {(row["purpose"], row["best"]) for row in sweep.values()} == {("sweep", True)}
    assert list(fresh) == ["true", "corrupted", "combined"]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([row["mean"] for row in fresh.values()])
    marks = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert marks == pytest.approx([row["mean"] for row in sweep.values()])
    assert all(fresh[key]["c"] == sweep[key]["c"] and fresh[key]["mean"] != sweep[key]["mean"] for key in fresh)
    ticks = [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]
    titles = ("MCTS, true world", "MCTS", "UA-MCTS")
    assert ticks == [f"{t} c = {style.exploration(r['c'])}" for t, r in zip(titles, fresh.values(), strict=True)]
    dashed = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == pytest.approx([fresh["true"]["mean"], fresh["corrupted"]["mean"]])
    said = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert said == ["fresh seeds", "maximum of the sweep that chose c"]
    assert axes.get_title(loc="left") == "2-Way GridWorld, offline, authors' program"


def test_every_tau_has_a_bar_of_its_own_where_tau_matters(out):
    """At tau 0.1 nobody crosses the ice: that bar is as visible as the one at tau 10."""
    rows = rows_of(out, "icy")
    axes = plots.offline(rows, "Icy", "released").axes[0]
    ticks = [label.get_text().split("\n") for label in axes.get_xticklabels()]
    assert [(tick[0], tick[-1]) for tick in ticks[2:]] == [("UA-MCTS", "tau = 0.1"), ("UA-MCTS", "tau = 10")]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights[2] == 0
    assert heights[3] > 3
    lines = plots.against_c(rows, "Icy", "released").axes[0].lines
    assert [line.get_label() for line in lines][2:] == ["UA-MCTS, tau 0.1", "UA-MCTS, tau 10"]
    assert max(lines[2].get_ydata()) == 0


def test_learning_is_drawn_over_real_steps_within_the_possible_range(out):
    """The band of a standard deviation ends at 0 and 10, the rewards of the gridworld, and 50, its time limit."""
    rows = rows_of(out, "two_way")
    found = read(out)
    curves = [curve for curve in found.curves if (curve["experiment"], curve["rules"]) == ("two_way", "released")]
    wide = [{**curve, "std": [30.0] * len(curve["std"])} for curve in curves]
    for quantity, most in (("reward", 10.0), ("steps", 50.0)):
        axes = plots.online(wide, rows, "2-Way", "released", quantity).axes[0]
        assert axes.get_xlabel() == "real steps"
        longest = max(curve["real_steps"][-1] for curve in curves)
        assert max(line.get_xdata()[-1] for line in axes.lines if len(line.get_xdata()) > 2) == pytest.approx(longest)
        ends = [path.vertices[:, 1] for band in axes.collections[:1] for path in band.get_paths()]
        assert np.min(ends) == 0
        assert np.max(ends) == most
    old = [{name: value for name, value in curve.items() if name != "real_steps"} for curve in curves]
    assert plots.online(old, rows, "2-Way", "released", "reward").axes[0].get_xlabel() == "episode"


def test_an_interval_ends_where_the_rewards_end():
    row = {"domain": "freeway", "mean": 0.95, "ci95": [-0.2, 1.3]}
    assert np.ravel(style.error_lengths(row)) == pytest.approx([0.95, 0.05])
    assert np.ravel(style.error_lengths({**row, "domain": "own"})) == pytest.approx([1.15, 0.35])
    assert np.ravel(style.error_lengths({**row, "ci95": [None, None]})).tolist() == [0, 0]


def test_panels_share_a_legend():
    """Two worlds, two levels: two panels, one legend, and values to point at in the SVG."""
    row = {"domain": "freeway", "mean": 0.5, "ci95": [0.4, 0.6], "runs": 10}
    points = {level: {"true": row, "combined": row} for level in (0.0, 20.0)}
    figure = plots.against_level({"One": points, "Two": points}, "broken, %", False)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["One", "Two"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["MCTS in the true world", "UA-MCTS"]
    assert not any(axes.get_legend() for axes in figure.axes)


def test_values_can_be_pointed_at(out):
    svg = ET.parse(out / "figures" / "two_way_offline_released.svg").getroot()
    tips = [one.find("{*}title").text for one in svg.findall(".//{*}g[@class='tip']")]
    rows = {one.algorithm: one.row for one in offline_results(rows_of(out, "two_way"))}
    assert len(tips) == len(rows)
    assert tips[0].startswith(f"MCTS in the true world: {rows['true']['mean']:.2f} [")


def test_planners_have_one_colour_in_every_figure(out):
    rows = rows_of(out, "two_way")
    bars = plots.offline(rows, "", "released").axes[0].patches
    lines = plots.against_c(rows, "", "released").axes[0].lines
    for place, algorithm in enumerate(("true", "corrupted", "combined")):
        wanted = matplotlib.colors.to_rgba(colours.PLANNERS[algorithm])
        assert bars[place].get_facecolor() == wanted
        assert matplotlib.colors.to_rgba(lines[place].get_color()) == wanted


def test_drawing_leaves_matplotlib_as_it_was(out, tmp_path):
    before = dict(matplotlib.rcParams)
    style.save(bandit_plots.regret_over_time(read(out).bandit["cases"][0]), tmp_path, "figure")
    assert dict(matplotlib.rcParams) == before


def test_the_page_says_everything(out):
    page = outline(out / "index.html")
    text = " ".join(page.text)
    found = read(out)
    for claim in found.claims:
        assert claim["text"] in text
    assert {"✓ holds", "✗ does not hold", "≈ too close to call", "– not measured"} <= set(page.text)
    for experiment, domain in found.experiments():
        assert experiment in page.ids
        assert style.title_of(domain) in text
    verdicts = Counter(claim["verdict"] for claim in found.claims)
    assert f"Of the {len(found.claims)} claims of the paper that were checked here, {verdicts['holds']} hold," in text
    assert "the paper's c" in page.text
    assert found.provenance["command"] == f"uamcts reproduce --runs 100 --note '{made_up_results.NASTY}'"
    assert text.count("uamcts reproduce") == 1  # commands are not repeated
    assert "The paper, reproduced: Space Invaders, 2-Way GridWorld and Icy 2-Way GridWorld" in page.text
    assert any("3 February 2024" in part for part in page.text)
    assert "UA-Backpropagation" in page.text
    assert not {"corrupted", "combined", "backpropagation", "space_invaders", "two_way", "command_seconds"} & set(
        page.text
    )
    assert "Rules: authors' program" in page.text
    assert "Rules: as printed" in page.text
    assert found.provenance["command"] in text
    assert found.provenance["commit"] in text
    assert page.tags >= {"svg", "img", "nav", "footer", "table"}
    assert len(page.ids) == len(set(page.ids))


def test_the_page_stands_alone(out):
    page, source = outline(out / "index.html"), (out / "index.html").read_text()
    linked = [address for address in page.addresses if not address.startswith(("data:", "#"))]
    assert {"summary.json", "summary.csv", "figures/two_way_offline_released.svg"} <= set(linked)
    assert all((out / address).is_file() for address in linked)
    assert "href" not in "".join(re.findall(r"<(?:img|script|link rel=.stylesheet)[^>]*>", source))
    assert not re.search(r"https?://(?!www\.w3\.org/)|@import|url\((?!#)", source)
    assert "default-src 'none'" in source
    assert source.count("<script") == 1
    assert escape(made_up_results.NASTY) in source


def test_the_same_data_give_the_same_bytes(tmp_path):
    first, second = (made_up_results.own_grid(tmp_path / name) for name in ("first", "second"))
    for folder in (first, second):
        (folder / "bandit.json").write_text(json.dumps(made_up_results.bandit()))
        build.build(folder)
    for path in (first / "index.html", *sorted((first / "figures").iterdir())):
        assert path.read_bytes() == (second / path.relative_to(first)).read_bytes(), path.name


def test_a_grid_of_ones_own_is_titled_by_what_was_run_and_not_measured_by_the_paper(tmp_path):
    """What `uamcts run` writes: no numbers and no c of the paper, the budget that was used, nothing "not measured"."""
    page = outline(build.build(made_up_results.own_grid(tmp_path)))
    text = " ".join(page.text)
    assert "2-Way GridWorld, iterations 7, own experiment" in page.text
    assert "N_I 7, N_S 10, D_S 30, gamma 1" in page.text
    assert "the paper's" not in text
    assert "Not measured here:" not in text
    assert "run_two_way" in page.ids
    axes = plots.offline(read(tmp_path).rows, "Mine", "released").axes[0]
    assert axes.get_title(loc="left") == "Mine, offline, authors' program"
    assert {"MCTS", "UA-MCTS, tau 0.1", "UA-MCTS, tau 5", "Trust search"} <= set(page.text)


def test_learners_of_ones_own(tmp_path):
    page = outline(build.build(made_up_results.own_learners(tmp_path)))
    assert "2-Way GridWorld, own experiment" in page.text
    assert {"UA-MCTS, learned U (linear)", "UA-MCTS, learned U (nearest)"} <= set(page.text)


def test_trust_search_is_shown_beside_the_others_whatever_rules_its_rows_name(change):
    def under_its_own_rules(summary):
        for row in summary["rows"]:
            row["rules"] = "trust" if row["algorithm"] == "trust" else row["rules"]

    folder = change(under_its_own_rules)
    build.build(folder)
    assert [path.name for path in folder.glob("figures/*offline*.svg")] == ["run_two_way_offline_released.svg"]
    assert "Trust" in (folder / "figures" / "run_two_way_offline_released.svg").read_text()
    planners = [line.split()[0] for line in result_lines(read(folder).rows)][2:]
    assert planners == ["MCTS", "UA-MCTS,", "UA-MCTS,", "Trust"]


def few_runs(summary):
    """Two runs of one c: what a quick look leaves behind."""
    rows = [row for row in summary["rows"] if row["purpose"] == "fresh"]
    summary["rows"] = [{**row, "runs": 2, "ci95": [None, None], "iqm": None, "std": float("nan")} for row in rows]


def nothing(summary):
    summary.update(rows=[], claims=[], curves=[], provenance={})


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (few_runs, ["2 runs only"]),
        (nothing, ["the command was not recorded"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_missing_has_no_section(change, alter, said):
    page = outline(build.build(change(alter)))
    for words in said:
        assert words in " ".join(page.text)
    assert not {"claims", "bandit"} & set(page.ids)
    assert not {"#claims", "#bandit"} & set(page.addresses)


@pytest.mark.parametrize(
    ("scenario", "absent"), [("offline", "the online scenario"), ("online", "the offline scenario")]
)
def test_what_an_experiment_of_the_paper_lacks_is_named(tmp_path, scenario, absent):
    experiments = [made_up_results.EXPERIMENTS["two_way"]]
    folder = made_up_results.conclude(tmp_path, experiments, ("released",), scenario)
    assert f"Not measured here: {absent} and the rules as printed." in text_of(build.build(folder))


def test_an_interrupted_folder_is_reported_from_its_finished_units(tmp_path, monkeypatch):
    """Units of a command that was killed: no summary yet."""
    monkeypatch.setattr(enumeration, "EPISODES", 1)
    grid = offline_grid(["two_way"], ["corrupted", "combined"], [], [0.1], [], 60)
    store = Store(tmp_path, {"experiments": {experiment.name: asdict(experiment) for experiment in grid}})
    with pytest.raises(ValueError, match=r"no unit in .* is finished yet; rerun the command"):
        build.build(tmp_path)
    units = enumerate_units(grid, ("released",), 0)
    assert len(units) == 2
    (episodes,) = made_up_results.made_up(units[:1], np.random.default_rng(0))
    store.write(units[0], episodes, {})
    text = text_of(build.build(tmp_path))
    assert "This report is not complete: from 1 finished units; rerun the command to resume it." in text
    assert "2-Way GridWorld, own experiment" in text
    assert not (tmp_path / "summary.json").exists()


def test_a_folder_without_a_summary_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no .*summary\.json; name a folder that `uamcts reproduce`"):
        build.build(tmp_path)


@pytest.mark.parametrize(
    ("alter", "complaint"),
    [
        (lambda summary: summary.pop("rows"), "it has no 'rows'"),
        (lambda summary: summary["rows"][3].pop("mean"), r"rows\[3\] has no 'mean'"),
        (lambda summary: summary["rows"][0].update(mean="much"), r"'mean' of rows\[0\] is 'much'"),
        (lambda summary: summary["rows"][0].update(ci95=[1.0]), r"'ci95' of rows\[0\] is \[1.0\]"),
        (lambda summary: summary["rows"][0].update(ci95=["a", "b"]), r"'ci95' of rows\[0\]"),
        (lambda summary: summary["claims"].append(7), r"claims\[0\] has no 'id'"),
        (lambda summary: summary["curves"].append({**CURVE, "mean": 3}), r"'mean' of curves\[0\] is 3"),
        (lambda summary: summary["curves"].append({**CURVE, "std": [1.0]}), r"episode, mean, std of curves\[0\]"),
        (lambda summary: summary.update(provenance=[]), "'provenance' of it is"),
        (lambda summary: summary["provenance"]["settings"]["experiments"]["run_two_way"].update(family="x", level="y"),
         "'level' of experiment 'run_two_way' is 'y'"),
    ],
)  # fmt: skip
def test_a_damaged_summary_is_refused(change, alter, complaint):
    with pytest.raises(ValueError, match=rf"summary\.json is damaged .*{complaint}.*run the command"):
        build.build(change(alter))


CURVE = {
    "experiment": "run_two_way", "algorithm": "combined", "learner": "linear", "rules": "released", "c": 1.0,
    "quantity": "reward", "episode": [0, 1], "mean": [1.0, 2.0], "std": [0.1, None],
}  # fmt: skip
WRONG = (None, "x", 3, -1.5, True, [], [1], {}, {"a": []}, float("nan"))


def test_no_value_in_a_summary_breaks_the_reader(change):
    """Every field of a row, a claim, a curve and the provenance replaced: read, or refused in a sentence."""
    refused = 0
    for part in ("rows", "curves", "provenance"):
        fields = {"rows": ROW, "curves": CURVE, "provenance": {"settings": 0, "command": 0}}[part]
        for field in fields:
            for wrong in WRONG:

                def alter(summary, part=part, field=field, wrong=wrong):
                    summary["rows"] = summary["rows"][:2]
                    summary["curves"] = [CURVE.copy()]
                    (summary[part] if part == "provenance" else summary[part][0])[field] = wrong

                try:
                    found = read(change(alter))
                except ValueError as error:
                    assert "summary.json is damaged" in str(error)  # noqa: PT017 (others are to pass)
                    refused += 1
                else:
                    assert result_lines(found.rows)
                    assert found.experiments()
    assert refused > 100


def test_files_cut_short_are_refused(change, tmp_path):
    change(lambda summary: None)
    (tmp_path / "bandit.json").write_text('{"cases": [')
    with pytest.raises(ValueError, match=r"bandit\.json is damaged"):
        build.build(tmp_path)
    for content in (b"\xff\x00", b"[" * 100_000, b"[1, 2]", b"3"):
        (tmp_path / "summary.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"summary\.json is damaged"):
            build.build(tmp_path)


def test_results_in_a_terminal(out):
    """A header over every table, and no line beyond 80 columns."""
    lines = result_lines(read(out).rows)
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Space Invaders, offline, authors' program"
    assert lines[1].split() == ["planner", "c", "mean", "95%", "interval", "runs", "steps"]
    assert lines[2].startswith("MCTS in the true world")
    assert any(line.startswith("UA-MCTS, tau 0.1") for line in lines)
    assert any(line.startswith("MCTS, transition (16 units)") for line in lines)


def test_verdicts_in_a_terminal():
    verdicts = ["holds"] * 14 + ["too close to call"] * 3 + ["does not hold"]
    assert verdict_line([{"verdict": verdict} for verdict in verdicts]) == (
        "14 of 18 claims of the paper hold, 1 does not hold, 3 are too close to call"
    )
    assert verdict_line([{"verdict": "not measured"}]) == ""
    assert verdict_line([]) == ""


def test_progress_fits_80_columns_and_is_silent_about_time_before_it_can_tell():
    """Units done, share and time left; a long unit's name is cut, not wrapped."""
    clock = iter(float(second) for second in range(10_000))
    console = Console(width=80, height=24, force_terminal=True, file=io.StringIO())
    names = [f"space_invaders-offline-released-tau0.1-sweep-{number}-0123abcd" for number in range(4)]
    bars = Bars(console, dict.fromkeys(names, 10.0))
    bars.bar.get_time = lambda: next(clock)
    bars.bar.start_task(bars.task)
    bars.begin(names[0], 0, 4)

    def drawn():
        with console.capture() as capture:
            console.print(bars.bar.get_renderable())
        return re.sub(r"\x1b\[[0-9;]*m", "", capture.get())

    first = drawn()
    assert "0 of 4 units" in first
    assert "left" not in first
    for number in range(1, 4):
        bars.begin(names[number], number, 4)
        bars.tell(0.5, "a very long line of words about tau, the loss and everything else there is to say")
    later = drawn()
    assert "3 of 4 units" in later
    assert " 88%" in later
    assert re.search(r"\d+:\d\d left", later)
    for text in (first, later):
        assert len(text.strip("\n").split("\n")) == 1
        assert len(text.rstrip("\n")) <= 80


@pytest.fixture
def opened(browser, out):
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get((out / "index.html").as_uri())
    return browser


def test_in_a_browser_nothing_is_wrong_and_nothing_is_loaded(opened):
    assert opened.execute_script("return document.querySelectorAll('figure svg').length") >= 14
    assert opened.execute_script("return [...document.images].every(i => i.complete && i.naturalWidth > 0)")
    loaded = opened.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [address for address in loaded if not address.startswith(("file:", "data:"))] == []
    assert opened.get_log("browser") == []


def test_in_a_browser_the_policy_forbids_outside_loads(opened):
    opened.execute_script("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))")
    complaints = [entry["message"] for entry in opened.get_log("browser")]
    assert any("Content Security Policy" in message for message in complaints)


COLUMN = """
const table = document.querySelector(".rows table");
const place = [...table.tHead.rows[0].cells].findIndex(head => head.innerText.startsWith(arguments[0]));
return [...table.tBodies[0].rows].map(row => row.cells[place].dataset.value)
"""


@pytest.mark.parametrize(("head", "kind"), [("mean", float), ("algorithm", str)])
def test_in_a_browser_a_click_sorts_and_another_turns_the_order(opened, head, kind):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true")
    before = [kind(value) for value in opened.execute_script(COLUMN, head)]
    cell = opened.find_element(By.XPATH, f"//div[contains(@class, 'rows')]//th[button[text()='{head}']]")
    button = cell.find_element(By.TAG_NAME, "button")
    assert cell.get_attribute("aria-sort") == "none"
    button.click()
    assert cell.get_attribute("aria-sort") == "ascending"
    assert [kind(value) for value in opened.execute_script(COLUMN, head)] == sorted(before) != before
    button.send_keys(Keys.ENTER)
    assert cell.get_attribute("aria-sort") == "descending"
    assert [kind(value) for value in opened.execute_script(COLUMN, head)] == sorted(before, reverse=True)


def test_in_a_browser_the_page_fits_a_phone(opened):
    phone = {"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    assert opened.execute_script("return window.innerWidth") == 375
    size = "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    scrolls, shows = opened.execute_script(size)
    assert scrolls <= shows
    opened.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert opened.execute_script(
        "const box = document.querySelector('.rows'); return box.scrollWidth > box.clientWidth"
    )
    scrolls, shows = opened.execute_script(size)
    assert scrolls <= shows, "an open table makes the page wider"


def test_in_a_browser_the_first_figure_is_on_a_phones_first_screen(opened):
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    bottom = opened.execute_script("return document.querySelector('figure').getBoundingClientRect().bottom")
    assert 0 < bottom <= 844


def test_in_a_browser_folds_are_closed_tiles_are_there_and_nothing_is_empty(opened):
    assert opened.execute_script("return [...document.querySelectorAll('details')].every(fold => !fold.open)")
    tiles = opened.execute_script("return [...document.querySelectorAll('.tile')].map(tile => tile.innerText)")
    assert [tile.split("\n")[0] for tile in tiles] == ["Space Invaders", "2-Way GridWorld", "Icy 2-Way GridWorld"]
    assert all(re.search(r"Wrong model\s+[\d.]+\s+UA-MCTS.*\s+[\d.]+\s+True model\s+[\d.]+", tile) for tile in tiles)
    alone = opened.execute_script(
        "return [...document.querySelectorAll('h2')].filter(h => !h.nextElementSibling"
        " || h.nextElementSibling.tagName === 'H2').map(h => h.innerText)"
    )
    assert alone == []
    assert opened.execute_script("return document.querySelectorAll('.films img').length") == 2
    screen = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    beside = "const [a, b] = document.querySelectorAll('#space_invaders ~ .figures > *');"
    assert opened.execute_script(
        beside + "return a.getBoundingClientRect().right <= b.getBoundingClientRect().left && b.className === 'films'"
    )


def test_in_a_browser_claims_are_filtered_by_verdict(opened):
    visible = (
        "return [document.querySelectorAll('.forest li:not([hidden])').length,"
        " document.querySelectorAll('table[data-filtered] tbody tr:not([hidden])').length,"
        " [...document.querySelectorAll('.forest li:not([hidden])')].every(row => row.dataset.kind === 'holds')]"
    )
    before = opened.execute_script(visible)
    button = "document.querySelector('.tallybar .holds')"
    counted = int(opened.execute_script(f"return {button}.querySelector('b').innerText"))
    opened.execute_script(f"{button}.click()")
    drawn, listed, only = opened.execute_script(visible)
    assert only
    assert 0 < drawn <= listed == counted < before[1]
    assert opened.execute_script(f"return {button}.getAttribute('aria-pressed')") == "true"
    opened.execute_script("document.querySelector('button.plain').click()")
    assert opened.execute_script(visible) == before


def test_in_a_browser_values_are_shown_where_one_points(opened):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    hidden = "return document.querySelector('#tip').hidden"
    assert opened.execute_script(hidden)
    bar = opened.find_element(By.CSS_SELECTOR, "figure svg .tip path")
    scroll = "arguments[0].scrollIntoView({block: 'center'}); setTimeout(arguments[1], 100)"
    opened.execute_async_script(scroll, bar)  # whatever scrolls hides the values
    ActionChains(opened).move_to_element(bar).perform()
    assert not opened.execute_script(hidden)
    said = "return document.querySelector('#tip').innerText"
    assert re.match(r"MCTS in the true world: [\d.]+ \[", opened.execute_script(said))
    opened.execute_script("document.querySelector('.forest li').focus()")
    assert "margin" in opened.execute_script(said)
    assert opened.get_log("browser") == []


CONTRASTS = """
const light = (colour) => {
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/^rgba.*, 0\\)$/.test(colour)) return colour;
  }
};
const texts = "p, li, h1, h2, h3, figcaption, summary, a, button, .name, .value, td, dt, dd";
return [...document.querySelectorAll(texts)].map(one => {
  const [a, b] = [getComputedStyle(one).color, behind(one)].map(light).sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), one.tagName + " " + one.className + ": " + one.textContent.slice(0, 40)];
}).filter(([ratio]) => ratio < 4.5).slice(0, 5);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_every_text_can_be_read(opened, scheme):
    """WCAG's contrast for text, 4.5 : 1, in both schemes."""
    features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
    assert opened.execute_script(CONTRASTS) == []


def test_in_a_browser_the_page_is_dark_where_the_reader_wants_it(opened):
    looks = {}
    for scheme in ("light", "dark"):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        looks[scheme] = opened.execute_script(
            "return [getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.querySelector('svg text')).fill]"
        )
    (light, ink), (dark, chalk) = looks["light"], looks["dark"]
    assert light == "rgb(255, 255, 255)"
    assert sum(map(int, re.findall(r"\d+", dark))) < 120
    assert sum(map(int, re.findall(r"\d+", ink))) < 200 < 600 < sum(map(int, re.findall(r"\d+", chalk)))


# Without Jinja2


@pytest.fixture
def no_jinja2(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)


def test_without_jinja2_everything_but_the_page_is_stored(tmp_path, monkeypatch, no_jinja2):
    monkeypatch.setattr(reproduce, "draw_typical", lambda *_: None)
    grid = offline_grid(["two_way"], ["corrupted", "combined"], [1.0, 2.0], [0.1], [7], 20)
    episodes = made_up_results.all_episodes(grid, ("released",))
    about = made_up_results.provenance(grid, ("released",))
    summary = reproduce.finish(tmp_path, episodes, None, ("released",), about)
    assert "the page was not written because Jinja2 is not installed: pip install 'uamcts[lab]'" in summary["report"]
    assert f"uamcts report {tmp_path}" in summary["report"]
    stored = {path.name for path in tmp_path.iterdir()}
    assert stored == {"episodes.parquet", "summary.json", "summary.csv", "figures"}
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png", ".svg"}


def test_without_jinja2_the_report_command_says_what_is_missing(tmp_path, no_jinja2):
    made_up_results.own_grid(tmp_path)
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 1
    remedy = "pip install jinja2, or in a checkout pip install '.[lab]'"
    assert result.stderr.strip() == f"uamcts: this command needs jinja2: {remedy}"
