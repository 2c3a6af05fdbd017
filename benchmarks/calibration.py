"""How often is the cost below its stated quantile, before and after ``calibrate``?

Each model is fitted on the training rows, the last fifth of which choose the epoch, and calibrated
on the validation rows. Its decisions are evaluated on the test rows: the share of rows whose cost
is at most the stated quantile of the cost, and for orders the share of days within a service level
of 90 % (the order covers the demand, for each day by itself). "calibrated again" does so for each
tenth of the test rows, on all rows before it from which the model has not learned. ``wind`` needs
the file of TenneT (COSTSCAPE_DATA), the others come with the package.

python benchmarks/calibration.py [--problems wind wind-farm inventory] [--every 12] [--epochs 20]
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
    return cs.problems.wind_bidding(), None, parts


def methods(task, seed, epochs):
    training = cs.Training(epochs=epochs, progress=False)
    return {
        "DF2.quick": cs.DF2.quick(task, seed=seed, training=training),
        "nearest neighbours": cs.NearestNeighbours(task),
    }


def covered(model, task, x, y):
    """Whether each cost is below each stated quantile."""
    a = model.decide(x)
    return task.cost(y, a)[:, None] <= model.cost_quantiles(x, a, LEVELS)


def shares(model, task, chance, x, y, first, way):
    """Shares in percent of the rows from ``first`` on; the rows before them calibrate."""
    costs, served, plain, level = [], [], None, None
    for i, part in enumerate(np.array_split(np.arange(first, len(x)), PARTS)):
        past, now = slice(0, part[0]), slice(part[0], part[-1] + 1)
        calibrates = way == "calibrated again" or (way == "calibrated" and i == 0)
        if calibrates:
            plain = model.calibrate(x[past], y[past]).calibration_
        model.calibration_ = plain
        costs.append(covered(model, task, x[now], y[now]).double())
        if chance is None:
            continue
        if calibrates:
            level = model.calibrate(x[past], y[past], chance=chance).calibration_
        model.calibration_ = level
        kept = chance.h(y[now], model.decide(x[now], chance=chance)) <= 0
        served.append(kept.double().mean(1))
    names = [f"{100 * v:g} %" for v in LEVELS]
    found = dict(zip(names, torch.cat(costs).mean(0).tolist(), strict=True))
    found[f"service {100 * SERVICE:g} %"] = float(torch.cat(served).mean()) if served else None
    return {name: "-" if v is None else f"{100 * v:.1f}" for name, v in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--problems", nargs="+", default=["wind", "wind-farm", "inventory"])
    parser.add_argument("--every", type=int, default=12, help="which windows of wind are used")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = []
    for name in given.problems:
        task, h, (train, val, test) = problem(name, given.every)
        chance = None if h is None else cs.Chance(h, SERVICE)
        x, y = torch.cat([val.x, test.x]), torch.cat([val.y, test.y])
        for label, model in methods(task, given.seed, given.epochs).items():
            begin = time.perf_counter()
            model.fit(train.x, train.y)
            for way in ("as learned", "calibrated", "calibrated again"):
                found = shares(model, task, chance, x, y, len(val), way)
                rows.append({"problem": name, "model": label, "levels": way, **found})
            print(f"{name}, {label}: {time.perf_counter() - begin:.0f} s", flush=True)
        print(f"{name}: {len(train)} rows fit, {len(val)} calibrate, {len(test)} test", flush=True)
    print(text_table(rows))


if __name__ == "__main__":
    main()
