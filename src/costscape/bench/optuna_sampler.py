"""The next settings of a search, by Optuna's tree-structured Parzen estimator.

Bergstra, Bardenet, Bengio and Kegl, Algorithms for Hyper-Parameter Optimization, NeurIPS 2011.
Only this file imports Optuna.
"""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.bench.search_space import OneOf, Range, Settings, Space, Whole

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

RANDOM = 8  # trials after the first one before the estimator chooses


def load_optuna() -> ModuleType:
    """The package; an ImportError that names the extra where it is missing."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ImportError(
            "A search needs Optuna, which is not installed. Install it: pip install "
            "'costscape[tune]'."
        ) from error
    return optuna


def suggest(space: Space, past: Sequence[Mapping[str, Any]], seed: int, trial: int) -> Settings:
    """The settings of a trial, which depend on the arguments only.

    Args:
        space: the range of each setting.
        past: rows of earlier trials in order, with ``settings`` and ``cost``; None for a failure.
        seed: of the search.
        trial: number of the trial. With ``seed`` it seeds the sampler, so that a search which is
            stopped and resumed has the same trials.
    """
    optuna = load_optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    number = int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])
    sampler = optuna.samplers.TPESampler(seed=number, n_startup_trials=RANDOM)
    study = optuna.create_study(sampler=sampler)
    ranges = {name: _distribution(values) for name, values in space.items()}
    states = optuna.trial.TrialState
    for row in past:
        params = {name: _position(space[name], value) for name, value in row["settings"].items()}
        state = states.FAIL if row["cost"] is None else states.COMPLETE
        study.add_trial(
            optuna.trial.create_trial(
                state=state, value=row["cost"], params=params, distributions=ranges
            )
        )
    found = study.ask(ranges).params
    return {name: _value(space[name], found[name]) for name in space}


def _distribution(values: Range) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(values, OneOf):  # by place, since Optuna takes no lists
        return CategoricalDistribution(range(len(values.values)))
    kind = IntDistribution if isinstance(values, Whole) else FloatDistribution
    return kind(values.low, values.high, log=values.log)  # type: ignore[arg-type]


def _position(values: Range, value: Any) -> Any:
    return values.values.index(value) if isinstance(values, OneOf) else value


def _value(values: Range, position: Any) -> Any:
    return values.values[position] if isinstance(values, OneOf) else position
