"""The fitted model of a project and the memory of its table, two files in one folder."""

from dataclasses import dataclass
from pathlib import Path

from costscape.methods import ScenarioMethod, load
from costscape.project.project_file import Project
from costscape.project.table_settings import table_settings
from costscape.project.task_choice import make_task
from costscape.table import Table

MODEL, MEMORY = "project.model", "project.table"


@dataclass(frozen=True, eq=False)
class FittedProject:
    """A fitted model, and the table that makes its features."""

    model: ScenarioMethod
    table: Table


def save_fitted(project: Project, fitted: FittedProject) -> Path:
    """Write both files; each is written to a temporary file and renamed. Returns the folder."""
    project.models.mkdir(parents=True, exist_ok=True)
    fitted.model.save(project.models / MODEL)
    fitted.table.save(project.models / MEMORY)
    return project.models


def load_fitted(project: Project) -> FittedProject:
    """Read both files; refuse them where the project file has other columns by now."""
    path, memory = project.models / MODEL, project.models / MEMORY
    if not (path.is_file() and memory.is_file()):
        raise FileNotFoundError(
            f"{project.models} needs a fitted model, but has none. Run `costscape fit "
            f"{project.folder}` first."
        )
    table = Table.load(memory)
    if table.memory.settings != table_settings(project):
        raise ValueError(
            f"{project.place('table')} needs the settings of the last fit, but they differ. Run "
            f"`costscape fit {project.folder}` again, or undo the change."
        )
    return FittedProject(load(path, make_task(project)), table)
