"""The result of a comparison: a row for each method, pairs of methods, and the advice."""

from collections.abc import Mapping
from dataclasses import dataclass

from costscape.block_bootstrap import Difference, difference
from costscape.comparison.advice import Standing, advise, recommend
from costscape.comparison.sentences import number, numbers, text_table
from costscape.methods import Method


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods on the same held-out rows; ``standings`` are in order of cost.

    ``refused`` and ``failed`` have a sentence for each method that did not decide. ``block`` is
    the length in rows of the blocks that the intervals resample.
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
