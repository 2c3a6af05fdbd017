import io
import sys
import time

from costscape.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_written_where_it_is_not_shown(capsys):
    with progress("fit", 3, shown=False) as show:
        show(1, "loss 1")
    assert capsys.readouterr() == ("", "")


def test_a_pipe_gets_a_line_about_every_ten_seconds(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress("fit", 9, shown=True) as show:
        for done, seconds in enumerate([3.0, 9.9, 10.5, 12.0, 20.4, 20.6], start=1):
            now[0] = seconds
            show(done, f"loss {done}")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["fit: 3/9 loss 3", "fit: 6/9 loss 6"]


def test_a_terminal_gets_a_bar_on_stderr(capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress("my fit", 4, shown=True) as show:
        show(3, "loss 0.25")
    assert "my fit" in terminal.getvalue()
    assert "3/4" in terminal.getvalue()
    assert "loss 0.25" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_without_rich_a_terminal_gets_lines(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("costscape.progress.find_spec", lambda name: None)
    with progress("fit", 4, shown=True) as show:
        show(3, "loss 0.25")
    assert terminal.getvalue() == ""
