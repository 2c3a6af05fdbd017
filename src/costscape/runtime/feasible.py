"""The feasible set of an exported model, checked with numpy.

    lower <= a <= upper,   A a = b,   G a <= h,   a_i = origin_i + k_i step_i with whole k_i

Rows and steps are there only where the set has them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The set C of the decisions.

    Args:
        kind: str. The class of the set, such as "Box".
        lower: numpy array (d,). The least action of each coordinate.
        upper: numpy array (d,). The largest.
        tolerance: float. Violation that counts as rounding, in the units of a.
        A: numpy array (e, d). Rows of A a = b that couple coordinates; may have none.
        b: numpy array (e,).
        G: numpy array (m, d). Rows of G a <= h; may have none.
        h: numpy array (m,).
        step: numpy array (d,) or None. Whole multiples of it are allowed.
        origin: numpy array (d,) or None. One of the allowed values.

    >>> import numpy as np
    >>> box = FeasibleSet.from_json({"kind": "Box", "lower": [0], "upper": [2], "tolerance": 1e-5})
    >>> box.violation(np.array([[1.0], [2.5]])).tolist()
    [0.0, 0.5]
    """

    kind: str
    lower: Numbers
    upper: Numbers
    tolerance: float
    A: Numbers
    b: Numbers
    G: Numbers
    h: Numbers
    step: Numbers | None = None
    origin: Numbers | None = None

    @classmethod
    def from_json(cls, found: Any) -> "FeasibleSet":
        """Read the set from metadata; ValueError or TypeError where it is none."""
        lower, upper = (_vector(found[name]) for name in ("lower", "upper"))
        d = len(lower)
        rows = {}
        for matrix, ends in (("A", "b"), ("G", "h")):
            end = _vector(found.get(ends, []))
            rows[matrix] = _vector(found.get(matrix, [])).reshape(len(end), d)
            rows[ends] = end
        step, origin = (found.get(name) and _vector(found[name]) for name in ("step", "origin"))
        made = cls(
            str(found["kind"]),
            lower,
            upper,
            float(found["tolerance"]),
            **rows,
            step=step,
            origin=origin,
        )
        sizes = {len(v) for v in (upper, step, origin) if v is not None}
        if d < 1 or sizes != {d} or (upper < lower).any() or (step is None) != (origin is None):
            raise ValueError("the set has bounds that do not fit together")
        return made

    @property
    def dim(self) -> int:
        """How many numbers a decision has."""
        return len(self.lower)

    def violation(self, a: Numbers) -> Numbers:
        """How far each action (n, d) breaks its worst constraint; NaN where it is no number."""
        worst = [self.lower - a, a - self.upper]
        if len(self.b):
            worst.append(np.abs(a @ self.A.T - self.b) / np.abs(self.A).max(1))
        if len(self.h):
            worst.append((a @ self.G.T - self.h) / np.abs(self.G).max(1))
        if self.step is not None and self.origin is not None:
            k = np.round((a - self.origin) / self.step)
            worst.append(np.abs(a - self.origin - k * self.step))
        violation: Numbers = np.maximum(np.concatenate(worst, 1).max(1), 0.0)
        return violation

    def check(self, a: Numbers) -> None:
        """Raise RuntimeError where an action lies outside the set."""
        violation = self.violation(a)
        bad = ~(violation <= self.tolerance)  # written so that NaN is bad
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise RuntimeError(
                f"The exported model returned a decision outside its {self.kind}: row {i} breaks "
                f"a constraint by {violation[i]:g}, where {self.tolerance:g} is put down to "
                f"rounding ({int(bad.sum())} such rows). Export the model again."
            )


def _vector(values: Any) -> Numbers:
    array = np.array(values, dtype=np.float64).reshape(-1)
    if not np.isfinite(array).all():
        raise ValueError("the set has numbers that are not finite")
    return array
