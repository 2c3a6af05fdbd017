"""The problems ``shortest-path-degN`` and ``shortest-path-linear-degN``, as runs use them."""

from dataclasses import replace
from functools import partial

from costscape.models import MLP, Flat
from costscape.models.encoders import LINEAR_RATE
from costscape.problems.grid_paths.edge_costs import PathTruth, edge_costs
from costscape.problems.grid_paths.shortest_path import shortest_path
from costscape.problems.problem import Problem, fixed_epochs
from costscape.sets import Finite
from costscape.training import Training

FEATURES = 5


def grid_path(seed: int = 0, degree: int = 4) -> Problem:
    """A path through a grid of 5 x 5 nodes; costs are a power N of x (1 to 8)."""
    task = shortest_path()
    assert isinstance(task.feasible, Finite)
    made = edge_costs(edges=task.feasible.dim, features=FEATURES, degree=degree, seed=seed)
    return Problem(
        data=made.splits,
        task=task,
        encoder=partial(MLP, FEATURES),
        training=fixed_epochs(200),
        points=500,
        variances=(0.02, 0.05, 0.1),
        source=f"5 x 5 grid, costs of degree {degree}, noise 0.5, seed {seed}",
        truth=PathTruth(task.feasible, made.map, degree),
    )


def linear_grid_path(seed: int = 0, degree: int = 6) -> Problem:
    """The same paths for methods linear in x; degree 6 is the task of LANCER's paper."""
    problem = grid_path(seed, degree)
    schedule, source = Training(lr=LINEAR_RATE), problem.source.replace(", seed", ", linear, seed")
    return replace(problem, encoder=Flat, network=Flat, schedule=schedule, source=source)
