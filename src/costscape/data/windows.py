"""Sliding windows: what was seen, a gap, what then happened."""

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from costscape.data.dataset import Dataset, check_count


def windows(
    series: Shaped[Tensor, "T *shape"],
    history: int,
    gap: int,
    horizon: int,
    dates: np.ndarray | None = None,
) -> Dataset:
    """x = s[t - history : t] and y = s[t + gap : t + gap + horizon], for every t that fits.

    T moments give T - (history + gap + horizon) + 1 pairs, x (n, history, *shape) and
    y (n, horizon, *shape), both views of the series. ``dates`` (T,) are the moments of the
    series; the pair keeps that of its first y.

    >>> import torch
    >>> pairs = windows(torch.arange(6), history=2, gap=1, horizon=2)
    >>> pairs.x.tolist(), pairs.y.tolist()
    ([[0, 1], [1, 2]], [[3, 4], [4, 5]])
    """
    for name, count, least in (("history", history, 1), ("gap", gap, 0), ("horizon", horizon, 1)):
        check_count("windows", name, count, least)
    length = history + gap + horizon
    if len(series) < length:
        raise ValueError(
            f"windows of history {history} + gap {gap} + horizon {horizon} need a series of at "
            f"least {length} moments, but got {len(series)}. Bring more data or shorter windows."
        )
    if dates is not None and len(dates) != len(series):
        raise ValueError(
            f"windows needs one date for each moment, but got {len(dates)} dates for "
            f"{len(series)} moments. Pass the dates of the whole series."
        )
    every = series.unfold(0, length, 1).movedim(-1, 1)
    first = None if dates is None else dates[history + gap : len(dates) - horizon + 1]
    return Dataset(every[:, :history], every[:, history + gap :], first)
