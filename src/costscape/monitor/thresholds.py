"""What counts as an alert."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Thresholds:
    """The rows that the monitor looks at, and the sizes from which on it alerts.

    Args:
        rows: int, default 20,000. The latest records that are read.
        recent: int, default 500. The latest rows that are compared with the training rows.
        fewest: int, default 30. Rows below which nothing is compared.
        psi: float, default 0.2. Population stability index of a column.
        ks: float, default 0.1. Statistic of Kolmogorov-Smirnov of a column.
        level: float, default 0.01. Probability of any alert of drift by chance.
        flagged: float, default 0.05. Share of rows far outside the range of the training rows.
        cost: float, default 0.25. Realised less expected cost, as a share of the expected cost.
        errors: float, default 3.0. Standard errors that this difference must exceed, too.

    >>> Thresholds(psi=0.1).recent
    500
    """

    rows: int = 20_000
    recent: int = 500
    fewest: int = 30
    psi: float = 0.2
    ks: float = 0.1
    level: float = 0.01
    flagged: float = 0.05
    cost: float = 0.25
    errors: float = 3.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not value > 0:
                raise ValueError(f"The threshold {entry.name} must be positive, but got {value}.")
        if self.fewest < 2:
            raise ValueError(f"fewest needs 2 rows or more, but got {self.fewest}.")
