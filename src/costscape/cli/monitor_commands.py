"""costscape outcomes | monitor: what logged decisions cost, and whether the world has changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costscape.cli.run_options import errors_in_words

if TYPE_CHECKING:
    from costscape.serve import Source

TaskFile = Annotated[
    str | None, typer.Option(help="cost.py:task, the task of the model. The file is executed.")
]
Log = Annotated[
    str | None,
    typer.Option(
        help="The store: a file, or a postgresql:// address; decisions.sqlite beside the model."
    ),
]


@errors_in_words
def outcomes(
    model: Annotated[
        str, typer.Argument(help="[NAME=]PATH, as for `costscape serve`; or a project.")
    ],
    data: Annotated[
        Path,
        typer.Option(help="CSV with outcomes, and id or key columns; of a project, new rows."),
    ],
    log: Log = None,
    task: TaskFile = None,
) -> None:
    """Attach outcomes to the decisions that `serve --log` or `decide --log` kept."""
    from costscape.project.project_file import is_project, read_project

    if not data.is_file():
        raise FileNotFoundError(f"--data needs a CSV file, but there is none at {data}.")
    if is_project(Path(model)):
        from costscape.project.logged_decisions import attach_new_rows, store_of

        project = read_project(Path(model))
        print(attach_new_rows(project, data, log or str(store_of(project))))
        return
    from costscape.monitor import attach_outcomes, open_store, outcome_names
    from costscape.serve import Source
    from costscape.serve.outcome_request import rows_of_csv
    from costscape.serve.refused import Refused
    from costscape.serve.served_model import ServedModel

    source = Source.parse(model, task)
    served = ServedModel.load(source)
    try:
        rows = rows_of_csv(data.read_bytes())
    except Refused as error:
        raise ValueError(f"{data}: {error}") from error
    with open_store(log or _beside(source), create=False) as store:
        print(attach_outcomes(store, source.name, outcome_names(served.model), rows))


@errors_in_words
def monitor(
    place: Annotated[
        str,
        typer.Argument(
            help="[NAME=]PATH of a model, as for `costscape serve`; a project; or only a store."
        ),
    ],
    log: Log = None,
    name: Annotated[str | None, typer.Option(help="The model, if a store has several.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="One self-contained page, in HTML.")
    ] = None,
    task: TaskFile = None,
    recent: Annotated[int, typer.Option(min=2, help="Latest rows that are compared.")] = 500,
    psi: Annotated[float, typer.Option(help="PSI of a column that is an alert.")] = 0.2,
    ks: Annotated[float, typer.Option(help="KS statistic of a column that is an alert.")] = 0.1,
    flagged: Annotated[float, typer.Option(help="Share of flagged rows that is one.")] = 0.05,
    cost: Annotated[
        float, typer.Option(help="Relative difference of realised and expected cost that is one.")
    ] = 0.25,
) -> None:
    """Watch logged decisions: realised against expected cost, drift, flagged rows, alerts.

    With a store alone it shows what can be said without the model.
    """
    from costscape.monitor import Thresholds, open_store, render_findings, watch
    from costscape.project.project_file import is_project, read_project

    at = Thresholds(recent=recent, psi=psi, ks=ks, flagged=flagged, cost=cost)
    model: Any = None
    if log is None and _is_store(place):
        log = place
    elif is_project(Path(place)):
        from costscape.project.logged_decisions import name_of, store_of
        from costscape.project.model_files import load_fitted

        project = read_project(Path(place))
        model = load_fitted(project).model
        log, name = log or str(store_of(project)), name or name_of(project)
    else:
        from costscape.serve import Source
        from costscape.serve.served_model import ServedModel

        source = Source.parse(place, task)
        model = ServedModel.load(source).model
        log, name = log or str(_beside(source)), name or source.name
    with open_store(log, create=False) as store:
        name = _one_model(store.models(), name)
        records = store.read(name, at.rows)
    found = watch(name, records, model, at)
    print(found)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(render_findings(found, at), encoding="utf-8")
        typer.echo(str(out), err=True)


def _beside(source: "Source") -> Path:
    """The store beside the model file."""
    from costscape.monitor import STORE

    return source.model.with_name(STORE)


def _one_model(counts: dict[str, int], name: str | None) -> str:
    """The name of the model: the given one, or the only one of the store."""
    if name is None and len(counts) == 1:
        return next(iter(counts))
    if name is None or name not in counts:
        known = ", ".join(f"{key} ({rows:,} rows)" for key, rows in counts.items()) or "no model"
        came = "none was named" if name is None else f"there is no {name!r}"
        raise ValueError(
            f"The store has decisions of {known}, but {came}. Write NAME=PATH, or --name NAME."
        )
    return name


def _is_store(place: str) -> bool:
    """Whether the argument is a database rather than a model."""
    if "://" in place:
        return True
    path = Path(place)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"
