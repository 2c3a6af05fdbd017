"""How often is the cost below its stated quantile, before and after ``calibrate``?

Each model is fitted on the training rows, early-stopped on the first half of the validation rows
and calibrated on the second half. Its decisions are evaluated on the test rows: the share of rows
whose cost is at most the stated quantile of the cost, and the share of hours or days within a
service level of 90 % (energy of at least the bid, or an order of at least the demand; for each
hour or day by itself). "rolling" calibrates again for each tenth of the test rows, on as many rows
before it. ``wind`` needs the file of TenneT (COSTSCAPE_DATA), the others come with the package.

python benchmarks/calibration.py [--problems wind wind-farm inventory] [--every 6] [--epochs 20]
"""

import argparse
import time

import numpy as np
import torch

import costscape as cs
from costscape.bench.report import text_table
from costscape.data import Dataset

LEVELS = (0.1, 0.5, 0.9, 0.95)
SERVICE = 0.9
PARTS = 10


def energy_made(y, a):
    return a - y


def demand_met(y, a):
    return y - a


def problem(name, every):
    """The task, the service and the parts of the rows."""
    if name == "inventory":
        found = cs.problems.sales(item=1).splits
        parts = [Dataset(p.x.flatten(1), p.y) for p in (found.train, found.val, found.test)]
        return cs.problems.inventory(), demand_met, parts
    found = cs.problems.wind().splits if name == "wind" else cs.problems.wind_farm()
    parts = [Dataset(p.x.flatten(1), p.y)[::every] for p in (found.train, found.val, found.test)]
    return cs.problems.wind_bidding(), energy_made, parts


def methods(task, seed, epochs):
    training = cs.Training(epochs=epochs, progress=False)
    return {
        "DF2.quick": cs.DF2.quick(task, seed=seed, training=training),
        "TwoStage, mixture": cs.TwoStage(
            task, cs.Mixture(3), draws=400, seed=seed, training=training
        ),
        "nearest neighbours": cs.NearestNeighbours(task),
    }


def covered(model, task, x, y):
    """Whether each cost is below each stated quantile."""
    a = model.decide(x)
    return task.cost(y, a)[:, None] <= model.cost_quantiles(x, a, LEVELS)


def shares(model, task, chance, x, y, first, way):
    """Shares in percent of the rows from ``first`` on; the rows before them calibrate."""
    costs, served = [], []
    model.calibration_ = None
    for i, part in enumerate(np.array_split(np.arange(first, len(x)), PARTS)):
        past, now = slice(part[0] - first, part[0]), slice(part[0], part[-1] + 1)
        calibrates = way == "rolling" or (way == "calibrated" and i == 0)
        if calibrates:
            model.calibrate(x[past], y[past], chance=chance)
            level = model.calibration_
        kept = chance.h(y[now], model.decide(x[now], chance=chance)) <= 0
        served.append(kept.double().mean(1))
        if calibrates:  # the levels of the cost belong to decisions without the service
            plain = model.calibrate(x[past], y[past]).calibration_
        model.calibration_ = None if way == "as learned" else plain
        costs.append(covered(model, task, x[now], y[now]).double())
        model.calibration_ = None if way == "as learned" else level
    found = [*torch.cat(costs).mean(0), torch.cat(served).mean()]
    names = [*(f"{100 * v:g} %" for v in LEVELS), f"service {100 * SERVICE:g} %"]
    return {name: f"{100 * v:.1f}" for name, v in zip(names, found, strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--problems", nargs="+", default=["wind", "wind-farm", "inventory"])
    parser.add_argument("--every", type=int, default=6, help="which windows of wind are used")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = []
    for name in given.problems:
        task, h, (train, val, test) = problem(name, given.every)
        chance, half = cs.Chance(h, SERVICE), len(val) // 2
        first, second = val[:half], val[half:]
        x, y = torch.cat([second.x, test.x]), torch.cat([second.y, test.y])
        for label, model in methods(task, given.seed, given.epochs).items():
            begin = time.perf_counter()
            model.fit(train.x, train.y, val=(first.x, first.y))
            for way in ("as learned", "calibrated", "rolling"):
                found = shares(model, task, chance, x, y, len(second), way)
                rows.append({"problem": name, "model": label, "levels": way, **found})
            print(f"{name}, {label}: {time.perf_counter() - begin:.0f} s", flush=True)
        print(
            f"{name}: {len(train)} rows fit, {len(second)} calibrate, {len(test)} test", flush=True
        )
    print(text_table(rows))


if __name__ == "__main__":
    main()
