"""Where decisions and outcomes are kept: two tables of a database.

A record is durable when ``append`` or ``attach`` returns: both commit once, to disk.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from costscape.monitor.record import Record, utc_now

T = TypeVar("T")
FORMAT = 1  # of the tables
AT_ONCE = 500  # ids in one query
TABLES = (
    "CREATE TABLE IF NOT EXISTS costscape_log (format INTEGER NOT NULL)",
    """CREATE TABLE IF NOT EXISTS costscape_decisions (
        seq {serial}, id TEXT NOT NULL UNIQUE, time TEXT NOT NULL, model TEXT NOT NULL,
        version TEXT NOT NULL, request_id TEXT NOT NULL, x TEXT NOT NULL, decision TEXT NOT NULL,
        expected_cost DOUBLE PRECISION, flags TEXT NOT NULL, keys TEXT NOT NULL, question TEXT,
        quantiles TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS costscape_by_model ON costscape_decisions (model, seq)",
    """CREATE TABLE IF NOT EXISTS costscape_outcomes (
        id TEXT PRIMARY KEY REFERENCES costscape_decisions (id), time TEXT NOT NULL,
        y TEXT NOT NULL)""",
)
_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
COLUMNS = (
    "id, time, model, version, request_id, x, decision, expected_cost, flags, keys, question, "
    "quantiles"
)


class StoreError(OSError):
    """A store cannot be opened, read or written; the message is a sentence.

    >>> str(StoreError("The store is not writable."))
    'The store is not writable.'
    """


class DecisionStore(ABC):
    """Keeps records and outcomes. Several threads may call it. It has no settings."""

    mark: ClassVar[str]  # stands for a value in a statement
    serial: ClassVar[str]  # the type of a number that counts the rows

    @abstractmethod
    def _transact(self, work: Callable[[Any], T], kind: Literal["read", "write", "make"]) -> T:
        """Call work with a cursor, then commit; roll back and raise StoreError on an error."""

    @abstractmethod
    def close(self) -> None:
        """Close the database."""

    def __enter__(self) -> "DecisionStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, records: Sequence[Record]) -> None:
        """Keep records: all of them, or none and StoreError."""
        marks = ", ".join([self.mark] * 12)
        statement = f"INSERT INTO costscape_decisions ({COLUMNS}) VALUES ({marks})"
        rows = [_to_row(record) for record in records]
        self._transact(lambda cursor: cursor.executemany(statement, rows), "write")

    def attach(self, outcomes: Mapping[str, Sequence[float]]) -> int:
        """Keep the outcome of each id, in place of an earlier one; how many were replaced."""
        now = utc_now()
        m = self.mark
        statement = (
            f"INSERT INTO costscape_outcomes (id, time, y) VALUES ({m}, {m}, {m}) "
            f"ON CONFLICT (id) DO UPDATE SET time = excluded.time, y = excluded.y"
        )
        rows = [(id, now, json.dumps(list(map(float, y)))) for id, y in outcomes.items()]

        def work(cursor: Any) -> int:
            known = self._select("SELECT id FROM costscape_outcomes", cursor, list(outcomes))
            cursor.executemany(statement, rows)
            return len(known)

        return self._transact(work, "write")

    def models_of(self, ids: Sequence[str]) -> dict[str, str]:
        """The model of each id that is logged."""
        question = "SELECT id, model FROM costscape_decisions"
        return dict(self._transact(lambda c: self._select(question, c, ids), "read"))

    def models(self) -> dict[str, int]:
        """How many records each model has."""

        def work(cursor: Any) -> dict[str, int]:
            cursor.execute(
                "SELECT model, COUNT(*) FROM costscape_decisions GROUP BY model ORDER BY model"
            )
            return {model: int(count) for model, count in cursor.fetchall()}

        return self._transact(work, "read")

    def read(self, model: str, most: int) -> list[Record]:
        """The latest records of a model with their outcomes, the oldest first.

        Args:
            model: its name.
            most: how many records at most.
        """
        columns = ", ".join(f"d.{name}" for name in COLUMNS.split(", "))
        statement = (
            f"SELECT {columns}, o.y FROM costscape_decisions d LEFT JOIN costscape_outcomes o "
            f"ON o.id = d.id WHERE d.model = {self.mark} ORDER BY d.seq DESC LIMIT {self.mark}"
        )

        def work(cursor: Any) -> list[Any]:
            cursor.execute(statement, (model, most))
            return list(cursor.fetchall())

        return [_from_row(row) for row in reversed(self._transact(work, "read"))]

    def _make_tables(self) -> None:
        """Make the tables where there are none; StoreError where they are of another format."""

        def work(cursor: Any) -> int:
            for statement in TABLES:
                cursor.execute(statement.format(serial=self.serial))
            cursor.execute("SELECT format FROM costscape_log")
            found = cursor.fetchall()
            if not found:
                cursor.execute(f"INSERT INTO costscape_log (format) VALUES ({FORMAT})")
            return int(found[0][0]) if found else FORMAT

        if (found := self._transact(work, "make")) != FORMAT:
            raise StoreError(
                f"The store {self} needs tables of format {FORMAT}, but has format {found}. Read "
                f"it with the version of costscape that wrote it, or log to another place."
            )

    def _select(self, statement: str, cursor: Any, ids: Sequence[str]) -> list[Any]:
        found: list[Any] = []
        for begin in range(0, len(ids), AT_ONCE):
            some = list(ids[begin : begin + AT_ONCE])
            marks = ", ".join([self.mark] * len(some))
            cursor.execute(f"{statement} WHERE id IN ({marks})", some)
            found += cursor.fetchall()
        return found


def _to_row(record: Record) -> tuple[Any, ...]:
    r = record
    question = None if r.question is None else _text(r.question)
    return (
        *(r.id, r.time, r.model, r.version, r.request_id, _text(r.x), _text(r.decision)),
        r.expected_cost,
        # most are empty, and encoding takes most of the time of a commit
        _text(r.flags) if r.flags else "[]",
        _text(r.keys) if r.keys else "{}",
        question,
        _text(r.quantiles) if r.quantiles else "{}",
    )


def _from_row(row: Sequence[Any]) -> Record:
    id, time, model, version, request, x, decision, cost, flags, keys, question, levels, y = row
    return Record(
        *(id, time, model, version, request, json.loads(x), json.loads(decision), cost),
        tuple(json.loads(flags)),
        json.loads(keys),
        None if question is None else json.loads(question),
        json.loads(levels),
        None if y is None else tuple(json.loads(y)),
    )
