"""What a project's files contain, after all of it has been read and tried."""

from costscape.arrays import read_pairs
from costscape.data import Dataset
from costscape.methods import Method
from costscape.methods.cost_probe import check_axes, probe_cost
from costscape.project.column_units import column_units
from costscape.project.method_choice import make_method
from costscape.project.project_file import Project
from costscape.project.table_settings import read_table
from costscape.project.task_choice import make_task
from costscape.table import Table
from costscape.task import Task

FEW = 100  # rows below which a fit learns little
NAMED = 12  # columns that are named


def check_project(project: Project) -> str:
    """Read the data, make the task and the method, try the cost; the result in words."""
    table = read_table(project)
    task = make_task(project)
    method = make_method(project, task)
    column_units(project)
    dim = try_cost(task, table, method)
    ((kind, _),) = project.task.items()
    lines = [
        table_words(project.data.name, table),
        f"Features: {_listed(list(map(str, table.X.columns)))}.",
        f"Outcomes: {_ranges(table)}.",
        f"Task: {kind}, {dim} {'number' if dim == 1 else 'numbers'} decided in each row.",
        f"Method: {project.method.get('name', 'DF2.quick')}.",
    ]
    if len(table.X) < FEW:
        lines.append(f"There are only {len(table.X)} rows of X: a fit on so few learns little.")
    return "\n".join([*lines, f"No problem found. Next: costscape fit {project.folder}"])


def table_words(name: str, table: Table) -> str:
    """Rows, groups and dates in a sentence."""
    X, settings = table.X, table.memory.settings
    dates = X.index.get_level_values(0)
    first, last = (str(date).removesuffix(" 00:00:00") for date in (dates.min(), dates.max()))
    groups = ""
    if settings.group:
        count = X.index.droplevel(0).nunique()
        unit = "group" if count == 1 else "groups"
        groups = f" in {count} {unit} by {', '.join(settings.group)}"
    return (
        f"{name}: {len(X):,} rows with all lags{groups}, from {first} to {last}, step "
        f"{table.memory.freq}."
    )


def try_cost(task: Task, table: Table, method: Method) -> int:
    """Evaluate the cost at some outcomes and actions; raise ValueError where it fails.

    Returns how many numbers are decided.
    """
    like = task.feasible.bounds[0]
    x, y = (part.to(like) for part in read_pairs(table.X, table.Y, like.dtype))
    bound = task.bound(x, list(table.X.columns))
    check_axes(bound, y)
    probe_cost(bound, Dataset(x, y), method.seed)
    return bound.feasible.dim


def _ranges(table: Table) -> str:
    Y = table.Y
    parts = [f"{c} from {Y[c].min():g} to {Y[c].max():g}, mean {Y[c].mean():.4g}" for c in Y]
    return "; ".join(parts[:NAMED])


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
