"""costscape try: a first answer for one's own file, without a project."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from costscape.cli.project_commands import Force, errors_in_sentences


@errors_in_sentences
def try_(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet: a row for each date.")],
    date: Annotated[str, typer.Option(help="Column of dates.")],
    outcome: Annotated[str, typer.Option(help="Columns of what was needed: bread,soup.")],
    under: Annotated[str, typer.Option(help="Cost of a missing piece; 2,3 for two outcomes.")],
    over: Annotated[str, typer.Option(help="Cost of a spare piece.")],
    group: Annotated[str, typer.Option(help="Columns that tell series apart.")] = "",
    capacity: Annotated[
        float | None, typer.Option(help="The most pieces in a row, all outcomes together.")
    ] = None,
    pack: Annotated[str, typer.Option(help="Pieces in a pack.")] = "",
    today: Annotated[str, typer.Option(help="Columns of what was ordered until now.")] = "",
    lags: Annotated[str, typer.Option(help="Past outcomes as features.")] = "1,2,7,14",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of orders.csv and orders.png.")
    ] = Path("out"),
    force: Force = False,
) -> None:
    """A first answer: savings against today's decisions, tomorrow's orders, a picture."""
    prices, costs = _numbers("under", under), _numbers("over", over)
    packs, shifts = _numbers("pack", pack), _numbers("lags", lags, int, "whole numbers")
    from costscape.project.first_answer import Question, first_answer

    question = Question(
        file, date, _words(outcome), prices, costs, _words(group), capacity, packs or None,
        _words(today), shifts,
    )  # fmt: skip
    print(first_answer(question, out, force=force))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(
    option: str, text: str, kind: Callable[[str], Any] = float, words: str = "numbers"
) -> tuple[Any, ...]:
    try:
        return tuple(kind(word) for word in _words(text))
    except ValueError as error:
        raise typer.BadParameter(
            f"{words} are needed, separated by commas, such as 2,3, but got {text!r}.",
            param_hint=f"--{option}",
        ) from error
