"""The demo: bid a wind farm's energy half a day ahead, on two years of real hours."""

from functools import partial
from pathlib import Path

import numpy as np
import torch

from costscape.bench.report import cost_curve, text_table
from costscape.data import Dataset
from costscape.evaluation import evaluate
from costscape.methods import DF2, Constant, Method, NearestNeighbours
from costscape.models import LSTM, Absolute
from costscape.problems import profit, wind_bidding, wind_farm
from costscape.task import SeparableTask
from costscape.training import Training

STRIDE = 3  # windows of stride one share 23 of their 24 hours: every third tells nearly as much
HOUR = 6  # of the day drawn


def run(out: Path, seed: int = 0) -> str:
    """Fit DF2 and two simple rules on the past, bid on the last months, tell who earned what.

    Writes ``cost_curve.png`` to ``out`` and returns the text to print. Takes about a minute on two
    cores.
    """
    data, task = wind_farm(), wind_bidding()
    train, val, test = (part[::STRIDE] for part in vars(data).values())
    model = DF2(
        task,
        encoder=partial(LSTM, hidden=64, dropout=0.3, noise=0.05),
        outcomes=Absolute(),
        folds=1,
        seed=seed,
        training=Training(),
    )
    methods: dict[str, Method] = {
        "best constant bid": Constant(task),
        "nearest neighbours": NearestNeighbours(task),
        "DF2": model,
    }
    rows = []
    for name, method in methods.items():
        method.fit(train.x, train.y, val=(val.x, val.y))
        rows.append(_row(name, method, task, test))
    best = profit(task, test.y, test.y.clamp(0, 4)).mean()
    rows.append({"method": "had the wind been known", "profit": f"{best:.1f}", "regret": "0.0",
                 "fit": "", "decide": ""})  # fmt: skip
    picture = out / "cost_curve.png"
    _draw(picture, model, test, _typical_day(test))
    return "\n".join(
        [
            "Wind bidding on embedded data: La Haute Borne (ENGIE, Etalab Open Licence 2.0).",
            f"Learned from {len(train):,} windows up to {_day(data.train)}, epoch chosen on "
            f"{len(val):,} up to {_day(data.val)},",
            f"tested on {len(test):,} windows from {_day(test, first=True)} on. "
            f"Money per 12 hours; one unit of energy is 2.05 MWh.",
            "",
            text_table(rows),
            "",
            f"The learned cost of one hour's bid, and the decision on it: {picture}",
        ]
    )


def _row(name: str, method: Method, task: SeparableTask, test: Dataset) -> dict[str, str]:
    result = evaluate(method, test.x, test.y)
    money = profit(task, test.y, torch.from_numpy(result.decisions)).mean()
    return {
        "method": name,
        "profit": f"{money:.1f}",
        "regret": f"{result.regret:.1f}",
        "fit": f"{result.fit_seconds:.1f} s",
        "decide": f"{1e3 * result.decide_seconds / result.rows:.2f} ms",
    }


def _typical_day(test: Dataset) -> int:
    """The window whose energy in the drawn hour is the median one of those that blow at all."""
    energy = test.y[:, HOUR]
    blows = (energy > 0.2).nonzero()[:, 0]
    return int(blows[energy[blows].argsort()[len(blows) // 2]])


def _draw(path: Path, model: DF2, test: Dataset, day: int) -> None:
    x, y = test.x[day : day + 1], test.y[day]
    decision = model.decide(x)[0]
    bids = torch.linspace(0, 4, 401)
    actions = decision.expand(1, len(bids), -1).clone()
    actions[..., HOUR] = bids
    costs = model.surface(x).terms(actions)[0, :, HOUR]
    scenarios = model.scenarios(x)
    assert test.dates is not None
    cost_curve(
        path,
        actions=bids.tolist(),
        costs=costs.tolist(),
        decision=float(decision[HOUR]),
        outcome=float(y[HOUR]),
        outcomes=scenarios.values[0, :, HOUR].tolist(),
        weights=scenarios.weights[0].tolist(),
        labels=("energy of the hour (units of 2.05 MWh)", "cost of the hour (money)"),
        title=f"Bid for {np.datetime64(test.dates[day], 'h') + HOUR}:00 UTC",
    )


def _day(part: Dataset, first: bool = False) -> str:
    assert part.dates is not None
    return str(np.datetime64(part.dates[0 if first else -1], "D"))
