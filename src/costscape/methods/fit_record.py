"""What a fitted method and its file keep about the fit, besides the model."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FitRecord:
    """Where a model comes from, the range of its training rows, and a sample of its cost.

    Args:
        costscape: str. Version of costscape.
        torch: str. Version of torch.
        date: str. When the fit began, in UTC, such as "2026-01-31T12:00:00+00:00".
        rows: int. Training rows, those that choose the epoch included.
        x_low: list of float. The least value of each column of X, or of each place in a window.
        x_high: list of float. The largest values.
        cost: dict. Costs at some outcomes and actions, by which ``load`` knows the task again.
    """

    costscape: str
    torch: str
    date: str
    rows: int
    x_low: list[float]
    x_high: list[float]
    cost: dict[str, Any]
