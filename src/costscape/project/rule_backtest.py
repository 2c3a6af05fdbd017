"""Methods and simple rules on the same later rows, and what the best method saves."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from costscape.block_bootstrap import Difference, difference
from costscape.comparison import Comparison, compare
from costscape.comparison.present_rules import TODAY
from costscape.comparison.sentences import number, numbers, text_table
from costscape.methods import Method, OutOfRange
from costscape.project.simple_rules import rule_costs
from costscape.table import Table
from costscape.task import Task

TESTED = 0.2  # the last share of the rows
WEEK = 7  # dates that intervals resample together


@dataclass(frozen=True, eq=False)
class Backtest:
    """A comparison of methods and today's decisions, and the costs of rules on its test rows."""

    comparison: Comparison
    rules: Mapping[str, np.ndarray]

    @property
    def method(self) -> str:
        """The recommended method; the cheapest one where today's decisions are recommended."""
        found = self.comparison
        if found.recommended in found.fitted:
            return found.recommended
        return next(iter(found.fitted), found.recommended)

    def costs(self, rule: str) -> np.ndarray:
        """The costs of a rule, or of today's decisions, one for each test row."""
        return self.rules[rule] if rule in self.rules else self.comparison[rule].costs

    @property
    def reference(self) -> str | None:
        """Today's decisions, else the cheapest rule; None where there is neither."""
        if TODAY in self.comparison.costs:
            return TODAY
        return min(self.rules, key=lambda name: self.rules[name].mean(), default=None)

    def saving(self, rule: str) -> Difference:
        """The cost of a rule above that of the method, row by row."""
        costs = self.comparison[self.method].costs
        return difference(self.costs(rule) - costs, self.comparison.block)

    def rule_lines(self) -> str:
        """A table of the rules: cost, and what the method saves."""
        saves = f"{self.method} saves"
        rows = []
        for name, costs in sorted(self.rules.items(), key=lambda rule: rule[1].mean()):
            mean, saved = float(costs.mean()), self.saving(name)
            part = numbers(saved, " %", 100 / mean) if mean > 0 else numbers(saved)
            rows.append({"rule": name, "cost": number(mean), saves: part})
        return text_table(rows)

    def __str__(self) -> str:
        if not self.rules:
            return str(self.comparison)
        about = f"Simple rules on the same {self.comparison.test_rows:,} rows:"
        return f"{self.comparison}\n\n{about}\n\n{self.rule_lines()}"


def backtest(
    task: Task,
    table: Table,
    methods: Mapping[str, Method],
    *,
    seeds: int = 1,
    test: float = TESTED,
    origins: int = 1,
    today: np.ndarray | None = None,
    **options: Any,
) -> Comparison:
    """``compare`` with a gap and blocks for rows that share dates.

    Args:
        task: computes all costs.
        table: has X and Y.
        methods: unfitted.
        seeds: fits of each network.
        test: the share of the last rows.
        origins: parts of the test rows.
        today: what was decided for each row of X; None where that is not known.
        **options: others of ``compare``, such as ``budget`` and ``prefer``.
    """
    block = max(1, min(WEEK * table.block, rows_to_test(table, test) // 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)  # a year has seasons that half of it lacks
        return compare(
            task, table.X, table.Y, methods=methods, seeds=seeds, test=test, origins=origins,
            gap=table.block, block=block, today=today, **options,
        )  # fmt: skip


def rows_to_test(table: Table, share: float = TESTED) -> int:
    """How many of the last rows ``compare`` tests on.

    Args:
        table: has X.
        share: of the rows.
    """
    return len(table.X) - round(len(table.X) * (1 - share))


def with_rules(
    comparison: Comparison, task: Task, table: Table, actions: Mapping[str, np.ndarray]
) -> Backtest:
    """Add the costs of rules, whose actions are those of the test rows."""
    n = comparison.test_rows
    return Backtest(comparison, rule_costs(task, table.X.iloc[-n:], table.Y.iloc[-n:], actions))
