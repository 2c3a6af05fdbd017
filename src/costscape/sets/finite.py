"""A list of actions."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.constraint_set import ConstraintSet
from costscape.sets.validation import Numbers, as_tensors, check_finite

BLOCK = 2**22  # distances computed at once


class Finite(ConstraintSet):
    """C = {a_1, ..., a_K}, the rows of ``actions``; samples are uniform over the rows.

    Args:
        actions: (K, d). A row that occurs twice is drawn twice as often.

    >>> Finite([[0.0, 0.0], [1.0, 1.0]]).project(torch.tensor([0.9, 0.2]))
    tensor([1., 1.])
    """

    actions: Tensor

    def __init__(self, actions: Numbers) -> None:
        super().__init__()
        (rows,) = as_tensors("Finite", actions=actions)
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(
                f"Finite needs a list of K >= 1 actions of d >= 1 numbers each, but got shape "
                f"{tuple(rows.shape)}. Write for example Finite([[0.0, 1.0], [1.0, 0.0]])."
            )
        check_finite("Finite", "actions", rows, "Leave out the actions that have no numbers.")
        self.dim = rows.shape[1]
        self.register_buffer("actions", rows)

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        return self.actions.amin(0), self.actions.amax(0)

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        at = torch.randint(
            len(self.actions), (n,), generator=generator, device=self.actions.device
        )
        return self.actions[at]

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The nearest row, the first of several; K distances an action."""
        return self._nearest(a).to(a.dtype)

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """The distance to the nearest row."""
        return (a - self._nearest(a)).square().sum(-1).sqrt()

    def describe(self, a: Any) -> list[Any]:
        raise TypeError(
            f"A Finite list of {len(self.actions)} actions is not convex, so cvxpy cannot take it "
            f"as constraints. Try every action instead."
        )

    def extra_repr(self) -> str:
        return f"actions={len(self.actions)}, dim={self.dim}"

    def _nearest(self, a: Tensor) -> Tensor:
        rows = self.actions.double()
        points = a.detach().double().reshape(-1, self.dim)
        parts = torch.split(points, max(1, BLOCK // len(rows)))
        # differences, not products: a product loses the distances of close rows in rounding
        exact = "donot_use_mm_for_euclid_dist"
        at = [torch.cdist(part, rows, compute_mode=exact).argmin(-1) for part in parts]
        return self.actions[torch.cat(at)].reshape(a.shape)
