"""A store from its name: a file, or the address of a database."""

from pathlib import Path

from costscape.monitor.store import DecisionStore

STORE = "decisions.sqlite"  # the file beside a model, unless another one is named
SCHEMES = ("postgresql://", "postgres://")


def open_store(place: str | Path, create: bool = True) -> DecisionStore:
    """Open the store at a path, or at postgresql://...; StoreError where that fails.

    Args:
        place: a file of SQLite, or the address of a PostgreSQL database.
        create: make it where there is none.

    >>> open_store("mysql://host/x")
    Traceback (most recent call last):
    ...
    ValueError: A store needs a path or a postgresql:// address, but got mysql://...
    """
    text = str(place)
    if text.startswith(SCHEMES):
        from costscape.monitor.postgres_store import PostgresStore

        return PostgresStore(text, create)
    if "://" in text:
        scheme = text.partition("://")[0]
        raise ValueError(
            f"A store needs a path or a postgresql:// address, but got {scheme}://..."
        )
    from costscape.monitor.sqlite_store import SqliteStore

    return SqliteStore(Path(place), create)
