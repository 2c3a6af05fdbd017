"""Which of several methods is the best, where not all have the same seeds."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def best_of(found: Mapping[str, Mapping[Any, float]]) -> str | None:
    """Of {name: {seed: score}}, or whatever makes pairs; less is better; None of nothing.

    From those with most seeds to those with fewest, each is held against the best so far by the
    mean over the seeds of both: to have run the easy seeds only wins nothing. One that has none
    of its seeds, or the same mean to four digits, does not replace it: methods that end where
    others began differ in later digits only.
    """
    best = None
    for name in sorted((n for n in found if found[n]), key=lambda n: -len(found[n])):
        if best is None:
            best = name
            continue
        seeds = found[name].keys() & found[best].keys()
        if seeds and _mean(found[name], seeds) < _mean(found[best], seeds):
            best = name
    return best


def _mean(scores: Mapping[Any, float], seeds: Iterable[Any]) -> float:
    return float(f"{np.mean([scores[seed] for seed in sorted(seeds)]):.4g}")
