"""Send vaccine to the regions of an epidemic before next week's travel is known.

    f(y, a) = people infected within the horizon of an SEIRV epidemic (``seirv``) in which people
              travel by y (7 days, K, K) and region k gets a_k / 7 doses on each of seven days

a is in ``unit`` doses, by default millions: decisions are then of the size of one, as solvers
and networks like them, and f stays in people. y[t, i, j] is the share of day t's trips from i that
end in j != i (``trip_shares`` makes it from counts). f is nearly linear in a and not quite convex.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.problems.vaccine_doses.epidemic import Epidemic
from costscape.problems.vaccine_doses.seirv import WEEK, as_shares, new_infections
from costscape.problems.vaccine_doses.seirv_fused import Course
from costscape.sets.budget import Budget
from costscape.task import Refusal, Task


def vaccine(
    epidemic: Epidemic,
    *,
    total: float = 5e6,
    unit: float = 1e6,
    steps: int = 2,
) -> Task:
    """The paper's problem: one week, at most ``total`` doses (people), no other limit.

    Travel hardly matters within one week: the best plan for the average week is within about 0.1
    infections of the best plan in hindsight. ``vaccine_wave`` is where knowing y pays. In single
    precision such regrets drown in rounding; score with ``task.double()``. ``steps`` is
    that of ``simulate``.
    """
    return _task(epidemic, total, unit, WEEK, steps, None)


def vaccine_wave(
    epidemic: Epidemic,
    *,
    total: float = 5e6,
    cap: float = 0.1,
    beta: float | Float[Tensor, "K"] | None = 0.4,
    weeks: int = 8,
    unit: float = 1e6,
    steps: int = 2,
) -> Task:
    """A wave of ``weeks`` weeks, each with the travel of y; doses are given in the first.

    At most ``cap`` of a region's people can be reached in the week. ``beta`` None keeps the
    epidemic's own.
    """
    if not 0 < cap <= 1:
        raise ValueError(
            f"vaccine_wave needs cap, a share of each region's people, above 0 and at most 1, "
            f"but got {cap}."
        )
    if weeks < 1:
        raise ValueError(f"vaccine_wave needs weeks of at least 1, but got {weeks}.")
    if beta is not None:
        epidemic = epidemic.with_beta(beta)
    return _task(epidemic, total, unit, WEEK * weeks, steps, cap)


def proportional(task: Task) -> Float[Tensor, "K"]:
    """The plan that sends doses in proportion to people, as far as the caps allow."""
    f = task.f
    if not isinstance(f, NewInfections) or not isinstance(task.feasible, Budget):
        raise Refusal(
            f"proportional needs a task made by vaccine or vaccine_wave, which knows its regions' "
            f"people, but got one whose cost is a {type(f).__name__}."
        )
    share = f.population / f.population.sum()
    return (share * task.feasible.total).minimum(task.feasible.upper)


HELD = 50  # numbers for each region that a simulation of a week holds for its gradient


class NewInfections(nn.Module):
    """f above; y (*batch, 7, K, K) against a (*batch, K), broadcast."""

    population: Tensor
    start: Tensor
    beta: Tensor

    def __init__(self, epidemic: Epidemic, days: int, unit: float, steps: int) -> None:
        super().__init__()
        if steps < 1:
            raise ValueError(f"The simulation needs steps a day of at least 1, but got {steps}.")
        self.days, self.unit, self.steps = days, unit, steps
        self.sigma, self.gamma = epidemic.sigma, epidemic.gamma
        vaccinated = torch.zeros_like(epidemic.shares[:1])
        self.register_buffer("population", epidemic.population)
        self.register_buffer("start", torch.cat([epidemic.shares, vaccinated]))
        self.register_buffer("beta", epidemic.beta)

    def forward(self, y: Float[Tensor, "..."], a: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.by_region(y, a).sum(-1)

    def by_region(
        self, y: Float[Tensor, "..."], a: Float[Tensor, "..."]
    ) -> Float[Tensor, "... K"]:
        """The summands of f: people infected in each region."""
        K = len(self.population)
        if y.ndim < 3 or y.shape[-3:] != (WEEK, K, K) or a.shape[-1] != K:
            raise ValueError(
                f"An epidemic of {K} regions needs shares y of shape (..., {WEEK}, {K}, {K}) and "
                f"doses a of shape (..., {K}), but got {tuple(y.shape)} and {tuple(a.shape)}."
            )
        course = Course(self.sigma, self.gamma, self.days, WEEK, self.steps)
        doses = a * (self.unit / WEEK)
        return new_infections(self.start, as_shares(y), doses, self.beta, self.population, course)


def _task(
    epidemic: Epidemic,
    total: float,
    unit: float,
    days: int,
    steps: int,
    cap: float | None,
) -> Task:
    if not unit > 0:
        raise ValueError(f"unit is how many doses one unit of a is, above 0, but got {unit}.")
    people = epidemic.population
    feasible = Budget(
        total=people.new_tensor(total / unit),
        dim=len(people),
        upper=None if cap is None else cap * people / unit,
    )
    return Task(
        NewInfections(epidemic, days, unit, steps),
        feasible,
        y_dims=3,
        width=HELD * len(people),
    )
