"""Daily sales of a store's items: the last 14 days tell about days 7 to 13 ahead.

    x = s[t-14:t],   y = s[t+7:t+14],   s = sales / mean sales of the training days.

The paper names neither the product nor the scale. Here: one item of one store, or all items of a
store pooled, each divided by its own mean.
"""

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from costscape.data.dataset import Dataset, Splits, split
from costscape.data.windows import windows
from costscape.problems.files.csv_columns import Table, read_table
from costscape.problems.files.sources import find, standing

HISTORY, GAP, HORIZON = 14, 7, 7
REACH = HISTORY + GAP + HORIZON - 1
SID_STORE1 = Path(__file__).parents[1] / "embedded" / "sid_store1.npz"


@dataclass(frozen=True, eq=False)
class Sales:
    """Pairs x (n, 14, 1), y (n, 7) in float32; sold pieces are ``scale`` times the number."""

    splits: Splits
    source: str
    scale: float


@dataclass(frozen=True, eq=False)
class RowItems:
    """The item of each row of each part."""

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


@dataclass(frozen=True, eq=False)
class PooledSales:
    """Pairs of many items; pieces of ``items[k]`` are ``scale[k]`` times the number."""

    splits: Splits
    source: str
    items: tuple[int, ...]
    scale: np.ndarray
    row_items: RowItems


def sales(item: int = 1, store: int = 1, path: Path | str | None = None) -> Sales:
    """One item of one store as pairs of stride one, cut 64 / 16 / 20 in order of time.

    The 27 windows before each cut are dropped, so that no day is in two parts. The scale is the
    mean of the training part's days alone. Without the public file, store 1 travels with us.
    """
    days, pieces, _, source = _read(store, [item], path)
    scale = _training_means(pieces, [item])
    pairs = _cut(torch.from_numpy((pieces[:, 0] / scale[0]).astype(np.float32)), days)
    parts = Splits(*(_sequence(p) for p in (pairs.train, pairs.val, pairs.test)))
    return Sales(parts, f"sales of item {item}, store {store}, {source}", float(scale[0]))


