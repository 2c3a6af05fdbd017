"""What the commands do with a fitted project: fit, decide, update, write a page."""

from pathlib import Path
from typing import Any

from costscape.methods import ScenarioMethod
from costscape.project.atomic_file import check_free, write_whole
from costscape.project.decisions import as_csv, as_text, decision_table, range_sentence
from costscape.project.method_choice import make_method
from costscape.project.model_files import FittedProject, load_fitted, save_fitted
from costscape.project.new_rows import NewRows, next_rows, read_new_rows
from costscape.project.overview import table_words, try_cost
from costscape.project.project_file import Project
from costscape.project.table_settings import read_table
from costscape.project.task_choice import make_task


def fit_project(project: Project) -> str:
    """Fit on all rows of the data, of which the last fifth chooses the epoch; save."""
    table, task = read_table(project), make_task(project)
    method = make_method(project, task)
    try_cost(task, table, method)
    model = method.fit(table.X, table.Y)
    assert isinstance(model, ScenarioMethod)
    folder = save_fitted(project, FittedProject(model, table))
    return (
        f"{table_words(project.data.name, table)} Fitted in {model.fit_seconds_:.3g} s, saved in "
        f"{folder}. Next: costscape decide {project.folder}"
    )


def decide_next(
    project: Project, data: Path | None, out: Path | None, force: bool, log: str | None = None
) -> tuple[str, str]:
    """Decide for the next date; the text to print, and notes.

    Args:
        project: fitted.
        data: a file with new rows, or None.
        out: the CSV to write, or None.
        force: write over it.
        log: the store that keeps the decisions before they are shown, or None.
    """
    if out is not None:
        check_free(out, force)
    fitted = load_fitted(project)
    rows, X = _next(fitted, data)
    made = decision_table(fitted.model, X)
    notes = [range_sentence(made)]
    if log is not None:
        from costscape.project.logged_decisions import log_decisions

        notes.append(f"{log_decisions(project, X, made, log)} decisions logged.")
    if rows.added:
        notes.append(f"{rows.added} new rows were used for the lags; the model is unchanged.")
    if out is None:
        return as_text(made), " ".join(filter(None, notes))
    write_whole(out, as_csv(made), force)
    return f"{len(made)} decisions written to {out}", " ".join(filter(None, notes))


def update_project(project: Project, data: Path) -> str:
    """Append new rows and continue the model on them; save what changed."""
    fitted = load_fitted(project)
    rows = read_new_rows(fitted.table, data)
    if not rows.added:
        raise ValueError(
            f"update needs rows after those of the last fit or update, with outcomes, but {data} "
            f"has none ({rows.skipped} are known already)."
        )
    X, Y = rows.table.X, rows.table.Y
    result: Any = fitted.model.update(X, Y) if len(X) > 1 else None
    save_fitted(project, FittedProject(fitted.model, rows.table))
    told = result or "One row is too few to learn from: it is used for lags only."
    return (
        f"{rows.added} new rows, {rows.skipped} known already. {told}\n{project.data} is "
        f"unchanged: add the rows to it before the next fit."
    )


def write_page(project: Project, data: Path | None, out: Path | None) -> Path:
    """Write the page of a fitted project; page.html in its folder where ``out`` is None."""
    from costscape.project.project_page import render_page

    fitted = load_fitted(project)
    _, X = _next(fitted, data)
    made = decision_table(fitted.model, X)
    path = project.folder / "page.html" if out is None else out
    text = render_page(project, read_table(project), fitted, X, made)
    write_whole(path, text, force=True)
    return path


def _next(fitted: FittedProject, data: Path | None) -> tuple[NewRows, Any]:
    table = fitted.table
    rows = NewRows(table, None, 0, 0) if data is None else read_new_rows(table, data)
    return rows, next_rows(rows)
