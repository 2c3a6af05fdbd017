"""The command line: each command parses, calls one function, prints.

Results go to stdout, progress to stderr. torch is imported inside the commands, so that --help
answers at once.
"""

from pathlib import Path
from typing import Annotated

import typer

from costscape.cli import project_commands, run_commands
from costscape.cli.contest_command import contest
from costscape.cli.monitor_commands import monitor, outcomes
from costscape.cli.paper_command import paper
from costscape.cli.run_options import errors_in_words
from costscape.cli.serve_command import serve
from costscape.cli.try_command import try_
from costscape.cli.tune_command import tune
from costscape.cli.zoo_command import zoo

app = typer.Typer(
    help="Learn the expected cost of every action, then choose the best one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from costscape import __version__

        print(__version__)
        raise typer.Exit


@app.command()
@errors_in_words
def demo(
    out: Annotated[Path, typer.Option(help="Where pictures and page go.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the fit.")] = 0,
) -> None:
    """Order stock on real sales, against what people do; bid wind power."""
    from costscape.whole_file import check_folder

    check_folder(out)  # the fits take minutes
    from costscape.bench.demo import run

    print(run(out, seed))


@app.command()
@errors_in_words
def fetch(
    name: Annotated[str, typer.Argument(help="wind, sales, mobility or pjm")],
    folder: Annotated[
        Path | None, typer.Option(help="Where the files go; the user's cache by default.")
    ] = None,
) -> None:
    """Download a public data set and verify its checksum."""
    from costscape.problems import fetch as bring

    def report(file: str, done: int, size: int) -> None:
        typer.echo(f"\r{file}: {done:,} of {size:,} bytes", err=True, nl=done == size)

    for path in bring(name, folder, report):
        print(path)


@app.command("list")
def list_() -> None:
    """Name the problems and the methods."""
    from costscape.bench import FAMILIES, METHODS, PROBLEM_FAMILIES, PROBLEMS

    families = {f"{name}K": method for name, method in FAMILIES.items()}
    methods = {name: method.words for name, method in {**METHODS, **families}.items()}
    makers = {**PROBLEMS, **{f"{name}N": make for name, make in PROBLEM_FAMILIES.items()}}
    problems = {name: (make.__doc__ or "").splitlines()[0] for name, make in makers.items()}
    width = max(map(len, (*problems, *methods))) + 2
    for title, entries in (("problems", problems), ("methods", methods)):
        print(title)
        for name, words in entries.items():
            print(f"  {name:{width}}{words}")
    print("K is any whole number: two-stage-gmm10 has a mixture of 10 Gaussians.")
    print("N is a whole number, too: inventory-item8 is item 8.")


app.command("try")(try_)
app.command()(project_commands.init)
app.command()(project_commands.check)
app.command()(project_commands.fit)
app.command()(project_commands.decide)
app.command()(project_commands.compare)
app.command()(project_commands.update)
app.command()(run_commands.run)
app.command()(run_commands.merge)
app.command()(zoo)
app.command()(tune)
app.add_typer(contest, name="contest")
app.command()(run_commands.table)
app.command("report")(run_commands.page)
app.command()(paper)
app.command()(serve)
app.command()(outcomes)
app.command()(monitor)


def main() -> None:
    app()
