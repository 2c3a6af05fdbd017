"""Several fitted models as one: their scenarios together, each with its share."""

from collections.abc import Sequence

from torch import Tensor, nn

from costscape.scenarios import Scenarios, union


class Blended(nn.Module):
    """x -> the scenarios of all members, weighted by their shares.

    Arguments:
        members: models from x to Scenarios.
        shares: one for each member, positive, with sum 1; None for equal shares.
        most: how many scenarios remain at most for each x (``Scenarios.thinned``).
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        shares: Sequence[float] | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        # plain numbers, which keep all digits when the members change their precision
        self.shares = [1 / len(members)] * len(members) if shares is None else list(shares)
        self.most = most

    def forward(self, x: Tensor) -> Scenarios:
        s = union([member(x) for member in self.members], self.shares)
        return s if self.most is None else s.thinned(self.most)
