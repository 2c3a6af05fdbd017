"""The store: whole files, read again, and no row lost."""

import json
import os
import time

import numpy as np
import pytest

from costscape.bench import Rows, Run
from costscape.bench.execute import blank

RUN = Run("wind", "df2", 3, {"draws": 5})
COSTS = {"costs": np.arange(4.0), "regrets": np.arange(4.0) - 1}


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path / "new" / "store")


def good(**facts):
    return blank(RUN) | {"regret": 1.25, "recipe": "ab"} | facts


def failed(**facts):
    return blank(RUN) | {"error": "Traceback", "recipe": "cd"} | facts


def names(rows):
    return sorted(path.name for path in rows.folder.iterdir())


def test_a_written_row_is_read_again_under_its_name(rows):
    row = good()
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


# ---- no row is lost


def test_a_quick_run_stands_beside_a_full_one(rows):
    quick = Run("wind", "df2", 3, {"draws": 5}, quick=True)
    rows.write(RUN, good(), COSTS)
    rows.write(quick, blank(quick) | {"regret": 9.0, "recipe": "cd"}, COSTS)
    assert (rows.read(RUN)["regret"], rows.read(quick)["regret"]) == (1.25, 9.0)
    assert len(names(rows)) == 4


@pytest.mark.parametrize("recipe", ["ab", "cd", None])
def test_a_failure_is_kept_beside_a_good_row_whatever_its_recipe(rows, recipe):
    path = rows.write(RUN, good(), COSTS)
    before = path.read_bytes(), rows.costs_path(RUN).read_bytes()
    beside = rows.write(RUN, failed(recipe=recipe))
    assert beside.name == "wind--df2-draws5--3.failed.json"
    assert json.loads(beside.read_text())["error"] == "Traceback"
    assert before == (path.read_bytes(), rows.costs_path(RUN).read_bytes())
    assert rows.finished(RUN, "ab")
    assert rows.read(RUN)["regret"] == 1.25


def test_a_failure_is_read_where_there_is_no_good_row(rows):
    rows.write(RUN, failed())
    assert rows.read(RUN)["error"] == "Traceback"
    assert names(rows) == ["wind--df2-draws5--3.failed.json"]


def test_a_success_removes_the_failure_and_replaces_the_row(rows):
    rows.write(RUN, good(recipe="old", regret=3.0), COSTS)
    rows.write(RUN, failed())
    rows.write(RUN, good(), COSTS)
    assert names(rows) == ["wind--df2-draws5--3.json", "wind--df2-draws5--3.npz"]
    assert rows.finished(RUN, "ab")


def test_a_failure_that_an_earlier_version_kept_as_the_row_gives_way(rows):
    rows.folder.mkdir(parents=True)
    rows.path(RUN).write_text(json.dumps(failed(error="old")))
    assert rows.read(RUN)["error"] == "old"
    rows.write(RUN, failed(error="new"))
    assert rows.read(RUN)["error"] == "new"
    assert names(rows) == ["wind--df2-draws5--3.failed.json"]


# ---- costs of each test row


def test_costs_are_read_again_in_single_precision(rows):
    rows.write(RUN, good(), COSTS)
    found = rows.costs(RUN)
    assert set(found) == {"costs", "regrets"}
    for name, values in COSTS.items():
        assert found[name].dtype == np.float32
        assert np.array_equal(found[name], values)
    with np.load(rows.costs_path(RUN)) as kept:
        assert str(kept["recipe"]) == "ab"


def test_the_same_costs_are_the_same_bytes(rows):
    rows.write(RUN, good(), COSTS)
    before = rows.costs_path(RUN).read_bytes()
    rows.write(RUN, good(), COSTS)
    assert rows.costs_path(RUN).read_bytes() == before


def test_a_row_without_costs_leaves_none_of_an_earlier_row(rows):
    assert rows.costs(RUN) == {}
    rows.write(RUN, good(), COSTS)
    rows.write(RUN, good(recipe="cd", refused="It cannot."))
    assert rows.costs(RUN) == {}


def test_costs_are_there_before_the_row(rows, monkeypatch):
    order, replace = [], os.replace

    def note(part, path):
        order.append(os.fspath(path).rpartition(".")[2])
        replace(part, path)

    monkeypatch.setattr(os, "replace", note)
    rows.write(RUN, good(), COSTS)
    assert order == ["npz", "json"]


# ---- whole files


def test_a_row_that_cannot_be_written_leaves_the_old_one(rows):
    path = rows.write(RUN, good(regret=1.0), COSTS)
    before = rows.costs_path(RUN).read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        rows.write(RUN, good(regret=float("nan")), {"costs": np.ones(2)})
    assert json.loads(path.read_text())["regret"] == 1.0
    assert rows.costs_path(RUN).read_bytes() == before
    assert len(names(rows)) == 2


def test_a_writer_that_is_killed_half_way_leaves_the_old_row(rows, monkeypatch):
    path = rows.write(RUN, good(regret=1.0))

    def killed(part, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        rows.write(RUN, good(regret=2.0))
    assert json.loads(path.read_text())["regret"] == 1.0


def test_a_folder_that_cannot_be_written_to_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"folder that can be written to, but .*file.* cannot"):
            Rows(folder).check_writable()
    Rows(tmp_path / "new" / "store").check_writable()
    assert list((tmp_path / "new" / "store").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"cannot \(Permission denied\)"):
        Rows(tmp_path).check_writable()


def test_old_parts_of_killed_writers_are_removed_and_new_ones_left(rows):
    rows.sweep_up()  # of no folder
    path = rows.write(RUN, blank(RUN))
    old, new = path.with_name("a.json.1.part"), path.with_name("b.npz.2.part")
    for part in (old, new):
        part.write_text("{")
    os.utime(old, (time.time() - 3600,) * 2)
    rows.sweep_up()
    assert sorted(rows.folder.iterdir()) == sorted([path, new])
