"""The demo: order stock for a store on real sales, against what people do; then bid wind power."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from costscape.bench.demo_pictures import Curve, Product, orders_picture, wind_picture
from costscape.bench.demo_store import ITEMS, MISSING, StockByProduct, Store, store, store_orders
from costscape.comparison import Comparison, compare
from costscape.comparison.present_rules import TODAY
from costscape.comparison.sentences import number, numbers
from costscape.data import Splits
from costscape.evaluation import evaluate
from costscape.methods import DF2, Constant, Method, NearestNeighbours, SafetyStock, TwoStage
from costscape.models import Point
from costscape.problems import wind_bidding, wind_farm
from costscape.task import Task
from costscape.training import Training

BLOCK = 14  # days that are resampled together
SHOWN_DAYS = slice(150, 178)  # four weeks of the test days
SHOWN_ITEMS = (2, 3)  # the dearest and the cheapest product
DF2_NAME = "DF2 (one network)"
YEAR = 365
WINDOWS = 16  # every so many of the windows of wind are used, to keep the demo short


def run(
    out: Path,
    seed: int = 0,
    training: Training | None = None,
    every: int = 1,
    progress: bool = True,
) -> str:
    """Fit on the past, order and bid for the rest; returns the text to print.

    Args:
        out: folder of ``orders.png``, ``orders.html`` and ``wind.png``.
        seed: of the fits.
        training: of all networks; None for their defaults.
        every: takes every k-th day, and every (16 k)-th window of wind.
        progress: show a bar on stderr.
    """
    training = training or Training()
    data = store(every)
    settings: dict[str, Any] = {"training": training, "seed": seed}
    shared: dict[str, Any] = {"seeds": 1, "block": min(BLOCK, len(data.y) // 20)}
    task, free = store_orders(), store_orders(truck=None)
    methods: dict[str, Method] = {
        "constant": Constant(task),
        "nearest neighbours": NearestNeighbours(task),
        "point forecast": TwoStage(task, Point(), **settings),
        "safety stock": StockByProduct(task, **settings),
        DF2_NAME: DF2.quick(task, **settings),
    }
    found = compare(
        task, data.x, data.y, methods=methods, today=data.last_week, progress=progress, **shared
    )
    pair = {"safety stock": SafetyStock(free, **settings), DF2_NAME: DF2.quick(free, **settings)}
    unlimited = compare(free, data.x, data.y, methods=pair, progress=progress, **shared)
    _draw_orders(out / "orders.png", data, found)
    found.report(out / "orders.html")
    wind = _wind(out / "wind.png", settings, every)
    return "\n".join(
        [
            "STORE ORDERS: six products, one truck a day, five years of real sales (ddop2).",
            "A missing piece costs 1.5 to 6 euros, a spare piece 0.5 to 2; cost is euros a day.",
            f"{TODAY.capitalize()}: the sales of the same weekday a week ago, cut to the truck.",
            "Safety stock: a margin for each product by its prices, cut to the truck.",
            "",
            str(found),
            "",
            *_money(found),
            _without_truck(unlimited),
            "",
            *wind,
            "",
            f"Pictures: {out / 'orders.png'}, {out / 'wind.png'}. Page: {out / 'orders.html'}.",
        ]
    )


def _money(found: Comparison) -> list[str]:
    """What DF2 saves in a year against each other rule."""
    lines = []
    for name in (TODAY, "point forecast", "safety stock", "nearest neighbours"):
        d = found.pair(name, DF2_NAME)
        lines.append(f"  against {name:20}{numbers(d, '', YEAR):>26}")
    return [f"{DF2_NAME} saves, euros a year with 95 % interval:", *lines]


def _without_truck(found: Comparison) -> str:
    stock, df2 = found["safety stock"], found[DF2_NAME]
    d = found.pair("safety stock", DF2_NAME)
    verdict = "is no better than" if d.low <= 0 else "is also better than"
    return (
        f"Without a limit on the truck, {DF2_NAME} {verdict} a safety stock for each product: "
        f"{number(df2.cost)} against {number(stock.cost)} a day."
    )


def _draw_orders(path: Path, data: Store, found: Comparison) -> None:
    first = len(data.y) - found.test_rows
    at = SHOWN_DAYS if found.test_rows >= SHOWN_DAYS.stop else slice(0, 28)
    shown = {name: found.fitted[name] for name in (DF2_NAME, "safety stock")}
    orders = {name: m.decide(data.x[first:][at]) for name, m in shown.items()}
    products = [
        Product(
            f"product {ITEMS[i]}: {MISSING[i]:g} euros a missing piece",
            data.y[first:][at][:, i],
            {name: a[:, i] for name, a in orders.items()},
        )
        for i in SHOWN_ITEMS
    ]
    base = found.costs[TODAY]
    names = (DF2_NAME, "safety stock", "point forecast", "nearest neighbours")
    saved = {name: np.cumsum(base - found.costs[name]) / 1000 for name in names}
    dates = data.dates[first:]
    orders_picture(path, dates[at], products, dates, saved)


def _wind(path: Path, settings: dict[str, Any], every: int) -> list[str]:
    """Fit bids of a wind farm, draw the learned cost of three hours, return lines to print."""
    task, data = wind_bidding(), wind_farm()
    train, val, test = (
        (part[:: WINDOWS * every].x.flatten(1), part[:: WINDOWS * every].y)
        for part in _parts(data)
    )
    model = DF2.quick(task, **settings)
    rows = {
        "constant bid": Constant(task),
        "point forecast": TwoStage(task, Point(), **settings),
        "nearest neighbours": NearestNeighbours(task),
        DF2_NAME: model,
    }
    results = {name: evaluate(m.fit(*train, val=val), *test) for name, m in rows.items()}
    wind_picture(path, _curves(model, task, *test))
    lines = [f"  {name:20}{number(result.cost):>8}" for name, result in results.items()]
    return [
        f"WIND BIDS of 12 hours, a French wind farm (ENGIE); cost on {len(test[0]):,} windows.",
        *lines,
        "Twelve hours ahead, the past day tells little: all that weigh risk are close together.",
    ]


def _parts(data: Splits) -> tuple[Any, ...]:
    return data.train, data.val, data.test


def _curves(model: DF2, task: Task, x: torch.Tensor, y: torch.Tensor) -> list[Curve]:
    """The first hour of three test rows, from a low to a high bid."""
    bids = model.decide(x)
    order = bids[:, 0].argsort()
    line = torch.linspace(0.0, float(task.feasible.bounds[1][0]), 401)
    curves = []
    for share, title in ((0.1, "calm"), (0.8, "a breeze"), (0.97, "windy")):
        row = int(order[int(share * (len(order) - 1))])
        actions = bids[row].expand(1, len(line), -1).clone()
        actions[..., 0] = line
        costs = model.surface(x[row : row + 1]).terms(actions)[0, :, 0]
        curves.append(
            Curve(title, line.numpy(), costs.numpy(), float(bids[row, 0]), float(y[row, 0]))
        )
    return curves
