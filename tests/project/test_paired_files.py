"""Two files of one step: a reader sees both new ones or both old ones, whatever broke between."""

import pytest

from costscape.project import paired_files
from costscape.project.paired_files import finish_step, read_together, write_together

NAMES = ("model", "table")


def write(folder, text, broken=None):
    def writer(name):
        def to(path):
            if name == broken:
                path.write_text("half")
                raise KeyboardInterrupt
            path.write_text(text)

        return to

    write_together(folder, {name: writer(name) for name in NAMES})


def read(folder):
    return read_together(folder, NAMES, lambda: [(folder / name).read_text() for name in NAMES])


@pytest.mark.parametrize("broken", NAMES)
def test_a_failure_while_writing_leaves_the_old_pair(tmp_path, broken):
    write(tmp_path, "old")
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "new", broken)
    assert read(tmp_path) == ["old", "old"]
    write(tmp_path, "newer")
    assert read(tmp_path) == ["newer", "newer"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "table"]


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_failure_after_the_rename_is_finished_by_the_next_reader(tmp_path, monkeypatch, moved):
    write(tmp_path, "old")
    real, calls = type(tmp_path).replace, []

    def replace(path, target):
        if len(calls) == moved:
            raise KeyboardInterrupt
        calls.append(path)
        return real(path, target)

    def rmdir(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "replace", replace)
        patch.setattr(type(tmp_path), "rmdir", rmdir)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, "new")
    assert [(tmp_path / name).read_text() for name in NAMES] == ["new"] * moved + ["old"] * (
        2 - moved
    )
    assert read(tmp_path) == ["new", "new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "table"]


def test_a_reader_reads_again_where_the_pair_was_replaced_under_it(tmp_path):
    write(tmp_path, "old")
    seen = []

    def slow():
        first = (tmp_path / "model").read_text()
        if not seen:
            write(tmp_path, "new")
        seen.append(first)
        return [first, (tmp_path / "table").read_text()]

    assert read_together(tmp_path, NAMES, slow) == ["new", "new"]
    assert seen == ["old", "new"]

    def endless():
        write(tmp_path, "again")

    with pytest.raises(RuntimeError, match="one after the other"):
        read_together(tmp_path, NAMES, endless)


def test_a_step_may_be_finished_by_another_process(tmp_path, monkeypatch):
    write(tmp_path, "old")
    (tmp_path / paired_files.STEP).mkdir()
    (tmp_path / paired_files.STEP / "model").write_text("new")
    real = type(tmp_path).iterdir

    def iterdir(path):  # the other one moves the file after we have listed it
        found = list(real(path))
        monkeypatch.undo()
        finish_step(tmp_path)
        return iter(found)

    monkeypatch.setattr(type(tmp_path), "iterdir", iterdir)
    finish_step(tmp_path)
    assert (tmp_path / "model").read_text() == "new"


@pytest.mark.parametrize("seen", ["iterdir", "replace", "rmdir"])
def test_another_process_may_finish_the_same_step_at_any_moment(tmp_path, monkeypatch, seen):
    real = getattr(type(tmp_path), seen)

    def after_another(path, *args):
        monkeypatch.setattr(type(tmp_path), seen, real)
        finish_step(tmp_path)  # what a service does between two steps of the writer
        return real(path, *args)

    monkeypatch.setattr(type(tmp_path), seen, after_another)
    (tmp_path / "step").mkdir()
    for name in NAMES:
        (tmp_path / "step" / name).write_text("new")
    finish_step(tmp_path)
    assert read(tmp_path) == ["new", "new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "table"]
