"""Write a file whole or not at all.

The content goes to a temporary file beside the target, ``NAME.RANDOM.part``, which is renamed when
it is on disk. Its writer holds a lock on it until then, and the system releases the lock when the
writer dies. So a part that can be locked belongs to nobody, whatever its date and process number.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # on Windows parts are not locked, and none is swept
    fcntl = None  # type: ignore[assignment]

PART = ".part"
PROBE = 2**20  # bytes that a folder must be able to take before work begins


def check_target(path: Path) -> None:
    """Raise OSError in words where ``path`` cannot be a file, before any work is done for it."""
    if path.name in ("", "..") or path.is_dir():
        raise IsADirectoryError(f"A file needs a name, but {path} is a folder. Add a file name.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no plain file, so it is not replaced. Take another name.")


def check_folder(folder: Path) -> None:
    """Make the folder, or raise OSError in words where it cannot be written to."""
    probe = folder / ".probe"
    try:
        write_whole(probe, bytes(PROBE))
        probe.unlink(missing_ok=True)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise type(error)(
            f"This needs a folder that can be written to, but {folder} cannot ({why}). Free some "
            f"space, or name another folder."
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file by the content; the old file stays where that fails, see ``replacing``."""
    check_target(path)
    try:
        with replacing(path) as out:
            out.write(content)
    except OSError as error:
        told = type(error)(
            f"{path} could not be written ({error.strerror or error}); an older file of that name "
            f"is as it was. Free some space, or write to another folder."
        )
        told.errno = error.errno
        raise told from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A part to write to, which takes the name ``path`` at the end; an error removes the part.

    Folders are made. Parts of this name that killed writers left behind are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep_parts(path.parent.glob(f"{_literal(path.name)}.*{PART}"))
    part, out = _new_part(path)
    try:
        with out:
            yield out
            out.flush()
            os.fsync(out.fileno())
            os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def sweep_parts(parts: Iterable[Path]) -> None:
    """Remove temporary files whose writers are dead."""
    for part in parts:
        with suppress(OSError), open(part, "rb") as file:
            if _locked(file):
                part.unlink()


def _new_part(path: Path) -> tuple[Path, BinaryIO]:
    """A new file that this process has locked; another writer's is never opened."""
    while True:
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PART}")
        out = open(part, "xb")  # noqa: SIM115
        if _locked(out) and part.exists():  # else a sweep came between the two lines
            return part, out
        out.close()


def _locked(file: BinaryIO) -> bool:
    """Lock the file until it is closed; whether no other process holds it."""
    if fcntl is None:
        return file.writable()
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: parts are written, and none is swept
        return file.writable()
    return True


def _literal(name: str) -> str:
    """The name as a pattern that matches only itself."""
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in name)
