"""Execute the runs that are missing from a store."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from costscape.bench.engines import Engine, Here, Ray
from costscape.bench.execution import Row, execute
from costscape.bench.provenance import check_device
from costscape.bench.row_store import Rows
from costscape.bench.runs import Run, recipe_of
from costscape.training.progress import progress


@dataclass(frozen=True)
class Swept:
    """How many rows were kept, were made and were refused; the names of the runs that failed."""

    kept: int = 0
    made: int = 0
    failed: tuple[str, ...] = ()
    refused: int = 0

    def __str__(self) -> str:
        parts = [f"{self.made} rows made", f"{self.kept} were there"]
        if self.refused:
            parts.append(f"{self.refused} refused")
        if self.failed:
            parts.append(f"{len(self.failed)} failed")
        return ", ".join(parts)


def sweep(
    runs: Iterable[Run],
    folder: Path,
    engine: Engine | None = None,
    device: str | None = None,
    shown: bool = True,
) -> Swept:
    """Make the rows that are not in the folder, have another recipe, or failed.

    Each row is written as its run ends, so a sweep that is stopped or killed continues where it
    was; at the end the rows are merged into the files of their problems. A device that
    does not exist and a folder that cannot be written to are refused before the first run.
    """
    check_device(device, here=not isinstance(engine, Ray))
    store, every = Rows(folder), list({run.name: run for run in runs}.values())
    left = _left(store, every)
    if left:
        store.check_writable()
    chosen = Here() if engine is None else engine
    work = partial(execute, device=device)
    failed: list[str] = []
    refused = 0
    with progress("runs", len(left), shown) as show:
        for done, (run, outcome) in enumerate(chosen.map(work, left), 1):
            row = outcome.row
            store.write(run, row, outcome.arrays)
            if row["error"] is not None:
                failed.append(run.name)
            refused += row["refused"] is not None
            show(done, f"{run.name}: {_word(row)}")
    store.merge()
    return Swept(len(every) - len(left), len(left), tuple(failed), refused)


def _left(store: Rows, runs: list[Run]) -> list[Run]:
    """The runs to execute."""
    recipes = [recipe_of(run) for run in runs]
    store.sweep_up()
    pairs = zip(runs, recipes, strict=True)
    return [run for run, recipe in pairs if not store.finished(run, recipe)]


def _word(row: Row) -> str:
    if row["error"] is not None:
        return "failed"
    if row["refused"] is not None:
        return "refused"
    return (
        f"regret {row['regret']:.4g}" if row["regret"] is not None else f"cost {row['cost']:.4g}"
    )
