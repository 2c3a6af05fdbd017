"""The demo: order stock of one item a week ahead, on five years of real sales."""

from pathlib import Path

import numpy as np
import torch

from costscape.bench.report import CostCurve, cost_curve, text_table
from costscape.data import Dataset
from costscape.evaluation import evaluate
from costscape.methods import DF2, Constant, Method, NearestNeighbours
from costscape.problems import inventory, sales
from costscape.task import Task

DAY = 0  # of the seven days that are ordered for, the one drawn


def run(out: Path, seed: int = 0) -> str:
    """Fit DF2 and two simple rules on the past, order for the last year, print the costs.

    Writes ``cost_curve.png`` to ``out`` and returns the text to print. Takes less than a minute
    on two cores.
    """
    data, task = sales(), inventory()
    train, val, test = vars(data.splits).values()
    model = DF2.quick(task, seed=seed)
    methods: dict[str, Method] = {
        "best constant order": Constant(task),
        "nearest neighbours": NearestNeighbours(task),
        "DF2, one network": model,
    }
    rows = []
    for name, method in methods.items():
        method.fit(train.x, train.y, val=(val.x, val.y))
        rows.append(_row(name, method, test))
    picture = out / "cost_curve.png"
    _draw(picture, model, task, test)
    return "\n".join(
        [
            f"Orders of seven days, a week ahead. Data: {data.source}.",
            f"Learned from {len(train):,} windows up to {_day(train)}, epoch chosen on "
            f"{len(val):,} up to {_day(val)},",
            f"tested on {len(test):,} windows from {_day(test, first=True)} on. One unit is "
            f"{data.scale:.1f} pieces, the mean sales of a day.",
            "Each unit short costs 20, each unit spare 5, and each squared difference 1.",
            "",
            text_table(rows),
            "",
            f"The learned cost of one day's order, and all orders against the demand: {picture}",
        ]
    )


def _row(name: str, method: Method, test: Dataset) -> dict[str, str]:
    result = evaluate(method, test.x, test.y)
    return {
        "method": name,
        "cost above hindsight": f"{result.regret:.2f}",
        "fit": f"{result.fit_seconds:.1f} s",
        "decide": f"{1e3 * result.decide_seconds / result.rows:.2f} ms",
    }


def _draw(path: Path, model: DF2, task: Task, test: Dataset) -> None:
    """The curve of the row with the median order, and the orders of all test rows."""
    orders = model.decide(test.x)
    row = int(orders[:, DAY].argsort()[len(orders) // 2])
    lower, upper = (float(bound[DAY]) for bound in task.feasible.bounds)
    line = torch.linspace(lower, upper, 401)
    actions = orders[row].expand(1, len(line), -1).clone()
    actions[..., DAY] = line
    costs = model.surface(test.x[row : row + 1]).terms(actions)[0, :, DAY]
    assert test.dates is not None
    curve = CostCurve(
        actions=line.tolist(),
        costs=costs.tolist(),
        decision=float(orders[row, DAY]),
        outcome=float(test.y[row, DAY]),
        action_label="order (mean days' sales)",
        cost_label="cost of the day",
        title=f"Order for {np.datetime64(test.dates[row], 'D')}",
    )
    cost_curve(path, curve, orders[:, DAY].tolist(), test.y[:, DAY].tolist())


def _day(part: Dataset, first: bool = False) -> str:
    assert part.dates is not None
    return str(np.datetime64(part.dates[0 if first else -1], "D"))
