"""The inspector's page in a browser: every control, keys, a phone, the dark, and nothing from outside."""

import re

import numpy as np
import pytest

import uamcts
from uamcts import reference
from uamcts.inspector import Inspection
from uamcts.inspector.page import SCRIPTS
from uamcts.inspector.plans import plan_record

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


class Maze:
    """A room of 5 x 6 cells; the lower right corner pays."""

    num_actions = 4
    action_names = ("up", "down", "left", "right")

    def step(self, state, action):
        row, column = state[0] + (-1, 1, 0, 0)[action], state[1] + (0, 0, -1, 1)[action]
        after = (min(4, max(0, row)), min(5, max(0, column)))
        return after, float(after == (4, 5)), after == (4, 5)

    def render(self, state):
        board = np.full((5, 6), "floor", dtype=object)
        board[4, 5], board[state] = "goal", "robot"
        return board


class Numbers(Maze):
    name = HOSTILE
    render = None


class Drawn(Maze):
    """Draws texts in the upper rows, and images below."""

    def render(self, state):
        if state[0] < 2:
            return "\n".join("".join("@" if (row, column) == state else "." for column in range(6)) for row in range(5))
        image = np.zeros((5, 6, 3), np.uint8)
        image[state] = 255
        return image


def play(simulator, steps=24, seed=1):
    """The trace of an agent in a world with a wall in column 3 that it does not know, open at the bottom."""
    agent = uamcts.Agent(simulator, iterations=60, rollouts=2, depth=10, graph=False, reuse=False, seed=seed)
    with agent.record() as recording:
        state = (0, 0)
        for _ in range(steps):
            action = agent.act(state)
            after, reward, over = simulator.step(state, action)
            if after[1] == 3 and after[0] < 4:
                after = state
            agent.observe(state, action, after, reward=reward, terminal=over)
            state = (0, 0) if over else after
    return recording.trace()


def walk_down(simulator):
    """The trace of steps down of which every other one fails, though the agent may have wanted something else."""
    agent = uamcts.Agent(simulator, iterations=10, rollouts=2, depth=10)
    with agent.record() as recording:
        for before, after in (((0, 0), (0, 0)), ((0, 0), (1, 0)), ((2, 0), (2, 0)), ((2, 0), (3, 0))):
            agent.act(before)
            agent.observe(before, 1, after, reward=0.0, terminal=False)
    return recording.trace()


