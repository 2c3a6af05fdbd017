"""Quantile forecasts: Q quantiles of every coordinate of y, joined by the ranks of training rows.

    q_s = m + c_s - mean_r c_r,    c_1 = 0,   c_s = c_(s-1) + softplus(z_s),    s = 1 .. Q
    loss of a coordinate = 2/Q sum_s max( t_s (y - q_s), (t_s - 1) (y - q_s) ),   t_s = (s - 1/2)/Q

The loss is the continuous ranked probability score of the law that gives each q_s the weight 1/Q,

    CRPS = E|Z - y| - 1/2 E|Z - Z'|  =  integral of (F(v) - 1{y <= v})^2 dv,    Z, Z' ~ F,

where Z and Z' are independent draws of that law (Laio and Tamea, 2007). Quantiles cannot cross:
each is the one below it plus a positive number. m and z are linear in the encoder's code. m is the
mean of the quantiles and not the first of them, so that a change of z leaves the location as it
is: training is then several times faster.

Between the levels the quantile function Q(u | x) is linear in u. Beyond the first and the last
level it is flat: the loss has no level there from which a tail could be learned, a demand stays
positive, and the mean of Q(u | x) over u is the mean of the q_s.

A scenario m needs all coordinates j together. An empirical copula joins them:

    y_mj = Q_j( u_mj | x ),    u_mj = ( rank of F_j(y_mj | x_m) among M training rows - 1/2 ) / M

with M training rows (x_m, y_m), evenly spread. All x share the dependence of these ranks (Pinson,
Madsen, Nielsen, Papaefthymiou and Kloeckl, Wind Energy 2009, with a Gaussian copula; the Schaake
shuffle of Clark et al., 2004, with the ranks of observations).
"""

from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import pad, softplus

from costscape.models.forecast_contract import Forecast, ForecastNetwork
from costscape.models.forecasts import LEAST
from costscape.models.mixture_heads import MOST
from costscape.models.scaling import Units
from costscape.scenarios import Scenarios
from costscape.task import Refusal, Task
from costscape.training.settings import AtLeast2


@dataclass(frozen=True)
class Quantiles(Forecast):
    """Quantiles of each coordinate by the pinball loss, joined by the ranks of training rows.

    Args:
        levels: int, default 19. Q, the number of quantiles of each coordinate, at the levels
            (s - 1/2) / Q, s = 1 .. Q.

    The ``draws`` of the method is M, the number of scenarios and of the training rows whose ranks
    join the coordinates. There is no closed form, so ``draws`` cannot be None. A training step has
    a last layer of Q numbers for each coordinate; deciding takes the time of M outcomes. Koenker
    and Bassett, Regression Quantiles, Econometrica 1978.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> x, y = torch.rand(200, 2), 3 + torch.rand(200, 1)
    >>> training = cs.Training(epochs=3, progress=False)
    >>> model = cs.TwoStage(task, cs.Quantiles(9), draws=50, training=training).fit(x, y)
    >>> model.scenarios(x[:2]).values.shape
    torch.Size([2, 50, 1])
    """

    levels: AtLeast2 = 19

    def network(
        self,
        encoder: nn.Module,
        units: Units,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        draws: int | None,
    ) -> "QuantileForecast":
        assert draws is not None
        return QuantileForecast(encoder, units, units.standard(x, y), self.levels, draws)

    def check(self, task: Task, draws: int | None) -> None:
        if draws is None:
            raise Refusal(
                "Quantiles needs draws of at least 1, since its expected cost has no closed "
                "form, but got None. Pass draws=100."
            )


