"""costscape paper: the paper's tables and figures."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from costscape.cli import sweeping
from costscape.cli.errors import told
from costscape.cli.sweeping import Address, Device, Engines, Quick, Store, Where, Workers

if TYPE_CHECKING:
    from costscape.bench import Run

paper = typer.Typer(help="The paper's tables and figures.", no_args_is_help=True)


@paper.command("table")
@told
def table(
    store: Store = Path("out/paper"),
    quick: Quick = False,
    engine: Engines = Where.local,
    workers: Workers = None,
    address: Address = None,
    device: Device = None,
) -> None:
    """All methods on wind, inventory, vaccine and vaccine-wave."""
    from costscape.bench import paper_runs as recipes

    _recipe("table", recipes.table(quick), store, quick, engine, workers, address, device)


@paper.command("synthetic")
@told
def synthetic(
    store: Store = Path("out/paper"),
    quick: Quick = False,
    engine: Engines = Where.local,
    workers: Workers = None,
    address: Address = None,
    device: Device = None,
) -> None:
    """All methods on both synthetic problems."""
    from costscape.bench import paper_runs as recipes

    _recipe("synthetic", recipes.synthetic(quick), store, quick, engine, workers, address, device)


@paper.command("ablations")
@told
def ablations(
    store: Store = Path("out/ablations"),
    quick: Quick = False,
    engine: Engines = Where.local,
    workers: Workers = None,
    address: Address = None,
    device: Device = None,
) -> None:
    """Variants of DF2 and DFL on wind, one setting changed at a time."""
    from costscape.bench import paper_runs as recipes

    _recipe("ablations", recipes.ablations(quick), store, quick, engine, workers, address, device)


@paper.command("landscape")
@told
def landscape(
    store: Store = Path("out/paper"), quick: Quick = False, device: Device = None
) -> None:
    """g(x, .) of a test x on both synthetic problems: at the start, learned, true."""
    from costscape.bench import Run, write_landscape
    from costscape.bench.paper_runs import SYNTHETIC
    from costscape.bench.provenance import check_device

    check_device(device)
    for problem in SYNTHETIC:
        path = write_landscape(Run(problem, "df2-paper", quick=quick), store, device)
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
    from costscape.bench import report

    chosen = sweeping.engine_of(engine, workers, address, device)
    swept = sweeping.sweep_into(store, runs, chosen, device)
    command = f"costscape paper {name}{' --quick' * quick} --store {store}"
    print(report.markdown(report.read_rows(store)))
    print(sweeping.page_of(store, store / "page.html", [command]))
    sweeping.exit_if_failed(swept, store)
