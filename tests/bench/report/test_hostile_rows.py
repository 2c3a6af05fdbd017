"""Stores that somebody made to do harm: reports end in a sentence, or show harmless text."""

import csv as csv_reader
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costscape.bench import Run, report
from costscape.bench.execution import blank
from costscape.bench.store_files import write_costs

deep = []
for _ in range(400):
    deep = [deep]
VALUES = (
    *(None, True, 5, -1, 10**400, 1e308, float("inf"), float("nan"), "x", "=1+1", "\x1b[31mred"),
    *("a\nb | c <script>", "\u202eright", [], {}, [1, 2], [[1]], [[1, 2, 3, 4]], [["a", 1, 2]]),
    *({"a": None}, {"fits": 3}, {"fits": [1]}, deep, "e" * 10**5),
)


def rows():
    made = []
    for method in ("df2", "lodl-pe"):
        for seed in range(2):
            row = blank(Run("wind", method, seed))
            row |= {"regret": 1.0 + seed, "cost": 2.0, "fit_seconds": 1.0, "decide_seconds": 0.1}
            row |= {"recipe": "r", "device": "cpu", "source": "s", "test_rows": "t", "block": 2}
            made.append(row | {"curve": [[1, 0.5, None]], "chosen": {"epoch": 1}, "epochs": 1})
    return made


KEYS = sorted(rows()[0])


def put(folder, key, value):
    changed = rows()
    changed[1][key] = value
    folder.joinpath("wind.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in changed))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of 1e308
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(key=st.sampled_from(KEYS), value=st.sampled_from(VALUES))
def test_a_changed_field_is_an_error_in_words_or_harmless(tmp_path, key, value):
    put(tmp_path, key, value)
    words, found = ".", []
    try:
        found = report.read_rows(tmp_path)
    except ValueError as error:
        words = str(error)
    assert words.endswith(".")
    assert words.isprintable()
    assert len(words) < 1000
    if not found:
        return
    texts = [write(found, ("df2",)) for write in (report.markdown, report.latex, report.overview)]
    texts.append(report.csv(found, ("df2",)))
    for text in texts:
        assert all(line.isprintable() for line in text.split("\n"))
        assert "\na\nb" not in text
    for line in csv_reader.reader(io.StringIO(texts[-1])):
        assert not any(cell[:1] in ("=", "+", "@") for cell in line)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("versions", None, "versions to be an object of texts"),
        ("versions", ["torch"], "versions to be an object of texts"),
        ("curve", [[1, 2]], r"curve to be a list of \[epoch, loss, score\]"),
        ("made", 5, "made to be a text or null"),
        ("chosen", {"fits": 3}, "chosen to be an object"),
        ("cost", 10**400, "cost to be a number or null"),
        ("problem", ["wind"], "needs a JSON object with problem, method and seed in every line"),
    ],
)
def test_a_field_of_another_type_is_named(tmp_path, key, value, words):
    put(tmp_path, key, value)
    with pytest.raises(ValueError, match=words):
        report.read_rows(tmp_path)


def test_a_line_of_deep_brackets_is_an_error_in_words(tmp_path):
    (tmp_path / "wind.jsonl").write_text("[" * 10**5 + "]" * 10**5 + "\n")
    with pytest.raises(ValueError, match="line 1 is none"):
        report.read_rows(tmp_path)


def test_costs_of_another_shape_are_an_error_in_words(tmp_path):
    put(tmp_path, "seed", 1)
    arrays = {"recipe": np.array("r"), "costs": np.zeros((2, 2), np.float32)}
    write_costs(tmp_path / "wind.costs.npz", {"wind--df2--0": arrays})
    with pytest.raises(ValueError, match=r"one number for each test row, but .*\(2, 2\)"):
        report.read_rows(tmp_path)


def test_pages_and_commands_bear_hostile_texts(tmp_path):
    put(tmp_path, "source", "\x1b[31m</td><script>alert(1)</script>")
    page = report.write_page(report.read_rows(tmp_path), [], tmp_path / "p.html", ("df2",), [])
    assert "<script>alert" not in page.read_text()
    assert "\x1b" not in page.read_text()
    (tmp_path / "pending").mkdir()
    (tmp_path / "pending" / "x.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "pending" / "folder.json").mkdir()
    words = [sys.executable, "-m", "costscape", "table", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "folder.json should hold the row" in done.stderr
    assert "Traceback" not in done.stderr
