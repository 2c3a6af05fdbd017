"""A project as a service takes it: the fitted pair, its units, and the files to watch."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from costscape.chance import Chance
from costscape.comparison.cost_history import FILE
from costscape.methods import ScenarioMethod
from costscape.project.column_units import column_units
from costscape.project.model_files import MEMORY, MODEL, load_fitted
from costscape.project.paired_files import finish_step
from costscape.project.project_file import Project, read_project
from costscape.project.task_choice import PYTHON

REFERENCE = "reference.json"


@dataclass(frozen=True, eq=False)
class LoadedProject:
    """What a service decides with.

    Args:
        model: fitted.
        units: by column of X or Y, as far as known.
        chance: the service level of the task, or None.
    """

    model: ScenarioMethod
    units: dict[str, str]
    chance: Chance | None


@dataclass(frozen=True)
class ProjectSource:
    """Where the model of a project comes from.

    Args:
        name: what requests call the model.
        project: as it was when the service started. Its file is read again for each version.
    """

    name: str
    project: Project

    @property
    def model(self) -> Path:
        """The model file."""
        return self.project.models / MODEL

    @property
    def reference(self) -> Path:
        """The file of the rows and decisions by which a version is checked; it may not exist."""
        return self.project.models / f"{MODEL}.{REFERENCE}"

    @property
    def comparison(self) -> Path:
        """The costs of the last `costscape compare`; the file may not exist."""
        return self.project.models / f"{MODEL}.{FILE}"

    def files(self) -> Sequence[Path]:
        """Model, table, project file, and the Python file that it names now."""
        with suppress(OSError):  # of a folder that may be read only: the writer moves its files
            finish_step(self.project.models)
        return (
            self.model,
            self.project.models / MEMORY,
            self.project.file,
            *self._python(),
        )

    def watched(self) -> Sequence[Path]:
        """The files whose change may be another version."""
        return *self.files(), self.reference

    def load(self) -> LoadedProject:
        """Read model and table as one pair; refuse them where the project file has changed."""
        project = read_project(self.project.folder)
        if project.models != self.project.models:
            raise ValueError(
                f"{project.file} needs the folder {self.project.models} for models, as at the "
                f"start of the service, but has {project.models}. Start the service again."
            )
        model = load_fitted(project).model
        return LoadedProject(model, column_units(project), model.task.chance)

    def _python(self) -> Sequence[Path]:
        try:
            task = read_project(self.project.folder).task
        except (ValueError, OSError):
            return ()  # ``load`` has the sentence about it
        return [self.project.folder / str(task[PYTHON])] if PYTHON in task else ()
