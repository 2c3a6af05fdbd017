import io
import sys
import time

import pytest

from costscape.training import progress as bars
from costscape.training.progress import one_bar, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_written_where_it_is_not_shown(capsys):
    with progress("fit", 3, shown=False) as show:
        show(1, "loss 1")
    assert capsys.readouterr() == ("", "")


def test_a_pipe_gets_an_early_estimate_and_a_line_about_every_ten_seconds(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress("fit", 9, shown=True) as show:
        for done, seconds in enumerate([0.9, 3.0, 10.5, 13.0, 20.4, 24.0], start=1):
            now[0] = seconds
            show(done, f"loss {done}")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "fit: 2/9, 0:00:10 left of about 0:00:14. loss 2",
        "fit: 4/9, 0:00:16 left of about 0:00:29. loss 4",
        "fit: 6/9, 0:00:12 left of about 0:00:36. loss 6",
    ]


def test_a_terminal_gets_a_bar_on_stderr(capsys, monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress("my fit", 4, shown=True) as show:
        show(3, "loss 0.25")
    assert "my fit" in terminal.getvalue()
    assert "75%" in terminal.getvalue()
    assert "loss 0.25" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_without_rich_a_terminal_gets_lines(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("costscape.training.progress.find_spec", lambda name: None)
    with progress("fit", 4, shown=True) as show:
        show(3, "loss 0.25")
    assert terminal.getvalue() == ""


# ---- several jobs, one bar


@pytest.fixture
def steps(monkeypatch):
    """What bars were made, and what each was told."""
    made = []

    def lines(title, total):
        told = []
        made.append((title, total, told))
        return lambda done, note: told.append((done, note))

    monkeypatch.setattr(bars, "_lines", lines)
    return made


def test_what_happens_inside_a_job_advances_the_one_bar(steps):
    with one_bar("all", 2, shown=True) as job:
        for i in range(2):
            with job(i), progress("fit", 4, shown=True) as show:
                show(1, "loss 5")
                show(4, "loss 3")
    ((title, total, told),) = steps
    assert (title, total) == ("all", 2)
    assert told == [
        (0.25, "fit loss 5"),
        (1.0, "fit loss 3"),
        (1, ""),
        (1.25, "fit loss 5"),
        (2.0, "fit loss 3"),
        (2, ""),
    ]


def test_a_job_may_span_several(steps):
    with one_bar("all", 12, shown=True) as job:
        with job(0, 3), progress("first", 2, shown=True) as show:
            show(1, "")
        with job(3, 9), progress("others", 3, shown=True) as show:
            show(2, "loss 1")
    ((_, _, told),) = steps
    assert told == [(1.5, "first"), (3, ""), (9.0, "others loss 1"), (12, "")]


def test_jobs_inside_a_job_share_its_part(steps):
    with (
        one_bar("outer", 2, shown=True) as outer,
        outer(1),
        one_bar("inner", 4, shown=True) as inner,
        inner(2),
        progress("fit", 2, shown=True) as show,
    ):
        show(1, "half")
    ((_, _, told),) = steps
    # 1 of 2, and of the second (2 + 1/2) / 4
    assert told[0][0] == pytest.approx(1 + 2.5 / 4)
    assert [done for done, _ in told[1:]] == pytest.approx([1 + 3 / 4, 2])


def test_two_fits_inside_one_job_do_not_pass_its_end(steps):
    with one_bar("all", 3, shown=True) as job, job(0), progress("fit", 4, shown=True) as show:
        show(9, "")
    assert [done for done, _ in steps[0][2]] == [1.0, 1]


def test_after_a_job_that_fails_bars_are_as_before(steps):
    with pytest.raises(ZeroDivisionError), one_bar("all", 2, shown=True) as job, job(0):
        1 / 0  # noqa: B018
    with progress("fit", 4, shown=True) as show:
        show(2, "loss")
    assert steps[1] == ("fit", 4, [(2, "loss")])


def test_a_bar_that_is_not_shown_hides_what_is_inside(steps, capsys):
    with one_bar("all", 1, shown=False) as job, job(0), progress("fit", 4, shown=True) as show:
        show(2, "loss")
    assert steps == []
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_a_single_bar_for_all_jobs(monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with one_bar("all", 4, shown=True) as job, job(1), progress("fit", 2, shown=True) as show:
        show(2, "loss 0.25")
    assert "50%" in terminal.getvalue()
    assert "\x1b[2Kfit" not in terminal.getvalue()  # no line of its own
