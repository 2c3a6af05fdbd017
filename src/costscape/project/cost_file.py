"""The user's cost in Python: import its file, and find the line of an error in it."""

import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from costscape.task import Task

EXAMPLE = "task = cs.Task(cost, cs.Box(0.0, 200.0, dim=1))"


def task_in(path: Path) -> Task:
    """Execute the file and return what it calls ``task``.

    Args:
        path: a Python file. It is the user's code, and may do whatever Python may.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"[task] needs python to be a file, but there is none at {path}. Correct the path, "
            f"which starts at the folder of the project."
        )
    spec = spec_from_file_location(f"costscape_project_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"[task] needs python to name a file that ends in .py, but got {path}.")
    module = module_from_spec(spec)
    try:
        # from its text: a service reads it again, and cached code may be of an earlier text
        exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}. Correct the line.") from error
    except Exception as error:
        raise ValueError(
            f"{place_in_python(error, path.parent) or path}: {_words(error)}"
        ) from error
    task = getattr(module, "task", None)
    if not isinstance(task, Task):
        came = "has none" if task is None else f"it is of type {type(task).__name__}"
        raise ValueError(f"{path} needs a task with the name `task`, but {came}. Write {EXAMPLE}.")
    return task


def place_in_python(error: BaseException, folder: Path) -> str | None:
    """File and line of the user's Python in ``folder`` where an error, or its cause, was raised.

    None where it was raised elsewhere.
    """
    home, seen = folder.resolve(), error
    while True:
        for frame in reversed(traceback.extract_tb(seen.__traceback__)):
            file = Path(frame.filename)
            if file.parent.resolve() == home and file.suffix == ".py":
                return f"{folder / file.name}, line {frame.lineno}"
        before = seen.__cause__ or seen.__context__
        if before is None:
            return None
        seen = before


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(".") + ". Correct the line."
