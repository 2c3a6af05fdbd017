"""The explorer in a real browser: every control, both sizes, both themes, no other host.

One service with four models and one browser serve all tests. Loading the page takes a second, so
it is loaded once, and each test chooses its model again, which undoes what the test before did.
"""

import json
import shutil
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

import costscape as cs
from costscape.comparison import CostHistory
from costscape.serve import Settings, create_app, parse_sources

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
pytestmark = [
    pytest.mark.skipif(
        not (BROWSER.exists() and DRIVER.exists()), reason=f"needs {BROWSER} and {DRIVER}"
    ),
    # a service ignores it; here the service lives in the process of the tests
    pytest.mark.filterwarnings("ignore::costscape.OutOfRange"),
]
TOKEN = "secret"
BAKERY = """
import costscape as cs

units = {"price": "EUR", "bread": "loaves"}
chance = cs.Chance(lambda y, a: y - a, 0.8)

def task():
    terms = lambda y, a: 4 * (y - a).relu() + (a - y).relu()
    return cs.SeparableTask(terms, cs.Budget(total=5.0, dim=2, upper=4.0), convex=True)
"""
WEEK = "import costscape as cs\n\ndef task():\n    return cs.problems.inventory(days=8)\n"
RNG = np.random.default_rng(0)
DAYS = pd.date_range("2017-01-01", periods=60)
X = pd.DataFrame(RNG.random((60, 3)).round(3), DAYS, ["temp", "wind", "price"])
Y = pd.DataFrame(
    np.stack([X.temp + X.wind, X.price], 1) + RNG.random((60, 2)), DAYS, ["bread", "soup"]
)
COSTS = CostHistory(
    tuple(map(str, DAYS.date[-4:])),
    {"NN": (1.0, 1.0, 1.0, 1.0), "today's rule": (2.0, 3.0, 2.0, 2.0), "mean": (1.5, 1, 1, 4)},
    "NN",
    "today's rule",
    "Use NN: it saves 1.25 a row.",
)


