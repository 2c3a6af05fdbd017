"""How long does an epoch of each method take beside one of DF2?

The convex synthetic problem, 3,500 training pairs, batches of 64, M = 100 draws, CPU seconds of
one thread, with the validation of each epoch. A method that starts from a two-stage fit pays for
both stages, DFL and SO-EBM for the second one twice, at two rates, and df2 for all its networks,
four of each form. What is not spent in epochs, such as fitting LODL's
losses, stands beside; methods without epochs show their whole fit there. The rows are kept in
benchmarks/results/epochs.json, with the processor they were made on; --table prints them again.
Alone it takes minutes; as one question of run.py it asks a few of the methods, and keeps nothing.

python benchmarks/bench_epoch.py [--table]
"""

import argparse
import json
import platform
import time
from dataclasses import fields, replace
from pathlib import Path

from costscape.bench.report import text_table

STORE = Path(__file__).parent / "results" / "epochs.json"
EPOCHS = 4
NAMES = (
    *(
        "df2-paper",
        "df2-quick",
        "df2",
        "policy-net",
        "two-stage-pe",
        "two-stage-gmm1",
        "two-stage-gmm1000",
    ),
    *("dfl-pe", "dfl-gmm1", "dfl-gmm10", "so-ebm-gmm1", "lodl-pe", "lodl-gmm1", "egl"),
    *("lancer", "taskmet", "no-attention", "wsaa-knn", "wsaa-forest", "wsaa-kernel", "cme"),
)
FEW = ("policy-net", "two-stage-gmm1", "dfl-gmm1", "so-ebm-gmm1", "no-attention")


def shortened(method, n):
    """The method with n epochs, and as many rounds or epochs of a second stage; or None."""
    known = {f.name for f in fields(method)}
    if "training" not in known:
        return None
    training = replace(method.training, epochs=n, patience=n, progress=False, device="cpu")
    second = [name for name in ("rounds", "steps") if name in known][:1]  # of rounds, not within
    return replace(method, training=training, **dict.fromkeys(second, n))


def seconds(method, data):
    start = time.process_time()  # of one thread: what else the machine does hardly matters
    method.fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))
    return time.process_time() - start


def measure(name, problem):
    from costscape.bench import method_of
    from costscape.methods.forecast import forecast_method as forecasting

    made = method_of(name)(problem, 0)
    if shortened(made, 2) is None:
        return {"method": name, "epoch": None, "besides": seconds(made, problem.data)}
    if isinstance(made, forecasting.ForecastMethod) and not hasattr(made, "rounds"):
        return {"method": name, **inside(forecasting, shortened(made, EPOCHS), problem.data)}
    short, long = (seconds(shortened(made, n), problem.data) for n in (2, 2 + EPOCHS))
    epoch = (long - short) / EPOCHS
    return {"method": name, "epoch": epoch, "besides": max(0.0, short - 2 * epoch)}


def inside(module, method, data):
    """Seconds within the module's training loops, by epoch, and all others."""
    loop, spent = module.fit_all, []

    def timed(*args, **settings):
        start = time.process_time()
        history = loop(*args, **settings)
        spent.append(time.process_time() - start)
        return history

    module.fit_all = timed
    try:
        whole = seconds(method, data)
    finally:
        module.fit_all = loop
    return {"epoch": sum(spent) / EPOCHS, "besides": whole - sum(spent)}


def table(rows):
    (unit,) = (row["epoch"] for row in rows if row["method"] == "df2-paper")
    return text_table(
        [
            {
                "method": row["method"],
                "s an epoch": f"{row['epoch']:.2f}" if row["epoch"] else "",
                "over df2-paper": f"{row['epoch'] / unit:.1f}" if row["epoch"] else "",
                "s besides": f"{row['besides']:.1f}",
            }
            for row in rows
        ]
    )


def results():
    """What an epoch of the opponents takes, over one of df2-paper's; no goal was set."""
    import torch
    from common import reported

    from costscape.bench import PROBLEMS

    torch.set_num_threads(1)
    problem = PROBLEMS["synthetic-convex"](0)
    measure("policy-net", problem)
    unit = measure("df2-paper", problem)["epoch"]
    found = []
    for name in FEW:
        epoch = measure(name, problem)["epoch"]
        note = f"{epoch:.2f} and {unit:.2f} s"
        found.append(reported(f"epoch, {name} over df2-paper", epoch / unit, note=note))
    return found


def kept():
    return json.loads(STORE.read_text())["rows"]


def main():
    import torch

    from costscape.bench import PROBLEMS

    torch.set_num_threads(1)
    problem = PROBLEMS["synthetic-convex"](0)
    measure("df2-paper", problem)  # the first of all pays for what torch loads late
    rows = []
    for name in NAMES:
        rows.append(measure(name, problem))
        print(name, flush=True)
    machine = {"processor": platform.processor() or platform.machine(), "torch": torch.__version__}
    STORE.write_text(json.dumps({**machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the kept rows, run nothing")
    if not parser.parse_args().table:
        main()
    print(table(kept()))
