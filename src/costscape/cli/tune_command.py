"""costscape tune: search the settings of a method."""

from pathlib import Path
from typing import Annotated

import typer

from costscape.cli.run_options import Device, Quick, errors_in_words


@errors_in_words
def tune(
    problem: Annotated[str, typer.Argument(help="A name as in `costscape list`, or wind@1of5.")],
    method: Annotated[list[str], typer.Option(help="Names as in `costscape list`; repeat it.")],
    trials: Annotated[
        int, typer.Option(min=1, help="Settings to try, the default ones included.")
    ] = 30,
    store: Annotated[Path, typer.Option(help="Trials go to its folder tuning.")] = Path(
        "out/runs"
    ),
    seed: Annotated[int, typer.Option(help="Of the fits and the search.")] = 0,
    origins: Annotated[int, typer.Option(min=1, help="Fits in a trial.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Fits of a trial at a time.")] = 1,
    device: Device = None,
    quick: Quick = False,
) -> None:
    """Search the settings of methods on the rows before the test part.

    Every method gets the same number of trials, and every network the same ranges of shared
    settings. Trials that are in the store are not made again. `costscape run` takes the best
    settings by the name METHOD+tuned.
    """
    from costscape.bench.tuning import tune as search
    from costscape.bench.tuning_rows import FOLDER

    for name in method:
        try:
            found = search(
                problem,
                name,
                store / FOLDER,
                trials,
                seed,
                origins,
                device,
                quick,
                workers=workers,
            )
        except KeyboardInterrupt:
            typer.echo(
                f"Stopped. Finished trials are in {store / FOLDER}; the same command goes on.",
                err=True,
            )
            raise typer.Exit(130) from None
        typer.echo(f"{store / FOLDER}: {found.made} of {len(found.trials)} trials made", err=True)
        print(f"{problem} {name}: {found}")
