"""The page in a real browser: it paints, says nothing on the console, and fits a phone."""

import re
import shutil
import subprocess

import matplotlib.image
import numpy as np
import pytest

from costscape.bench.report import write_page

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser: none of {', '.join(NAMES)} is on the path"
)

PHONE, DESK = 390, 1280
DARK, LIGHT = 0, 1
# a page in a frame as wide as a phone (a window may not be that narrow) tells its frame's owner
TELL = """<script>addEventListener("load", () => {
  const right = (one) => one.getBoundingClientRect().right;
  const wide = [...document.querySelectorAll("body *")].filter(
    (one) => !one.closest("table, pre, svg") && right(one) > innerWidth + 1
  ).map((one) => one.tagName);
  const total = document.documentElement.scrollWidth;
  parent.postMessage(`measured ${innerWidth} ${total} [${wide}]`, "*");
});</script>"""
FRAME = """<!doctype html><link rel="icon" href="data:,"><title>waiting</title>
<script>addEventListener("message", (told) => { document.title = told.data; });</script>
<iframe src="told.html" style="border: 0; width: WIDTHpx; height: 2000px"></iframe>"""


def browse(folder, page, width, *options, light=LIGHT):
    """stdout and the console's lines of a browser with a fresh profile."""
    done = subprocess.run(
        [
            BROWSER,
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--hide-scrollbars", "--enable-logging=stderr", "--v=0"),
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},2400",
            f"--blink-settings=preferredColorScheme={light}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def picture_of(folder, page, width, light):
    shot = folder / "shot.png"
    _, console = browse(folder, page, width, f"--screenshot={shot}", light=light)
    assert console == []
    return np.round(255 * matplotlib.image.imread(shot)[::3, :, :3]).astype(int)


@pytest.fixture(scope="module")
def page(kept, kept_landscape, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    return write_page(kept, [kept_landscape], path, ("df2", "blend"))


def test_the_browser_finds_every_figure_and_has_nothing_to_complain_of(page, tmp_path):
    dom, console = browse(tmp_path, page, DESK, "--dump-dom")
    assert console == []
    assert len(re.findall(r"<figure\b", dom)) == len(re.findall(r"<svg\b", dom)) == 6
    assert dom.count('role="img"') == 6


def measured(folder, text, width):
    """Its window's width, its own, and the tags that reach beyond, as a page tells them."""
    (folder / "told.html").write_text(text.replace("</head>", f"{TELL}</head>"))
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)))
    dom, console = browse(folder, frame, DESK + 100, "--dump-dom", "--virtual-time-budget=5000")
    assert console == []
    found = re.search(r"<title>measured (\d+) (\d+) \[(.*)\]</title>", dom)
    return int(found[1]), int(found[2]), found[3]


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_nothing_is_wider_than_the_window(page, tmp_path, width):
    assert measured(tmp_path, page.read_text(), width) == (width, width, "")


def test_the_measure_sees_a_page_that_is_too_wide(page, tmp_path):
    wide = '<main><p style="width: 900px; max-width: none">too wide</p>'
    text = page.read_text().replace("<main>", wide)
    width, total, tags = measured(tmp_path, text, PHONE)
    assert (width, tags) == (PHONE, "P")
    assert total > 900


def test_the_console_is_heard(page, tmp_path):
    copy = tmp_path / "loud.html"
    copy.write_text(page.read_text().replace("</head>", "<script>lost()</script></head>"))
    _, console = browse(tmp_path, copy, PHONE, "--dump-dom")
    assert len(console) == 1
    assert "lost is not defined" in console[0]


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_page_is_painted_in_the_light_and_in_the_dark(page, tmp_path, width):
    light = picture_of(tmp_path, page, width, LIGHT)
    dark = picture_of(tmp_path, page, width, DARK)
    for image in (light, dark):
        assert image.shape[:2] == (800, width)  # every third line
        assert len(np.unique(image @ [1 << 16, 1 << 8, 1])) > 100
    assert np.median(light) > 240
    assert np.median(dark) < 40
