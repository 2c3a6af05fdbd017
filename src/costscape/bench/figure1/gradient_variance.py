"""Panel 2: the variance of DFL's gradient, by the number of draws from the forecast.

    variance = sum over weights w of  Var( d/dw mean_b f(y_b, a*(x_b; y_1, ..., y_M)) )

over fresh draws y_1, ..., y_M, at the weights where the second stage of DFL starts.
"""

import time
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.bench.figure1.true_law import digits
from costscape.bench.runs import Run, prepare
from costscape.data import Dataset
from costscape.methods import DFL, TwoStage
from costscape.models.forecast_contract import ForecastNetwork
from costscape.task import Task

PROBLEM = "synthetic-convex"
COMPONENTS = (1, 3)


def sampling(
    draws: Sequence[int], repeats: int, batch: int, epochs: int, quick: bool = False
) -> list[dict[str, Any]]:
    """Variance and seconds of a gradient, for mixtures of each size and each number of draws."""
    rows = []
    for k in COMPONENTS:
        changes = {"epochs": epochs, "draws": None}
        made = prepare(Run(PROBLEM, f"two-stage-gmm{k}", 0, changes, quick), "cpu")
        task, method, data = made.problem.task, made.method, made.problem.data
        assert isinstance(method, TwoStage)
        method.fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))
        assert isinstance(method.model_, ForecastNetwork)
        rows_of_batch = Dataset(data.train.x[:batch], data.train.y[:batch])
        for m in draws:
            begin = time.perf_counter()
            g = gradients(DFL(task, draws=m), task, method.model_, rows_of_batch, repeats)
            seconds = (time.perf_counter() - begin) / repeats
            rows.append(
                {
                    "panel": "sampling",
                    **{"problem": PROBLEM, "components": k, "draws": m, "repeats": repeats},
                    "variance": digits(g.var(0).sum()),
                    "squared_mean": digits(g.mean(0).square().sum()),
                    "seconds": digits(seconds),
                }
            )
    return rows


def gradients(
    method: DFL, task: Task, model: ForecastNetwork, batch: Dataset, repeats: int, seed: int = 0
) -> Float[Tensor, "repeats p"]:
    """DFL's gradient in all weights of a forecast on one batch, with fresh draws each time."""
    rng = Generator(batch.x.device).manual_seed(seed)
    parameters = list(model.parameters())
    found = []
    for _ in range(repeats):
        loss = method.loss(task, model, batch, rng)
        parts = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        found.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(found).double()
