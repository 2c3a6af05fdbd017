"""Progress of long work, shown on stderr by rich where it is installed."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib.util import find_spec

Show = Callable[[int | float, str], None]  # the steps done, and a note

_AROUND: ContextVar[Show | None] = ContextVar("around", default=None)  # takes a part of a job


@contextmanager
def progress(title: str, total: int, shown: bool) -> Iterator[Show]:
    """Yields a function to call with the steps done and a note, such as the loss.

    A terminal gets a bar; a file or a pipe gets a line about every ten seconds. Inside a job of
    ``one_bar`` the steps advance that bar instead.
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
def _bar(title: str, total: int) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


def _lines(title: str, total: int, every: float = 10.0) -> Show:
    begin = last = time.monotonic()

    def show(done: int | float, note: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every and done > 0:
            last = now
            left = f"about {clock((now - begin) / done * (total - done))} left"
            print(f"{title}: {done:.3g}/{total}, {left}. {note}", file=sys.stderr, flush=True)

    return show


def clock(seconds: float) -> str:
    """A duration for people.

    >>> clock(80.0), clock(600.0), clock(9000.0)
    ('80 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
