"""costscape init | check | fit | decide | compare | update: a problem of one's own in a folder."""

import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from costscape.cli.run_options import Address, EngineName, P

if TYPE_CHECKING:
    from costscape.project.project_file import Project

Folder = Annotated[Path, typer.Argument(help="The folder of costscape.toml.")]
Force = Annotated[bool, typer.Option("--force", help="Write over files that exist.")]
NewData = Annotated[
    Path,
    typer.Option(help="CSV or Parquet with the rows that came since the fit."),
]


def errors_in_sentences(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose errors are one sentence each, with the settings as in a project file.

    An error in the user's Python names its file and line.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say
                command(*args, **kwargs)
        except typer.Exit:
            raise
        except ModuleNotFoundError as error:
            _end(f"{error}. Install it: pip install 'costscape[all,ray]'.", error)
        except KeyboardInterrupt as error:
            typer.echo("Stopped. Files are as before, or as after a whole run.", err=True)
            raise typer.Exit(130) from error
        except Exception as error:
            from costscape.project.cost_file import place_in_python
            from costscape.project.toml_words import in_option_words, in_toml_words

            folder = kwargs.get("folder")
            place = place_in_python(error, folder) if isinstance(folder, Path) else None
            expected = ValueError, OSError, ImportError, TypeError, RuntimeError
            if place is None and not isinstance(error, expected):
                raise
            spoken = in_option_words if folder is None else in_toml_words
            words = " ".join(spoken(str(error)).split())
            if place is not None and place not in words:
                words = f"{place}: {words}"
            _end(words, error)

    return run


def _say(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    typer.echo(f"Warning: {message}", err=True)


def _end(words: str, error: BaseException) -> None:
    typer.echo(words, err=True)
    raise typer.Exit(1) from error


@errors_in_sentences
def init(
    folder: Annotated[Path, typer.Argument(help="The folder to make.")], force: Force = False
) -> None:
    """Write a commented project file, a cost in Python and a table of sales to start from."""
    from costscape.project.starter_files import write_starter_files

    for path in write_starter_files(folder, force):
        print(path)
    typer.echo(f"Edit costscape.toml for your own data. Next: costscape check {folder}", err=True)


@errors_in_sentences
def check(folder: Folder = Path()) -> None:
    """Read all files of a project, try its cost, and print what they contain or what is wrong."""
    from costscape.project.overview import check_project
    from costscape.project.project_file import read_project

    print(check_project(read_project(folder)))


@errors_in_sentences
def fit(folder: Folder = Path()) -> None:
    """Fit the method of a project on all of its rows, and save model and table."""
    from costscape.project.answers import fit_project
    from costscape.project.project_file import read_project

    print(fit_project(read_project(folder)))


@errors_in_sentences
def decide(
    folder: Folder = Path(),
    data: Annotated[
        Path | None,
        typer.Option(
            help="New rows, and known columns of the next date; 'new/*.parquet' for many files."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV of the decisions, or folder for many files."),
    ] = None,
    force: Force = False,
    log: Annotated[
        str | None,
        typer.Option(help="Keep the decisions, too: a file, or a postgresql:// address."),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option("--engine", help="Many files: one by one, or with Ray Data.")
    ] = EngineName.local,
    address: Address = None,
) -> None:
    """Decide for the next date: decision, expected cost, 10, 50 and 90 % of the cost, flags."""
    from costscape.project.answers import decide_next
    from costscape.project.batch_files import is_batch
    from costscape.project.project_file import read_project

    project = read_project(folder)
    if data is not None and is_batch(data):
        if log is not None:
            raise ValueError("--log needs one file of --data: many files have their own answers.")
        _decide_many(project, data, out, force, engine, address)
        return
    if engine is not EngineName.local or address is not None:
        raise ValueError("--engine and --address need many files: --data 'new/*.parquet'.")
    text, notes = decide_next(project, data, out, force, log)
    print(text)
    if notes:
        typer.echo(notes, err=True)


def _decide_many(
    project: "Project",
    data: Path,
    out: Path | None,
    force: bool,
    engine: EngineName,
    address: str | None,
) -> None:
    from costscape.project.batch_decisions import decide_batch
    from costscape.project.batch_engines import OneByOne, RayData

    if out is None:
        raise ValueError("Many files need a folder for their decisions: -o FOLDER.")
    if engine is EngineName.local and address is not None:
        raise ValueError("--address is that of a Ray cluster; it needs --engine ray.")
    chosen = RayData(address) if engine is EngineName.ray else OneByOne()
    done = decide_batch(project, data, out, chosen, force)
    typer.echo(str(done), err=bool(done.failed))
    if done.failed:
        raise typer.Exit(1)


@errors_in_sentences
def compare(
    folder: Folder = Path(),
    budget: Annotated[
        str | None,
        typer.Option(help="Time for all fits: seconds, '2 min', '1 h'; else that of [compare]."),
    ] = None,
) -> None:
    """Compare methods, what you decided until now and simple rules on the last rows."""
    from costscape.project.own_backtest import compare_project
    from costscape.project.project_file import read_project
    from costscape.project.project_page import keep_comparison

    project = read_project(folder)
    found = compare_project(project, _budget(budget))
    print(found)
    typer.echo(keep_comparison(project, found), err=True)


def _budget(text: str | None) -> float | str | None:
    """A number without a unit counts seconds."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@errors_in_sentences
def update(data: NewData, folder: Folder = Path()) -> None:
    """Learn from new rows without a new fit, unless decisions become worse."""
    from costscape.project.answers import update_project
    from costscape.project.project_file import read_project

    print(update_project(read_project(folder), data))


@errors_in_sentences
def project_report(
    folder: Path, data: Path | None, out: Path | None
) -> None:  # called by `costscape report`
    """Write a project as one self-contained page."""
    from costscape.project.answers import write_page
    from costscape.project.project_file import read_project

    print(write_page(read_project(folder), data, out))
