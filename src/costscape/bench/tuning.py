"""Search the settings of a method on the rows before the test part of a problem.

The first trial has the settings of the named method. Every later one has settings by Optuna, from
the space of the method's class. A trial fits the method at each origin and costs the mean over all
rows that follow the origins.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costscape.bench.method_names import method_of
from costscape.bench.optuna_sampler import load_optuna, suggest
from costscape.bench.problem_names import problem_named
from costscape.bench.provenance import check_device
from costscape.bench.quick import small
from costscape.bench.search_space import space_of
from costscape.bench.tuning_origins import origins_before_test
from costscape.bench.tuning_rows import Trial, append_trial, best_of, read_trials, search_for
from costscape.bench.tuning_trial import Tried
from costscape.training.progress import progress

TRIALS = 30  # of every search, the default one included
ORIGINS = 3


@dataclass(frozen=True)
class Tuning:
    """The trials of a finished search.

    Args:
        trials: rows in order; the first has the settings of the named method.
        best: the row that costs least.
        made: int, how many of the trials this call made.
    """

    trials: tuple[Trial, ...]
    best: Trial
    made: int

    def __str__(self) -> str:
        settings = ", ".join(f"{k}={_short(v)}" for k, v in self.best["settings"].items())
        first = self.trials[0]
        return (
            f"best of {len(self.trials)} trials: number {self.best['trial']}, cost "
            f"{_cost(self.best)}; default settings: {_cost(first)}\n"
            f"{settings or 'the default settings'}"
        )


def tune(
    problem: str,
    method: str,
    folder: Path,
    trials: int = TRIALS,
    seed: int = 0,
    origins: int = ORIGINS,
    device: str | None = None,
    quick: bool = False,
    shown: bool = True,
    workers: int = 1,
) -> Tuning:
    """Make the trials that are missing from the folder, and find the best of all.

    Trial n depends on the seed and on the trials before it, so a search that is stopped and
    resumed on the same device has the same trials as one that is not. No test row is read.

    Args:
        problem: name of a problem, or of an origin of one.
        method: name of a method that has settings to search.
        folder: of the files of trials, one for each problem.
        trials: int >= 1, number of trials in all.
        seed: int, of the problem, of every fit and of the sampler.
        origins: int >= 1, number of fits in a trial.
        device: such as "cpu"; None takes a GPU where there is one.
        quick: cut the problem and the method down, to see that a search works.
        shown: whether to show progress on stderr.
        workers: int >= 1, how many origins of a trial are fitted at a time, in processes that
            share the cores. On a CPU another number of threads may round sums otherwise.
    """
    if trials < 1:
        raise ValueError(f"A search needs at least 1 trial, but got {trials}.")
    if workers < 1:
        raise ValueError(f"A search needs at least 1 worker, but got {workers}.")
    check_device(device)
    load_optuna()  # before the first fit
    space = space_of(method_of(method)(problem_named(problem)(seed), seed))
    if not space:
        raise ValueError(f"{method} has no setting to search: it has the same ones everywhere.")
    search = search_for(problem, method, seed, quick)
    parts = origins_before_test(problem_named(problem)(seed), origins)
    parts = [small(part) for part in parts] if quick else parts
    tried = Tried(method, seed, device, quick, workers)
    there = {t["trial"]: t for t in read_trials(folder, search) if t["origins"] == origins}
    missing = [number for number in range(trials) if number not in there]
    with progress(f"{problem} {method}", trials, shown) as show:
        for number in missing:
            past = [there[i] for i in range(1, number)]
            settings = suggest(space, past, seed, number) if number else {}
            there[number] = {
                "trial": number,
                "origins": origins,
                **tried.trial(parts, settings),
            }
            append_trial(folder, search, there[number])
            show(number + 1, f"trial {number}: {_cost(there[number])}")
    made = [there[number] for number in range(trials)]
    best = best_of(made)
    if best is None:
        raise ValueError(
            f"None of {trials} trials of {method} on {problem} has a finite cost; the last one "
            f"ended with: {made[-1]['error']}"
        )
    return Tuning(tuple(made), best, len(missing))


def _cost(row: Trial) -> str:
    if row["cost"] is None:
        return "failed"
    return f"{row['cost']:.5g} (standard error {row['standard_error']:.2g})"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
