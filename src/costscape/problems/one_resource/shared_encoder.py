"""An encoder with one small network for all resources."""

from jaxtyping import Float
from torch import Tensor, nn


class SharedEncoder(nn.Module):
    """x (B, d) -> the codes of its d numbers side by side, (B, width * d).

    Every number goes through the same network of one hidden layer, so all resources teach it.

    Args:
        resources: int. Numbers d of x.
        width: int, default 8. Numbers of the code of one resource.
        hidden: int, default 32. Hidden units.

    >>> import torch
    >>> SharedEncoder(3)(torch.zeros(2, 3)).shape
    torch.Size([2, 24])
    """

    def __init__(self, resources: int, width: int = 8, hidden: int = 32) -> None:
        super().__init__()
        self.out_features = width * resources
        self.net = nn.Sequential(
            nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, width), nn.Tanh()
        )

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B q"]:
        code: Tensor = self.net(x.unsqueeze(-1))
        return code.flatten(1)
