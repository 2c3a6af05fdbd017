"""The result of a comparison: a row for each method, pairs of methods, and the advice."""

from collections.abc import Mapping
from dataclasses import dataclass

from costscape.block_bootstrap import Difference, difference
from costscape.comparison.advice import Standing, advise, recommend
from costscape.comparison.sentences import number, numbers, text_table
from costscape.methods import Method


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
    """

    standings: tuple[Standing, ...]
    refused: Mapping[str, str]
    failed: Mapping[str, str]
    train_rows: int
    val_rows: int
    test_rows: int
    block: int

    @property
    def best(self) -> str:
        """The method of least cost on the test rows, even if by chance."""
        return self.standings[0].name

    @property
    def recommended(self) -> str:
        """The simplest of the methods that the best is not clearly cheaper than."""
        return recommend(self.standings).name

    @property
    def advice(self) -> str:
        """Which method to use, by how much, and how sure that is."""
        return advise(self.standings)

    @property
    def fitted(self) -> dict[str, Method]:
        """The first seed's fit of each method, which has not seen the test part.

        ``fitted[name].fit(X, Y)`` forgets that fit and learns from all rows.
        """
        return {standing.name: standing.model for standing in self.standings}

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

    def __str__(self) -> str:
        about = (
            f"{self.train_rows:,} rows to learn from, {self.val_rows:,} to choose the epoch on, "
            f"the last {self.test_rows:,} to test on. Intervals of 95 % by blocks of {self.block}."
        )
        lines = [
            *(f"{name} refused: {why}" for name, why in self.refused.items()),
            *(f"{name} failed: {why}" for name, why in self.failed.items()),
        ]
        table = text_table([self._cells(standing) for standing in self.standings])
        return "\n".join([about, "", table, *lines, "", self.advice])

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
            "fit": f"{number(s.fit_seconds, 2)} s",
            "decide": f"{number(s.decide_seconds, 2)} s",
        }
