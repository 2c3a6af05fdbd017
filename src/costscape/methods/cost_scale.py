"""How large costs are: the units in which methods are fitted."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets import ConstraintSet
from costscape.task_arguments import Cost


def sampled_costs(
    f: Cost, C: ConstraintSet, y: Float[Tensor, "n ..."], seed: int
) -> Float[Tensor, "m J ..."]:
    """f at up to 256 of the labels and 64 sampled actions."""
    a = C.sample(64, Generator(C.bounds[0].device).manual_seed(seed))
    with torch.no_grad():
        cost = f(y[:: max(1, len(y) // 256)].unsqueeze(1), a.unsqueeze(0))
    if not cost.isfinite().all():
        j = int((~cost.isfinite()).nonzero()[0, 1])
        raise ValueError(
            f"cost(y, a) must be finite on the data and the feasible set, but is not at a = "
            f"{a[j][:8].tolist()} for some label. Guard divisions, logarithms and roots in the "
            f"cost."
        )
    return cost


def spread_of(costs: Float[Tensor, "B ..."]) -> Tensor:
    """The standard deviation of f(., a) over the rows, and a tenth of its mean at least.

    Where all costs are equal there is no deviation, and the mean of abs(f) is taken.
    """
    sd = costs.std(0, correction=0)
    size = costs.abs().mean()
    return sd.clamp(min=0.1 * sd.mean() + 1e-30).where(sd.mean() > 0, size.where(size > 0, 1.0))
