"""The documentation as a site: it is built without a warning, is whole, and asks for nothing from outside."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

import uamcts
import uamcts.gym

ROOT = Path(__file__).parents[1]


class Requests(HTMLParser):
    """What a browser would fetch to show a page, and the names of its headings."""

    def __init__(self, page):
        super().__init__()
        self.found, self.ids = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.append(given.get("id"))
        self.found += [given[name] for name in ("src", "srcset", "poster", "data") if given.get(name)]
        if tag == "link" and given.get("rel") != "canonical" and given.get("href"):
            self.found.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return out


def pages(nav):
    """The files that a navigation names."""
    for entry in nav:
        for named in entry.values() if isinstance(entry, dict) else [entry]:
            yield from pages(named) if isinstance(named, list) else [named]


def test_every_page_of_the_navigation_is_there(site):
    named = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert {"index.md", "quickstart.md", "speed.md", "changelog.md", "api/agent.md"} <= set(named)
    for name in named:
        page = (site / name).with_suffix(".html").read_text()
        assert re.search(r"<h1[ >]", page), name
    assert "Random play" in (site / "speed.html").read_text()
    assert (site / "growth.png").exists()


def test_nothing_comes_from_outside(site):
    looked = 0
    for path in site.rglob("*.html"):
        for address in Requests(path.read_text()).found:
            assert not re.match(r"(https?:)?//", address), f"{path.name} requests {address}"
            looked += 1
    assert looked > 100
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text()), path


def test_links_between_pages_lead_somewhere(site):
    """Those of the Markdown were looked at by the build; these are what became of them."""
    for path in site.rglob("*.html"):
        if path.name == "404.html":
            continue
        for target in re.findall(r'href="([^"#]+)', path.read_text()):
            if not re.match(r"[a-z]+:", target):
                assert (path.parent / target).resolve().exists(), f"{path.name}: {target}"


def test_every_public_name_is_in_the_reference(site):
    ids = set()
    for path in (site / "api").glob("*.html"):
        ids |= set(Requests(path.read_text()).ids)
    for name in uamcts.__all__:
        assert any(one and re.fullmatch(rf"uamcts\.(.+\.)?{name}", one) for one in ids), name
    assert {"uamcts.agent.Agent.act", "uamcts.agent.Agent.tau", "uamcts.reference.search"} <= ids
    for package in (uamcts.bandits, uamcts.gym):
        public = getattr(package, "__all__", ["WorldEnv", "ENVIRONMENTS"])
        assert {f"{package.__name__}.{name}" for name in public} <= ids, package
