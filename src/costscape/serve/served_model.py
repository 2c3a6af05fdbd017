"""One version of a served model: loaded, checked, and able to answer."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from costscape.chance import Chance
from costscape.methods.surfaces import ScenarioMethod, SurfaceMethod
from costscape.serve import explanation_json
from costscape.serve.model_source import ModelSource, version_of
from costscape.serve.question import Question, beyond_fit, what_if_fields
from costscape.serve.reference import check_sound, read_reference
from costscape.serve.request_rows import RowShape


@dataclass(frozen=True, eq=False)
class Answer:
    """What a model decides for the rows of one request.

    Args:
        decisions: numpy array (n, d) or (n,).
        expected_cost: numpy array (n,), or None where the method learns no cost.
        risk: numpy array (n,). The risk of each decision, or None if none was asked for.
        flags: dict. The columns of each row far outside the training range, by its position.
        notes: list of str. Sentences about the answer.
        quantiles: numpy array (n, levels), default None. Quantiles of the cost, if asked for.
        ids: list of str, default None. The ids of the logged decisions.
    """

    decisions: np.ndarray
    expected_cost: np.ndarray | None
    risk: np.ndarray | None
    flags: dict[int, list[str]]
    notes: list[str]
    quantiles: np.ndarray | None = None
    ids: list[str] | None = None

    def part(self, begin: int, end: int) -> "Answer":
        """The answer for some of the rows."""
        expected, risk, quantiles = (
            None if v is None else v[begin:end]
            for v in (self.expected_cost, self.risk, self.quantiles)
        )
        flags = {i - begin: self.flags[i] for i in range(begin, end) if i in self.flags}
        return Answer(self.decisions[begin:end], expected, risk, flags, self.notes, quantiles)

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON, without numbers that were not asked for."""
        found: dict[str, Any] = {"decisions": self.decisions.tolist()}
        if self.expected_cost is not None:
            found["expected_cost"] = self.expected_cost.tolist()
        if self.risk is not None:
            found["risk"] = self.risk.tolist()
        if self.quantiles is not None:
            found["quantiles"] = self.quantiles.tolist()
        if self.ids is not None:
            found["ids"] = self.ids
        return {**found, "flags": flags_to_json(self.flags), "notes": self.notes}


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A version of a model. It is never changed; another version is another object.

    Args:
        name: str. What requests call the model.
        version: str. Digits of the hash of its files.
        model: Method. The fitted method.
        units: dict of str. Unit by column of X or Y, as far as known.
        chance: Chance, default None. The service level that requests may change.
    """

    name: str
    version: str
    model: Any
    units: dict[str, str]
    chance: Chance | None = None

    @classmethod
    def load(cls, source: ModelSource) -> "ServedModel":
        """Read the files; ValueError or OSError where they are not whole or not of one task."""
        version = version_of(source)
        loaded = source.load()
        if loaded.model.record_ is None:
            raise ValueError(
                f"{source.model} has no ranges of its training rows, so rows cannot be checked. "
                f"Fit and save the model again."
            )
        if version_of(source) != version:
            raise ValueError(f"{source.model} changed while it was read. It is read again.")
        return cls(source.name, version, loaded.model, dict(loaded.units), loaded.chance)

    @classmethod
    def checked(cls, source: ModelSource) -> "ServedModel":
        """Read the files and check the decisions; ValueError where it must not serve."""
        served = cls.load(source)
        check_sound(served.model)
        if source.reference.exists():
            read_reference(source.reference).check(served.model)
        return served

    @property
    def row_shape(self) -> RowShape:
        """What a row of X looks like."""
        shape = self.model.x_shape_
        names = self.model.x_columns_ or tuple(map(str, range(prod(shape))))
        return RowShape(shape, names if len(shape) == 1 else ())

    @property
    def decision_names(self) -> list[str]:
        """Names of the coordinates of a decision, or their numbers as text."""
        d = self.model.task_.feasible.dim
        names = self.model.columns_
        return list(names) if names and len(names) == d else [str(i) for i in range(d)]

    def answer(self, rows: np.ndarray, question: Question) -> Answer:
        """Decide all rows in one call."""
        flags = self.flags(rows)
        task = self.model.task_
        C = question.feasible(task)
        chance = question.chance(self.chance)
        a = self.model.decide(rows, C, risk=question.risk, chance=chance)
        expected = risk = quantiles = None
        if isinstance(self.model, SurfaceMethod):
            expected = self.model.expected_cost(rows, a)
            if question.risk is not None:
                risk = self.model.expected_cost(rows, a, risk=question.risk)
        if question.quantiles:
            if not isinstance(self.model, ScenarioMethod):
                raise ValueError("quantiles needs a model with scenarios, and this one has none.")
            quantiles = np.asarray(self.model.cost_quantiles(rows, a, question.quantiles))
        note = None if C is None else beyond_fit(C, task)
        return Answer(a, expected, risk, flags, [] if note is None else [note], quantiles)

    def explain(self, rows: np.ndarray, question: Question) -> dict[str, Any]:
        """The tables of the decision for a single row."""
        C, chance = question.feasible(self.model.task_), question.chance(self.chance)
        why = self.model.explain(rows, feasible=C, risk=question.risk, chance=chance)
        note = None if C is None else beyond_fit(C, self.model.task_)
        return {
            **explanation_json.to_json(why),
            **explanation_json.outcomes(self.model, rows, why.decision),
            "notes": [] if note is None else [note],
        }

    def flags(self, rows: np.ndarray) -> dict[int, list[str]]:
        """The columns in which rows are far outside the training range, by position."""
        found = self.model.check(rows)
        return {
            i: [str(column) for column in found.columns_of(i)]
            for i in np.flatnonzero(found.outside).tolist()
        }

    def describe(self) -> dict[str, Any]:
        """Name, version, date and rows of the fit, columns with ranges and units."""
        record, shape = self.model.record_, self.row_shape
        columns = [
            {"name": name, "low": low, "high": high, "unit": self.units.get(name)}
            for name, low, high in zip(shape.columns, record.x_low, record.x_high, strict=False)
        ]
        lower, upper = (end.tolist() for end in self.model.task_.feasible.bounds)
        decisions = [
            {"name": name, "low": low, "high": high, "unit": self.units.get(name)}
            for name, low, high in zip(self.decision_names, lower, upper, strict=True)
        ]
        return {
            "name": self.name,
            "version": self.version,
            "method": type(self.model).__name__,
            "fit_date": record.date,
            "fit_rows": record.rows,
            "row_shape": list(shape.shape),
            "columns": columns,
            "decisions": decisions,
            "what_if": what_if_fields(self.model.task_),
            "service_level": None if self.chance is None else self.chance.level,
        }


def flags_to_json(flags: dict[int, list[str]]) -> list[dict[str, Any]]:
    """Flags as a list, in the order of the rows."""
    return [{"row": i, "columns": columns} for i, columns in flags.items()]
