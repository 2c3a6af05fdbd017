"""The costs of a comparison row by row, as a JSON file: what the explorer of a service draws."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from costscape.methods.explanation_tables import label_texts
from costscape.whole_file import write_whole

if TYPE_CHECKING:
    from costscape.comparison.result import Comparison

FILE = "comparison.json"


@dataclass(frozen=True)
class CostHistory:
    """Costs of methods and rules on the same test rows, in order of time.

    Args:
        labels: tuple of str. The label of each test row, such as its date.
        costs: mapping from the name of each method or rule to its cost on each row.
        recommended: str. The method to use.
        reference: str. What savings are counted from, such as today's rule.
        advice: str. The result in sentences.

    >>> costs = {"DF2": (1.0,), "today": (3.0,)}
    >>> history = CostHistory(("2017-01-01",), costs, "DF2", "today", "Use DF2.")
    >>> history.saved("DF2")
    2.0
    """

    labels: tuple[str, ...]
    costs: Mapping[str, tuple[float, ...]]
    recommended: str
    reference: str
    advice: str

    def __post_init__(self) -> None:
        lengths = {name: len(costs) for name, costs in self.costs.items()}
        if wrong := [name for name, length in lengths.items() if length != len(self.labels)]:
            raise ValueError(
                f"Each method needs {len(self.labels)} costs, one for each row, but {wrong[0]} "
                f"has {lengths[wrong[0]]}. Compare again."
            )
        if missing := [n for n in (self.recommended, self.reference) if n not in self.costs]:
            raise ValueError(f"costs need those of {missing[0]!r}. Compare again.")

    @classmethod
    def of(
        cls,
        result: "Comparison",
        rules: Mapping[str, np.ndarray] | None = None,
        reference: str | None = None,
    ) -> "CostHistory":
        """The costs of a comparison, and of rules on the same rows, one of them the reference."""
        costs = {**result.costs, **(rules or {})}
        return cls(
            tuple(_texts(result.rows)),
            {name: tuple(map(float, values)) for name, values in costs.items()},
            result.recommended,
            reference or result.reference,
            result.advice,
        )

    def saved(self, name: str) -> float:
        """What a method saves against the reference, summed up over all rows."""
        return float(np.subtract(self.costs[self.reference], self.costs[name]).sum())

    def write(self, path: str | Path) -> Path:
        """Write the file whole; returns its path."""
        path = Path(path)
        write_whole(path, json.dumps(asdict(self)).encode())
        return path


def read_history(path: Path) -> CostHistory:
    """The costs in a file that ``write`` wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        costs = {str(k): tuple(map(float, v)) for k, v in found["costs"].items()}
        if not all(np.isfinite(v).all() for v in costs.values()):
            raise ValueError("a cost is not finite")
        texts = (str(found[key]) for key in ("recommended", "reference", "advice"))
        return CostHistory(tuple(map(str, found["labels"])), costs, *texts)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no comparison ({type(error).__name__}: {error}). Write it again: "
            f"costscape compare, or CostHistory.of(result).write(path)."
        ) from error


def _texts(labels: np.ndarray) -> list[str]:
    if labels.dtype.kind != "O":
        return label_texts(labels)
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    return [", ".join(str(p).removesuffix(" 00:00:00") for p in label) for label in parts]
