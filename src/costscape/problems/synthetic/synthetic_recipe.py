"""The two synthetic problems of the paper, as they are run."""

from functools import partial

from costscape.models import MLP
from costscape.problems.problem import Problem, fixed_epochs
from costscape.problems.synthetic import synthetic_costs
from costscape.problems.synthetic.synthetic_costs import MixtureTruth
from costscape.problems.synthetic.three_gaussians import three_gaussians
from costscape.task import SeparableTask


def synthetic_convex(seed: int = 0) -> Problem:
    """Three Gaussians, piecewise linear-quadratic cost on [-1, 1]^2."""
    return _synthetic(synthetic_costs.synthetic_convex(), seed)


def synthetic_nonconvex(seed: int = 0) -> Problem:
    """Three Gaussians, quadratic cost with a cubic on [-2, 2]^2."""
    return _synthetic(synthetic_costs.synthetic_nonconvex(), seed)


def _synthetic(task: SeparableTask, seed: int) -> Problem:
    made = three_gaussians(seed=seed)
    return Problem(
        data=made.splits,
        task=task,
        encoder=partial(MLP, 2),
        training=fixed_epochs(50),
        points=1000,
        variances=(0.01, 0.02, 0.05),
        source=f"three Gaussians, seed {seed}",
        truth=MixtureTruth(task, made.maps),
    )
