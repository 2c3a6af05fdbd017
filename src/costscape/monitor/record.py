"""One logged decision: for which row, what was decided, and the outcome when it is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class Record:
    """A decision as it was answered.

    Args:
        id: str. Names the decision; no two records of a store share one.
        time: str. When it was decided, in UTC, as ``utc_now`` writes it.
        model: str. The name of the model.
        version: str. The version of its files.
        request_id: str. The request that asked.
        x: dict of float by column name, or nested lists for rows of more than one axis.
        decision: dict of float. The action by name.
        expected_cost: float or None. Of this action; None where the method learns no cost.
        flags: tuple of str. The columns far outside the range of the training rows.
        keys: dict, default empty. What the client calls this row, such as a date and an item.
        question: dict, default None. Another set or a risk, if the request had one.
        quantiles: dict of float, default empty. Quantiles of the cost by level, if asked for.
        outcome: tuple of float, default None. y in the order of fit, None until it is known.

    >>> Record("1", utc_now(), "shop", "v1", "r", {"price": 2.0}, {"bread": 3.0}, 1.5, ()).is_plain
    True
    """

    id: str
    time: str
    model: str
    version: str
    request_id: str
    x: Any
    decision: Mapping[str, float]
    expected_cost: float | None
    flags: tuple[str, ...]
    keys: Mapping[str, Any] = field(default_factory=dict)
    question: Mapping[str, Any] | None = None
    quantiles: Mapping[str, float] = field(default_factory=dict)
    outcome: tuple[float, ...] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the expected cost was minimised in the task's own set."""
        return self.question is None


def utc_now() -> str:
    """The time with microseconds, always of the same width, so that texts sort by time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
