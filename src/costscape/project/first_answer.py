"""A first answer for one file of past days: what a method saves, and tomorrow's orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from costscape.comparison.present_rules import TODAY
from costscape.comparison.sentences import number, numbers
from costscape.methods import DF2, Method, NearestNeighbours, ScenarioMethod
from costscape.project.atomic_file import check_free, write_whole
from costscape.project.decisions import as_csv, as_text, decision_table, decisions_only
from costscape.project.overview import table_words
from costscape.project.past_decisions import past_decisions
from costscape.project.rule_backtest import Backtest, backtest, rows_to_test, with_rules
from costscape.project.simple_rules import simple_rules
from costscape.project.task_choice import order_level
from costscape.table import Table
from costscape.task import Task
from costscape.tasks import newsvendor

LAGS = (1, 2, 7, 14)
ROOM = 1.5  # the largest order, as a multiple of the largest outcome, where no limit is given
ORDERS, PICTURE = "orders.csv", "orders.png"


@dataclass(frozen=True)
class Question:
    """One file and the prices of missing and spare pieces.

    Args:
        path: the file of past days.
        date: its column of dates.
        outcome: its columns of what was needed, such as sales.
        under: the cost of a missing piece, one number or one for each outcome.
        over: the cost of a spare piece, alike.
        group: columns that tell series apart.
        capacity: the most pieces of all outcomes together in a row; None for 1.5 times the
            largest outcome of each.
        pack: pieces in a pack, one number or one for each outcome; None for any amount.
        today: columns of what was ordered until now, one for each outcome.
        lags: outcomes so many periods before.
    """

    path: Path
    date: str
    outcome: tuple[str, ...]
    under: tuple[float, ...]
    over: tuple[float, ...]
    group: tuple[str, ...] = ()
    capacity: float | None = None
    pack: tuple[float, ...] | None = None
    today: tuple[str, ...] = ()
    lags: tuple[int, ...] = LAGS

    def arguments(self) -> dict[str, Any]:
        """Those of the table."""
        return {
            "date": self.date, "outcome": self.outcome, "group": self.group, "lags": self.lags,
        }  # fmt: skip

    def task(self, table: Table) -> Task:
        """The newsvendor of these prices."""
        upper = (ROOM * table.Y.max()).clip(lower=1.0).tolist()
        limit: dict[str, Any] = {"upper": upper}
        if self.capacity is not None:
            limit = {"capacity": self.capacity}
        return newsvendor(
            _numbers(self.under), _numbers(self.over), pack=self.pack and _numbers(self.pack),
            dim=len(self.outcome), **limit,
        )  # fmt: skip


def first_answer(
    question: Question, out: Path, *, methods: dict[str, Method] | None = None, force: bool = False
) -> str:
    """Compare methods with simple rules, write tomorrow's orders and a picture, report the saving.

    Args:
        question: the file and the prices.
        out: the folder of orders.csv and orders.png.
        methods: unfitted methods with scenarios; None for DF2.quick and nearest neighbours.
        force: write over files that exist.
    """
    for name in (ORDERS, PICTURE):
        check_free(out / name, force)
    _check(question)
    table = Table(question.path, **question.arguments())
    task = question.task(table)
    tried = methods or {"DF2.quick": DF2.quick(task), "NearestNeighbours": NearestNeighbours(task)}
    today = past_decisions(
        question.path, question.arguments(), table, task, question.today, rows_to_test(table)
    )
    found = backtest(task, table, tried, today=today)
    if not found.fitted:
        why = " ".join(f"{name}: {s}" for name, s in {**found.refused, **found.failed}.items())
        raise RuntimeError(f"try needs a method that decides, but none did. {why}")
    same = len(set(question.under)) == len(set(question.over)) == 1
    actions = simple_rules(
        question.path, question.arguments(), table, rows=found.test_rows,
        level=order_level(question.under[0], question.over[0]) if same else None,
    )  # fmt: skip
    result = with_rules(found, task, table, actions)
    model = found.fitted[result.method]
    assert isinstance(model, ScenarioMethod)
    past = decisions_only(model, table.X.iloc[-found.test_rows :])  # by the fit without them
    model = model.changed().fit(table.X, table.Y)
    orders = decision_table(model, table.next())
    write_whole(out / ORDERS, as_csv(orders), force)
    chosen = orders.filter(like="decision_")
    table.plot(chosen, out / PICTURE, past)
    return _words(question, table, result, orders, out)


def _words(
    question: Question, table: Table, result: Backtest, orders: pd.DataFrame, out: Path
) -> str:
    found = result.comparison
    limit = f"{ROOM:g} times the largest {'/'.join(question.outcome)}"
    if question.capacity is not None:
        limit = f"{question.capacity:g} pieces in all"
    lines = [
        table_words(question.path.name, table),
        f"A missing piece costs {_brief(question.under)}, a spare piece {_brief(question.over)}; "
        f"at most {limit}.",
        "",
        str(found),
        "",
    ]
    if result.rules:
        lines += [f"Simple rules on the same rows:\n\n{result.rule_lines()}", ""]
    if (rule := result.reference) is not None:
        lines += [_saving(result, rule), ""]
    return "\n".join(
        [
            *lines,
            f"Orders of {result.method}, fitted on all rows:",
            "",
            as_text(orders),
            "",
            f"Written: {out / ORDERS}, {out / PICTURE}. `costscape init` starts a project with "
            f"more settings, to decide every day.",
        ]
    )


def _saving(result: Backtest, rule: str) -> str:
    saved, mean = result.saving(rule), float(result.costs(rule).mean())
    name = TODAY if rule == TODAY else f'"{rule}", the best simple rule'
    if mean <= 0:
        return f"{result.method} saves {numbers(saved)} a row against {name}."
    sure = "" if saved.clear else " The interval includes 0: no difference is certain."
    return (
        f"{result.method} saves {numbers(saved, ' %', 100 / mean)} of "
        f"{number(mean)} a row against {name}.{sure}"
    )


def _check(question: Question) -> None:
    count = len(question.outcome)
    lists = {"under": question.under, "over": question.over, "pack": question.pack or (1.0,)}
    for name, values in lists.items():
        if len(values) not in (1, count):
            raise ValueError(
                f"--{name} needs one number, or {count}, one for each outcome, but got "
                f"{len(values)}."
            )
    if question.today and len(question.today) != count:
        raise ValueError(
            f"--today needs {count} columns, one for each outcome, but got {len(question.today)}."
        )


def _numbers(values: Sequence[float]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _brief(values: Sequence[float]) -> str:
    return ", ".join(f"{v:g}" for v in values)
