"""The last outcomes of each series, decisions of past days if any, and the next decision."""

from typing import Any

import pandas as pd

PANELS = 6  # series drawn, at most
SHOWN = 56  # dates drawn, the last ones
OUTCOME, DECISION = "#555555", "#c0392b"


def draw_orders(Y: pd.DataFrame, ahead: pd.DataFrame, past: pd.DataFrame | None = None) -> Any:
    """A matplotlib figure with a panel for each group, or for each outcome where there is none.

    Args:
        Y: outcomes, labelled by date and group.
        ahead: the next decisions, labelled alike, with as many columns.
        past: decisions for some rows of Y, or None.
    """
    import matplotlib.dates
    from matplotlib.figure import Figure

    dates: Any = matplotlib.dates  # it has no types

    panels = _series(Y, ahead, past)[:PANELS]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.4 * columns, 2.6 * rows + 0.4), layout="constrained")
    for i, (title, outcomes, chosen, following) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.plot(outcomes.index, outcomes, color=OUTCOME, linewidth=1, label="outcome")
        if chosen is not None:
            axes.step(
                chosen.index, chosen, color=DECISION, alpha=0.5, where="mid", label="decision"
            )
        axes.plot(following.index, following, "o", color=DECISION, label="next decision")
        axes.set_title(title)
        axes.set_ylim(bottom=min(0.0, float(outcomes.min())))
        axes.spines[["top", "right"]].set_visible(False)
        locator = dates.AutoDateLocator(maxticks=5)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        if i == 0:
            axes.legend(frameon=False, fontsize="small")
    return figure


def _series(Y: pd.DataFrame, ahead: pd.DataFrame, past: pd.DataFrame | None) -> list[Any]:
    """Title, outcomes, past decisions or None, next decision: each a series by date."""
    columns = range(min(Y.shape[1], ahead.shape[1]))
    made = []
    for key in _groups(ahead):
        parts = [None if frame is None else _of(frame, key) for frame in (Y, past, ahead)]
        outcomes, chosen, following = parts
        assert outcomes is not None
        assert following is not None
        first = outcomes.index[-SHOWN:][0]
        for j in columns:
            words = [str(Y.columns[j])] * (key is None or len(columns) > 1)
            title = ", ".join([*words, *_names(ahead, key)])
            some = None if chosen is None else chosen.iloc[:, j].loc[first:]
            made.append((title, outcomes.iloc[:, j].loc[first:], some, following.iloc[:, j]))
    return made


def _groups(frame: pd.DataFrame) -> list[Any]:
    index: Any = frame.index
    return [None] if index.nlevels == 1 else list(index.droplevel(0).unique())


def _of(frame: pd.DataFrame, key: Any) -> pd.DataFrame:
    """The rows of a group, labelled by date only."""
    if key is None:
        return frame
    index: Any = frame.index
    some: pd.DataFrame = frame[index.droplevel(0) == key]
    return some.set_axis(some.index.get_level_values(0))


def _names(frame: pd.DataFrame, key: Any) -> list[str]:
    """The group in words, such as "item 1"."""
    if key is None:
        return []
    values = key if isinstance(key, tuple) else (key,)
    return [f"{name} {value}" for name, value in zip(frame.index.names[1:], values, strict=True)]
