"""What the monitor finds in the logged decisions of one model."""

from dataclasses import dataclass

import numpy as np

from costscape.monitor.drift import ColumnDrift
from costscape.monitor.realised import Coverage, Stretch


@dataclass(frozen=True)
class Version:
    """How many of the records a version of the model decided, and when."""

    version: str
    rows: int
    first: str
    last: str


@dataclass(frozen=True)
class Levels:
    """Mean costs of the latest rows with an outcome.

    Args:
        rows: int. How many rows.
        expected: float. Mean expected cost.
        realised: float. Mean cost at the outcomes.
        difference: float. Realised less expected cost, as a share of the mean expected cost
            without its sign.
        error: float. Standard error of that share.
        regret: float. Mean regret; NaN where it is not known.
    """

    rows: int
    expected: float
    realised: float
    difference: float
    error: float
    regret: float

    @property
    def ratio(self) -> float:
        """Realised over expected cost; NaN where the expected cost is 0 or not known."""
        return self.realised / self.expected if self.expected else float("nan")


@dataclass(frozen=True)
class Findings:
    """The result of ``watch``.

    Args:
        model: str. The name of the model.
        rows: int. Logged rows that were looked at.
        outcomes: int. Rows of them with an outcome.
        first: str. The time of the first row, in UTC.
        last: str. That of the last row.
        versions: tuple of Version.
        reference: str. What drift is measured against.
        stretches: tuple of Stretch. Costs over time.
        groups: tuple of Stretch. Costs by expected cost.
        coverage: tuple of Coverage. How often logged quantiles of the cost held.
        levels: Levels. Costs of the latest rows; None without outcomes or without a model.
        inputs: tuple of ColumnDrift. Columns of x, the largest drift first.
        outcome_drift: tuple of ColumnDrift. Columns of y.
        flagged: float. Share of flagged rows among the latest.
        alerts: tuple of str. A sentence for each alert.
        suggestion: str. Whether to update the model.
        notes: tuple of str. What could not be measured, and why.
    """

    model: str
    rows: int
    outcomes: int
    first: str
    last: str
    versions: tuple[Version, ...]
    reference: str
    stretches: tuple[Stretch, ...]
    groups: tuple[Stretch, ...]
    coverage: tuple[Coverage, ...]
    levels: Levels | None
    inputs: tuple[ColumnDrift, ...]
    outcome_drift: tuple[ColumnDrift, ...]
    flagged: float
    alerts: tuple[str, ...]
    suggestion: str
    notes: tuple[str, ...]

    @property
    def drifted(self) -> int:
        """Columns of x and y with an alert."""
        return sum(one.is_alert for one in (*self.inputs, *self.outcome_drift))

    def __str__(self) -> str:
        lines = [
            f"{self.model}: {self.rows:,} decisions from {self.first} to {self.last} UTC, "
            f"{self.outcomes:,} with an outcome."
        ]
        if (now := self.levels) is not None:
            regret = "" if np.isnan(now.regret) else f", regret {now.regret:.4g}"
            lines.append(
                f"Cost of the last {now.rows} outcomes: realised {now.realised:.4g}, expected "
                f"{now.expected:.4g}, ratio {now.ratio:.3g}{regret}."
            )
        lines += [
            f"Quantile {c.level}: held {c.share:.3f} of {c.rows} times." for c in self.coverage
        ]
        lines.append(f"Flagged: {100 * self.flagged:.1f} % of the latest rows.")
        for what, columns in (("Inputs", self.inputs), ("Outcomes", self.outcome_drift)):
            if columns:
                most = columns[0]
                lines.append(
                    f"{what} against {self.reference}: largest PSI {most.psi:.3g} in "
                    f"{most.name!r} (KS {most.ks:.3g})."
                )
        lines += [f"ALERT: {alert}" for alert in self.alerts] or ["No alerts."]
        return "\n".join([*lines, *filter(None, [self.suggestion]), *self.notes])
