"""costscape zoo: many small problems, on which defaults are chosen."""

from pathlib import Path
from typing import Annotated

import typer

from costscape.cli import run_options
from costscape.cli.run_options import (
    OUR_METHODS,
    Device,
    EngineName,
    Quick,
    Store,
    Workers,
    errors_in_words,
)

USUAL = ("df2", "wsaa-knn+crossfit", "wsaa-forest+crossfit", "two-stage-gmm3+crossfit")


@errors_in_words
def zoo(
    method: Annotated[
        list[str] | None,
        typer.Option(help="Names as in `costscape list`; repeat it. DF2 and three opponents."),
    ] = None,
    problem: Annotated[
        list[str] | None, typer.Option(help="Of the zoo; repeat it. All by default.")
    ] = None,
    store: Store = Path("out/zoo"),
    workers: Workers = None,
    device: Device = "cpu",
    quick: Quick = False,
    table: Annotated[
        bool, typer.Option("--table", help="Print the table of the store; run nothing.")
    ] = False,
) -> None:
    """Run methods on the zoo, 45 small problems, and print ratios to the best opponent.

    Rows that are in the store are not run again.
    """
    from costscape.bench import Run, report
    from costscape.bench.zoo import ZOO

    if unknown := sorted(set(problem or []) - set(ZOO)):
        raise ValueError(
            f"The zoo has no problem named {', '.join(unknown)}. It has {', '.join(ZOO)}."
        )
    swept = None
    if not table:
        runs = [Run(p, m, 0, {}, quick) for m in method or USUAL for p in problem or ZOO]
        engine = run_options.engine_of(EngineName.local, workers, None, device)
        swept = run_options.sweep_into(store, runs, engine, device)
    print(report.ratios(report.read_rows(store), OUR_METHODS))
    if swept is not None:
        run_options.exit_if_failed(swept, store)