def pooled_sales(
    store: int = 1,
    items: Sequence[int] | None = None,
    path: Path | str | None = None,
    item_feature: bool = False,
) -> PooledSales:
    """Items of a store (all unless named), each over its own training mean, rows in order of time.

    All K items of a date stand together, in the order of ``items``, and the parts are cut by date:
    no day of any item is in two parts. x is (n, 14, 1), or with ``item_feature`` (n, 14, 1 + K),
    one for the row's item and zero for the others on each day.
    """
    days, pieces, names, source = _read(store, items, path)
    scale = _training_means(pieces, names)
    pairs = _cut(torch.from_numpy((pieces / scale).astype(np.float32)), days)
    parts = [_rows(p, item_feature) for p in (pairs.train, pairs.val, pairs.test)]
    return PooledSales(
        Splits(*parts),
        f"sales of {len(names)} items, store {store}, pooled, {source}",
        tuple(names),
        scale,
        RowItems(*(np.tile(np.array(names), len(p) // len(names)) for p in parts)),
    )


def _cut(series: Tensor, days: np.ndarray) -> Splits:
    return split(windows(series, HISTORY, GAP, HORIZON, days), train=0.64, val=0.16, reach=REACH)


def _training_means(pieces: np.ndarray, items: Sequence[int]) -> np.ndarray:
    # the last training window ends REACH days after the first day of its x
    seen = len(_cut(torch.from_numpy(pieces), np.arange(len(pieces))).train) + REACH
    means: np.ndarray = pieces[:seen].mean(axis=0)
    if (means == 0).any():
        raise ValueError(
            f"Sales are divided by their mean over the first {seen} days, but item "
            f"{items[int(np.argmin(means))]} sold nothing in them. Choose other items."
        )
    return means


def _sequence(part: Dataset) -> Dataset:
    return Dataset(part.x.unsqueeze(-1), part.y, part.dates)


def _rows(part: Dataset, item_feature: bool) -> Dataset:
    n, _, K = part.x.shape
    x = part.x.transpose(1, 2).reshape(n * K, HISTORY, 1)
    if item_feature:
        which = torch.eye(K, dtype=x.dtype).repeat(n, 1).unsqueeze(1).expand(-1, HISTORY, -1)
        x = torch.cat([x, which], dim=-1)
    y = part.y.transpose(1, 2).reshape(n * K, HORIZON)
    return Dataset(x, y, None if part.dates is None else part.dates.repeat(K))


def _read(
    store: int, items: Sequence[int] | None, path: Path | str | None
) -> tuple[np.ndarray, np.ndarray, list[int], str]:
    """Days (T,), pieces (T, K), the K items and the source."""
    if items is not None and (len(items) == 0 or len(set(items)) < len(items)):
        raise ValueError(f"Sales need items, each once, but got {list(items)}. Name others.")
    files = (Path(path),) if path is not None else find("sales")
    if files is not None:
        days, of_item = _from_table(files[0], store)
        source = f"{days[0]} to {days[-1]}, {standing('sales', files)}"
    elif store == 1:
        days, of_item = _embedded()
        source = f"{days[0]} to {days[-1]}, store item demand set (ddop2, Apache-2.0), embedded"
    else:
        raise FileNotFoundError(
            f"Store {store} needs the public sales file, but only store 1 travels with the "
            f"package. costscape.problems.files.fetch('sales') says how to get it."
        )
    names = sorted(of_item) if items is None else list(items)
    if missing := [i for i in names if i not in of_item]:
        raise ValueError(
            f"Store {store} has the items {min(of_item)} to {max(of_item)}, but not {missing}. "
            f"Name one it has."
        )
    return days, np.stack([of_item[i] for i in names], axis=1), names, source


def _from_table(path: Path, store: int) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    table = read_table(path, ["date", "store", "item", "sales"])
    stores, items = _whole(table, "store"), _whole(table, "item")
    here = np.flatnonzero(stores == store)
    if len(here) == 0:
        raise ValueError(
            f"{path} has the stores {np.unique(stores).tolist()}, but not {store}. "
            f"Name one it has."
        )
    days: np.ndarray | None = None
    pieces = {}
    for item in np.unique(items[here]).tolist():
        part = _only(table, here[items[here] == item])
        own = part.times("date", step=np.timedelta64(1, "D")).astype("datetime64[D]")
        days = own if days is None else days
        if not np.array_equal(own, days):
            raise ValueError(
                f"{path} needs the same days for every item of a store, but item {item} has "
                f"{own[0]} to {own[-1]} (lines {part.lines[0]} to {part.lines[-1]}) where another "
                f"has {days[0]} to {days[-1]}. Fill the gaps."
            )
        pieces[item] = part.numbers("sales")
        if (pieces[item] < 0).any():
            bad = int(np.argmax(pieces[item] < 0))
            raise ValueError(
                f"{path} needs sales >= 0, but line {part.lines[bad]} has "
                f"{pieces[item][bad]:g}. Correct it."
            )
    assert days is not None
    return days, pieces


def _whole(table: Table, column: str) -> np.ndarray:
    text = table.columns[column]
    first: dict[str, int] = {}
    for i, t in enumerate(text):
        first.setdefault(t, i)
    # a million rows hold few distinct numbers: each is read once, where it first stands
    distinct = _only(table, np.array(list(first.values())))
    values = distinct.numbers(column)
    if len(bad := np.flatnonzero(values % 1)):
        raise ValueError(
            f"{table.path} needs a whole number in column '{column}' of every row, but line "
            f"{distinct.lines[bad[0]]} has {values[bad[0]]:g}. Correct it."
        )
    number = dict(zip(first, values.astype(np.int64).tolist(), strict=True))
    return np.array([number[t] for t in text])


def _only(table: Table, rows: np.ndarray) -> Table:
    where = rows.tolist()
    return Table(
        table.path,
        {name: [text[i] for i in where] for name, text in table.columns.items()},
        [table.lines[i] for i in where],
    )


def _embedded(path: Path = SID_STORE1) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    try:
        # numpy leaves a broken file open when it opens it itself
        with path.open("rb") as opened, np.load(opened) as file:
            pieces, start = file["sales"].astype(np.float64), np.datetime64(str(file["start"]))
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is not the sales file that travels with the package ({error}). Install the "
            f"package again."
        ) from error
    return start + np.arange(pieces.shape[1]), {i + 1: row for i, row in enumerate(pieces)}
