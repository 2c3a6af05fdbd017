"""How far long work has come, shown on stderr by rich where it is installed."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from costscape.distributed import is_first

Show = Callable[[int, str], None]  # the steps done, and a note


@contextmanager
def progress(title: str, total: int, shown: bool) -> Iterator[Show]:
    """Yields a function to call with the steps done and a note, such as the loss.

    A terminal gets a bar; a file or a pipe gets a line about every ten seconds.
    """
    if not shown or not is_first():
        yield lambda done, note: None
    elif sys.stderr.isatty() and find_spec("rich") is not None:
        with _bar(title, total) as show:
            yield show
    else:
        yield _lines(title, total)


@contextmanager
def _bar(title: str, total: int) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


def _lines(title: str, total: int, every: float = 10.0) -> Show:
    last = time.monotonic()

    def show(done: int, note: str) -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            last = time.monotonic()
            print(f"{title}: {done}/{total} {note}", file=sys.stderr, flush=True)

    return show
