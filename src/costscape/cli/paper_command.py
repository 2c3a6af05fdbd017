"""costscape paper: the paper's tables and figures."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from costscape.cli import run_options
from costscape.cli.run_options import (
    Address,
    Device,
    EngineName,
    Engines,
    Quick,
    Workers,
    errors_in_words,
)


class Part(StrEnum):
    """What of the paper is made."""

    table = "table"
    synthetic = "synthetic"
    ablations = "ablations"
    landscape = "landscape"
    figure1 = "figure1"


@errors_in_words
def paper(
    part: Annotated[
        Part,
        typer.Argument(
            help="table: all methods on wind, inventory, vaccine and vaccine-wave. synthetic: all "
            "methods on both synthetic problems. ablations: variants of DF2 and DFL on wind, one "
            "setting changed at a time. landscape: g(x, .) on both synthetic problems. figure1: "
            "three errors of learning through a forecast, on one core."
        ),
    ],
    store: Annotated[
        Path | None, typer.Option(help="The folder of rows; out/paper or out/ablations.")
    ] = None,
    kept: Annotated[
        bool,
        typer.Option(
            "--kept",
            help="Print the rows of the store, those at origins too, and what is missing; run "
            "nothing. The store is then results.",
        ),
    ] = False,
    quick: Quick = False,
    engine: Engines = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    device: Device = None,
    picture: Annotated[
        Path | None, typer.Option(help="Where the picture of figure1 goes; into the store.")
    ] = None,
) -> None:
    """Make the paper's tables and figures; rows that are in the store are not run again."""
    from costscape.bench import figure1, paper_runs, report

    if kept:
        _print_kept(part, store or Path("results"), quick)
        return
    folder = store or Path("out/ablations" if part is Part.ablations else "out/paper")
    if part is Part.landscape:
        for path in paper_runs.write_landscapes(folder, quick, device):
            print(path)
        return
    if part is Part.figure1:
        rows = figure1.write_bottlenecks(folder, figure1.QUICK if quick else figure1.Size())
        print(report.figure1_text(rows))
        report.figure1_picture(picture or folder / "figure1.png", rows)
        return
    chosen = run_options.engine_of(engine, workers, address, device)
    swept = run_options.sweep_into(folder, getattr(paper_runs, part)(quick), chosen, device)
    command = f"costscape paper {part}{' --quick' * quick} --store {folder}"
    rows, ours = report.read_rows(folder), run_options.OUR_METHODS
    print(report.markdown(rows, ours))
    landscapes = report.read_landscapes(folder)
    print(report.write_page(rows, landscapes, folder / "page.html", ours, [command]))
    run_options.exit_if_failed(swept, folder)


def _print_kept(part: Part, store: Path, quick: bool) -> None:
    """The tables of a part from the rows of a store, whose data sets need not be there."""
    from costscape.bench import paper_runs, report

    if part in (Part.landscape, Part.figure1):
        raise ValueError(
            f"--kept prints table, synthetic or ablations, but got {part}. `costscape report "
            f"{store}` draws the kept landscapes."
        )
    planned = getattr(paper_runs, part)(quick)
    problems = {run.problem for run in planned}
    rows = [
        row
        for row in report.read_rows(store)
        # "wind, 5 origins" is read as wind
        if row["problem"].partition(",")[0] in problems and row["quick"] == quick
    ]
    if part is Part.ablations:
        names = {report.label(run.method, run.changes) for run in planned}
        rows = [row for row in rows if report.label(row["method"], row["changes"]) in names]
    if not rows:
        raise ValueError(
            f"--kept needs rows of {', '.join(sorted(problems))}, but {store} holds none. Run "
            f"`costscape paper {part} --store {store}` without --kept."
        )
    print(report.markdown(rows, run_options.OUR_METHODS))
    if missing := report.not_run(planned, rows):
        print(f"\n{missing}")
