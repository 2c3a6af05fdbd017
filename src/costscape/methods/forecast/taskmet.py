"""TaskMet: learn the metric in which the forecast is fitted, from what its decisions cost.

    theta*(phi) = argmin  l(theta, phi) = mean_(x, y)  e' A_phi(x) e / m,   e = c_theta(x) - y
    minimise over phi     L(theta*) = mean_(x, y)  f(y, a*(c_theta*(x)))

    dL/dphi = -(dL/dtheta) (d2l/dtheta2)^-1 (d2l/dtheta dphi)        (implicit function theorem)

with a* the argmin of f(c_theta(x), .) over C, differentiated by its optimality conditions, or by
``SoftChoice`` on a list.

Bansal, Chen, Mukadam and Amos, TaskMet: Task-Driven Metric Learning for Model Learning,
NeurIPS 2023.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, prod

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from costscape.data import Dataset
from costscape.methods.forecast.alternating import PointRounds
from costscape.methods.forecast.forecast_method import Network
from costscape.methods.method import seeded
from costscape.models import Builder
from costscape.models.forecasts import Forecast, Point, PointForecast
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Solver, argmin_layer
from costscape.task import Refusal, Task
from costscape.training import Fit, History, Training, fit_all
from costscape.training.settings import Count, Decay, NotNegative, Positive

FULL = 16  # numbers in an outcome, up to which the metric is a full matrix

Tensors = list[Tensor]


def _inner() -> Training:
    return Training(epochs=60, batch_size=64, lr=1e-3, decay=False, patience=20, smooth=5)


@dataclass
class TaskMet(PointRounds):
    """Fits a point forecast by least squares, then in a metric learned from decision costs.

    Each round fits theta in the metric for ``steps`` batches, rounded up to whole epochs, then
    moves the metric by one step of Adam. The round whose decisions cost least on the validation
    rows is used, with the least-squares start as round 0.

    The metric starts at the identity; that of the authors' code is the identity plus a small
    random matrix, from which the same rounds ended 0.2 % higher on small samples.

    e' A e is the same for e and -e: a forecast flexible enough to be the mean of y given x is that
    mean in every metric. The metric decides where and in which coordinates a forecast of too few
    parameters errs; it cannot shift a forecast towards the cheaper side of a lopsided cost.

    Args:
        task: Task. The cost and the feasible set.
        forecast: Forecast, default Point(), the only one that is accepted.
        rounds: int, default 50. Number of steps of the metric.
        steps: int, default 100. Number of batches on which theta is fitted in each round.
        rate: float, default 1e-3, the paper's. Learning rate of the metric.
        batch_size: int, default 256. Number of pairs in one step of the metric.
        width: int, default 200, the paper's. Units in the hidden layer of the metric.
        iterations: int, default 5, the paper's. Iterations of conjugate gradients on
            (H^2 + ridge) u = H dL/dtheta, with H = d2l/dtheta2.
        ridge: float, default 1e-5, the paper's. Number added to the diagonal of H^2, so that
            directions whose curvature is below the square root of it count little.
        full: bool, default None: True for outcomes of up to 16 numbers. True: A = L L' + exp(c)
            with a lower triangular L; False: a diagonal L.
        inner: Training, default 64 rows a batch at a constant rate of 1e-3. Batch size and
            learning rate of the fit of theta in each round; ``steps`` sets its epochs. Its
            checkpoint, device and progress are not used; those of ``training`` apply.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences.
        level: function from x, shape (B, ...), to one positive number for each row, shape (B,),
            default None. Windows and outcomes are divided by that number, as in WindowLevels.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network; None uses the weights of the epoch itself.
        solver: Solver, default Auto(), the strongest one that accepts the problem. Minimises the
            expected cost over the feasible set.
        training: Training, default Training(). Epochs, learning rate, device and so on, of the
            least-squares start.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.TaskMet(cs.problems.inventory(days=2), rounds=1, steps=1, training=training)
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    task: Task
    forecast: Forecast = field(default_factory=Point)
    rounds: Count = 50
    steps: Count = 100
    rate: Positive = 1e-3
    batch_size: Count = 256
    width: Count = 200
    iterations: Count = 5
    ridge: NotNegative = 1e-5
    full: bool | None = None
    inner: Training = field(default_factory=_inner)
    encoder: Builder | None = None
    level: Level | None = None
    ema: Decay | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        assert isinstance(model, PointForecast)
        layer = argmin_layer(task.feasible, self.solver)
        smooth = task.relaxed()  # whole units have no slope
        if reason := layer.refuses(smooth):
            raise Refusal(f"TaskMet differentiates the decision, and that {reason}.")
        start = self._by_likelihood(task, model, train, val)
        x, size = train.x, prod(train.y.shape[1:])
        full = size <= FULL if self.full is None else self.full
        with seeded(self.seed, x.device):
            metric = Metric(x[0].numel(), size, self.width, full).to(x)
        optimiser = torch.optim.Adam(metric.parameters(), lr=self.rate)
        rows = self.steps * self.inner.batch_size
        inner = self._within(self.inner, ceil(rows / len(train)))
        theta = [p for p in model.parameters() if p.requires_grad]
        phi = list(metric.parameters())

        def turn(t: int) -> float:
            rng = Generator().manual_seed(self.seed + t)
            part = _some(train, rows, rng)
            metric.requires_grad_(False)
            fit = Fit(
                model,
                lambda batch, _: distance(model, metric, batch).mean(),
                seed=self.seed + t,
                ema=self.ema,
            )
            fit_all([fit], part, inner)
            metric.requires_grad_(True)
            part = _some(train, self.batch_size, rng)
            # cuDNN's recurrent networks have no second derivative
            with torch.backends.cudnn.flags(enabled=False):
                outer = task.cost(part.y, layer(self._cost(smooth, model, part.x))).mean()
                slope = torch.autograd.grad(outer, theta)
                inside = distance(model, metric, part).mean()
                moved = hypergradient(inside, slope, theta, phi, self.iterations, self.ridge)
            for p, g in zip(phi, moved, strict=True):
                p.grad = g
            optimiser.step()
            return outer.item()

        parts = {"metric": metric, "optimiser": optimiser}
        return [start, self._take_turns(task, model, parts, turn, train, val)]


