"""Errors as sentences rather than tracebacks."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

P = ParamSpec("P")


def errors_in_words(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose ValueError, OSError or missing package ends it with its message."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except ModuleNotFoundError as error:
            typer.echo(f"{error}. Install it: pip install 'costscape[all,ray]'.", err=True)
            raise typer.Exit(1) from error
        except (ValueError, OSError) as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from error

    return run
