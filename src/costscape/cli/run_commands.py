"""costscape run | table | report: experiments, from runs to a page."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from costscape.cli import run_options
from costscape.cli.project_commands import project_report
from costscape.cli.run_options import (
    OUR_METHODS,
    Address,
    Device,
    EngineName,
    Engines,
    Ours,
    Quick,
    Store,
    StoreArgument,
    Workers,
    errors_in_words,
)


class Format(StrEnum):
    md = "md"
    latex = "latex"
    csv = "csv"
    overview = "overview"


@errors_in_words
def run(
    problem: Annotated[list[str], typer.Argument(help="Names as in `costscape list`.")],
    method: Annotated[list[str], typer.Option(help="Names as in `costscape list`; repeat it.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 to N - 1.")] = 1,
    seed: Annotated[
        list[int] | None, typer.Option(help="This seed alone, in place of --seeds; repeat it.")
    ] = None,
    store: Store = Path("out/runs"),
    engine: Engines = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of every network.")] = None,
    device: Device = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the methods: draws=1000.")
    ] = None,
    quick: Quick = False,
    origins: Annotated[
        int | None, typer.Option(min=1, help="Fit and test at so many moments, one run for each.")
    ] = None,
    tuning: Annotated[
        Path | None,
        typer.Option(help="Searches for names with +tuned; STORE/tuning, else results/tuning."),
    ] = None,
) -> None:
    """Run methods on problems; rows that are in the store are not run again.

    With --origins K each problem is cut at K moments in place of one: every run fits on the rows
    before a moment and tests on those that follow, up to the next. The exit status is 1 if a run
    failed.
    """
    from costscape.bench import grid, origins_of
    from costscape.bench.tuning_rows import FOLDER, KEPT

    if origins is not None:
        problem = [name for one in problem for name in origins_of(one, origins)]
    changes = dict(_setting(text) for text in set_ or [])
    if epochs is not None:
        changes["epochs"] = epochs
    own = store / FOLDER
    folder = tuning or (own if own.is_dir() else KEPT)
    runs = grid(problem, method, seed or range(seeds), changes, quick, folder)
    chosen = run_options.engine_of(engine, workers, address, device)
    swept = run_options.sweep_into(store, runs, chosen, device)
    run_options.exit_if_failed(swept, store)


@errors_in_words
def merge(store: StoreArgument) -> None:
    """Move the rows of stopped runs into the files of their problems; `run` does it at its end."""
    from costscape.bench import Rows

    print(f"{Rows(store).merge()} rows merged")


@errors_in_words
def table(
    store: StoreArgument,
    format: Annotated[
        Format, typer.Option(help="md, latex, csv, or overview: one column a problem.")
    ] = Format.md,
    ours: Ours = None,
) -> None:
    """Print the table of a store."""
    from costscape.bench import report

    write = {
        Format.md: report.markdown,
        Format.latex: report.latex,
        Format.csv: report.csv,
        Format.overview: report.overview,
    }
    print(write[format](report.read_rows(store), ours or OUR_METHODS))


@errors_in_words
def page(
    store: Annotated[Path, typer.Argument(help="The folder of rows, or of a project.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page: out/page.html, of a project in its folder."),
    ] = None,
    ours: Ours = None,
    data: Annotated[Path | None, typer.Option(help="Of a project: as in `decide`.")] = None,
) -> None:
    """Write a store of rows, or a project, as one self-contained page.

    A folder with costscape.toml is a project: next decisions, why, the last comparison. Other
    folders are stores: tables, figures, commands, versions.
    """
    from costscape.project.project_file import is_project

    if is_project(store):
        project_report(folder=store, data=data, out=out)
        return
    from costscape.bench import report

    out = Path("out/page.html") if out is None else out
    command = f"costscape report {store} -o {out}"
    rows, landscapes = report.read_rows(store), report.read_landscapes(store)
    print(report.write_page(rows, landscapes, out, ours or OUR_METHODS, [command]))


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON, though Python reads it.")


def _setting(text: str) -> tuple[str, Any]:
    """key=value; the value as JSON where it is, else as text."""
    key, sign, value = text.partition("=")
    if not (key and sign):
        raise ValueError(f"--set needs key=value, such as draws=1000, but got {text!r}.")
    try:
        return key, json.loads(value, parse_constant=_refused)
    except ValueError:
        return key, value
