"""What the inspector costs, and the picture of docs/guides/inspector.md.

    python benchmarks/inspector.py                            a recording of 300 moves: time, size, time to open
    python benchmarks/inspector.py --picture docs/inspector.png

Times are CPU time of this process; the page is opened in headless Chromium, which both need.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

import uamcts
from uamcts.inspector import Inspection

MOVES = 300
WIDTH, HEIGHT = 1280, 1500


class Harbour:
    """A boat in a harbour of 12 x 12 cells; the pier is at one corner. Four ways to go, and a current to the east."""

    num_actions = 4
    action_names = ("north", "east", "south", "west")

    def step(self, state, action):
        row = min(11, max(0, state[0] + (-1, 0, 1, 0)[action]))
        column = min(11, max(0, state[1] + (0, 1, 0, -1)[action]))
        over = (row, column) == (11, 11)
        return (row, column), float(over), over

    def render(self, state):
        return [[int((row, column) == state) for column in range(12)] for row in range(12)]


def episode(agent: uamcts.Agent) -> float:
    """CPU seconds of 300 moves."""
    state, start = (0, 0), time.process_time()
    for move in range(MOVES):
        action = agent.act(state)
        after, reward, over = agent._model.step(state, action)
        if move % 7 == 3 and after[1] < 11:  # the current
            after, over = (after[0], after[1] + 1), False
        agent.observe(state, action, after, reward=reward, terminal=over)
        state = (0, 0) if over else after
    return time.process_time() - start


def open_browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(executable_path=shutil.which("chromedriver")))


def show(browser: webdriver.Chrome, page: Path) -> float:
    """Opens a page; returns the milliseconds until it was drawn."""
    browser.get(page.resolve().as_uri())
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script("return !!window.inspector"))
    return browser.execute_script("return performance.getEntriesByName('drawn')[0]?.startTime ?? performance.now()")


def measure(folder: Path) -> None:
    settings = {"iterations": 100, "rollouts": 2, "depth": 10, "graph": False, "reuse": False}
    usual, recorded = [], []
    for _ in range(2):
        usual.append(episode(uamcts.Agent(Harbour(), **settings)))
        agent = uamcts.Agent(Harbour(), **settings)
        with agent.record(folder / "trace.uamcts"):
            recorded.append(episode(agent))
    page = Inspection(folder / "trace.uamcts").save(folder / "plan.html")
    browser = open_browser()
    opened = min(show(browser, page) for _ in range(3))
    browser.quit()
    print(f"{MOVES} moves of 100 iterations, without a recording: {1e3 * min(usual) / MOVES:.1f} ms a move")
    print(f"with a recording: {1e3 * min(recorded) / MOVES:.1f} ms a move")
    size = (folder / "trace.uamcts").stat().st_size
    print(f"the trace: {size / 1e3:.0f} kB; the page: {page.stat().st_size / 1e3:.0f} kB")
    print(f"the page is drawn after {opened:.0f} ms")


def picture(folder: Path, path: Path) -> None:
    """Breakout, where MCTS is about to believe in its paddle, beside UA-MCTS in the same state."""
    from typer.testing import CliRunner

    from uamcts.cli import app

    page = folder / "plan.html"
    arguments = ["play", "breakout", "--algorithm", "mcts", "--algorithm", "ua-mcts", "--quiet", "--html", str(page)]
    made = CliRunner().invoke(app, arguments)
    if made.exit_code:
        raise SystemExit(made.output)
    browser = open_browser()
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    show(browser, page)
    browser.execute_script("inspector.nextMistake()")
    height = browser.execute_script("return document.querySelector('footer').offsetTop")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    browser.quit()
    path.write_bytes(base64.b64decode(shot["data"]))
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="write the picture of the documentation instead")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if wanted.picture is None:
            measure(Path(folder))
        else:
            picture(Path(folder), wanted.picture)


if __name__ == "__main__":
    main()
