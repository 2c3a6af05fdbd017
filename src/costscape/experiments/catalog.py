"""The problems and methods that have a name. To add one, add a function and a line."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from costscape.data import Splits, three_gaussians, wind_farm
from costscape.evaluation import Truth
from costscape.methods import DF2, Constant, Method, NearestNeighbours
from costscape.models import LSTM, MLP, Builder
from costscape.tasks import MixtureTruth, SeparableTask, Task, wind_bidding
from costscape.tasks import synthetic_convex as convex_task
from costscape.tasks import synthetic_nonconvex as nonconvex_task
from costscape.train import Training


@dataclass(frozen=True)
class Problem:
    """Data and a task, and what all methods share on it: the encoder and the training.

    ``points`` is the paper's number of attention points; ``source`` says which data this is.
    """

    data: Splits
    task: Task
    encoder: Builder
    training: Training
    points: int
    source: str
    truth: Truth | None = None


def synthetic_convex(seed: int = 0) -> Problem:
    """Three Gaussians, piecewise linear-quadratic cost on [-1, 1]^2."""
    return _synthetic(convex_task(), seed)


def synthetic_nonconvex(seed: int = 0) -> Problem:
    """Three Gaussians, quadratic cost with a cubic on [-2, 2]^2."""
    return _synthetic(nonconvex_task(), seed)


def _synthetic(task: SeparableTask, seed: int) -> Problem:
    made = three_gaussians(seed=seed)
    return Problem(
        data=made.splits,
        task=task,
        encoder=partial(MLP, 2),
        training=Training(epochs=50),
        points=1000,
        source=f"three Gaussians, seed {seed}",
        truth=MixtureTruth(task, made.maps),
    )


def wind_farm_bidding(seed: int = 0) -> Problem:
    """Bids for hours 12 to 23 ahead, from 24 h of a French wind farm (the same for every seed)."""
    return Problem(
        data=wind_farm(),
        task=wind_bidding(),
        encoder=partial(LSTM, hidden=256),
        training=Training(epochs=200),
        points=500,
        source="La Haute Borne wind farm 2014-2015 (ENGIE), embedded",
    )


def df2(p: Problem, seed: int) -> Method:
    """DF2 with its defaults."""
    return DF2(p.task, seed=seed)


def df2_paper(p: Problem, seed: int) -> Method:
    """DF2 as in the paper."""
    return DF2.as_in_paper(
        p.task, points=p.points, encoder=p.encoder, seed=seed, training=p.training
    )


def wsaa_knn(p: Problem, seed: int) -> Method:
    """Weights on the nearest neighbours' outcomes."""
    return NearestNeighbours(p.task, seed=seed)


def constant(p: Problem, seed: int) -> Method:
    """The best constant action."""
    return Constant(p.task, seed=seed)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "synthetic-convex": synthetic_convex,
    "synthetic-nonconvex": synthetic_nonconvex,
    "wind-farm": wind_farm_bidding,
}
METHODS: dict[str, Callable[[Problem, int], Method]] = {
    "df2": df2,
    "df2-paper": df2_paper,
    "wsaa-knn": wsaa_knn,
    "constant": constant,
}
