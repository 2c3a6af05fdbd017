"""The arguments of `costscape serve` as sources: projects, and model files with their task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costscape.serve.model_source import ModelSource


def served_sources(texts: Sequence[str], task: str | None = None) -> "list[ModelSource]":
    """A source for each [NAME=]PATH; their names must differ.

    Args:
        texts: what the command got.
        task: PATH[:NAME] of the task of model files, or None.
    """
    from costscape.serve.model_names import check_distinct

    sources = [_source(text, task) for text in texts]
    check_distinct([source.name for source in sources])
    return sources


def _source(text: str, task: str | None) -> "ModelSource":
    from costscape.project.project_file import NAME, is_project, read_project
    from costscape.serve.model_names import checked_name, named_path
    from costscape.serve.source import Source

    name, path = named_path(text)
    if not is_project(path):
        return Source.parse(text, task)
    if task is not None:
        raise ValueError(
            f"--task needs model files, but {path} is a project, whose task is in {NAME}. Leave "
            f"out --task, or serve the project by itself."
        )
    from costscape.project.logged_decisions import name_of
    from costscape.project.project_source import ProjectSource

    project = read_project(path)
    given = name_of(project) if name is None else name
    return ProjectSource(checked_name(given, path), project)
