"""The true law of a synthetic problem, and laws made from its moments."""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.problems import MixtureTruth
from costscape.problems.problem import Problem
from costscape.problems.synthetic.three_gaussians import MIXTURE, VARIANCE
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers import Separable
from costscape.task import SeparableTask

DEVIATION = VARIANCE**0.5


def known_parts(problem: Problem) -> tuple[SeparableTask, MixtureTruth]:
    """The task in double precision, and the truth."""
    task, truth = deepcopy(problem.task).double(), problem.truth
    assert isinstance(task, SeparableTask)
    assert isinstance(truth, MixtureTruth)
    return task, truth


def means(truth: MixtureTruth, x: Float[Tensor, "B p"]) -> Float[Tensor, "B 3 d"]:
    """The means A_c x of the three Gaussians."""
    return torch.einsum("cij,bj->bci", truth.maps.double(), x.double())


def weights() -> Float[Tensor, "3"]:
    return torch.tensor(MIXTURE, dtype=torch.float64)


def cost_of_normals(
    task: SeparableTask,
    w: Float[Tensor, "B k"],
    m: Float[Tensor, "B k d"],
    s: Float[Tensor, "B k d"],
) -> ExpectedCost:
    """g(x, .) for a mixture of k Gaussians, in closed form."""
    return ExpectedCost(task.of_normals(), Scenarios(w, torch.cat([m, s], -1), own=True))


def argmin(g: ExpectedCost) -> Float[Tensor, "B d"]:
    """The action of least expected cost for each row."""
    return Separable().minimise(g, g.task.feasible, len(g)).action


def digits(value: Tensor | float) -> float:
    """Four digits, enough to draw."""
    return float(f"{float(value):.4g}")
