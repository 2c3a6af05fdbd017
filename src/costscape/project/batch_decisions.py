"""`costscape decide` for many files: one output for each input, continued after a kill."""

from dataclasses import dataclass
from pathlib import Path

from costscape.project.batch_engines import BatchEngine
from costscape.project.batch_files import inputs_of, prepare
from costscape.project.batch_scoring import Failed, fingerprint
from costscape.project.model_files import load_fitted
from costscape.project.project_file import Project


@dataclass(frozen=True)
class Batch:
    """What became of the files.

    Args:
        out: the folder of outputs.
        made: how many files were decided for now.
        kept: how many were done before.
        rows: the decisions of those made now.
        failed: the others.
    """

    out: Path
    made: int
    kept: int
    rows: int
    failed: tuple[Failed, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.made} files with {self.rows:,} decisions written to {self.out}, {self.kept} "
            f"were done before, {len(self.failed)} failed."
        ]
        return "\n".join([*lines, *(f"{bad.input}: {bad.why}" for bad in self.failed)])


def decide_batch(
    project: Project, data: Path, out: Path, engine: BatchEngine, force: bool = False
) -> Batch:
    """Decide for each file of a folder or pattern as `decide --data FILE` does.

    Args:
        project: fitted.
        data: a folder of Parquet files, or a pattern such as ``new/*.parquet``.
        out: the folder of outputs, ``NAME.parquet`` for ``NAME.*``, and of the manifest.
        engine: where the work is done.
        force: take a folder that has files of others.

    An input is skipped if its bytes, the model and the output are those of the manifest. An input
    that cannot be decided for has no output, also if it had one before.
    """
    paths = inputs_of(data, out)
    load_fitted(project)  # a project that cannot decide is refused before any file is read
    manifest, model = prepare(out, force), fingerprint(project)
    todo = [
        path
        for path in paths
        if (row := manifest.rows.get(path.name)) is None or not row.holds(path, out, model)
    ]
    made, rows, failed = 0, 0, []
    for found in engine.map(project.folder, out, model, todo) if todo else ():
        if isinstance(found, Failed):
            manifest.drop(Path(found.input))
            failed.append(found)
        else:
            manifest.add(found)
            made, rows = made + 1, rows + found.rows
    manifest.close()
    failed.sort(key=lambda bad: bad.input)
    return Batch(out, made, len(paths) - len(todo), rows, tuple(failed))
