"""One version of an exported model, as a service holds it: without torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from costscape.runtime import ExportedModel, load
from costscape.serve.model_names import checked_name, named_path
from costscape.serve.request_rows import RowShape

SUFFIX = ".onnx"


@dataclass(frozen=True)
class RuntimeSource:
    """Where an exported model comes from.

    Args:
        name: str. What requests call the model.
        model: Path. The file that ``model.export`` wrote.

    >>> RuntimeSource.parse("bids=models/wind.onnx").name
    'bids'
    """

    name: str
    model: Path

    @classmethod
    def parse(cls, text: str) -> "RuntimeSource":
        """Read [NAME=]PATH."""
        name, path = named_path(text)
        return cls(checked_name(path.stem if name is None else name, path), path)

    def watched(self) -> Sequence[Path]:
        """The file."""
        return (self.model,)


@dataclass(frozen=True, eq=False)
class RuntimeModel:
    """A version of an exported model. It is never changed; another version is another object.

    Args:
        name: str. What requests call the model.
        model: ExportedModel.
    """

    name: str
    model: ExportedModel

    @classmethod
    def checked(cls, source: RuntimeSource) -> "RuntimeModel":
        """Load the file, which checks itself; ValueError or OSError where it must not serve."""
        return cls(source.name, load(source.model))

    @property
    def version(self) -> str:
        """Digits of the hash of the file."""
        return self.model.version

    @property
    def row_shape(self) -> RowShape:
        """What a row of X looks like."""
        facts = self.model.facts
        shape = facts.x_shape
        return RowShape(shape, facts.column_names if len(shape) == 1 else ())

    def answer(self, rows: np.ndarray, question: Any = None) -> "RuntimeAnswer":
        """Decide all rows in one call."""
        a, cost = self.model.decisions(rows)
        facts = self.model.facts
        a = a[:, 0] if facts.flat and a.shape[1] == 1 else a
        return RuntimeAnswer(a, cost, self.model.check(rows))

    def describe(self) -> dict[str, Any]:
        """Name, version, date and rows of the fit, columns with ranges and units."""
        facts = self.model.facts
        ends = zip(facts.column_names, facts.x_low, facts.x_high, strict=True)
        sides = zip(facts.decision_names, facts.feasible.lower, facts.feasible.upper, strict=True)
        return {
            "name": self.name,
            "version": self.version,
            "method": facts.method,
            "runtime": f"onnx, {facts.kind}",
            "loss": facts.loss,
            "fit_date": facts.fit_date,
            "fit_rows": facts.fit_rows,
            "row_shape": list(facts.x_shape),
            "columns": self._columns(ends) if len(facts.x_shape) == 1 else [],
            "decisions": self._columns(sides),
        }

    def _columns(self, ends: Any) -> list[dict[str, Any]]:
        units = self.model.facts.units
        return [
            {"name": name, "low": float(low), "high": float(high), "unit": units.get(name)}
            for name, low, high in ends
        ]


@dataclass(frozen=True, eq=False)
class RuntimeAnswer:
    """What an exported model decides for the rows of one request.

    Args:
        decisions: numpy array (n, d) or (n,).
        expected_cost: numpy array (n,), or None of a distilled policy.
        flags: dict. The columns of each row far outside the training range, by its position.
    """

    decisions: np.ndarray
    expected_cost: np.ndarray | None
    flags: dict[int, list[str]]

    def part(self, begin: int, end: int) -> "RuntimeAnswer":
        """The answer for some of the rows."""
        cost = None if self.expected_cost is None else self.expected_cost[begin:end]
        flags = {i - begin: self.flags[i] for i in range(begin, end) if i in self.flags}
        return RuntimeAnswer(self.decisions[begin:end], cost, flags)

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON."""
        found: dict[str, Any] = {"decisions": self.decisions.tolist()}
        if self.expected_cost is not None:
            found["expected_cost"] = self.expected_cost.tolist()
        flags = [{"row": i, "columns": columns} for i, columns in self.flags.items()]
        return {**found, "flags": flags, "notes": []}
