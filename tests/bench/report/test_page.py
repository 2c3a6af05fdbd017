import math
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser

import pytest

from costscape.bench import report
from costscape.bench.report import page as page_module

OURS = ("df2", "blend")
markdown = partial(report.markdown, ours=OURS)
render = partial(page_module.render, ours=OURS)
write_page = partial(report.write_page, ours=OURS)


class Page(HTMLParser):
    """What a page holds; every tag must be closed by its own name."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", "".join(self.words).replace("\u00a0", " "))

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def page(kept, kept_landscape):
    return Page(render(kept, [kept_landscape], commands=["costscape fetch wind"]))


def test_the_page_is_written_and_its_folder_made(store, tmp_path):
    path = write_page(store, [], tmp_path / "new" / "page.html")
    assert path.read_text(encoding="utf-8") == render(store, [])


def test_the_page_loads_nothing_and_runs_nothing(store, landscape):
    text = render(store, [landscape])
    found = Page(text)
    assert found.count("script") == found.count("img") == found.count("iframe") == 0
    for _, attributes in found.tags:
        assert not {"src", "srcset"} & attributes.keys()
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith(("#", "data:,", "data:image/png;base64,"))
    assert set(re.findall(r"url\((.)", text)) == {"#"}
    assert "@import" not in text
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # never fetched
    assert set(re.findall(r"https?://[^\"<\s]+", text)) == names


def test_every_link_has_a_place_to_go(page):
    places = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(places) == len(set(places))
    links = {a["href"][1:] for tag, a in page.tags if tag == "a"}
    assert links <= set(places)


def test_the_header_counts_runs_and_dates_the_newest(page, store):
    assert f"{len(store)} runs" in page.text
    assert "newest run 2026-01-02" in page.text
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in (
        page.tags
    )


def test_every_figure_has_a_picture_with_a_title_and_a_caption(page):
    # wind: bars, scatter, a setting; synthetic: bars, scatter, a landscape
    assert page.count("figure") == page.count("figcaption") == page.count("svg") == 6
    assert all(a.get("role") == "img" for tag, a in page.tags if tag == "svg")


def test_the_page_says_the_numbers_of_the_tables(page, store):
    for line in markdown(store).splitlines():
        if line.startswith("| ") and "---" not in line:
            for words in line.strip("| ").split(" | "):
                assert " ".join(words.split()) in page.text


def test_refusals_and_failures_are_listed_with_their_sentence_and_escaped(page, store):
    assert "egl on windrefused, seeds 0, 1, 2" in page.text
    assert "EGL needs a point & a <loss>." in page.text
    assert "dfl-gmm3 on windfailed, seed 3" in page.text
    assert "ValueError: no <step>." in page.text
    assert "<loss>" not in render(store, [])


def test_the_commands_are_those_given_and_those_of_the_rows(page):
    assert "costscape fetch wind" in page.text
    assert "costscape run wind --method df2 --set points=50 --seeds 3" in page.text
    assert "costscape run wind --method dfl-gmm3 --seeds 4" in page.text


def test_seeds_with_holes_are_named_one_by_one(run):
    text = render([run(seed=2), run(seed=5)], [])
    assert "costscape run wind --method df2 --seed 2 --seed 5" in text


def test_devices_versions_commits_and_data_are_told(page, store):
    n = len(store)
    for words in ("cpu: x86_64, 2 cores", "torch 2.11.0", "c0ffee", "made up"):
        assert f"{words} ({n} runs)" in page.text


def test_a_card_tells_the_verdict_of_each_problem(page):
    assert "better" in page.text.split("At a glance")[1].split("Mean (standard")[0]
    assert sum("card" in a.get("class", "").split() for _, a in page.tags) == 2


@pytest.mark.parametrize(("theirs", "marks"), [(9.0, ["lower ours"]), (0.1, ["lower"])])
def test_a_card_stresses_the_lower_of_two_numbers(run, theirs, marks):
    rows = [run(seed=s, regret=1.0 + 0.01 * s) for s in range(4)]
    rows += [run(method="constant", seed=s, regret=theirs + 0.01 * s) for s in range(4)]
    tags = Page(render(rows, [], ours=["df2"])).tags
    classes = [a.get("class", "") for _, a in tags]
    assert [c for c in classes if c.startswith("lower")] == marks


@pytest.mark.parametrize("refused", [False, True])
def test_a_single_run_makes_a_page(run, refused):
    row = run(regret=None, refused="It cannot.") if refused else run()
    text = Page(render([row], [])).text
    assert ("It cannot." if refused else "1.000") in text


def test_rows_without_dates_versions_and_sources_make_a_page(run):
    bare = run(versions={}, source=None, commit=None, made=None)
    assert "newest run" not in render([bare], [])


def test_quick_runs_are_told_from_those_that_compare(run):
    text = Page(render([run(seed=0, quick=True), run(seed=1, quick=True)], [])).text
    assert text.count("2 of 2 runs are quick ones") == 2  # in the header and at the table
    assert "costscape run wind --method df2 --quick --seeds 2" in text
    assert "quick" not in Page(render([run()], [])).text


def test_no_rows_are_an_error():
    with pytest.raises(ValueError, match="at least one run, but got none"):
        render([], [])


def test_the_looks_follow_the_readers_light(store):
    text = render(store, [])
    assert "@media (prefers-color-scheme: dark)" in text
    used = set(re.findall(r"var\((--\w+)\)", text)) - {"--key"}
    light = set(re.findall(r"(--\w+):", text.split("@media")[0]))
    dark = set(
        re.findall(r"(--\w+):", text.split("prefers-color-scheme: dark")[1].split("* {")[0])
    )
    assert used <= light == dark


@pytest.mark.long
def test_a_page_of_1500_runs_is_small(run, landscape):
    curve = [[e, math.exp(-e / 50) + 1.23456789, math.exp(-e / 40) + 1.3] for e in range(40)]
    rows = [
        run(f"problem-{p}", f"method-{m}", seed, 10.0 + m + 0.1 * seed, curve=curve)
        for p in range(5)
        for m in range(30)
        for seed in range(10)
    ]
    text = render(rows, [{**landscape, "problem": "problem-1"}])
    assert len(text.encode()) < 3e6


def test_the_report_knows_neither_torch_nor_pandas_and_is_lazy_with_jinja_and_scipy():
    code = (
        "import sys, costscape.bench.report as r; "
        "print({'jinja2', 'scipy', 'pandas', 'torch', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
