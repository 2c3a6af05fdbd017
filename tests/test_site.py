"""The site is built, its links lead somewhere, and it loads nothing from other hosts."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(0)]  # tutorials run for minutes


class Page(HTMLParser):
    """The anchors, the links and the loaded files of one page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("img", "script", "iframe", "source") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_links_and_anchors_lead_somewhere(pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert there.exists(), f"{path.name} links to {link}"
            if parts.fragment and there in pages:
                anchors = pages[there].anchors
                assert unquote(parts.fragment) in anchors, f"{path.name} links to {link}"


def test_nothing_is_loaded_from_other_hosts(pages, site):
    for path, page in pages.items():
        for source in page.loaded:
            assert not re.match(r"(?:https?:)?//", source), f"{path.name} loads {source}"
            there = path.parent / unquote(urlsplit(source).path)
            assert source.startswith("data:") or there.exists(), f"{path.name} loads {source}"
    for style in site.rglob("*.css"):
        assert not re.search(r"""url\(["']?(?:https?:)?//""", style.read_text()), style.name


def test_every_tutorial_has_output_and_a_picture(pages, site):
    tutorials = sorted(path.stem for path in (ROOT / "docs" / "tutorials").glob("*.py"))
    assert tutorials == [
        "allocate-vaccine",
        "bid-wind",
        "from-a-csv",
        "order-stock",
        "service-level",
        "your-own-cost",
    ]
    for name in tutorials:
        path = site / "tutorials" / f"{name}.html"
        pictures = [p for p in pages[path].loaded if p.startswith(f"{name}/")]
        assert pictures, f"{name} has no picture"
        assert "seconds of CPU time" in path.read_text()


def test_formulas_are_shown_without_a_script(site):
    page = (site / "concepts" / "slopes.html").read_text()
    assert page.count("<math") > 30
    assert "arithmatex" not in page
