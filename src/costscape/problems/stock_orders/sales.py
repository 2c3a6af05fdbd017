"""Daily sales of a store's items: the last 14 days tell about days 7 to 13 ahead.

    x = s[t-14:t],   y = s[t+7:t+14],   s = sales / mean sales of the training days.

The paper names neither the product nor the scale. Here: one item of one store, or all items of a
store pooled, each divided by its own mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from costscape.data.dataset import Dataset, Splits, split
from costscape.data.windows import windows
from costscape.problems.files.csv_columns import read_table
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
class PooledSales:
    """Pairs of many items; pieces of ``items[k]`` are ``scale[k]`` times the number."""

    splits: Splits
    source: str
    items: tuple[int | str, ...]
    scale: np.ndarray


def sales(item: int = 1, store: int = 1, path: Path | str | None = None) -> Sales:
    """One item of one store as pairs of stride one, cut 64 / 16 / 20 in order of time.

    The 27 windows before each cut are dropped, so that no day is in two parts. The scale is the
    mean of the training part's days alone. Without the public file, store 1 travels with us.
    """
    days, pieces, _, source = _read(store, [item], path)
    scale = _training_means(pieces, [item])
    pairs = _cut(torch.from_numpy((pieces[:, 0] / scale[0]).astype(np.float32)), days)
    parts = Splits(
        *(Dataset(p.x.unsqueeze(-1), p.y, p.dates) for p in (pairs.train, pairs.val, pairs.test))
    )
    return Sales(parts, f"sales of item {item}, store {store}, {source}", float(scale[0]))


def pooled_sales(
    store: int = 1,
    items: Sequence[int] | None = None,
    path: Path | str | None = None,
) -> PooledSales:
    """Items of a store (all unless named), each over its own training mean, rows in order of time.

    All K items of a date are neighbours, in the order of ``items``, and the parts are cut by date:
    no day of any item is in two parts.
    """
    days, pieces, names, source = _read(store, items, path)
    whole = f"sales of {len(names)} items, store {store}, pooled, {source}"
    return pool(days, pieces, names, whole)


def pool(
    days: np.ndarray, pieces: np.ndarray, names: Sequence[int | str], source: str
) -> PooledSales:
    """Pool the pieces (T, K) of K series, sold on ``days`` (T,), as ``pooled_sales`` does."""
    scale = _training_means(pieces, names)
    pairs = _cut(torch.from_numpy((pieces / scale).astype(np.float32)), days)
    parts = Splits(_rows(pairs.train), _rows(pairs.val), _rows(pairs.test))
    return PooledSales(parts, source, tuple(names), scale)


def daily_sales(items: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Days (T,) and pieces (T, K) of items of the store that comes with the package."""
    days, of_item = _embedded()
    return days, np.stack([of_item[i] for i in items], axis=1)


def _cut(series: Tensor, days: np.ndarray) -> Splits:
    return split(windows(series, HISTORY, GAP, HORIZON, days), train=0.64, val=0.16, reach=REACH)


def _training_means(pieces: np.ndarray, items: Sequence[int | str]) -> np.ndarray:
    # the last training window ends REACH days after the first day of its x
    seen = len(_cut(torch.from_numpy(pieces), np.arange(len(pieces))).train) + REACH
    means: np.ndarray = pieces[:seen].mean(axis=0)
    if (means == 0).any():
        raise ValueError(
            f"Sales are divided by their mean over the first {seen} days, but item "
            f"{items[int(np.argmin(means))]} sold nothing in them. Choose other items."
        )
    return means


def _rows(part: Dataset) -> Dataset:
    n, _, K = part.x.shape
    x = part.x.transpose(1, 2).reshape(n * K, HISTORY, 1)
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
        stamp = files[0].stat().st_mtime_ns if files[0].is_file() else 0
        days, of_item = _from_table(files[0], store, stamp)
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


@lru_cache(maxsize=2)
def _from_table(path: Path, store: int, stamp: int) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Days (T,) and the pieces (T,) of each item of one store, read once for each ``stamp``."""
    table = read_table(path, ["date", "store", "item", "sales"])
    stores, items = (table.numbers(name) for name in ("store", "item"))
    here = stores == store
    if not here.any():
        raise ValueError(
            f"{path} has the stores {np.unique(stores).astype(int).tolist()}, but not {store}. "
            f"Name one it has."
        )
    days: np.ndarray | None = None
    pieces = {}
    for item in np.unique(items[here]).astype(int).tolist():
        part = table.rows(np.flatnonzero(here & (items == item)))
        own = part.times("date", step=np.timedelta64(1, "D")).astype("datetime64[D]")
        days = own if days is None else days
        if not np.array_equal(own, days):
            raise ValueError(
                f"{path} needs the same days for every item of a store, but item {item} has "
                f"{own[0]} to {own[-1]} (lines {part.lines[0]} to {part.lines[-1]}) where another "
                f"has {days[0]} to {days[-1]}. Fill the gaps."
            )
        pieces[item] = part.numbers("sales")
        part.refuse(pieces[item] < 0, "needs sales >= 0", pieces[item])
    assert days is not None
    return days, pieces


def _embedded(path: Path = SID_STORE1) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    with path.open("rb") as opened, np.load(opened) as file:
        pieces, start = file["sales"].astype(np.float64), np.datetime64(str(file["start"]))
    return start + np.arange(pieces.shape[1]), {i + 1: row for i, row in enumerate(pieces)}