def with_second_planner(trace):
    """The trace with UA-MCTS beside the agent: it doubts steps to the right, and deletes them now and then."""
    trace["planners"].append({"name": "UA-MCTS", "settings": {"tau": 0.1}})
    trace["board"]["broken"] = [3, 9, 15, 21]
    config = uamcts.SearchConfig(iterations=60, rollouts=2, depth=8, tau=0.4)
    for number, move in enumerate(trace["episodes"][0]["moves"]):
        state = (move["numbers"][0][1], move["numbers"][1][1])
        doubt = lambda state, action: 0.5 * (action == 3)  # noqa: E731
        move["plans"].append(plan_record(reference.search(number, state, Maze(), doubt, config), Maze.action_names))
        move["heat"] = [[14, 0.5], [9, 0.25]]
    for episode in trace["episodes"][1:]:
        for move in episode["moves"]:
            move["plans"].append(None)
    return trace


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name: two planners on a board, numbers alone with hostile strings, and texts and images."""
    out = tmp_path_factory.mktemp("pages")
    hostile = play(Numbers(), 4)
    hostile["actions"] = [HOSTILE] * 4
    hostile["summary"] = hostile["episodes"][0]["moves"][0]["plans"][0]["words"] = HOSTILE
    made = {"two": with_second_planner(play(Maze())), "hostile": hostile, "drawn": walk_down(Drawn())}
    return {name: Inspection(trace).save(out / f"{name}.html") for name, trace in made.items()}, made


class Page:
    """A page that is open."""

    def __init__(self, browser, path, width=1280, height=900, scheme="light"):
        from selenium.webdriver.support.ui import WebDriverWait

        self.browser = browser
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        browser.get(path.as_uri())
        WebDriverWait(browser, 20).until(lambda _: self.js("return !!window.inspector"))

    def js(self, program, *arguments):
        return self.browser.execute_script(program, *arguments)

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def press(self, keys, selector="body"):
        self.find(selector).send_keys(keys)

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).textContent", selector)

    def count(self, selector):
        return self.js("return document.querySelectorAll(arguments[0]).length", selector)

    @property
    def move(self):
        return int(re.match(r"move (\d+) of", self.text("#where"))[1])

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.browser, 20).until(lambda _: condition())


@pytest.fixture
def two(browser, pages):
    return Page(browser, pages[0]["two"])


def test_nothing_is_wrong_and_nothing_is_loaded(two):
    loaded = two.js("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [address for address in loaded if not address.startswith("data:")] == []
    assert two.browser.get_log("browser") == []
    two.js("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))")
    complaints = [entry["message"] for entry in two.browser.get_log("browser")]
    assert any("Content Security Policy" in message for message in complaints)


def test_keys_and_buttons_step_through_the_episode(two, pages):
    from selenium.webdriver.common.keys import Keys

    moves = pages[1]["two"]["episodes"][0]["moves"]
    assert two.move == 1
    two.press(Keys.ARROW_RIGHT + Keys.ARROW_RIGHT + Keys.ARROW_LEFT)
    assert two.move == 2
    two.press(Keys.END)
    assert two.move == len(moves)
    assert not two.find("#next").is_enabled()
    two.press(Keys.HOME)
    assert two.move == 1
    assert not two.find("#back").is_enabled()
    two.press("m")
    wrong = next(number for number, move in enumerate(moves, 1) if move["mistake"])
    assert two.move == wrong
    assert two.text("#verdict") == "the model was wrong"
    assert two.find("#timeline").get_attribute("aria-valuenow") == str(wrong)
    assert "the model was wrong" in two.find("#timeline").get_attribute("aria-valuetext")
    last = len(moves)
    after = wrong if not moves[-1]["mistake"] else last  # from the last but one, the search goes on at the first
    for button, place in (("first", 1), ("next", 2), ("last", last), ("back", last - 1), ("wrong", after)):
        two.find(f"#{button}").click()
        assert two.move == place, button
    two.find("#first").click()
    two.press(" ")
    two.wait(lambda: two.move > 1)
    assert two.find("#play").get_attribute("aria-pressed") == "true"
    two.find("#play").click()
    assert two.find("#play").get_attribute("aria-pressed") == "false"


def test_the_timeline_is_clicked_and_dragged(two, pages):
    from selenium.webdriver import ActionChains

    count, line = len(pages[1]["two"]["episodes"][0]["moves"]), two.find("#timeline")
    half = line.size["width"] // 2
    ActionChains(two.browser).move_to_element_with_offset(line, half - 4, 0).click().perform()
    assert two.move == count
    ActionChains(two.browser).move_to_element_with_offset(line, 4 - half, 0).click_and_hold().move_by_offset(
        half - 4, 10
    ).perform()
    assert abs(two.move - count / 2) <= 1
    ActionChains(two.browser).release().perform()
    assert two.count(".timeline .band") == sum(m["mistake"] for m in pages[1]["two"]["episodes"][0]["moves"])
    assert two.count(".timeline .apart") > 0


def test_episodes_are_chosen(two, pages):
    from selenium.webdriver.support.ui import Select

    choice = Select(two.find("#episode"))
    episodes = pages[1]["two"]["episodes"]
    assert len(choice.options) == len(episodes) > 1
    choice.select_by_index(1)
    assert two.text("#where").endswith(f"of {len(episodes[1]['moves'])}")
    assert "it moves at random" in two.text(".several")


def test_boards_show_what_was_believed_what_came_and_the_difference(two, pages):
    two.press("m")
    move = next(move for move in pages[1]["two"]["episodes"][0]["moves"] if move["mistake"])
    assert two.js("return [...document.querySelectorAll('.boards h3')].map(h => h.textContent)") == [
        "Now", "Believed next", "Real next", "Difference",
    ]  # fmt: skip
    differing = sum(a != b for a, b in zip(move["believed"]["cells"], move["real"]["cells"], strict=True))
    assert two.count(".board .outline") == differing == 2
    assert two.text(".boards figure:last-child .says").startswith("2 cells")
    assert two.count(".boards figure:first-child .broken") == 4
    assert two.count(".board .heat") == 2
    assert "U of “" in two.text(".boards figure:first-child .says")
    two.find("#heat").click()
    assert two.count(".board .heat") == 0
    assert two.text("#numbers tbody tr.differs th").startswith("state[")
    names = set(two.js("return [...document.querySelectorAll('#boards .legend li')].map(l => l.textContent)"))
    assert {"floor", "goal", "robot", "broken: world and model differ"} <= names


def test_actions_say_what_explain_says(two, pages):
    plans = pages[1]["two"]["episodes"][0]["moves"][0]["plans"]
    assert two.count(".several .card.why") == 2
    for number, plan in enumerate(plans, 1):
        card = f".several > .panel:nth-child({number}) "
        assert two.text(f"{card}.words") == plan["words"].split("\n")[0]
        assert two.count(f"{card}tr.deleted") == sum(not exists for exists in plan["exists"])
        assert two.text(f"{card}tr.chosen .name") == pages[1]["two"]["actions"][plan["action"]]
        shown = two.js(
            f"return [...document.querySelectorAll('{card}tbody tr td:nth-child(2)')].map(c => c.textContent)"
        )
        assert list(map(int, shown)) == plan["visits"]
    found = next(
        n for n, move in enumerate(pages[1]["two"]["episodes"][0]["moves"]) if not all(move["plans"][1]["exists"])
    )
    two.js("inspector.go(arguments[0])", found)
    style = two.js("return getComputedStyle(document.querySelector('tr.deleted .name')).textDecorationLine")
    assert style == "line-through"
    assert two.count(".icicle .deleted .strike") > 0
    assert two.count(".icicle .hatch") > 0


def test_the_search_is_zoomed_and_walked_by_keys(two):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    search = ".several > .panel:nth-child(1) "
    everything = two.count(f"{search}.box")
    two.find(f"{search}.box[data-node='1'] rect").click()
    assert 0 < two.count(f"{search}.box") < everything
    assert two.count(f"{search}.crumbs button.plain") == 2
    two.find(f"{search}.crumbs .out").click()
    assert two.count(f"{search}.box") == everything
    ActionChains(two.browser).move_to_element(two.find("h1")).perform()
    two.js("inspector.searches[0].select(0)")
    two.press(Keys.ARROW_DOWN, f"{search}.icicle")
    first = two.text(f"{search}.detail")
    assert re.match(r"\w+: \d+ visits?, value", first)
    two.press(Keys.ARROW_RIGHT, f"{search}.icicle")
    assert two.text(f"{search}.detail") != first
    assert two.move == 1  # arrows belong to the search while it has the focus
    two.press(Keys.ARROW_LEFT + Keys.ARROW_DOWN, f"{search}.icicle")
    assert "›" in two.text(f"{search}.detail")
    two.press(Keys.ARROW_UP + Keys.ENTER, f"{search}.icicle")
    assert two.count(f"{search}.box") < everything
    two.press(Keys.ESCAPE, f"{search}.icicle")
    assert two.count(f"{search}.box") == everything


def test_values_of_few_visits_are_hidden(two, pages):
    nodes = pages[1]["two"]["episodes"][0]["moves"][0]["plans"][1]["nodes"]
    boxes = two.js(
        "return [...document.querySelectorAll('.several > .panel:nth-child(2) .box')]"
        ".map(b => [Number(b.dataset.node), b.classList.contains('hidden'), b.querySelector('title').textContent])"
    )
    shown = [
        (nodes["visits"][node] >= 5, hidden) for node, hidden, _ in boxes if node and nodes["value"][node] is not None
    ]
    assert {(True, False), (False, True)} >= set(shown)
    assert len(set(shown)) == 2
    assert any("value hidden: under 5 visits" in title for _, hidden, title in boxes if hidden)


def test_the_search_is_replayed(two):
    search = ".several > .panel:nth-child(1) "
    everything = two.count(f"{search}.box")
    assert two.text(f"{search}output") == "all 60 iterations"
    two.js(
        "const s = document.querySelector(arguments[0]); s.value = 3; s.dispatchEvent(new Event('input'))",
        f"{search}input",
    )
    assert two.text(f"{search}output") == "iteration 3 of 60"
    assert 0 < two.count(f"{search}.box") < everything
    plan = two.js("return inspector.searches[0].plan")
    end, walked = plan["ends"][2], []
    while end >= 0:
        walked.append(end)
        end = plan["nodes"]["parent"][end]
    drawn = two.js("return [...document.querySelectorAll(arguments[0])].map(b => +b.dataset.node)", f"{search}.walked")
    assert sorted(drawn) == sorted(walked)
    assert two.text(f"{search}.detail").startswith("iteration 3: ")
    two.find(f"{search}.replayer").click()
    two.wait(lambda: two.text(f"{search}output") not in ("iteration 3 of 60", "iteration 4 of 60"))
    two.find(f"{search}.replayer").click()
    assert two.text(f"{search}.replayer").endswith("replay")
    two.js("inspector.searches[0].seek(60)")
    assert two.count(f"{search}.walked") == 0
    assert two.count(f"{search}.box") == everything


def overflow(page):
    return page.js("const page = document.documentElement; return [page.scrollWidth, page.clientWidth]")


@pytest.mark.parametrize("name", ["two", "hostile", "drawn"])
def test_the_page_fits_a_phone(browser, pages, name):
    page = Page(browser, pages[0][name], width=390, height=800)
    scrolls, shows = overflow(page)
    assert scrolls <= shows == 390
    bar = page.js("return document.querySelector('.bar').getBoundingClientRect().bottom")
    assert abs(bar - 800) < 1  # where thumbs are
    small = page.js(
        "return [...document.querySelectorAll('.bar button')].filter(b => b.offsetWidth)"
        ".filter(b => b.offsetWidth < 44 || b.offsetHeight < 44).length"
    )
    assert small == 0
    page.find("#next").click()
    assert page.move == 2
    assert page.browser.get_log("browser") == []


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


INK = """
const background = (node) => {
  for (let one = node; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/, 0\\)$|^transparent$/.test(colour) && !/\\/|0\\.\\d+\\)$/.test(colour)) return colour;
  }
  return getComputedStyle(document.body).backgroundColor;
};
const style = (node) => getComputedStyle(node);
const words = (n) => [...n.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
const all = (selector) => [...document.querySelectorAll(selector)];
const texts = all("main *").filter((n) => !n.closest("svg, .board, :disabled") && words(n));
const plain = texts.map((n) => [style(n).color, background(n), n.className + ": " + n.textContent.slice(0, 30)]);
const part = (b, name) => b.querySelector(name);
const named = all(".icicle .box").filter((b) => part(b, "text"));
const boxes = named.map((b) => [style(part(b, "text")).fill, style(part(b, "rect")).fill, b.textContent]);
const marks = all(".timeline text:not(.tag)");
const line = marks.map((n) => [style(n).fill, background(n.closest("div")), n.textContent]);
return [...plain, ...boxes, ...line];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_the_light_and_in_the_dark(browser, pages, scheme):
    page = Page(browser, pages[0]["two"], scheme=scheme)
    page.press("m")
    found = page.js(INK)
    assert len(found) > 80
    assert [(round(contrast(*pair), 2), said) for *pair, said in found if contrast(*pair) < 4.5] == []
    ground = page.js("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(ground) > 0.8) == (scheme == "light")
    assert page.browser.get_log("browser") == []


def test_texts_and_images_are_compared(browser, pages):
    page = Page(browser, pages[0]["drawn"])
    last = ".boards figure:last-child "
    assert page.count(f"{last}mark") == 2  # it was believed to leave one place for another
    page.js("inspector.go(2)")
    assert page.count(f"{last}img") == 2
    assert page.js("return [...document.images].every(i => i.complete && i.naturalWidth === 6)")
    said = page.text(".why")
    assert ("what was done instead: down" in said) == (
        pages[1]["drawn"]["episodes"][0]["moves"][2]["plans"][0]["action"] != 1
    )
    assert page.browser.get_log("browser") == []


def test_strings_of_a_trace_are_text(browser, pages):
    page = Page(browser, pages[0]["hostile"])
    assert page.js("return window.hacked === undefined")
    assert page.text("h1") == HOSTILE
    assert page.text(".words") == HOSTILE
    assert page.count("main img") == 0
    assert page.count("#numbers tbody tr") == 2  # no picture: all numbers
    assert page.browser.get_log("browser") == []


def test_a_notebook_shows_the_page_in_a_frame(browser, pages, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    frame = Inspection(pages[1]["two"])._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><title>x</title><body>{frame}</body>")
    browser.get((tmp_path / "notebook.html").as_uri())
    browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    try:
        WebDriverWait(browser, 20).until(lambda _: browser.execute_script("return !!document.querySelector('#where')"))
        assert browser.execute_script("return document.querySelector('#where').textContent").startswith("move 1 of")
    finally:
        browser.switch_to.default_content()
    assert browser.get_log("browser") == []


def test_no_script_writes_markup():
    """What a trace says must never be parsed."""
    from importlib.resources import files

    folder = files("uamcts.inspector").joinpath("web")
    for name in SCRIPTS:
        source = folder.joinpath(name).read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|fetch\(|XMLHttp", source
        )
        assert source.count("\n") <= 300
