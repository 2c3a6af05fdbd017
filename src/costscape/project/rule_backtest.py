"""Methods and simple rules on the same later rows, and what the best method saves."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from costscape.block_bootstrap import Difference, difference
from costscape.comparison import Comparison, compare
from costscape.comparison.sentences import number, numbers, text_table
from costscape.methods import Method, OutOfRange
from costscape.project.simple_rules import TODAY, rule_costs
from costscape.table import Table
from costscape.task import Task

WEEK = 7  # dates that intervals resample together


@dataclass(frozen=True, eq=False)
class Backtest:
    """A comparison of methods, and the costs of simple rules on its test rows."""

    comparison: Comparison
    rules: Mapping[str, np.ndarray]

    @property
    def reference(self) -> str | None:
        """Today's rule, else the cheapest of the others; None where there is no rule."""
        if TODAY in self.rules:
            return TODAY
        return min(self.rules, key=lambda name: self.rules[name].mean(), default=None)

    def saving(self, rule: str) -> Difference:
        """The cost of a rule above that of the recommended method, row by row."""
        method = self.comparison[self.comparison.recommended]
        return difference(self.rules[rule] - method.costs, self.comparison.block)

    def rule_lines(self) -> str:
        """A table of the rules: cost, and what the recommended method saves."""
        saves = f"{self.comparison.recommended} saves"
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
    test: float = 0.2,
    origins: int = 1,
) -> Comparison:
    """``compare`` with a gap and blocks for rows that share dates.

    Args:
        task: computes all costs.
        table: has X and Y.
        methods: unfitted.
        seeds: fits of each network.
        test: the share of the last rows.
        origins: parts of the test rows.
    """
    tested = len(table.X) - round(len(table.X) * (1 - test))
    block = max(1, min(WEEK * table.block, tested // 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)  # a year has seasons that half of it lacks
        return compare(
            task, table.X, table.Y, methods=methods, seeds=seeds, test=test, origins=origins,
            gap=table.block, block=block,
        )  # fmt: skip


def with_rules(
    comparison: Comparison, task: Task, table: Table, actions: Mapping[str, np.ndarray]
) -> Backtest:
    """Add the costs of rules, whose actions are those of the test rows."""
    n = comparison.test_rows
    return Backtest(comparison, rule_costs(task, table.X.iloc[-n:], table.Y.iloc[-n:], actions))
