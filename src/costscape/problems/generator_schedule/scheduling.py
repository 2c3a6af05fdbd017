"""Schedule tomorrow's generation, hour by hour, with a limit on how fast it changes.

Per hour, y the load and a the generation,

    f(y, a) = sum_i short (y_i - a_i)+ + spare (a_i - y_i)+ + (a_i - y_i)^2 / 2
    subject to  |a_i - a_{i-1}| <= ramp,  lower <= a_i <= upper,

with short = 50, spare = 0.5 and ramp = 0.4 (Donti, Amos and Kolter, 2017, section 4.2; there
gamma_s, gamma_e and c_r). Their schedule has no bounds; a set that can be sampled needs them.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.problems.two_sided import TwoSided, check_prices
from costscape.sets import Polytope
from costscape.task import SeparableTask


def generator_scheduling(
    hours: int = 24,
    *,
    short: float = 50.0,
    spare: float = 0.5,
    ramp: float = 0.4,
    lower: float = 0.5,
    upper: float = 3.5,
) -> SeparableTask:
    """Minimise f over schedules whose hourly changes are at most ``ramp``.

    Reference: Donti, Amos and Kolter, Task-based End-to-end Model Learning in Stochastic
    Optimization, NeurIPS 2017. The set is a Polytope of 2 (hours - 1) + 2 hours rows, built in
    about two seconds. ``RampLimits`` decides.

    Args:
        hours: int, default 24. Numbers of a schedule and of an outcome.
        short: float, default 50. Price of a unit of load that is not served.
        spare: float, default 0.5. Price of a unit of generation that is not used.
        ramp: float > 0, default 0.4. Largest change between one hour and the next.
        lower: float, default 0.5. Least generation. PJM's load from 2008 to 2016 lies between
            1.01 and 3.06.
        upper: float, default 3.5. Most generation.

    Returns:
        A convex SeparableTask with cost in cvxpy, mean under normal laws, and, where shortage is
        dear enough for it, the best schedule in hindsight (see ``LeastMajorant``).

    >>> task = generator_scheduling(hours=2)
    >>> task.cost(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 1.9]))
    tensor(5.3800)
    """
    check_prices("generator_scheduling", {"short": short, "spare": spare})
    if not (ramp > 0 and lower < upper and hours >= 1):
        raise ValueError(
            f"generator_scheduling needs hours >= 1, ramp > 0 and lower < upper, but got hours "
            f"{hours}, ramp {ramp:g}, lower {lower:g} and upper {upper:g}. The ramp is in units "
            f"of load an hour."
        )
    cost = TwoSided(short=short, spare=spare, short_squared=0.5, spare_squared=0.5, cubic=0.0)
    best = LeastMajorant(ramp, lower, upper)
    return SeparableTask(
        cost,
        ramp_limits(hours, ramp, lower, upper),
        convex=True,
        hindsight=best if best.is_optimal(hours, short, spare) else None,
        cvxpy=cost.cvxpy,
        normal=cost.mean,
    )


def ramp_limits(hours: int, ramp: float, lower: float, upper: float) -> Polytope:
    """Return {a : |a_i - a_{i-1}| <= ramp, lower <= a_i <= upper}."""
    up = np.eye(hours - 1, hours, 1) - np.eye(hours - 1, hours)
    one = np.eye(hours)
    limits = [ramp, ramp, upper, -lower]
    rows = [up, -up, one, -one]
    return Polytope(
        G=np.concatenate(rows).tolist(),
        h=np.repeat(limits, [len(part) for part in rows]).tolist(),
    )


@dataclass(frozen=True)
class LeastMajorant:
    """y -> the lowest schedule within the limits that serves all load: the best in hindsight.

        a_i = max_j  clip(y_j, lower, upper) - ramp |i - j|

    Lowering a peak by a little saves the spare generation of the hours that it holds up, each at
    most spare + (its excess), and costs ``short``. The schedule is therefore optimal where the
    excess hours of one peak never save as much, see ``is_optimal``.
    """

    ramp: float
    lower: float
    upper: float

    def __call__(self, y: Float[Tensor, "*batch h"]) -> Float[Tensor, "*batch h"]:
        hour = torch.arange(y.shape[-1], device=y.device)
        away = self.ramp * (hour[:, None] - hour).abs().to(y.dtype)
        return (y.clip(self.lower, self.upper)[..., None, :] - away).amax(-1)

    def is_optimal(self, hours: int, short: float, spare: float) -> bool:
        """Whether a peak of the full height, above hours at ``lower``, is worth serving."""
        excess = (self.upper - self.lower) - self.ramp * np.arange(1, hours)
        one_side = (spare + excess)[excess > 0]
        return bool(2 * one_side.sum() <= short)
