"""The report of an output folder: its figures, its page, and the page in a real browser. The numbers are made up."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from html import escape
from html.parser import HTMLParser

import made_up_results
import matplotlib
import pytest
from PIL import Image

from uamcts.lab import plots, report
from uamcts.lab.findings import best_rows, read

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
    report.build(folder)
    return folder


def change(folder, alter):
    """The made-up folder, without its extras, with an altered summary."""
    summary = made_up_results.summary()
    alter(summary)
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_every_figure_is_there_as_png_and_svg(out):
    stems = {path.stem for path in (out / "figures").iterdir()}
    for rules in ("released", "pseudocode"):
        assert {f"{game}_{kind}_{rules}" for game in made_up_results.LEVELS for kind in ("offline", "c")} <= stems
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


def test_the_offline_figure_shows_what_was_measured():
    rows = [r for r in made_up_results.summary()["rows"] if (r["experiment"], r["rules"]) == ("two_way", "released")]
    axes = plots.offline(rows, "two_way", "released").axes[0]
    best = best_rows(rows)
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([row["mean"] for row in best.values()])
    assert [text.get_text() for text in axes.texts] == [f"c = {plots.exploration(row['c'])}" for row in best.values()]
    dashed = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == pytest.approx([best["true"]["mean"], best["corrupted"]["mean"]])
    assert axes.get_title(loc="left") == "2-Way GridWorld, offline, released rules"


def test_drawing_leaves_matplotlib_as_it_was(out, tmp_path):
    before = dict(matplotlib.rcParams)
    plots.save(plots.bandit_case(read(out).bandit["cases"][0]), tmp_path, "figure")
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
        assert plots.name(domain) in text
    assert "4 hold, 4 do not hold, 4 are too close to call and 4 were not measured" in text
    assert found.provenance["command"] in text
    assert found.provenance["commit"] in text
    assert page.tags >= {"svg", "img", "nav", "footer", "table"}
    assert len(page.ids) == len(set(page.ids))


def test_the_page_stands_alone(out):
    page, source = outline(out / "index.html"), (out / "index.html").read_text()
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert not re.search(r"https?://(?!www\.w3\.org/)|@import|url\((?!#)", source)
    assert "default-src 'none'" in source
    assert source.count("<script") == 1
    assert escape(made_up_results.NASTY) in source


def test_the_same_data_give_the_same_bytes(out, tmp_path):
    again = made_up_results.write(tmp_path)
    report.build(again)
    for path in (out / "index.html", *sorted((out / "figures").iterdir())):
        assert path.read_bytes() == (again / path.relative_to(out)).read_bytes(), path.name


def only_some(summary):
    """One rule set, offline, one c, two runs: what a quick look leaves behind."""
    rows = [row for row in summary["rows"] if row["rules"] == "released" and row["purpose"] == "fresh"]
    summary["rows"] = [{**row, "runs": 2, "ci95": None, "iqm": None, "std": float("nan")} for row in rows]
    summary["curves"], summary["claims"] = [], summary["claims"][3:4]


def only_online(summary):
    summary["rows"] = []


def own_grid(summary):
    summary["rows"] = [{**row, "experiment": "run"} for row in summary["rows"] if row["purpose"] == "sweep"]
    summary["curves"], summary["claims"] = [], []


def nothing(summary):
    summary.update(rows=[], claims=[], curves=[], provenance={})


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (only_some, ["here: the online scenario and the pseudocode rules.", "2 runs only", "1 was not measured"]),
        (only_online, ["Not measured here: the offline scenario."]),
        (own_grid, ["2-Way GridWorld, own grid", "No claims were judged here."]),
        (nothing, ["No claims were judged here.", "the command was not recorded"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_what_is_missing_lacks_its_section_and_is_named(tmp_path, alter, said):
    text = " ".join(outline(report.build(change(tmp_path, alter))).text)
    for words in [*said, "Not measured here."]:
        assert words in text


def test_a_folder_without_a_summary_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no .*summary\.json; name a folder that `uamcts reproduce`"):
        report.build(tmp_path)


@pytest.mark.parametrize(
    ("alter", "complaint"),
    [
        (lambda summary: summary.pop("rows"), "it has no 'rows'"),
        (lambda summary: summary["rows"][3].pop("mean"), r"rows\[3\] has no 'mean'"),
        (lambda summary: summary["rows"][0].update(mean="much"), r"'mean' of rows\[0\] is 'much'"),
        (lambda summary: summary["claims"].append(7), r"claims\[16\] has no 'id'"),
        (lambda summary: summary["curves"][0].update(mean=3), r"'mean' of curves\[0\] is 3"),
    ],
)
def test_a_damaged_summary_is_refused(tmp_path, alter, complaint):
    with pytest.raises(ValueError, match=rf"summary\.json is damaged .*{complaint}.*run the command"):
        report.build(change(tmp_path, alter))


def test_files_cut_short_are_refused(tmp_path):
    change(tmp_path, lambda summary: None)
    (tmp_path / "bandit.json").write_text('{"cases": [')
    with pytest.raises(ValueError, match=r"bandit\.json is damaged"):
        report.build(tmp_path)
    (tmp_path / "summary.json").write_bytes(b"\xff\x00")
    with pytest.raises(ValueError, match=r"summary\.json is damaged"):
        report.build(tmp_path)


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="no chromium: selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("no chromium: install chromium and chromium-driver to try the page in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    yield running
    running.quit()


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
    assert opened.execute_script(
        "const box = document.querySelector('.rows'); return box.scrollWidth > box.clientWidth"
    )


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
