"""costscape contest: the terms of a comparison, as tables."""

from pathlib import Path
from typing import Annotated

import typer

from costscape.cli.run_options import Quick, errors_in_words

contest = typer.Typer(
    help="Print the terms of a comparison: settings, search space, data files.",
    no_args_is_help=True,
)


@contest.command()
@errors_in_words
def settings(
    problem: Annotated[str, typer.Argument(help="A name as in `costscape list`.")],
    method: Annotated[
        list[str] | None, typer.Option(help="Repeat it; all methods by default.")
    ] = None,
    tuning: Annotated[Path, typer.Option(help="Searches for names with +tuned.")] = Path(
        "results/tuning"
    ),
    quick: Quick = False,
) -> None:
    """Print encoder, training, folds and tuning of each method on a problem."""
    from costscape.bench.contest_tables import settings_table, usual_names

    print(settings_table(problem, method or usual_names(), tuning, quick))


@contest.command()
@errors_in_words
def space() -> None:
    """Print the settings that `costscape tune` searches, and their ranges."""
    from costscape.bench.search_space import space_table

    print(space_table())


@contest.command()
@errors_in_words
def data(
    check: Annotated[
        bool, typer.Option("--check", help="Hash the files of this machine.")
    ] = False,
) -> None:
    """Print the data files and their SHA-256.

    With --check the exit status is 1 if a file of this machine has other content. "-" is a file
    that is not here.
    """
    from costscape.bench.contest_tables import OTHER, data_table

    table = data_table(check)
    print(table)
    if OTHER in table:
        raise typer.Exit(1)
