"""Decide for one file of a batch: what `costscape decide --data FILE` decides, as Parquet."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from costscape.project.batch_files import Done, FileState, output_of
from costscape.project.decisions import decision_table
from costscape.project.model_files import MEMORY, MODEL, load_fitted
from costscape.project.new_rows import next_rows, read_new_rows
from costscape.project.project_file import Project, read_project
from costscape.project.task_choice import PYTHON
from costscape.whole_file import write_whole


@dataclass(frozen=True)
class Failed:
    """A file that was not decided for.

    Args:
        input: the path of the file.
        why: one sentence.
    """

    input: str
    why: str


class Scorer:
    """A project loaded once, to decide for many files.

    Args:
        folder: of the project.
        out: the folder of outputs, which exists.
        model: the fingerprint that the project must have.
    """

    def __init__(self, folder: Path, out: Path, model: str) -> None:
        self.out, self.model = out, model
        project = read_project(folder)
        self.fitted = load_fitted(project)
        if fingerprint(project) != model:
            raise ValueError(f"The model in {project.models} changed. Run the command again.")

    def score(self, path: Path) -> Done | Failed:
        """Decide, and write the output.

        Args:
            path: the input.
        """
        target = self.out / output_of(path)
        try:
            read = FileState.of(path)
            made = decision_table(
                self.fitted.model, next_rows(read_new_rows(self.fitted.table, path))
            )
            content = made.reset_index().to_parquet(index=False)
            if FileState.of(path) != read:
                raise ValueError(f"{path} changed while it was read")
            write_whole(target, content)
        except Exception as error:  # any file of others: the next ones go on
            return Failed(str(path), " ".join(str(error).split()) or type(error).__name__)
        return Done(path.name, read, self.model, target.name, FileState.of(target), len(made))


def fingerprint(project: Project) -> str:
    """The SHA-256 of what decisions depend on: model, table, task.

    Args:
        project: fitted.
    """
    digest = sha256(json.dumps(project.task, sort_keys=True).encode())
    files = [project.models / MODEL, project.models / MEMORY]
    if PYTHON in project.task:
        files.append(project.folder / str(project.task[PYTHON]))
    for path in files:
        digest.update(FileState.of(path).sha256.encode())
    return digest.hexdigest()