def write(folder, code, X, Y, k, **save):
    folder.mkdir()
    (folder / "task.py").write_text(code)
    names = {}
    exec(code, names)
    model = cs.NearestNeighbours(names["task"](), k=k).fit(X, Y)
    model.save(folder / "model.costscape", **save)
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two versions of a bakery, windows with eight decisions, and a file without rows."""
    place = tmp_path_factory.mktemp("models")
    made = {
        "bakery": write(place / "bakery", BAKERY, X, Y, 5),
        "older": write(place / "older", BAKERY, X, Y, 20),
        "week": write(place / "week", WEEK, RNG.random((40, 3, 2)), RNG.random((40, 8)), 5),
        "bare": write(place / "bare", BAKERY, X.rename(columns=str.upper), Y, 5, rows=False),
    }
    COSTS.write(place / "bakery" / "comparison.json")
    return place, made


@pytest.fixture(scope="module")
def address(models):
    import uvicorn

    place, made = models
    app = create_app(
        parse_sources([str(place / name) for name in made]),
        Settings(token=TOKEN, watch_seconds=0.0),
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert time.monotonic() < until
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join(30)


class Page:
    """The page in the browser, by ids of its elements."""

    def __init__(self, driver, address, downloads):
        self.driver, self.address, self.downloads = driver, address, downloads

    def prefer(self, theme):
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def resize(self, width):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def open(self, width=1400, model="bakery"):
        """The page as after loading it, with this model."""
        self.resize(width)
        self.prefer("light")
        if not self.driver.current_url.startswith(self.address):
            self.driver.get(self.address)
            self.wait()
            self.type("token", TOKEN + "\n")
            self.wait()
        self.js(
            "const model = document.getElementById('model'); model.value = arguments[0];"
            "model.dispatchEvent(new Event('change'))",
            model,
        )
        self.wait()

    def js(self, code, *values):
        return self.driver.execute_script(code, *values)

    def wait(self):
        self.until("return document.body?.dataset.state === 'ready'", "The page is still busy.")

    def until(self, code, otherwise):
        """Wait until JavaScript returns true."""
        end = time.monotonic() + 60
        while not self.js(code):
            assert time.monotonic() < end, otherwise
            time.sleep(0.03)

    def find(self, id):
        return self.driver.find_element("id", id)

    def text(self, id):
        return self.js("return document.getElementById(arguments[0]).innerText", id)

    def type(self, id, text):
        field = self.find(id)
        field.clear()
        field.send_keys(text)
        self.wait()

    def click(self, id):
        self.find(id).click()
        self.wait()

    def choose(self, id, text):
        from selenium.webdriver.support.select import Select

        Select(self.find(id)).select_by_visible_text(text)
        self.wait()

    def slide(self, id, key):
        """A key on the slider beside a number field."""
        slider = self.js("return document.getElementById(arguments[0]).previousSibling", id)
        slider.send_keys(key)
        self.wait()

    def error_of(self, id):
        """The sentence next to a control."""
        return self.js(
            "return document.getElementById(arguments[0]).closest('.field, section')"
            ".querySelector('.error').innerText",
            id,
        )

    def decision(self):
        """The column of decisions as numbers."""
        return self.numbers("decision-table")

    def numbers(self, id, column=1, rows=99):
        code = (
            "return [...document.querySelectorAll('#' + arguments[0] + ' tbody tr')]"
            ".map((row) => row.children[arguments[1]].innerText)"
        )
        texts = self.js(code, id, column)[:rows]
        return [float(text.replace("\u2212", "-").strip(" %")) for text in texts]

    def download(self, panel, kind):
        self.js(
            f"document.querySelector('[data-panel={panel}]').children[arguments[0]].click()",
            ("csv", "json").index(kind),
        )
        path = self.downloads / f"bakery-{panel}.{kind}"
        until = time.monotonic() + 30
        while not path.exists() or not path.stat().st_size:  # Chromium makes an empty one first
            assert time.monotonic() < until, f"{path} was not downloaded."
            time.sleep(0.03)
        return path.read_text()


@pytest.fixture(scope="module")
def page(address, tmp_path_factory):
    place = tmp_path_factory.mktemp("browser")
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in ("headless", "no-sandbox", "disable-gpu", f"user-data-dir={place / 'profile'}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
    try:
        where = {"behavior": "allow", "downloadPath": str(place)}
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
        yield Page(driver, address, place)
    finally:
        driver.quit()
        shutil.rmtree(place / "profile", ignore_errors=True)


def four(values):
    """As the page writes numbers."""
    return [float(f"{value:.4g}") for value in np.ravel(values)]


def test_the_page_asks_for_the_token_and_keeps_it_in_memory_only(page):
    page.resize(1400)
    page.driver.get(page.address)
    page.wait()
    assert page.find("token").is_displayed()
    assert not page.find("main").is_displayed()
    page.type("token", "wrong\n")
    assert "not the one of the service" in page.text("token-error")
    page.type("token", f"{TOKEN}\n")
    assert page.find("main").is_displayed()
    assert not page.find("token-form").is_displayed()
    kept = page.js("return [document.cookie, localStorage.length, sessionStorage.length]")
    assert kept == ["", 0, 0]
    assert TOKEN not in page.driver.page_source


def test_days_inputs_and_what_if_reach_the_model(page, models):
    model = models[1]["bakery"]
    page.open()
    # the last day, then another one by its label, by the buttons and from the similar days
    assert page.decision() == four(model.decide(X[-1:]))
    assert f"bread {Y.bread.iloc[-1]:.4g}" in page.text("happened")
    page.type("day", "2017-01-11\t")
    assert page.decision() == four(model.decide(X[10:11]))
    page.click("earlier")
    assert page.find("day").get_attribute("value") == "2017-01-10"
    page.click("later")
    page.type("day", "1999-01-01\t")
    assert "no past day 1999-01-01" in page.error_of("day")
    heaviest = model.explain(X[10:11]).past
    assert page.text("past").split("\n")[0].startswith("day")
    page.js("document.querySelector('#past button').click()")
    page.wait()
    assert page.find("day").get_attribute("value") == heaviest.names()[0]
    # a number field, its slider, an empty field, a far value, and back
    page.type("day", "2017-01-11\t")
    moved = X[10:11].assign(temp=0.25)
    page.type("input-0", "0.25")
    assert page.decision() == four(model.decide(moved))
    page.slide("input-0", "\ue010")  # end
    assert page.decision() == four(model.decide(moved.assign(temp=X.temp.max())))
    page.find("input-1").send_keys("\ue009a\ue017")  # select all, delete
    page.wait()
    assert "'wind' of row 0 needs a finite number" in page.error_of("input-1")
    page.type("input-1", "99")
    assert "Far outside the training range: wind" in page.text("notes")
    page.click("reset")
    assert page.decision() == four(model.decide(X[10:11]))
    # the set
    page.type("set-total", "1.5")
    capped = cs.Budget(total=1.5, dim=2, upper=4.0)
    assert page.decision() == four(model.decide(X[10:11], capped))
    assert page.numbers("decision-table", 2) == four(model.decide(X[10:11]))
    page.type("set-upper", "0.9, 0.4")
    capped = cs.Budget(total=1.5, dim=2, upper=[0.9, 0.4])
    assert page.decision() == four(model.decide(X[10:11], capped))
    page.type("set-upper", "many")
    assert page.error_of("set-upper") == "upper needs finite numbers, but has something else."
    assert page.text("notes") == "The last change was refused. This is the answer before it."
    page.slide("set-total", "\ue011")  # home: a total of 0
    assert page.error_of("set-total")
    page.click("undo")
    assert page.decision() == four(model.decide(X[10:11]))
    assert not page.error_of("set-upper")
    # the risk and the service level
    page.choose("risk", "CVaR: the mean of the worst costs")
    assert page.decision() == four(model.decide(X[10:11], risk=cs.CVaR(0.9)))
    page.type("risk-number", "2")
    assert "CVaR" in page.error_of("risk-number")
    page.choose("risk", "the expected cost")
    page.type("service", "0.6")
    level = cs.Chance(lambda y, a: y - a, 0.6)
    assert np.allclose(page.decision(), model.decide(X[10:11], chance=level)[:1], atol=2e-3)
    page.type("service", "1.5")
    assert "between 0 and 1" in page.error_of("service")


def test_curves_scenarios_versions_backtest_and_downloads(page, models):
    model, older = models[1]["bakery"], models[1]["older"]
    page.open()
    row = X[-1:]
    why = model.explain(row)
    # the price of deviating, from the curve
    action = float(why.curves.actions[0, 7])
    page.type("instead-0", f"{action:.9f}")
    said = page.js("return document.querySelector('output').innerText")
    price = why.curves.costs[0, 7] - why.expected_cost
    assert float(said.removeprefix("costs +")) == pytest.approx(price, rel=6e-3)
    drawn = page.js("return document.querySelector('#curves .chart').data[1].y.length")
    assert drawn == len(why.curves.costs[0])
    # the scenarios of an outcome
    page.choose("outcome", "soup")
    values, weights = page.js(
        "const { x, y } = document.getElementById('scenarios').data[0]; return [[...x], [...y]]"
    )
    scenarios = model.scenarios(row)
    assert sorted(values) == pytest.approx(sorted(scenarios.values[0, :, 1].tolist()), rel=1e-6)
    assert sum(weights) == pytest.approx(1)
    assert "5 scenarios count as 5 of equal weight" in page.text("scenarios-words")
    assert page.numbers("past") == [20.0] * 5
    assert len(page.numbers("matter", 2)) == 3
    # two versions
    page.choose("other", "none")
    assert page.text("versions") == ""
    page.choose("other", "older")
    assert page.numbers("versions", 2, rows=2) == four(older.decide(row))
    # the backtest
    assert page.text("backtest-words") == COSTS.advice
    assert page.find("against").get_attribute("value") == "today's rule"
    line = "return [...document.getElementById('backtest').data[0].y]"
    assert page.js(line) == [1, 3, 4, 5]
    page.choose("against", "mean")
    assert page.js(line) == [0.5, 0.5, 0.5, 3.5]
    # downloads
    rows = page.download("decision", "csv").splitlines()
    assert rows[0] == "name,unit,decision"
    assert float(rows[1].removeprefix("bread,loaves,")) == pytest.approx(why.decision[0])
    assert json.loads(page.download("decision", "json"))["names"] == ["bread", "soup"]
    lines = page.download("backtest", "csv").splitlines()
    assert lines[0] == "row,NN,mean,today's rule"
    assert lines[2] == f"{DAYS[-3].date()},1,1,3"
    for panel in ("curves", "scenarios", "past", "inputs", "versions"):
        assert len(page.download(panel, "csv").splitlines()) > 2


def test_other_models_windows_and_files_without_rows(page, models):
    page.open(model="week")
    assert "has one version of this model" in page.text("only-one")
    assert "There is no comparison of week" in page.text("backtest-words")
    assert page.text("curves-shown") == "1 to 6 of 8"
    page.click("curves-after")
    assert page.text("curves-shown") == "7 to 8 of 8"
    page.click("curves-before")
    model = models[1]["week"]
    x = model.rows_.x[-1:].clone()
    x[0, 2, 1] = 0.5
    page.type("input-5", "0.5")
    assert page.decision() == four(model.decide(x.numpy()))
    assert page.find("no-service").is_displayed()
    page.choose("model", "bare")
    middle = (X.min() + X.max()) / 2
    assert page.decision() == four(models[1]["bare"].decide(middle.to_numpy()[None]))
    assert "explain needs training rows" in page.text("explain-error")
    assert page.text("curves") == page.text("past") == page.text("matter") == ""
    assert "the model file has none" in page.error_of("day")
    assert not page.find("day").is_enabled()


A11Y = """
const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length;
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const found = rgb(getComputedStyle(e).backgroundColor);
    if ((found[3] ?? 1) === 1) return found;
  }
  return [255, 255, 255];
};
const ratio = (a, b) => {
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const pale = [];
const check = (e, colour, what) => {
  const found = ratio(rgb(colour), behind(e));
  if (found < 4.5) pale.push(`${what}: ${found.toFixed(2)}`);
};
let seen = 0;
for (const e of document.querySelectorAll("body *")) {
  if (!shown(e) || ["SCRIPT", "OPTION", "NOSCRIPT"].includes(e.tagName)) continue;
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const style = getComputedStyle(e);
  if (own || ["INPUT", "SELECT"].includes(e.tagName)) {
    check(e, e instanceof SVGElement ? style.fill : style.color, e.outerHTML.slice(0, 60));
    seen += 1;
  }
  if (e.placeholder) check(e, getComputedStyle(e, "::placeholder").color, `placeholder ${e.id}`);
}
const controls = "button, input, select, summary, a[href], [tabindex='0'], [role=img]";
const named = (e) => e.getAttribute("aria-label")
  || [...(e.labels ?? [])].map((label) => label.innerText).join("").trim()
  || (!["INPUT", "SELECT"].includes(e.tagName) && e.innerText.trim());
const unnamed = [...document.querySelectorAll(controls)]
  .filter((e) => shown(e) && !named(e)).map((e) => e.outerHTML.slice(0, 80));
const page = document.documentElement;
return { pale, unnamed, seen, wide: page.scrollWidth - page.clientWidth };
"""


CHARTS_FIT = """
const charts = [...document.querySelectorAll(".js-plotly-plot")].filter((e) => e.clientWidth);
return charts.length >= 4
  && charts.every((e) => e.querySelector(".main-svg").clientWidth === e.clientWidth);
"""


@pytest.mark.parametrize("width", [1400, 390])
def test_text_is_readable_controls_have_names_and_nothing_is_cut(page, width):
    page.open(width)
    page.js("for (const e of document.querySelectorAll('details')) e.open = true")
    page.type("set-upper", "many")  # an error, too
    assert page.error_of("set-upper")
    page.until(CHARTS_FIT, "The charts do not follow the width.")
    theme = "return document.documentElement.dataset.theme"
    for wanted in ("light", "dark"):
        page.prefer(wanted)
        page.until(f"{theme} === '{wanted}'", f"The page does not become {wanted}.")
        found = page.js(A11Y)
        assert found["pale"] == []
        assert found["unnamed"] == []
        assert found["wide"] <= 0
        assert found["seen"] > 60
    page.click("theme")  # the switch of the page
    assert page.js(theme) == "light"


FOCUS = """
const wanted = "button, input, select, summary, a[href], [tabindex='0']";
window.controls = [...document.querySelectorAll(wanted)]
  .filter((e) => !e.disabled && e.checkVisibility({ visibilityProperty: true }));
window.reached = [];
document.addEventListener("focusin", ({ target }) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(target);
  reached.push([target, outlineStyle !== "none" && parseFloat(outlineWidth) >= 2]);
});
controls[1].focus();
reached.length = 0;
return controls.length;
"""


def test_the_keyboard_reaches_every_control_in_order_and_shows_where_it_is(page):
    page.open()
    count = page.js(FOCUS)
    assert count > 40
    tab = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    back = {**tab, "modifiers": 8}  # shift: to the first one
    for key in (back, *[tab] * (count - 1)):
        page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", **key})
    missed, hidden = page.js(
        "return [controls.filter((e, i) => e !== reached[i]?.[0]).map((e) => e.outerHTML),"
        "reached.filter(([, seen]) => !seen).map(([e]) => e.outerHTML)]"
    )
    assert missed == []
    assert hidden == []


def test_nothing_is_loaded_from_elsewhere_and_the_console_is_clean(page):
    page.open()  # the log has what the tests before did, too
    messages = [
        json.loads(line["message"])["message"] for line in page.driver.get_log("performance")
    ]
    asked = [
        m["params"]["request"] for m in messages if m["method"] == "Network.requestWillBeSent"
    ]
    places = [urlsplit(request["url"]) for request in asked]
    # the browser's own pages are chrome://, the icon and the downloads data: and blob:
    hosts = {place.netloc for place in places if place.scheme not in ("chrome", "data", "blob")}
    assert hosts == {urlsplit(page.address).netloc}
    assert any(request["url"].endswith("/plotly.min.js") for request in asked)
    console = [line for line in page.driver.get_log("browser") if line["source"] != "network"]
    assert console == []
