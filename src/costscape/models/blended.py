"""Several fitted models as one: their scenarios together, each with its share."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from costscape.scenarios import Scenarios, union


class Blended(nn.Module):
    """x -> the scenarios of all members, weighted by their shares.

    Arguments:
        members: models from x to Scenarios.
        shares: one for each member, positive, with sum 1; None for equal shares.
        most: how many scenarios remain at most for each x (``Scenarios.thinned``).
    """

    shares: Tensor

    def __init__(
        self,
        members: Sequence[nn.Module],
        shares: Sequence[float] | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        given = [1 / len(members)] * len(members) if shares is None else list(shares)
        self.register_buffer("shares", torch.tensor(given, dtype=torch.float64))
        self.most = most

    def forward(self, x: Tensor) -> Scenarios:
        s = union([member(x) for member in self.members], self.shares.tolist())
        return s if self.most is None else s.thinned(self.most)
