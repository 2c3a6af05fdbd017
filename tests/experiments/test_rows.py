"""The store: whole files, read again."""

import json
import os
import time

import pytest

from costscape.experiments import Rows, Run
from costscape.experiments.execute import blank

RUN = Run("wind", "df2", 3, {"draws": 5})


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path / "new" / "store")


def test_a_written_row_is_read_again_under_its_name(rows):
    row = blank(RUN) | {"regret": 1.25, "recipe": "ab"}
    path = rows.write(RUN, row)
    assert path.name == "wind--df2-draws5--3.json"
    assert rows.read(RUN) == row == json.loads(path.read_text())
    assert list(rows.folder.iterdir()) == [path]
    assert path.read_text().count("\n") == len(row) + 2  # a key a line, for diffs


def test_what_is_missing_or_broken_is_no_row(rows):
    assert rows.read(RUN) is None
    rows.folder.mkdir(parents=True)
    for text in ("", '{"problem": "wi', "[1, 2]", "\x00"):
        rows.path(RUN).write_text(text)
        assert rows.read(RUN) is None
        assert not rows.finished(RUN, "ab")


@pytest.mark.parametrize(
    ("row", "finished"),
    [
        ({"recipe": "ab"}, True),
        ({"recipe": "cd"}, False),
        ({"recipe": None}, False),
        ({"recipe": "ab", "refused": "It cannot."}, True),
        ({"recipe": "ab", "error": "Traceback"}, False),
    ],
    ids=["same", "other", "none", "refused", "failed"],
)
def test_a_row_is_finished_if_it_is_of_the_recipe_and_did_not_fail(rows, row, finished):
    rows.write(RUN, blank(RUN) | row)
    assert rows.finished(RUN, "ab") is finished


def test_a_row_that_cannot_be_written_leaves_the_old_one(rows):
    path = rows.write(RUN, blank(RUN) | {"regret": 1.0})
    with pytest.raises(ValueError, match="JSON"):
        rows.write(RUN, blank(RUN) | {"regret": float("nan")})
    assert json.loads(path.read_text())["regret"] == 1.0
    assert list(rows.folder.iterdir()) == [path]


def test_old_parts_of_killed_writers_are_removed_and_new_ones_left(rows):
    rows.sweep_up()  # of no folder
    path = rows.write(RUN, blank(RUN))
    old, new = path.with_name("a.json.1.part"), path.with_name("b.json.2.part")
    for part in (old, new):
        part.write_text("{")
    os.utime(old, (time.time() - 3600,) * 2)
    rows.sweep_up()
    assert sorted(rows.folder.iterdir()) == sorted([path, new])