class Metric(nn.Module):
    """A_phi(x) = L(x) L(x)' + exp(c), the identity at first; L linear in a hidden layer of x."""

    def __init__(self, features: int, size: int, width: int, full: bool) -> None:
        super().__init__()
        self.full = full
        rows, columns = torch.tril_indices(size, size) if full else torch.arange(size).repeat(2, 1)
        self.where = (rows, columns)
        self.code = nn.Sequential(nn.Flatten(), nn.Linear(features, width), nn.ReLU())
        self.root = nn.Linear(width, len(rows))
        nn.init.zeros_(self.root.weight)
        with torch.no_grad():
            self.root.bias.copy_((rows == columns) * 0.5**0.5)
        self.c = nn.Parameter(torch.tensor(0.5).log())

    def forward(self, x: Float[Tensor, "B ..."], e: Float[Tensor, "B m"]) -> Float[Tensor, "B"]:
        """e' A(x) e of each row; x as the network sees it."""
        root: Tensor = self.root(self.code(x))
        if not self.full:
            return ((root.square() + self.c.exp()) * e.square()).sum(1)
        rows, columns = self.where
        L: Tensor = root.new_zeros(len(x), e.shape[1], e.shape[1])
        L[:, rows, columns] = root
        return (L.mT @ e[..., None]).square().sum((1, 2)) + self.c.exp() * e.square().sum(1)


def distance(model: PointForecast, metric: Metric, batch: Dataset) -> Float[Tensor, "B"]:
    """e' A(x) e / m of each pair, in standard deviations of the labels."""
    units = model.units
    e = units.standard(batch.x, model.mean(batch.x)) - units.standard(batch.x, batch.y)
    e = e.flatten(1)
    each: Tensor = metric(units.inputs(batch.x), e)
    return each / e.shape[1]


def hypergradient(
    inside: Tensor,
    slope: Sequence[Tensor],
    theta: Sequence[Tensor],
    phi: Sequence[Tensor],
    iterations: int,
    ridge: float,
) -> Tensors:
    """-(dL/dtheta) H^-1 (d2l/dtheta dphi) at a minimum of ``inside`` = l(theta, phi)."""
    first = torch.autograd.grad(inside, theta, create_graph=True)

    def curve(v: Tensors) -> Tensors:
        return list(
            torch.autograd.grad(first, theta, v, retain_graph=True, materialize_grads=True)
        )

    u = normal_cg(curve, list(slope), iterations, ridge)
    minus = [-each for each in u]
    return list(torch.autograd.grad(first, phi, minus, materialize_grads=True))


def normal_cg(
    curve: Callable[[Tensors], Tensors], b: Tensors, iterations: int, ridge: float = 0.0
) -> Tensors:
    """u with (H^2 + ridge) u = H b, near H u = b; H v = curve(v) is symmetric, of any sign."""
    u = [torch.zeros_like(each) for each in b]
    r = curve(b)
    p, rr = r, _dot(r, r)
    for _ in range(iterations):
        Hp = curve(p)
        size = _dot(Hp, Hp) + ridge * _dot(p, p)
        step = rr / size.clamp(min=torch.finfo(rr.dtype).tiny)
        u = _add(u, step, p)
        r = _add(_add(r, -step, curve(Hp)), -ridge * step, p)
        new = _dot(r, r)
        p = _add(r, new / rr.clamp(min=torch.finfo(rr.dtype).tiny), p)
        rr = new
    return u


def _dot(a: Tensors, b: Tensors) -> Tensor:
    return torch.stack([(x * y).sum() for x, y in zip(a, b, strict=True)]).sum()


def _add(a: Tensors, s: Tensor, b: Tensors) -> Tensors:
    return [x + s * y for x, y in zip(a, b, strict=True)]


def _some(data: Dataset, rows: int, rng: Generator) -> Dataset:
    i = torch.randperm(len(data), generator=rng)[:rows].to(data.x.device)
    return Dataset(data.x[i], data.y[i])
