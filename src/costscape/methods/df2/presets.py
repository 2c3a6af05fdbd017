"""Settings of DF2 under a name: a first try in seconds, and the paper's recipe."""

from dataclasses import replace
from typing import Any, TypeVar

from costscape.methods.df2.costs import Costs
from costscape.models import Absolute, Builder
from costscape.task import Task
from costscape.training import Training

D = TypeVar("D", bound="Presets")
RATE = 1e-3  # of the paper


class Presets:
    """Constructors of DF2."""

    @classmethod
    def quick(cls: type[D], task: Task, *, seed: int = 0, training: Training | None = None) -> D:
        """One form, one network: a first try in seconds."""
        make: Any = cls
        method: D = make(task, folds=1, seed=seed, training=training or Training())
        return method

    @classmethod
    def as_in_paper(
        cls: type[D],
        task: Task,
        *,
        points: int = 1000,
        actions: int = 100,
        encoder: Builder | None = None,
        share_actions: bool = True,
        seed: int = 0,
        training: Training | None = None,
    ) -> D:
        """The paper's recipe: absolute outcomes, plain squares, no averaging, a constant rate,
        the last epoch.

        The letter of the paper has ``share_actions=False``, which is unbiased too and takes about
        a hundred times as long.
        """
        given = training or Training(epochs=50)
        make: Any = cls
        method: D = make(
            task,
            encoder=encoder,
            points=points,
            actions=actions,
            share_actions=share_actions,
            outcomes=Absolute(),
            target=Costs(weighting=False, by_coordinate=False),
            outcome_share=0.0,
            ema=None,
            folds=1,
            standardise=False,
            choose_epoch=False,
            seed=seed,
            training=replace(given, lr=given.lr or RATE, decay=False),
        )
        return method
