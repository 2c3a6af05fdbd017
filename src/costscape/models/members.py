"""Several fitted networks as one."""

from collections.abc import Sequence

from torch import Tensor, nn

from costscape.scenarios import Scenarios, union


class Members(nn.Module):
    """Their scenarios together, in equal parts."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Scenarios:
        return union([member(x) for member in self.members])
