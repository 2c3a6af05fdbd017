"""Outcomes that came, from rows of a table to the logged decisions they belong to.

A row has the numbers of the outcome and either the id of the decision, or key columns: columns of
x, or keys that the client sent with the row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from costscape.monitor.record import Record
from costscape.monitor.store import DecisionStore

ID = "id"
SEARCHED = 100_000  # latest records of the model among which keys are looked up
NAMED = 8  # columns that a sentence names at most


@dataclass(frozen=True)
class Attached:
    """What became of the rows.

    Args:
        rows: int. Rows that came.
        decisions: int. Decisions that have an outcome by them.
        replaced: int. Those of them that had one before.
        unmatched: int. Rows whose keys no decision has.

    >>> print(Attached(3, 2, 0, 1))
    3 rows: 2 decisions have an outcome now, 0 of which had one before; 1 row matches none.
    """

    rows: int
    decisions: int
    replaced: int
    unmatched: int

    def __str__(self) -> str:
        match = "1 row matches" if self.unmatched == 1 else f"{self.unmatched} rows match"
        return (
            f"{self.rows} rows: {self.decisions} decisions have an outcome now, {self.replaced} "
            f"of which had one before; {match} none."
        )


def attach_outcomes(
    store: DecisionStore, model: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Attached:
    """Attach all outcomes, or none and ValueError.

    Args:
        store: has the decisions.
        model: the name of the model.
        names: what the model calls the numbers of an outcome.
        rows: by column name: ``names``, and ``id`` or key columns. Texts of numbers are numbers.
    """
    keys = _key_columns(names, rows)
    values = [_numbers(row, names, i) for i, row in enumerate(rows)]
    if keys == (ID,):
        ids = [str(row[ID]) for row in rows]
        _check_ids(store, model, ids)
        found = dict(zip(ids, values, strict=True))
        unmatched = 0
    else:
        known = _by_key(store.read(model, SEARCHED), keys, model)
        found, unmatched = {}, 0
        for row, y in zip(rows, values, strict=True):
            ids = known.get(_key(row, keys), [])
            unmatched += not ids
            found |= dict.fromkeys(ids, y)
        if not found:
            raise ValueError(
                f"Outcomes need keys of logged decisions, but no decision of {model} has the "
                f"{_listed(keys)} of any of the {len(rows)} rows. Compare how they are written."
            )
    return Attached(len(rows), len(found), store.attach(found), unmatched)


def _key_columns(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns besides the outcome, the same in all rows: the id, or keys."""
    if not rows:
        raise ValueError("Outcomes need at least one row, but there is none.")
    columns = list(rows[0])
    if missing := [name for name in names if name not in columns]:
        raise ValueError(
            f"Outcomes need the columns {_listed(names)}, but lack {_listed(missing)}. Add them."
        )
    for i, row in enumerate(rows):
        if set(row) != set(columns):
            raise ValueError(
                f"Row {i} of the outcomes needs the columns of row 0, but has others."
            )
    keys = tuple(name for name in columns if name not in names)
    if not keys:
        raise ValueError(
            f"Outcomes need the column {ID!r} of the answers, or key columns, but have only "
            f"{_listed(columns)}. Add one of them."
        )
    if ID in keys and len(keys) > 1:
        others = [name for name in keys if name != ID]
        raise ValueError(
            f"Outcomes with the column {ID!r} need no others, but have {_listed(others)}, too. "
            f"Remove them."
        )
    return keys


def _numbers(row: Mapping[str, Any], names: Sequence[str], i: int) -> list[float]:
    made = []
    for name in names:
        value = row[name]
        number = _number(value)
        if number is None or not isfinite(number):
            raise ValueError(
                f"Column {name!r} of row {i} of the outcomes needs a finite number, but is "
                f"missing, NaN, infinite or no number. Leave out rows without an outcome."
            )
        made.append(number)
    return made


def _check_ids(store: DecisionStore, model: str, ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        raise ValueError("Outcomes need one row for each id, but have an id twice.")
    models = store.models_of([id for id in ids if _is_storable(id)])
    unknown = [id for id in ids if id not in models]
    if unknown:
        raise ValueError(
            f"{len(unknown)} of {len(ids)} ids are of no logged decision, first {unknown[0]!r}. "
            f"Take the ids of the answers, and the store to which these were logged."
        )
    for id in ids:
        if models[id] != model:
            raise ValueError(
                f"The decision {id!r} is of the model {models[id]}, but the outcomes are for "
                f"{model}. Send them to that model."
            )


def _is_storable(id: str) -> bool:
    """Whether a database takes the text: no NUL, and no half of a pair of surrogates."""
    return "\0" not in id and id.isprintable()


def _by_key(
    records: Sequence[Record], keys: Sequence[str], model: str
) -> dict[tuple[Any, ...], list[str]]:
    """The ids of the decisions by key; a row that was decided twice has both."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for record in records:
        columns = record.x if isinstance(record.x, dict) else {}
        entry = {**columns, **record.keys}
        if all(name in entry for name in keys):
            found.setdefault(_key(entry, keys), []).append(record.id)
    if not found:
        raise ValueError(
            f"Key columns need to be columns of x or keys of the requests, but no decision of "
            f"{model} has {_listed(keys)}. Send the ids of the answers, or correct the columns."
        )
    return found


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    made: list[Any] = []
    for name in keys:
        number = _number(row[name])
        made.append(str(row[name]) if number is None else number)
    return tuple(made)


def _number(value: Any) -> float | None:
    """A number, or the text of one; None for others."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(repr, names[:NAMED])) + more
