"""How do bias and variance of g depend on the number of rows n? Proposition 1 of the paper.

    E (g(x, a) - E[f(y, a) | x])^2  =  bias^2 + variance  over data sets of n rows

On synthetic-convex, where E[f | x] is known. One network with absolute outcomes is fitted to costs
by plain squares, the paper's loss, with the library's schedule. For each n there are K disjoint
data sets of one law; a fifth of each chooses the epoch. With the mean m and the variance s^2 of K
networks, the estimates s^2 and (m - E[f | x])^2 - s^2 / K have no bias of their own, and add up to
the mean squared error. Both are means over test x and actions, uniform on C; the interval of the
mean squared error is over networks. Rows are kept in benchmarks/results/bias_variance.jsonl.

python benchmarks/bias_variance.py [--table]
"""

import argparse
import json
import time
from pathlib import Path

import torch

from costscape import DF2, Absolute, Costs, Training
from costscape.bench.report import text_table
from costscape.problems import MixtureTruth, synthetic_convex, three_gaussians

KEPT = Path(__file__).parent / "results" / "bias_variance.jsonl"
ROWS = (100, 300, 1000, 3000)
NETWORKS = 8  # data sets of each size
TEST, ACTIONS = 300, 100


def network(task, seed, epochs=None):
    """DF2 with the paper's loss and form, small."""
    return DF2(
        task,
        points=200,
        actions=50,
        outcomes=Absolute(),
        target=Costs(weighting=False, by_coordinate=False),
        outcome_share=0.0,
        folds=1,
        seed=seed,
        training=Training(epochs=epochs, device="cpu", progress=False),
    )


def execute(n, networks=NETWORKS, epochs=None):
    """The row of one n."""
    begin = time.perf_counter()
    task = synthetic_convex()
    made = three_gaussians(
        n=10 * (n * networks + TEST), seed=0
    )  # 70 % to train on, 15 % to test on
    truth, train = MixtureTruth(task, made.maps), made.splits.train
    x = made.splits.test.x[:TEST]
    a = task.feasible.sample(TEST * ACTIONS, torch.Generator().manual_seed(0))
    a = a.view(TEST, ACTIONS, -1)
    costs, gaps = [], []
    for k in range(networks):
        part = train[k * n : (k + 1) * n]
        cut = n - n // 5
        model = network(task, k, epochs)
        model.fit(part.x[:cut], part.y[:cut], val=(part.x[cut:], part.y[cut:]))
        costs.append(model.expected_cost(x, a).double())
        gaps.append(float(truth.gap(x, model.decide(x)).mean()))
    parts = split(torch.stack(costs), truth.expected_cost(x[:, None], a))
    return {
        "n": n,
        "networks": networks,
        **parts,
        "gap": sum(gaps) / networks,
        "seconds": time.perf_counter() - begin,
    }


def split(g, true):
    """Squared bias, variance and error of K estimates g (K, ...) of ``true`` (...)."""
    variance = g.var(0)
    bias = (g.mean(0) - true) ** 2 - variance / len(g)
    of_each = (g - true).square().flatten(1).mean(1)
    return {
        "squared_bias": float(bias.mean()),
        "variance": float(variance.mean()),
        "error": float(of_each.mean()),
        "standard_error": float(of_each.std() / len(g) ** 0.5),
    }


def table(rows):
    return text_table(
        [
            {
                "n": f"{r['n']:,}",
                "squared bias": f"{r['squared_bias']:.3f}",
                "variance": f"{r['variance']:.3f}",
                "squared error (se)": f"{r['error']:.3f} ({r['standard_error']:.3f})",
                "gap": f"{r['gap']:.3f}",
            }
            for r in rows
        ]
    )


def kept():
    return [json.loads(line) for line in KEPT.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true", help="print kept rows, run nothing")
    if not parser.parse_args().table:
        torch.set_num_threads(1)
        rows = [execute(n) for n in ROWS]
        KEPT.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    print(table(kept()))


if __name__ == "__main__":
    main()
