"""The problems ``cubic-top1`` and ``cubic-top1-linear``, as runs use them."""

from dataclasses import replace
from functools import partial

from costscape.models.encoders import LINEAR_RATE
from costscape.problems.one_resource.cubic_values import cubic_values
from costscape.problems.one_resource.one_line import OneLine
from costscape.problems.one_resource.shared_encoder import SharedEncoder
from costscape.problems.one_resource.top_one import top_one
from costscape.problems.problem import Problem, fixed_epochs
from costscape.training import Training

RESOURCES = 50


def cubic_top_one(seed: int = 0) -> Problem:
    """One of 50 resources whose values are a cubic of their feature."""
    return Problem(
        data=cubic_values(resources=RESOURCES, seed=seed),
        task=top_one(RESOURCES),
        encoder=partial(SharedEncoder, RESOURCES),
        network=partial(SharedEncoder, RESOURCES),
        training=fixed_epochs(200),
        points=500,
        variances=(0.02, 0.05, 0.1),
        source=f"50 resources, a cubic of one feature each, seed {seed}",
    )


def cubic_top_one_linear(seed: int = 0) -> Problem:
    """The same with one line for all resources as the forecast, as in the paper's task."""
    problem = cubic_top_one(seed)
    schedule, source = Training(lr=LINEAR_RATE), f"{problem.source}, one line"
    return replace(problem, encoder=OneLine, network=OneLine, schedule=schedule, source=source)
