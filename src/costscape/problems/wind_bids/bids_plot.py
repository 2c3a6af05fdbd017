"""A day's bids, the energy that may come, and the energy that came."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.problems.pictures import Array, labels, mark_time, one_panel, read, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


BANDS = ((0.05, 0.95, "#dddddd"), (0.25, 0.75, "#b0b0b0"))


def bids_plot(
    bids: Any,
    values: Any,
    weights: Any = None,
    outcome: Any = None,
    *,
    reserve: Any = None,
    hours: Iterable[Any] | None = None,
    unit: str = "MWh",
    title: str = "Bids",
    path: Path | str | None = None,
) -> "Figure":
    """Bids (h,) over the 5-95 % and 25-75 % bands of scenarios (S, h), with the ``outcome`` (h,).

    - ``weights`` (S,) are the scenarios' probabilities; None: all alike;
    - ``reserve``: a number or (h,); then bid less reserve is drawn too, the energy below which
      the reserve runs out;
    - ``hours``: a label for each bid; None: 1, 2, ...
    """
    a = read("bids_plot", "bids", bids, (None,), "one number an hour")
    h = len(a)
    y = read("bids_plot", "values", values, (None, h), "scenarios by hours")
    w = np.ones(len(y)) if weights is None else weights
    w = read("bids_plot", "weights", w, (len(y),), "one number a scenario")
    if (w < 0).any() or w.sum() <= 0:
        raise ValueError(
            f"bids_plot needs weights that are not negative and not all 0, but they go from "
            f"{w.min():g} to {w.max():g}. Give the probabilities of the scenarios."
        )
    at = np.arange(h)
    figure, axes = one_panel()
    for low, high, shade in BANDS:
        ends = quantiles(y, w, (low, high))
        name = f"{100 * low:.0f}-{100 * high:.0f} % of scenarios"
        axes.fill_between(at, *ends, color=shade, linewidth=0, label=name)
    axes.plot(at, quantiles(y, w, (0.5,))[0], color="#777777", linewidth=1, label="median")
    if outcome is not None:
        came = read("bids_plot", "outcome", outcome, (h,), "one number an hour")
        axes.plot(at, came, "k:", marker="x", label="energy made")
    if reserve is not None:
        reserved = np.broadcast_to(reserve, h) if np.ndim(reserve) == 0 else reserve
        reserved = read("bids_plot", "reserve", reserved, (h,), "a number, or one an hour")
        axes.plot(at, a - reserved, color="#c0392b", linestyle="--", label="bid less reserve")
    axes.plot(at, a, color="#c0392b", marker="o", label="bid")
    names = range(1, h + 1) if hours is None else hours
    mark_time(axes, at, labels("bids_plot", "hours", names, h))
    axes.set(xlabel="hour", ylabel=f"energy ({unit})", title=title)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return write(figure, path)


def quantiles(y: Array, w: Array, shares: Sequence[float]) -> Array:
    """Each hour's least outcome that, with all below it, has at least that share of the weight."""
    order = np.argsort(y, axis=0, kind="stable")
    total = np.cumsum(w[order], axis=0) / w.sum()
    places = [(total < share - 1e-9).sum(0).clip(max=len(y) - 1) for share in shares]
    return np.stack([np.take_along_axis(y, order, 0)[k, np.arange(y.shape[1])] for k in places])
