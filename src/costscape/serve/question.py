"""What a request asks besides its rows: another set, or a risk in place of the mean cost."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from costscape.chance import Chance
from costscape.risk import CVaR, Entropic, MeanDeviation, Risk, WorstCase
from costscape.serve.refused import Refused
from costscape.sets import Box, Budget, ConstraintSet, Simplex, Whole
from costscape.task import Task

RISKS: dict[str, type[Risk]] = {
    "cvar": CVaR,
    "entropic": Entropic,
    "mean_deviation": MeanDeviation,
    "worst_case": WorstCase,
}
ENDS = ("lower", "upper", "total")
LEVELS = 20  # quantiles that a request may ask for
SLACK = 1e-6  # of the width of the set of the fit, which counts as rounding
Numbers = float | tuple[float, ...]


@dataclass(frozen=True)
class Question:
    """A what-if set and a risk; requests with equal questions are decided in one call.

    Args:
        lower: float or tuple (d,), default None. Lower bounds; None for those of the task.
        upper: float or tuple (d,), default None. Upper bounds.
        total: float, default None. The sum of a Simplex, the largest sum of a Budget.
        risk: Risk, default None. Minimised in place of the expected cost.
        quantiles: tuple of float, default empty. Levels of the cost that are wanted, too.
        service_level: float, default None. Another level of the task's chance.
    """

    lower: Numbers | None = None
    upper: Numbers | None = None
    total: float | None = None
    risk: Risk | None = None
    quantiles: tuple[float, ...] = ()
    service_level: float | None = None

    @classmethod
    def from_json(
        cls, feasible: Any, risk: Any, quantiles: Any = None, service_level: Any = None
    ) -> "Question":
        """Read {"lower": ..., "upper": ..., "total": ...}, {"cvar": 0.9}, [0.1, 0.9] and 0.95.

        None stands for each that is not asked.
        """
        ends = {} if feasible is None else feasible
        if not isinstance(ends, dict) or not set(ends) <= set(ENDS):
            raise Refused(422, f"feasible needs an object with some of {', '.join(ENDS)}.")
        numbers = {name: _numbers(name, value) for name, value in ends.items()}
        total = numbers.pop("total", None)
        if isinstance(total, tuple):
            raise Refused(422, "total needs one number.")
        levels = () if quantiles is None else _levels(quantiles)
        level = None if service_level is None else _number("service_level", service_level)
        return cls(
            **numbers,
            total=total,
            risk=None if risk is None else _risk(risk),
            quantiles=levels,
            service_level=level,
        )

    def to_json(self) -> dict[str, Any]:
        """The set, the risk and the level as a request has them, for the log."""
        found: dict[str, Any] = {}
        ends = {name: getattr(self, name) for name in ENDS}
        if any(value is not None for value in ends.values()):
            found["feasible"] = {name: v for name, v in ends.items() if v is not None}
        if self.risk is not None:
            names = {kind: name for name, kind in RISKS.items()}
            (number,) = vars(self.risk).values()
            found["risk"] = {names[type(self.risk)]: number}
        if self.service_level is not None:
            found["service_level"] = self.service_level
        return found

    def chance(self, known: Chance | None) -> Chance | None:
        """The chance with the level that was asked for; None for that of the task."""
        if self.service_level is None:
            return None
        if known is None:
            raise Refused(
                422,
                "service_level needs a chance constraint, but the task file has none. Add chance "
                "= cs.Chance(h, level) to it.",
            )
        try:
            return replace(known, level=self.service_level)
        except ValueError as error:
            raise Refused(422, str(error)) from error

    def feasible(self, task: Task) -> ConstraintSet | None:
        """The set to decide in; None for that of the task."""
        if self.lower is None and self.upper is None and self.total is None:
            return None
        if task.sets_of is not None:
            raise Refused(422, "The set of this model is a function of x: change x instead.")
        try:
            return self._changed(task.feasible)
        except (ValueError, TypeError) as error:
            raise Refused(422, str(error)) from error

    def _changed(self, C: ConstraintSet) -> ConstraintSet:
        if isinstance(C, Whole):
            # a coordinate without a step has 0 there, and Whole wants NaN for it
            step = C.step.masked_fill(C.step == 0, float("nan"))
            return Whole(self._changed(C.base), step, origin=C.origin)  # type: ignore[arg-type]
        lower, upper = self.lower, self.upper
        if isinstance(C, Simplex) and lower is None and upper is None:
            assert self.total is not None
            return Simplex(total=self.total, dim=C.dim)
        if isinstance(C, Budget) and lower is None:
            total = float(C.total) if self.total is None else self.total
            return Budget(total=total, dim=C.dim, upper=_or(upper, C.upper))
        if isinstance(C, Box) and self.total is None:
            return Box(_or(lower, C.lower), _or(upper, C.upper), dim=C.dim)
        if isinstance(C, Box) and lower is None and not C.lower.any():
            return Budget(total=self.total or 0.0, dim=C.dim, upper=_or(upper, C.upper))
        raise Refused(
            422,
            f"A what-if set needs lower or upper of a Box, total or upper of a Budget or of a Box "
            f"from 0, or total of a Simplex, but this model has a {type(C).__name__}.",
        )


def what_if_fields(task: Task) -> dict[str, Any]:
    """The present numbers of the set that a request may change; null for no limit."""
    C = task.feasible.base if isinstance(task.feasible, Whole) else task.feasible
    if task.sets_of is not None:
        return {}
    if isinstance(C, Simplex):
        return {"total": float(C.total)}
    if isinstance(C, Budget):
        return {"total": float(C.total), "upper": C.upper.tolist()}
    if isinstance(C, Box):
        ends = {"lower": C.lower.tolist(), "upper": C.upper.tolist()}
        return ends if C.lower.any() else {"total": None, **ends}
    return {}


def beyond_fit(C: ConstraintSet, task: Task) -> str | None:
    """A note where C leaves the bounds of the set of the fit; None where it does not."""
    lower, upper = task.feasible.bounds
    low, high = (end.to(lower) for end in C.bounds)
    slack = SLACK * (upper - lower).max()
    if not ((low < lower - slack) | (high > upper + slack)).any():
        return None
    return (
        "The what-if set is wider than the set of the fit. Expected costs beyond are "
        "extrapolated: fit again with the wider set."
    )


def _or(given: Numbers | None, own: Any) -> Any:
    return own if given is None else list(given) if isinstance(given, tuple) else given


def _numbers(name: str, value: Any) -> Numbers:
    if isinstance(value, list) and value:
        return tuple(_number(name, part) for part in value)
    return _number(name, value)


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise Refused(422, f"{name} needs finite numbers, but has something else.")
    return float(value)


def _levels(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= LEVELS:
        raise Refused(422, f"quantiles needs a list of up to {LEVELS} levels such as [0.1, 0.9].")
    levels = tuple(_number("quantiles", level) for level in value)
    if not all(0 < level < 1 for level in levels) or len(set(levels)) < len(levels):
        raise Refused(422, "quantiles needs different levels between 0 and 1.")
    return levels


def _risk(value: Any) -> Risk:
    if not isinstance(value, dict) or len(value) != 1 or not set(value) <= set(RISKS):
        raise Refused(
            422, f'risk needs an object such as {{"cvar": 0.9}}, with one of {", ".join(RISKS)}.'
        )
    ((name, number),) = value.items()
    try:
        build: Any = RISKS[name]
        made: Risk = build(_number(name, number))
    except ValueError as error:
        raise Refused(422, str(error)) from error
    return made
