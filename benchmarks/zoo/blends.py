"""Which families should a blend have beside DF2's forms?

Each row has the test regrets on one problem of the zoo: of each candidate cross-fitted alone, and
of the blends of several. A candidate is fitted once to each fold, and these fits serve every
blend. Rows are kept in blends.jsonl; `code` is the commit they were made by.

    python benchmarks/zoo/blends.py                                # the table of the kept rows
    python benchmarks/zoo/blends.py --run --problem zoo-linear --out FILE
"""

import os
import time
from pathlib import Path
from statistics import mean

from studies import read as read
from studies import study

KEPT = Path(__file__).with_suffix(".jsonl")
FORMS = ("DF2",)
USUAL = (*FORMS, "mixture", "forest", "neighbours")
RESIDUALS = ("residual", "residual-scaled", "residual-knn")
BLENDS = {
    "forms": FORMS,
    "usual": USUAL,
    "usual, quantiles": (*USUAL, "quantiles"),
    "usual, residuals": (*USUAL, *RESIDUALS),
    "usual, residuals, quantiles": (*USUAL, *RESIDUALS, "quantiles"),
}


def candidates(p):
    """By family: unfitted methods."""
    import costscape as cs
    from costscape.bench.catalog import NEIGHBOURS
    from costscape.data import join
    from costscape.methods.blend import default_candidates

    training = cs.Training(progress=False, device="cpu")
    usual = default_candidates(p.task, join(p.data.train, p.data.val), training, p.solver, 0)
    found = {"DF2": [m for m in usual if isinstance(m, cs.DF2)]}
    found |= zip(("mixture", "forest", "neighbours"), ([m] for m in usual[-3:]), strict=True)
    common = {"solver": p.solver, "seed": 0}
    return found | {
        "residual": [cs.ResidualSAA(p.task, **common)],
        "residual-scaled": [cs.ResidualSAA(p.task, scaled=True, **common)],
        "residual-knn": [cs.ResidualSAA(p.task, k=NEIGHBOURS, **common)],
        "quantiles": [cs.TwoStage(p.task, cs.Quantiles(), training=training, **common)],
    }


def fit_once(done):
    """The fits of an ensemble, those in ``done`` taken from there."""
    from costscape.methods import ensemble

    fit = ensemble.fit_jobs

    def fit_jobs(methods, jobs, *arguments):
        new = [job for job in jobs if (settings(methods[job.candidate]), job.fold) not in done]
        for job, found in zip(new, fit(methods, new, *arguments), strict=True):
            done[settings(methods[job.candidate]), job.fold] = found
        return [done[settings(methods[job.candidate]), job.fold] for job in jobs]

    return fit_jobs


def settings(method):
    from costscape.methods.saving import to_json

    names = sorted(method.setting_names() - {"task", "solver", "training"})
    return type(method).__name__, str([to_json(getattr(method, name)) for name in names])


def run(problem):
    """The row of one problem, in a list."""
    import warnings

    import torch

    import costscape as cs
    from costscape.bench.problem_names import problem_named
    from costscape.bench.provenance import commit
    from costscape.methods import ensemble

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    p = problem_named(problem)(0)
    train, val, test = p.data.train, p.data.val, p.data.test
    families, begin = candidates(p), time.process_time()
    ensemble.fit_jobs, original = fit_once({}), ensemble.fit_jobs

    def regret(methods):
        blend = cs.Blend(p.task, methods, solver=p.solver)
        blend.fit(train.x, train.y, val=(val.x, val.y))
        return cs.evaluate(blend, test.x, test.y, truth=p.truth).regret, blend.weights_

    try:
        blends = {
            name: regret([m for family in of for m in families[family]])
            for name, of in BLENDS.items()
        }
        alone = {name: regret(methods)[0] for name, methods in families.items() if name != "DF2"}
    finally:
        ensemble.fit_jobs = original
    return [
        {
            "problem": problem,
            "alone": alone,
            "blend": {name: found for name, (found, _) in blends.items()},
            "weights": {name: weights for name, (_, weights) in blends.items()},
            "seconds": round(time.process_time() - begin, 1),
            "code": commit(),
        }
    ]


def ratios(rows):
    """By blend: its regret over that of the usual blend, one for each problem."""
    return {name: [row["blend"][name] / row["blend"]["usual"] for row in rows] for name in BLENDS}


def of_best(rows):
    """By blend: its regret over that of the best family alone, one for each problem."""
    return {
        name: [row["blend"][name] / min(row["alone"].values()) for row in rows] for name in BLENDS
    }


def table(rows):
    """Lines of text: blends against the usual one, and against the best family alone."""
    lines = []
    for base, found in (
        ("the usual blend", ratios(rows)),
        ("the best family alone", of_best(rows)),
    ):
        lines.append(f"regret over that of {base}: mean, worst, problems where it is lower")
        for name, of in found.items():
            lower = sum(ratio < 1 for ratio in of)
            lines.append(f"{name:28} {mean(of):.3f} {max(of):.3f} {lower} of {len(of)}")
    return lines


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    study(__doc__, KEPT, [()], lambda row: (), run, table)
