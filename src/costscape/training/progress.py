"""A progress bar on stderr, by rich where it is installed."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from importlib.util import find_spec

Show = Callable[[int | float, str], None]  # the steps done, and a note

_AROUND: ContextVar[Show | None] = ContextVar("around", default=None)  # of the job around


@contextmanager
def progress(title: str, total: int, shown: bool) -> Iterator[Show]:
    """Yields a function to call with the steps done and a note, such as the loss.

    A terminal gets a bar; a file or a pipe gets a line after a second, with an estimate of the
    whole time, then about every ten seconds. Inside a job of ``one_bar`` the steps advance that
    bar instead, so that the estimate is for all jobs together.
    """
    around = _AROUND.get()
    if around is not None:
        yield lambda done, note: around(done / total, f"{title} {note}".strip())
    elif not shown:
        yield lambda done, note: None
    elif sys.stderr.isatty() and find_spec("rich") is not None:
        with _bar(title, total) as show:
            yield show
    else:
        yield _lines(title, total)


@contextmanager
def one_bar(
    title: str, jobs: int, shown: bool
) -> Iterator[Callable[..., AbstractContextManager[None]]]:
    """One bar for several jobs: ``with job(i): ...`` is around the i-th, from 0.

    Every ``progress`` inside a job advances the bar by its part of that job. ``job(i, span)`` is
    around several jobs at once, i to i + span - 1.
    """
    with progress(title, jobs, shown) as show:

        @contextmanager
        def job(i: int, span: int = 1) -> Iterator[None]:
            token = _AROUND.set(lambda part, note: show(i + span * min(part, 1.0), note))
            try:
                yield
            finally:
                _AROUND.reset(token)
            show(i + span, "")

        yield job


@contextmanager
def watched(check: Callable[[float], None]) -> Iterator[None]:
    """Every ``progress`` inside calls ``check`` with the part done, which may raise."""
    around = _AROUND.get()

    def show(part: int | float, note: str) -> None:
        check(part)
        if around is not None:
            around(part, note)

    token = _AROUND.set(show)
    try:
        yield
    finally:
        _AROUND.reset(token)


@contextmanager
def _bar(title: str, total: int) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


def _lines(title: str, total: int, first: float = 1.0, every: float = 10.0) -> Show:
    begin = time.monotonic()
    due = begin + first

    def show(done: int | float, note: str) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due and done > 0:
            due = now + every
            whole = (now - begin) / done * total
            left = timedelta(seconds=round(whole - (now - begin)))
            in_all = timedelta(seconds=round(whole))
            print(
                f"{title}: {done:.3g}/{total}, {left} left of about {in_all}. {note}",
                file=sys.stderr,
                flush=True,
            )

    return show