class QuantileForecast(ForecastNetwork):
    """x -> M scenarios of weight 1 / M, one for each row of ``ranks``.

    Args:
        encoder: a module with ``out_features``.
        units: how the network sees x and y.
        labels: all training outcomes, (n, ...), in the network's units. The quantiles of every x
            start at theirs.
        levels: Q.
        draws: M.

    The buffer ``ranks`` (M, ...) holds u. It starts with the same M ranks in a random order for
    each coordinate, so that coordinates are independent until ``calibrate`` is called.
    """

    def __init__(
        self,
        encoder: nn.Module,
        units: Units,
        labels: Float[Tensor, "n ..."],
        levels: int,
        draws: int,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.units = units
        self.y_shape, self.levels = tuple(labels.shape[1:]), levels
        width, size = int(encoder.out_features), prod(self.y_shape)  # type: ignore[arg-type]
        if levels * size * width > MOST:
            raise Refusal(
                f"{levels} quantiles of outcomes of {size} numbers have "
                f"{levels * size * width:.1e} weights in their last layer, and at most {MOST:.0e} "
                f"are sensible. Take fewer levels."
            )
        self.quantiles = nn.Linear(width, size * levels)
        nn.init.zeros_(self.quantiles.weight)
        with torch.no_grad():
            ordered = labels.flatten(1).sort(0).values.double().cpu()
            start = ordered[(len(labels) * _levels(levels, ordered)).long()].T
            steps = start.diff(dim=1).clamp(min=LEAST / levels)
            parts = torch.cat([start.mean(1, keepdim=True), steps.expm1().log()], 1)
            self.quantiles.bias.copy_(parts.flatten())
        self.ranks: Tensor
        order = torch.rand(draws, *self.y_shape).argsort(0)
        self.register_buffer("ranks", ((order + 0.5) / draws).to(labels))

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        y = self._at(x, self.ranks)
        return Scenarios(y.new_full(y.shape[:2], 1 / y.shape[1]), y, own=True)

    def mean(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The mean of the interpolated law, which is that of the quantiles."""
        return self.units.undo(x, self._standard(x).mean(-1).unflatten(-1, self.y_shape))

    def loss(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."], rng: Generator | None = None
    ) -> Float[Tensor, "B"]:
        """The mean CRPS of the coordinates, y in standard deviations of the labels."""
        over = self.units.standard(x, y).flatten(1).unsqueeze(-1) - self._standard(x)
        t = _levels(self.levels, over)
        crps = 2 * torch.maximum(t * over, (t - 1) * over).mean(-1)
        return (crps * self.units.moves.expand(self.y_shape).flatten()).mean(1)

    def samples(
        self, x: Float[Tensor, "B ..."], draws: int, rng: Generator
    ) -> Float[Tensor, "B M ..."]:
        """Outcomes at ranks of random training rows, each moved at random within 1 / M."""
        rows = torch.randint(len(self.ranks), (draws,), generator=rng, device=rng.device)
        noise = torch.rand(draws, *self.y_shape, generator=rng, device=rng.device)
        return self._at(x, self.ranks[rows] + (noise.to(self.ranks) - 0.5) / len(self.ranks))

    def calibrate(
        self, x: Float[Tensor, "n ..."], y: Float[Tensor, "n ..."], rng: Generator
    ) -> None:
        """Store the ranks of M training rows, evenly spread, among each other.

        Ranks, and not F(y | x) as it is: on rows it was trained on, F is closer to 1/2 than on
        others. Equal ones, such as those of outcomes below all quantiles, are ordered at random.
        """
        draws = len(self.ranks)
        rows = torch.linspace(0, len(x) - 1, draws).round().long().to(x.device)
        u = torch.cat([self.cdf(x[i], y[i]) for i in rows.split(1024)])
        order = torch.rand(u.shape, generator=rng, device=rng.device).argsort(0)
        order = order.gather(0, u.gather(0, order).argsort(dim=0, stable=True))
        self.ranks.copy_((order.argsort(0) + 0.5) / draws)

    def cdf(self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """F(y | x) of each coordinate, the inverse of Q(u | x), between t_1 and t_Q."""
        q, z = self._standard(x), self.units.standard(x, y).flatten(1).unsqueeze(-1)
        below = torch.searchsorted(q.contiguous(), z.contiguous()) - 1
        below = below.clamp(0, self.levels - 2)
        low, high = q.gather(-1, below), q.gather(-1, below + 1)
        part = ((z - low) / (high - low).clamp(min=torch.finfo(q.dtype).tiny)).clamp(0, 1)
        u: Tensor = (below + part + 0.5) / self.levels
        return u[..., 0].reshape(-1, *self.y_shape)

    def _at(
        self, x: Float[Tensor, "B ..."], u: Float[Tensor, "M ..."]
    ) -> Float[Tensor, "B M ..."]:
        """Q(u | x) in the user's units: linear between the levels, flat beyond."""
        place = (u.flatten(1).T * self.levels - 0.5).clamp(0, self.levels - 1)
        below = place.long().clamp(max=self.levels - 2)
        coordinate = torch.arange(len(place), device=u.device)[:, None]
        q = self._standard(x)
        z = torch.lerp(q[:, coordinate, below], q[:, coordinate, below + 1], place - below)
        return self.units.undo(x, z.mT.unflatten(-1, self.y_shape))

    def _standard(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B d Q"]:
        """The quantiles of each coordinate, in the network's units."""
        z = self.quantiles(self.encoder(self.units.inputs(x))).unflatten(-1, (-1, self.levels))
        c = pad(softplus(z[..., 1:]), (1, 0)).cumsum(-1)
        q: Tensor = z[..., :1] + c - c.mean(-1, keepdim=True)
        return q


def _levels(levels: int, like: Tensor) -> Float[Tensor, "Q"]:
    return (torch.arange(levels, device=like.device, dtype=like.dtype) + 0.5) / levels
