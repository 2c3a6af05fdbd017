"""The fitted model and the memory of its table, replaced together in one step.

New files are written into the folder ``step.part``. The rename of that folder to ``step`` makes
the new pair valid. Then each file moves to its place. A process that ends before the rename leaves
the old pair; one that ends after it leaves files in ``step``, which the next command moves.
"""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

PART, STEP = "step.part", "step"
TRIES = 5  # of a reader, while other processes replace the pair
T = TypeVar("T")


def write_together(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> None:
    """Write several files, so that later readers see all new ones or all old ones.

    Args:
        folder: of the files; it is made.
        writers: by the name of the file, a function that writes it to the path it is given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    finish_step(folder)
    part = folder / PART
    shutil.rmtree(part, ignore_errors=True)  # of a process that ended before its rename
    part.mkdir()
    for name, write in writers.items():
        write(part / name)
    part.rename(folder / STEP)
    finish_step(folder)


def finish_step(folder: Path) -> None:
    """Move the files of a step that was begun into their place; nothing where there is none.

    Several processes may do so at once: a service looks at the files while a command writes them.
    """
    step = folder / STEP
    try:
        paths = sorted(step.iterdir())
    except FileNotFoundError:  # there is none, or another process has finished it
        return
    for path in paths:
        with suppress(FileNotFoundError):  # another process moved it in the meantime
            path.replace(folder / path.name)
    with suppress(OSError):  # another process removed it, or began the next step
        step.rmdir()


def read_together(folder: Path, names: tuple[str, ...], read: Callable[[], T]) -> T:
    """The result of ``read``, whose files belong to one step.

    Args:
        folder: of the files.
        names: the files that are read.
        read: called again where another process replaced the files while it read them.
    """
    for _ in range(TRIES):
        finish_step(folder)
        before = _stamps(folder, names)
        found = read()
        if _stamps(folder, names) == before and not (folder / STEP).exists():
            return found
    raise RuntimeError(
        f"{folder} needs files that stay the same while they are read, but another command "
        f"replaced them {TRIES} times. Run the commands one after the other."
    )


def _stamps(folder: Path, names: tuple[str, ...]) -> list[tuple[int, int, int]]:
    states = [(folder / name).stat() for name in names]
    return [(state.st_ino, state.st_mtime_ns, state.st_size) for state in states]
