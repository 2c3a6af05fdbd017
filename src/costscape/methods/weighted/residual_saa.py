"""Residual sample average approximation: a regression of y on x, and its residuals as scenarios.

    g(x, a) = mean_i f(y_hat(x) + e_i, a),                          e_i = y_i - y_hat(x_i)
    scaled:   mean_i f(y_hat(x) + sigma(x) e_i / sigma(x_i), a)

y_hat is a ridge regression on standardised features, log sigma one of log |e_i|.

Kannan, Bayraksan and Luedtke, Data-Driven Sample Average Approximation with Covariate
Information, Optimization Online 2020 (ER-SAA; leave-one-out residuals: J-SAA). The same,
Heteroscedasticity-aware Residuals-based Contextual Stochastic Optimization, arXiv 2101.03139,
2021 (the scaled form).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from costscape.data import Dataset
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.weighted.residual_model import Residuals, Spread, spread_rows
from costscape.methods.weighted.ridge_path import RidgePath
from costscape.methods.weighted.weighted_labels import score_of_weights
from costscape.models import Units
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training.settings import Count, Positive

RIDGES = (100.0, 10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)


@dataclass
class ResidualSAA(ScenarioMethod):
    """A ridge regression of y on x plus the residuals of the training rows.

    Args:
        task: Task.
        ridge: positive float or None, the default. The penalty n ridge |B|^2 on the coefficients
            B of standardised features. None takes the one of 100, 10, 1, 0.1, 0.01, 0.001, 0.0001
            whose decisions cost least on validation.
        scaled: bool, default False. True divides each residual by sigma(x_i) and multiplies it by
            sigma(x), so that the spread of y may depend on x. log sigma is a ridge regression of
            log |e| with the same penalty, for each number of y. sigma is at least 0.01 root mean
            squares of the residuals, and at most its largest value on the training rows.
        leave_one_out: bool, default False. True takes the residual of row i from the fit without
            row i, e_i / (1 - h_ii), which is larger than e_i.
        k: int, tuple of int or None, the default. How many residuals: those of the k training
            rows nearest to x in Euclidean distance of standardised features. A tuple takes the
            one of its numbers whose decisions cost least on validation. None takes all rows.
        support: pair of floats (low, high) or None, the default. Outcomes are projected onto
            this interval, in the units of y.
        residuals: int or None, default 1000. The most residuals that are used where k is None,
            evenly spread over the rows. None uses all.
        level: function of x or None, the default. x (B, ...) -> B positive numbers; the regression
            sees windows and outcomes as multiples of this level, as with ``WindowLevels``.
        solver: Solver, default Auto().
        seed: int, default 0. Not used: the fit draws no random numbers.

    Cost: one singular value decomposition of the n x p features, and one validation score for
    each setting tried. A decision for one x has min(n, ``residuals``) or k scenarios.

    >>> import torch, costscape as cs
    >>> x = torch.linspace(0, 1, 100)[:, None]
    >>> y = 1 + x + 0.1 * torch.tensor([-1.0, 1.0]).repeat(50)[:, None]
    >>> task = cs.SeparableTask(lambda y, a: (y - a) ** 2, cs.Box(0.0, 4.0, dim=1), convex=True)
    >>> cs.ResidualSAA(task, ridge=1e-6).fit(x, y).decide([[1.2]]).round(1)
    array([[2.2]])
    """

    task: Task
    ridge: Positive | None = None
    scaled: bool = False
    leave_one_out: bool = False
    k: Count | tuple[Count, ...] | None = None
    support: tuple[float, float] | None = None
    residuals: Count | None = 1000
    level: Level | None = None
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.support is not None and not self.support[0] <= self.support[1]:
            raise ValueError(
                f"ResidualSAA needs support to be a pair low <= high, but got {self.support}. "
                f"Swap the two."
            )

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        if isinstance(self.k, int) and self.k > len(train):
            raise ValueError(
                f"k needs to be from 1 to the {len(train)} training rows, but is {self.k}."
            )
        models = list(self._models(train))
        if len(models) > 1:
            score = score_of_weights(task, train[: self.residuals], val, self.solver)
            models = [min(models, key=score)]
        self.model_ = models[0]

    def _models(self, train: Dataset) -> Iterator[Residuals]:
        """All pairs of ridge and k tried; one decomposition serves them all."""
        n = len(train)
        units = Units(train.x, train.y, self.level)
        z = units.inputs(train.x).flatten(1)
        y = units.standard(train.x, train.y).flatten(1)
        path = RidgePath(z)
        small = [k for k in _sizes(self.k) if k <= n]
        sizes: Sequence[int | None] = small or [None if self.k is None else n]
        rows = spread_rows(n, self.residuals if self.k is None else None).to(z.device)
        for ridge in RIDGES if self.ridge is None else (self.ridge,):
            line = path.fit(y, ridge)
            e = line.left_out() if self.leave_one_out else line.residuals
            spread = None
            if self.scaled:
                spread = Spread(e, path, ridge)
                e = e / spread(path.z)
            noise = e[rows].unflatten(-1, train.y.shape[1:])
            for k in sizes:
                near = None if k is None else z
                model = Residuals(units, line, noise, spread, near, k, self.support, ridge)
                yield model.to(train.y.dtype)

    def resolved_defaults(self, train: Dataset) -> dict[str, Any]:
        return {"ridges": list(RIDGES)} if self.ridge is None else {}

    def chosen(self) -> dict[str, Any]:
        model = self.model_
        return {"ridge": model.ridge, "k": model.k} if isinstance(model, Residuals) else {}

    def _facts(self) -> dict[str, Any]:
        model = self.model_
        assert isinstance(model, Residuals)
        return {"rows": len(model.noise), "ridge": model.ridge, "k": model.k}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        # built on one row, then stretched: the decomposition of many would take its time
        like = replace(self, ridge=facts["ridge"], k=None if facts["k"] is None else 1)
        model = next(like._models(Dataset(*self._blank(1))))
        model.k = facts["k"]
        model.noise = model.noise.repeat_interleave(facts["rows"], 0)
        if model.x is not None:
            model.x = model.x.repeat_interleave(facts["rows"], 0)
        return model


def _sizes(k: int | tuple[int, ...] | None) -> tuple[int, ...]:
    return () if k is None else (k,) if isinstance(k, int) else tuple(k)
