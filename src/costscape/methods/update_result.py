"""What ``update`` gives to a method, and what it returns."""

from dataclasses import dataclass, replace
from math import sqrt

from costscape.block_bootstrap import Difference
from costscape.data import Dataset
from costscape.training import Training
from costscape.training.settings import RATE

EPOCHS = 4  # over the rows of an update
STEPS = 0.015  # of those of a full fit, or more where there are many new rows
OLD = 3  # old rows for each new one at least, so that networks do not forget


@dataclass(frozen=True, eq=False)
class NewRows:
    """The rows of an update, on the device of the model.

    Args:
        new: Dataset. The new rows to learn from.
        old: Dataset. The kept rows that the present model learned from.
        pool: Dataset. The new rows and a sample of the old ones, to train networks on.
        share: float. The share of new rows in all rows that the new model learns from.
    """

    new: Dataset
    old: Dataset
    pool: Dataset
    share: float

    def training(self, training: Training) -> Training:
        """A short schedule without checkpoint and progress bar.

        The rate of the fit is multiplied by the root of the share of new rows: few new rows move
        the networks little, and with new rows only the rate is that of a fit.
        """
        return replace(
            training,
            epochs=EPOCHS,
            patience=EPOCHS,
            lr=sqrt(self.share) * (training.lr or RATE),
            checkpoint=None,
            progress=False,
        )


@dataclass(frozen=True)
class HeldOutCosts:
    """Costs of the decisions of the old and the new model on the same held-out rows.

    Args:
        name: str. Which rows.
        rows: int. How many.
        old_cost: float. Mean cost of the old model's decisions.
        new_cost: float. Mean cost of the new model's decisions.
        size: float. Mean absolute cost of the old model's decisions.
        error: float. Standard error of the mean difference, by a moving-block bootstrap.
        difference: Difference. New less old cost, with a 95 % interval.
    """

    name: str
    rows: int
    old_cost: float
    new_cost: float
    size: float
    error: float
    difference: Difference

    @property
    def change(self) -> float:
        """The difference as a share of the old cost."""
        return self.difference.mean / self.size

    @property
    def change_error(self) -> float:
        """The standard error of ``change``."""
        return self.error / self.size

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.rows}): old {self.old_cost:.6g}, new {self.new_cost:.6g}, "
            f"difference {self.difference.mean:+.3g} (standard error {self.error:.2g})"
        )


@dataclass(frozen=True)
class Update:
    """The result of ``model.update(X_new, Y_new)``.

    Attributes:
        updated: bool. True if the model now is the new one; False if it is unchanged.
        reason: str. Why.
        comparisons: tuple of HeldOutCosts. Costs of both models on held-out old rows and on
            held-out new rows, or on ``val``. The old model stays if the sum of the relative
            changes is above its standard error.
        rows: int. New rows that came.
        learned: int. New rows that the model learned from, or some network of it; the rest were
            held out. 0 if the model is unchanged.
        seconds: float. Time of the update.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((100, 3)), rng.random((100, 2))
    >>> model = cs.NearestNeighbours(cs.problems.inventory(days=2), k=10).fit(X[:80], Y[:80])
    >>> result = model.update(X[80:], Y[80:])
    >>> result.rows, [part.rows for part in result.comparisons]
    (20, [16, 9])
    """

    updated: bool
    reason: str
    comparisons: tuple[HeldOutCosts, ...]
    rows: int
    learned: int
    seconds: float

    def __str__(self) -> str:
        parts = "; ".join(map(str, self.comparisons))
        return f"{self.reason} {parts}. {self.rows} new rows in {self.seconds:.2g} s."
