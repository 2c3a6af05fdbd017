"""Decisions in a PostgreSQL database, for services on several machines."""

from collections.abc import Callable
from threading import Lock
from typing import Any, ClassVar, Literal, TypeVar

from costscape.monitor.store import DecisionStore, StoreError

T = TypeVar("T")
CONNECT = 5  # seconds for a connection
SILENT = 10_000  # milliseconds after which a server that does not answer is given up
LOCK = 0x636F7374  # held while tables are made, so that two services do not make them at once


class PostgresStore(DecisionStore):
    """Tables in a database; a lost connection is made again at the next call.

    Args:
        url: str. Such as ``postgresql://user@host/database``. PGPASSWORD or ~/.pgpass may have
            the password.
        create: bool, default True. Make the tables where there are none.

    >>> PostgresStore("postgresql://nobody@127.0.0.1:1/none")
    Traceback (most recent call last):
    ...
    costscape.monitor.store.StoreError: The database none on 127.0.0.1 cannot be used (...
    """

    mark: ClassVar[str] = "%s"
    serial: ClassVar[str] = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

    def __init__(self, url: str, create: bool = True) -> None:
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise StoreError(
                "A store in PostgreSQL needs psycopg, which is not installed. Install it: pip "
                "install 'costscape[postgres]'."
            ) from error
        self._psycopg, self._url, self._lock = psycopg, url, Lock()
        self._database: Any = None
        try:
            if not create and not self._transact(_has_tables, "read"):
                raise StoreError(
                    f"{self} has no logged decisions. Start the service with --log, or name the "
                    f"store that it writes."
                )
            self._make_tables()
        except StoreError:
            self.close()
            raise

    def __str__(self) -> str:
        """The database and the host; never the password."""
        try:
            parts = self._psycopg.conninfo.conninfo_to_dict(self._url)
        except self._psycopg.Error:
            parts = {}
        name, host = (parts.get(key) for key in ("dbname", "host"))
        return f"The database {name or 'of this user'} on {host or 'this machine'}"

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()

    def _transact(self, work: Callable[[Any], T], kind: Literal["read", "write", "make"]) -> T:
        with self._lock:
            try:
                with self._connected().transaction(), self._database.cursor() as cursor:
                    if kind == "make":
                        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                    return work(cursor)
            except self._psycopg.Error as error:
                words = " ".join(str(error).split()) or type(error).__name__
                raise StoreError(
                    f"{self} cannot be used ({words}). Start the server, or correct the address."
                ) from error

    def _connected(self) -> Any:
        if self._database is None or self._database.closed or self._database.broken:
            self._database = self._psycopg.connect(
                self._url, connect_timeout=CONNECT, tcp_user_timeout=SILENT, autocommit=True
            )
            row = self._database.execute("SHOW synchronous_commit").fetchone()
            if row is not None and row[0] in ("off", "local"):
                self._database.execute("SET synchronous_commit TO on")  # a commit is on disk
        return self._database


def _has_tables(cursor: Any) -> bool:
    cursor.execute("SELECT to_regclass('costscape_decisions') IS NOT NULL")
    return bool(cursor.fetchone()[0])
