"""The fitted model of a project and the memory of its table, two files of one step."""

from dataclasses import dataclass
from pathlib import Path

from costscape.methods import ScenarioMethod, load
from costscape.project.paired_files import finish_step, read_together, write_together
from costscape.project.project_file import Project
from costscape.project.table_settings import table_settings
from costscape.project.task_choice import make_task
from costscape.table import Table
from costscape.task import Task

MODEL, MEMORY = "project.model", "project.table"


@dataclass(frozen=True, eq=False)
class FittedProject:
    """A fitted model, and the table that makes its features."""

    model: ScenarioMethod
    table: Table


def save_fitted(project: Project, fitted: FittedProject) -> Path:
    """Replace both files together. Returns the folder."""
    write_together(project.models, {MODEL: fitted.model.save, MEMORY: fitted.table.save})
    return project.models


def load_fitted(project: Project) -> FittedProject:
    """Read both files; refuse them where the project file has other columns by now."""
    finish_step(project.models)
    path, memory = project.models / MODEL, project.models / MEMORY
    if not (path.is_file() and memory.is_file()):
        raise FileNotFoundError(
            f"{project.models} needs a fitted model, but has none. Run `costscape fit "
            f"{project.folder}` first."
        )
    task = make_task(project)
    return read_together(
        project.models, (MODEL, MEMORY), lambda: _loaded(project, path, memory, task)
    )


def _loaded(project: Project, path: Path, memory: Path, task: Task) -> FittedProject:
    table = Table.load(memory)
    if table.memory.settings != table_settings(project):
        raise ValueError(
            f"{project.place('table')} needs the settings of the last fit, but they differ. Run "
            f"`costscape fit {project.folder}` again, or undo the change."
        )
    return FittedProject(load(path, task), table)
