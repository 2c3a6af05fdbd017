"""The paper's tables and figures as lists of runs; to vary one, change the list.

Kong et al., UAI 2025: the table of regrets, the gaps on both synthetic problems, and the ablations
on wind. ``quick`` makes each small enough for minutes on two cores.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from costscape.bench.cost_landscape import write_landscape
from costscape.bench.provenance import check_device
from costscape.bench.runs import Run

SEEDS, COSTLY_SEEDS, QUICK_SEEDS = 10, 5, 2
SYNTHETIC = ("synthetic-convex", "synthetic-nonconvex")
REAL = ("wind", "inventory", "vaccine", "vaccine-wave")
COSTLY = ("vaccine", "vaccine-wave")  # where f is a simulation
LARGE = (500, 1000)  # mixtures of the paper whose heads have millions of weights

OURS = ("df2", "df2-quick", "df2-paper", "blend")
POINTS = ("policy-net", "two-stage-pe", "dfl-pe", "lodl-pe")
OTHERS = (
    *("egl", "lancer", "taskmet", "wsaa-knn", "wsaa-forest", "wsaa-kernel", "cme"),
    *("no-attention", "constant"),
)
# later or other forms than the paper's methods; `costscape run` makes their rows
UNLISTED = (
    *("two-stage-quantiles", "two-stage-flow", "dfl-flow", "two-stage-linear-gmm3"),
    *("residual-saa", "residual-saa-scaled", "residual-saa-loo", "residual-saa-knn"),
    *("decision-forest", "safety-stock", "lodl-directed", "egl-directed"),
    "lancer-unsigned",
)
FAIR = ("two-stage-gmm1", "two-stage-gmm3", "two-stage-gmm10")  # with 1000 draws, too
CROSSFITTED = ("two-stage-gmm3+crossfit", "two-stage-gmm10+crossfit")  # as df2 and blend are


def mixtures(sizes: Iterable[int]) -> list[str]:
    families = ("two-stage-gmm", "so-ebm-gmm", "dfl-gmm", "lodl-gmm")
    return [f"{family}{k}" for family in families for k in sizes]


def table(quick: bool = False) -> list[Run]:
    """Every method but the unlisted ones on wind, inventory and both vaccine problems."""
    return [run for problem in REAL for run in _all(problem, quick)]


def synthetic(quick: bool = False) -> list[Run]:
    """The same methods on both synthetic problems, where the gap is known."""
    return [run for problem in SYNTHETIC for run in _all(problem, quick)]


def ablations(quick: bool = False) -> list[Run]:
    """On wind: attention, points, training rows, learned values, actions, DFL's draws.

    The variants are of DF2 as in the paper, one setting changed at a time. A mixture has the same
    shares of the training rows, and DFL's draws are those of 1 and of 1,000 components.
    """
    points = [10, 50] if quick else [50, 100, 200, 500, 1000]
    rows = [0.5, 1.0] if quick else [0.1, 0.25, 0.5, 0.75, 1.0]
    actions = [5, 20] if quick else [5, 10, 20, 50, 100, 200]
    draws = [5, 20] if quick else [10, 50, 100, 500]
    variants: list[tuple[str, dict[str, Any]]] = [
        ("df2-paper", {}),
        ("no-attention", {}),
        ("df2-paper", {"learn_values": False}),
        *(("df2-paper", {"points": n}) for n in points),
        *((m, {"share": part}) for m in ("df2-paper", "two-stage-gmm3") for part in rows),
        *(("df2-paper", {"actions": n}) for n in actions),
        *((m, {"draws": n}) for m in ("dfl-gmm1", "dfl-gmm1000") for n in draws),
    ]
    seeds = range(QUICK_SEEDS if quick else SEEDS)
    return [Run("wind", m, seed, changes, quick) for m, changes in variants for seed in seeds]


def write_landscapes(folder: Path, quick: bool = False, device: str | None = None) -> list[Path]:
    """The files with g(x, .) of a test x on both synthetic problems: first, learned, true."""
    check_device(device)
    runs = [Run(problem, "df2-paper", quick=quick) for problem in SYNTHETIC]
    return list(dict.fromkeys(write_landscape(run, folder, device) for run in runs))


def _all(problem: str, quick: bool) -> list[Run]:
    costly = problem in COSTLY
    seeds = range(QUICK_SEEDS if quick else COSTLY_SEEDS if costly else SEEDS)
    sizes = (3,) if quick else (1, 3, 10) if costly or problem in SYNTHETIC else (1, 3, 10, *LARGE)
    names = [*OURS, *POINTS, *mixtures(sizes), *OTHERS, *(["proportional"] if costly else [])]
    runs = [Run(problem, name, seed, {}, quick) for name in names for seed in seeds]
    if quick:
        return runs
    fair = (*FAIR, *(() if costly else CROSSFITTED))
    return runs + [Run(problem, name, seed, {"draws": 1000}) for name in fair for seed in seeds]
