"""costscape run | table | report: experiments, from runs to a page."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from costscape.cli import sweeping
from costscape.cli.errors import told
from costscape.cli.sweeping import Address, Device, Engines, Quick, Store, Where, Workers


class Format(StrEnum):
    md = "md"
    latex = "latex"
    csv = "csv"
    overview = "overview"


@told
def run(
    problem: Annotated[list[str], typer.Argument(help="Names as in `costscape list`.")],
    method: Annotated[list[str], typer.Option(help="Names as in `costscape list`; repeat it.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 to N - 1.")] = 1,
    seed: Annotated[
        list[int] | None, typer.Option(help="This seed alone, in place of --seeds; repeat it.")
    ] = None,
    store: Store = Path("out/runs"),
    engine: Engines = Where.local,
    workers: Workers = None,
    address: Address = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of every network.")] = None,
    device: Device = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the methods: draws=1000.")
    ] = None,
    quick: Quick = False,
) -> None:
    """Run methods on problems; rows that are in the store are not run again.

    The exit status is 1 if a run failed.
    """
    from costscape.bench import Run

    changes = dict(_setting(text) for text in set_ or [])
    if epochs is not None:
        changes["epochs"] = epochs
    runs = [
        Run(p, m, s, changes, quick)
        for p in problem
        for m in method
        for s in (seed or range(seeds))
    ]
    chosen = sweeping.engine_of(engine, workers, address, device)
    swept = sweeping.sweep_into(store, runs, chosen, device)
    sweeping.exit_if_failed(swept, store)


@told
def merge(store: Annotated[Path, typer.Argument(help="The folder of rows.")]) -> None:
    """Move the rows of stopped runs into the files of their problems; `run` does it at its end."""
    from costscape.bench import Rows

    print(f"{Rows(store).merge()} rows merged")


@told
def table(
    store: Annotated[Path, typer.Argument(help="The folder of rows.")],
    format: Annotated[
        Format, typer.Option(help="md, latex, csv, or overview: one column a problem.")
    ] = Format.md,
) -> None:
    """Print the table of a store."""
    from costscape.bench import report

    write = {
        Format.md: report.markdown,
        Format.latex: report.latex,
        Format.csv: report.csv,
        Format.overview: report.overview,
    }
    print(write[format](report.read_rows(store)))


@told
def page(
    store: Annotated[Path, typer.Argument(help="The folder of rows.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("out/page.html"),
) -> None:
    """Write a store as one self-contained page: tables, figures, commands, versions."""
    print(sweeping.page_of(store, out, [f"costscape report {store} -o {out}"]))


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
