"""Decisions in one file: SQLite in WAL mode, with every commit on disk before it returns."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal, TypeVar

from costscape.monitor.store import DecisionStore, StoreError

T = TypeVar("T")
WAIT = 10.0  # seconds for another process that writes


class SqliteStore(DecisionStore):
    """A file of records; several processes of one machine may use it.

    Args:
        path: Path. The file.
        create: bool, default True. Make the file where there is none.

    >>> import tempfile
    >>> store = SqliteStore(Path(tempfile.mkdtemp()) / "decisions.sqlite")
    >>> store.models()
    {}
    """

    mark: ClassVar[str] = "?"
    serial: ClassVar[str] = "INTEGER PRIMARY KEY AUTOINCREMENT"

    def __init__(self, path: Path, create: bool = True) -> None:
        self._path, self._lock = path, Lock()
        if not create and not path.is_file():
            raise StoreError(
                f"There is no store of decisions at {path}. Start the service with --log {path}, "
                f"or name the store that it writes."
            )
        try:
            # others must not read the rows: SQLite gives its two files beside the same rights
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._database = sqlite3.connect(
                path, timeout=WAIT, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The store {path} cannot be opened for writing ({_reason(error)}). Name a file "
                f"in a folder where this user may write."
            ) from error
        self._inode = path.stat().st_ino
        try:
            (mode,) = self._database.execute("PRAGMA journal_mode=WAL").fetchone()
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute("PRAGMA foreign_keys=ON")
            if mode != "wal":
                raise StoreError(
                    f"The store {path} needs the WAL mode of SQLite, but its disk offers "
                    f"{mode!r}. Name a file on a local disk, or a postgresql:// address."
                )
            self._make_tables()
        except (sqlite3.Error, StoreError) as error:
            self._database.close()
            raise error if isinstance(error, StoreError) else self._error(error) from error

    def __str__(self) -> str:
        return str(self._path)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _transact(self, work: Callable[[Any], T], kind: Literal["read", "write", "make"]) -> T:
        with self._lock:
            try:
                self._check_there()
                cursor = self._database.cursor()
                cursor.execute("BEGIN" if kind == "read" else "BEGIN IMMEDIATE")
                try:
                    found = work(cursor)
                    cursor.execute("COMMIT")
                    return found
                except BaseException:
                    if self._database.in_transaction:
                        cursor.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._error(error) from error

    def _check_there(self) -> None:
        """A file that was removed still takes records, and loses them."""
        try:
            here = self._path.stat().st_ino
        except OSError:
            here = None
        if here != self._inode:
            raise StoreError(
                f"The store {self._path} was removed or replaced while it was open. Start again."
            )

    def _error(self, error: Exception) -> StoreError:
        return StoreError(
            f"The store {self._path} cannot be used ({_reason(error)}). Free or correct its disk, "
            f"or name another file."
        )


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
