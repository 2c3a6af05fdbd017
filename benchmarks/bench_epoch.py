"""How long does an epoch of each method take beside one of DF2?

The convex synthetic problem, 3,500 training pairs, batches of 64, one thread, M = 100 draws. Each
method is fitted for 2 and for 4 epochs (or rounds); the difference is the time of an epoch with
its validation, the remainder what comes before the first. A method that starts from a two-stage
fit pays for both stages, and df2 fits four networks: anchored and absolute, then two more of the
better. Methods without epochs show their whole fit.

python benchmarks/bench_epoch.py [--method df2 dfl-gmm1 ...]
"""

import argparse
import time
from dataclasses import fields, replace

import torch

from costscape.experiments import PROBLEMS, method_of
from costscape.report import text_table

NAMES = (
    *("df2-paper", "df2", "policy-net", "two-stage-pe", "two-stage-gmm1", "two-stage-gmm1000"),
    *("dfl-pe", "dfl-gmm1", "dfl-gmm1000", "so-ebm-gmm1", "lodl-pe", "lodl-gmm1", "egl"),
    *("lancer", "taskmet", "no-attention", "wsaa-knn", "wsaa-forest", "wsaa-kernel", "cme"),
)


def shortened(method, n):
    """The method with n epochs, or n rounds, or None if it has neither."""
    known = {f.name for f in fields(method)}
    if "training" not in known:
        return None
    training = replace(method.training, epochs=n, patience=n, progress=False, device="cpu")
    rounds = {"rounds": n} if "rounds" in known else {}
    return replace(method, training=training, **rounds)


def seconds(method, data):
    start = time.perf_counter()
    method.fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))
    return time.perf_counter() - start


def measure(name, problem):
    made = method_of(name)(problem, 0)
    if shortened(made, 2) is None:
        return None, seconds(made, problem.data)
    short, long = (seconds(shortened(made, n), problem.data) for n in (2, 4))
    epoch = (long - short) / 2
    return epoch, max(0.0, short - 2 * epoch)


def main(names):
    torch.set_num_threads(1)
    problem = PROBLEMS["synthetic-convex"](0)
    unit, _ = measure("df2-paper", problem)
    rows = []
    for name in names:
        epoch, before = measure(name, problem)
        rows.append(
            {
                "method": name,
                "s an epoch": "" if epoch is None else f"{epoch:.2f}",
                "over df2-paper": "" if epoch is None else f"{epoch / unit:.1f}",
                "s besides": f"{before:.1f}",
            }
        )
    print(text_table(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", nargs="+", default=NAMES)
    main(parser.parse_args().method)
