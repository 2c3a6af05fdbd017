"""costscape run | table | report | paper: experiments, from runs to a page."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costscape.cli.errors import told

if TYPE_CHECKING:
    from costscape.experiments import Engine, Run


class Where(StrEnum):
    """The engines by name; the classes are in costscape.experiments."""

    local = "local"
    ray = "ray"


class Format(StrEnum):
    md = "md"
    latex = "latex"
    csv = "csv"
    overview = "overview"


Store = Annotated[Path, typer.Option(help="The folder of rows, one JSON file a run.")]
Engines = Annotated[Where, typer.Option("--engine", help="Processes of this machine, or Ray.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Runs at once; one for each core by default.")
]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster; none starts one here.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; a GPU where there is one.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small enough for minutes on two cores.")]

paper = typer.Typer(help="The paper's tables and figures.", no_args_is_help=True)


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
    """Run methods on problems; rows that are in the store are not run again."""
    from costscape.experiments import Run

    changes = dict(_setting(text) for text in set_ or [])
    if epochs is not None:
        changes["epochs"] = epochs
    runs = [
        Run(p, m, s, changes, quick)
        for p in problem
        for m in method
        for s in (seed or range(seeds))
    ]
    _sweep(runs, store, _engine(engine, workers, address, device), device)


@told
def table(
    store: Annotated[Path, typer.Argument(help="The folder of rows.")],
    format: Annotated[
        Format, typer.Option(help="md, latex, csv, or overview: one column a problem.")
    ] = Format.md,
) -> None:
    """Print the table of a store."""
    from costscape import report

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
    print(_page(store, out, [f"costscape report {store} -o {out}"]))


@paper.command("table")
@told
def paper_table(
    store: Store = Path("out/paper"),
    quick: Quick = False,
    engine: Engines = Where.local,
    workers: Workers = None,
    address: Address = None,
    device: Device = None,
) -> None:
    """All methods on wind, inventory, vaccine and vaccine-wave."""
    from costscape.experiments import paper as recipes

    _recipe("table", recipes.table(quick), store, quick, engine, workers, address, device)


@paper.command("synthetic")
@told
def paper_synthetic(
    store: Store = Path("out/paper"),
    quick: Quick = False,
    engine: Engines = Where.local,
    workers: Workers = None,
    address: Address = None,
    device: Device = None,
) -> None:
    """All methods on both synthetic problems."""
    from costscape.experiments import paper as recipes

    _recipe("synthetic", recipes.synthetic(quick), store, quick, engine, workers, address, device)


@paper.command("ablations")
@told
def paper_ablations(
    store: Store = Path("out/ablations"),
    quick: Quick = False,
    engine: Engines = Where.local,
    workers: Workers = None,
    address: Address = None,
    device: Device = None,
) -> None:
    """Variants of DF2 and DFL on wind, one setting changed at a time."""
    from costscape.experiments import paper as recipes

    _recipe("ablations", recipes.ablations(quick), store, quick, engine, workers, address, device)


@paper.command("landscape")
@told
def paper_landscape(
    store: Store = Path("out/paper"), quick: Quick = False, device: Device = None
) -> None:
    """g(x, .) of a test x on both synthetic problems: at the start, learned, true."""
    from costscape.distributed import is_first
    from costscape.experiments import Run, write_landscape
    from costscape.experiments.paper import SYNTHETIC

    for problem in SYNTHETIC:
        path = write_landscape(Run(problem, "df2-paper", quick=quick), store, device)
        if is_first():
            print(path)


def _recipe(
    name: str,
    runs: "list[Run]",
    store: Path,
    quick: bool,
    engine: Where,
    workers: int | None,
    address: str | None,
    device: str | None,
) -> None:
    from costscape import report
    from costscape.distributed import is_first

    _sweep(runs, store, _engine(engine, workers, address, device), device)
    if is_first():
        command = f"costscape paper {name}{' --quick' * quick} --store {store}"
        print(report.markdown(report.read_rows(store)))
        print(_page(store, store / "page.html", [command]))


def _sweep(runs: "list[Run]", store: Path, engine: "Engine", device: str | None) -> None:
    from costscape.distributed import is_first
    from costscape.experiments import sweep

    try:
        swept = sweep(runs, store, engine, device)
    except KeyboardInterrupt:
        typer.echo(
            f"Stopped. The rows that were finished are in {store}; the same command goes on.",
            err=True,
        )
        raise typer.Exit(130) from None
    if is_first():
        typer.echo(f"{store}: {swept}", err=True)


def _engine(
    where: Where, workers: int | None, address: str | None, device: str | None
) -> "Engine":
    import os

    from costscape.experiments import Here, Processes, Ray

    if where is Where.ray:
        gpus = None if device is None else float(device.startswith("cuda"))
        return Ray(address, workers, gpus)
    if address is not None:
        raise ValueError("--address is that of a Ray cluster; it needs --engine ray.")
    count = workers or os.cpu_count() or 1
    return Processes(count) if count > 1 else Here()


def _page(store: Path, out: Path, commands: list[str]) -> Path:
    from costscape import report

    out.parent.mkdir(parents=True, exist_ok=True)
    report.write_page(
        report.read_rows(store), report.read_landscapes(store), out, commands=commands
    )
    return out


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
