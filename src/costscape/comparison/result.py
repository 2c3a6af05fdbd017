"""The result of a comparison: a row for each method, pairs of methods, and the advice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.block_bootstrap import Difference, difference
from costscape.comparison.advice import Standing, advise, recommend, simplicity
from costscape.comparison.present_rules import LAST, TODAY
from costscape.comparison.sentences import duration, higher, number, numbers, text_table
from costscape.methods import Method

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of ``compare``: methods on the same held-out rows.

    Attributes:
        standings: tuple of Standing, one for each method that decided, in order of cost. Each has
            ``name``, ``cost``, ``standard_error``, ``regret`` and times.
        refused: mapping from the name of each method that refused the task to its reason.
        failed: mapping from the name of each method that raised an error to its message.
        train_rows: int. Rows that methods learned from.
        val_rows: int. Rows that early stopping used to choose the epoch.
        test_rows: int. Rows that costs were computed on.
        block: int. Length in rows of the blocks that the intervals resample.
        left_out: mapping from the name of each method that did not fit into the budget to what
            happened; a method that has fewer seeds for that reason is named here, too.
        prefer: str. "simple", or None for the lowest mean cost.
        rows: numpy array (test_rows,). Labels of the test rows, such as dates: the index of the
            frame X, else that of Y, else numbers of rows.
        pairs: X and Y as they were passed, for ``model``.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=1))
    >>> x = torch.linspace(0, 1, 50)[:, None]
    >>> methods = {"constant": cs.Constant(task), "neighbours": cs.NearestNeighbours(task, k=3)}
    >>> result = cs.compare(task, x, x, methods=methods, progress=False)
    >>> [standing.name for standing in result.standings]
    ['neighbours', 'constant']
    >>> result.train_rows, result.val_rows, result.test_rows
    (32, 8, 10)
    >>> result.rows[0], result.costs["constant"].shape
    (np.int64(40), (10,))
    >>> result.model.decide(x[:2]).shape
    torch.Size([2, 1])
    """

    standings: tuple[Standing, ...]
    refused: Mapping[str, str]
    failed: Mapping[str, str]
    train_rows: int
    val_rows: int
    test_rows: int
    block: int
    left_out: Mapping[str, str]
    prefer: str | None
    rows: np.ndarray = field(repr=False)
    pairs: tuple[Any, Any] = field(repr=False)

    @property
    def best(self) -> str:
        """The method of least cost on the test rows, even if by chance."""
        return self.standings[0].name

    @property
    def recommended(self) -> str:
        """The method of least cost; where simple ones are preferred, the simplest that ties."""
        return recommend(self.standings, self.prefer).name

    @property
    def reference(self) -> str:
        """What savings are counted from: today's decisions, last values or the simplest method."""
        names = [standing.name for standing in self.standings]
        known = [name for name in (TODAY, LAST) if name in names]
        return known[0] if known else min(self.standings, key=simplicity).name

    @property
    def advice(self) -> str:
        """Which method to use, by how much, how sure that is, and what it saves."""
        words = advise(self.standings, self.prefer)
        saved = self.pair(self.reference, self.recommended)
        told = self.reference != TODAY and f"With {self.reference}," in words
        if saved.mean <= 0 or told:
            return words
        amount = higher(saved, self[self.reference].cost)
        return f"{words} Against {self.reference}, {self.recommended} saves {amount} a row."

    @property
    def costs(self) -> dict[str, np.ndarray]:
        """The cost of each test row by method, a mean over seeds; ``rows`` has the labels."""
        return {standing.name: standing.costs for standing in self.standings}

    @property
    def fitted(self) -> dict[str, Method]:
        """The first seed's fit of each method, which has not seen the test part.

        ``fitted[name].fit(X, Y)`` forgets that fit and learns from all rows.
        """
        return {s.name: s.model for s in self.standings if s.model is not None}

    @cached_property
    def model(self) -> Method:
        """The recommended method, fitted on all rows when it is first asked for."""
        method = self[self.recommended].model
        if method is None:
            raise ValueError(
                f"{self.recommended} cost least, and an array does not decide for new rows. Pass "
                f"today as a function of X, or take fitted[{self._second()!r}].fit(X, Y)."
            )
        return method.changed().fit(*self.pairs)

    def _second(self) -> str:
        return next((s.name for s in self.standings if s.model is not None), "")

    def __getitem__(self, name: str) -> Standing:
        for standing in self.standings:
            if standing.name == name:
                return standing
        why = self.refused.get(name) or self.failed.get(name)
        known = ", ".join(repr(standing.name) for standing in self.standings)
        raise KeyError(
            f"{name!r} did not decide: {why}" if why else f"{name!r} is none of {known}."
        )

    def pair(self, name: str, other: str) -> Difference:
        """The cost of ``name`` above that of ``other``, row by row."""
        return difference(self[name].costs - self[other].costs, self.block)

    def to_frame(self) -> "pd.DataFrame":
        """A row for each method, in order of cost, with numbers and not texts."""
        import pandas as pd

        columns = ("cost", "standard_error", "regret", "seeds", "sd")
        table = [
            {"method": s.name, **{name: getattr(s, name) for name in columns}}
            | {"above_best": s.above_best.mean, "low": s.above_best.low, "high": s.above_best.high}
            | {"fit_seconds": s.fit_seconds, "decide_seconds": s.decide_seconds}
            for s in self.standings
        ]
        return pd.DataFrame(table).set_index("method")

    def costs_frame(self) -> "pd.DataFrame":
        """The cost of each test row: a column for each method, ``rows`` as the index."""
        import pandas as pd

        return pd.DataFrame(self.costs, index=self.rows)

    def plot(self, path: str | Path) -> Path:
        """Draw costs summed up over the test rows, less those of ``reference``.

        Args:
            path: str or Path. The picture, such as "saving.png" or "saving.svg"; its folder is
                made.
        """
        from costscape.comparison.picture import draw

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(self).savefig(path, dpi=150)
        return path

    def report(self, path: str | Path) -> Path:
        """Write one HTML page with the advice, the picture and the table, which loads nothing.

        Args:
            path: str or Path. The page, such as "page.html"; its folder is made.
        """
        from costscape.comparison.page import render

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(self), encoding="utf-8")
        return path

    @property
    def about(self) -> str:
        """Rows of each part, and how intervals are made."""
        return (
            f"{self.train_rows:,} rows to learn from, {self.val_rows:,} to choose the epoch on, "
            f"the last {self.test_rows:,} to test on. Intervals of 95 % by blocks of {self.block}."
        )

    @property
    def absent(self) -> list[str]:
        """A line for each method that refused, failed or was left out."""
        return [
            *(f"{name} refused: {why}" for name, why in self.refused.items()),
            *(f"{name} failed: {why}" for name, why in self.failed.items()),
            *(f"{name} left out: {why}." for name, why in self.left_out.items()),
        ]

    def __str__(self) -> str:
        return "\n".join([self.about, "", text_table(self.cells()), *self.absent, "", self.advice])

    def cells(self) -> list[dict[str, str]]:
        """The table as texts, a mapping from column to text for each method."""
        return [self._cells(standing) for standing in self.standings]

    def _cells(self, s: Standing) -> dict[str, str]:
        cells = {"method": s.name, "cost": number(s.cost), "error": number(s.standard_error, 2)}
        if any(other.regret is not None for other in self.standings):
            cells["regret"] = number(s.regret)
        if any(other.sd is not None for other in self.standings):
            cells["sd of seeds"] = number(s.sd, 2)
        if len(s.by_origin) > 1:
            cells |= {f"origin {i + 1}": number(cost) for i, cost in enumerate(s.by_origin)}
        return cells | {
            "above the best": "" if s is self.standings[0] else numbers(s.above_best),
            "fit": "" if s.model is None else duration(s.fit_seconds),
            "decide": "" if s.model is None else duration(s.decide_seconds),
        }
