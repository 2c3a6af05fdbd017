"""What the commands share: options, errors as sentences, the engine, the exit status."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer

if TYPE_CHECKING:
    from costscape.bench import Engine, Run, Swept

P = ParamSpec("P")
NAMED = 5  # failed runs in a sentence, at most
OUR_METHODS = ("df2", "blend")  # whose opponents a table shows, unless --ours names others


class EngineName(StrEnum):
    """The engines by name; the classes are in costscape.bench."""

    local = "local"
    ray = "ray"


Store = Annotated[Path, typer.Option(help="The folder of rows, one file a problem.")]
StoreArgument = Annotated[Path, typer.Argument(help="The folder of rows.")]
Engines = Annotated[
    EngineName, typer.Option("--engine", help="Processes of this machine, or Ray.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Runs at once; one for each core by default.")
]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster; none starts one here.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; a GPU where there is one.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small enough for minutes on two cores.")]
Ours = Annotated[
    list[str] | None,
    typer.Option(help="A method to compare with its best opponent; repeat it. df2 and blend."),
]


def errors_in_words(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose ValueError, OSError or missing package ends it with its message."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except ModuleNotFoundError as error:
            typer.echo(f"{error}. Install it: pip install 'costscape[all,ray]'.", err=True)
            raise typer.Exit(1) from error
        except BrokenPipeError:
            raise  # the reader, such as head, has seen enough: Typer ends without a word
        except (ValueError, OSError, ImportError) as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from error

    return run


class Terminated(KeyboardInterrupt):
    """The process was sent SIGTERM, by ``kill`` or by a scheduler."""


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Inside, SIGTERM stops the work as Ctrl-C does: workers end, temporary files go."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def sweep_into(store: Path, runs: "list[Run]", engine: "Engine", device: str | None) -> "Swept":
    """Execute the runs that are missing from the store and say how many there were."""
    from costscape.bench import sweep

    try:
        with sigterm_as_interrupt():
            swept = sweep(runs, store, engine, device)
    except KeyboardInterrupt as how:
        typer.echo(
            f"Stopped. The rows that were finished are in {store}; the same command goes on.",
            err=True,
        )
        raise typer.Exit(143 if isinstance(how, Terminated) else 130) from None
    typer.echo(f"{store}: {swept}", err=True)
    return swept


def exit_if_failed(swept: "Swept", store: Path) -> None:
    """End with status 1 and the names of the failed runs, if there are any."""
    if not swept.failed:
        return
    names, more = swept.failed[:NAMED], len(swept.failed) - NAMED
    typer.echo(
        f"{len(swept.failed)} of {swept.made} runs failed: {', '.join(names)}"
        f"{f' and {more} more' if more > 0 else ''}; `costscape report {store}` shows the errors, "
        f"and the same command tries these runs again.",
        err=True,
    )
    raise typer.Exit(1)


def engine_of(
    name: EngineName, workers: int | None, address: str | None, device: str | None
) -> "Engine":
    """The engine that the options name."""
    import os

    from costscape.bench import Here, Processes, Ray

    if name is EngineName.ray:
        gpus = None if device is None else float(device.startswith("cuda"))
        return Ray(address, workers, gpus)
    if address is not None:
        raise ValueError("--address is that of a Ray cluster; it needs --engine ray.")
    count = workers or os.cpu_count() or 1
    return Processes(count) if count > 1 else Here()
