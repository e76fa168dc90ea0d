"""The documentation as a site: it builds without a warning, is whole, needs no network, and can be searched."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import uamcts
import uamcts.gym

ROOT = Path(__file__).parents[1]
PARTS = {"Start": "start", "Guides": "guides", "Concepts": "concepts", "Results": "results", "API and changelog": "api"}
"""The five parts of the site, and the folder of each."""


class Page(HTMLParser):
    """What a browser would fetch to show a page, where its links lead, the names in it, and its formulas."""

    def __init__(self, page):
        super().__init__()
        self.fetched, self.links, self.ids, self.formulas = [], [], set(), 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        self.formulas += tag == "math"
        self.fetched += [given[name] for name in ("src", "srcset", "poster", "data") if given.get(name)]
        if tag == "link" and given.get("href"):
            self.fetched.append(given["href"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out


@pytest.fixture(scope="module")
def pages(site):
    """The pages of the site by their path, read."""
    return {path.relative_to(site).as_posix(): Page(path.read_text()) for path in site.rglob("*.html")}


def test_the_five_parts_are_in_the_navigation(site):
    text = (site / "index.html").read_text()
    for title, folder in PARTS.items():
        assert re.search(rf'class="caption"[^>]*><span class="caption-text">{title}</span>', text), title
        for page in (ROOT / "docs" / folder).glob("*.md"):
            if folder != "api" or page.stem in ("index", "architecture", "changelog"):
                assert f'href="{folder}/{page.stem}.html"' in text, page
    assert "Random play" in (site / "results" / "speed.html").read_text(), "benchmarks/README.md is not on the site"
    assert uamcts.__version__ in (site / "api" / "changelog.html").read_text()


def test_nothing_comes_from_outside(site, pages):
    fetched = [(name, address) for name, page in pages.items() for address in page.fetched]
    assert len(fetched) > 100
    for name, address in fetched:
        assert not re.match(r"(https?:)?//", address), f"{name} requests {address}"
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text()), path


def test_links_between_pages_lead_somewhere(site, pages):
    """The build has looked at those of the Markdown; these are what became of them."""
    looked = 0
    for name, page in pages.items():
        for address in page.links:
            if re.match(r"[a-z]+:", address):
                continue
            target, _, anchor = address.partition("#")
            there = (site / name).parent / unquote(target) if target else site / name
            assert there.resolve().exists(), f"{name}: {address}"
            if anchor and there.suffix == ".html":
                found = pages[there.resolve().relative_to(site.resolve()).as_posix()]
                assert unquote(anchor) in found.ids, f"{name}: {address}"
                looked += 1
    assert looked > 200


def test_formulas_are_typeset(pages):
    assert pages["concepts/ua_mcts.html"].formulas >= 5
    assert pages["concepts/trust.html"].formulas >= 2


def test_every_public_name_is_in_the_reference(pages):
    ids = set().union(*(page.ids for name, page in pages.items() if name.startswith("api/")))
    for name in uamcts.__all__:
        assert any(one and re.fullmatch(rf"(module-)?uamcts\.(.+\.)?{name}", one) for one in ids), name
    assert {"uamcts.Agent.act", "uamcts.Agent.tau", "uamcts.reference.search"} <= ids
    for package in (uamcts.bandits, uamcts.gym):
        public = {name for name in package.__all__ if name != "SimulatorError"}
        assert {f"{package.__name__}.{name}" for name in public} <= ids, package


def test_signatures_are_readable(site):
    text = (site / "api" / "search.html").read_text()
    assert re.search(r'class="n"><span class="pre">iterations</span>', text), "SearchConfig does not show its settings"
    assert "jaxlib._jax" not in text
    assert "TypeAliasForwardRef" not in text


def test_search_works_from_disk(site, browser):
    from selenium.webdriver.support.ui import WebDriverWait

    def summary():
        return "".join(element.text for element in browser.find_elements("css selector", "p.search-summary"))

    def search(words):
        browser.get(f"{(site / 'search.html').as_uri()}?q={words}")
        WebDriverWait(browser, 20).until(lambda _: "search" in summary() and "Searching" not in summary())
        return [link.get_attribute("href") for link in browser.find_elements("css selector", "ul.search a")]

    browser.get((site / "index.html").as_uri())
    browser.get_log("browser")
    found = search("quickstart")
    assert any("/start/quickstart.html" in link for link in found), found
    assert any("/api/agent.html#uamcts.Agent.observe" in link for link in search("observe"))
    assert search("xylophone") == []
    assert browser.get_log("browser") == []
