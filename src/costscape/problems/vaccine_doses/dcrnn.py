"""The DC-RNN: sequences on the nodes of a graph, read by diffusion GRUs.

    states_t = DCGRU(x_t, states_t-1),  t = 1..T,    code = A h_T + b

with h the state of the top cell at all nodes. Li, Yu, Shahabi and Liu, Diffusion Convolutional
Recurrent Neural Network: Data-Driven Traffic Forecasting, ICLR 2018 (its encoder).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.problems.vaccine_doses.graph_convolution import (
    DCGRU,
    Edges,
    adjacency_of,
    walk_powers,
)


class DCRNN(nn.Module):
    """Reads x (B, T, nodes, channels), or (B, T, nodes) as one channel; an encoder.

    - ``nodes``: int, how many nodes the graph has.
    - ``edges``: a tuple of (from, to) or (from, to, weight), such as ``edges_of(W)`` gives; nodes
      without any are allowed.
    - ``channels``: int or None, the default: x (B, T, nodes, nodes) are flows from row to column,
      and a node sees its row and its column, 2 x nodes channels: all flows from it and to it.
    - ``extra``: int, default 0. With channels=None, numbers that x has at each node after its row
      of flows, such as flags of the calendar: x (B, T, nodes, nodes + extra).
    - ``hidden``, ``layers``: int, the width and number of cells; the paper's 2 x 128.
    - ``order``: int, default 2, the longest walk, in steps; 0 leaves the graph out.
    - ``pool``: bool, default False: the code is linear in all nodes' last states; True: it is
      their mean, the same however the nodes are numbered.
    - ``dropout``: float, default 0, between the cells and on the code, while training only.

    >>> encoder = DCRNN(3, ((0, 1), (1, 2)), channels=1, hidden=4)
    >>> encoder(torch.zeros(5, 7, 3)).shape
    torch.Size([5, 4])
    """

    powers: Tensor

    def __init__(
        self,
        nodes: int,
        edges: Edges,
        channels: int | None = None,
        hidden: int = 128,
        layers: int = 2,
        order: int = 2,
        pool: bool = False,
        dropout: float = 0.0,
        extra: int = 0,
    ) -> None:
        super().__init__()
        if nodes < 1 or (channels is not None and channels < 1):
            raise ValueError(
                f"A DCRNN needs at least 1 node and 1 channel, but got nodes={nodes} and "
                f"channels={channels}. channels=None reads flows between the nodes."
            )
        self.nodes, self.channels, self.extra = nodes, channels, extra
        powers = walk_powers(adjacency_of(nodes, edges), order)
        self.register_buffer("powers", powers.to(torch.get_default_dtype()))
        width = 2 * nodes + extra if channels is None else channels
        self.gru = DCGRU(width, hidden, layers, order, dropout)
        self.code = None if pool else nn.Linear(nodes * hidden, hidden)
        self.drop = nn.Dropout(dropout)
        self.out_features = hidden

    def forward(self, x: Float[Tensor, "B T *nodes"]) -> Float[Tensor, "B out"]:
        h = self.gru(self._read(x), self.powers)[-1]
        code: Tensor = self.drop(h.mean(1) if self.code is None else self.code(h.flatten(1)))
        return code

    def _read(self, x: Tensor) -> Tensor:
        if x.ndim == 3 and self.channels == 1:
            x = x.unsqueeze(-1)
        wanted = (self.nodes, self.channels or self.nodes + self.extra)
        if x.ndim != 4 or x.shape[2:] != wanted:
            raise ValueError(
                f"This DCRNN reads x of shape (B, T, {wanted[0]}, {wanted[1]}), but got "
                f"{tuple(x.shape)}. The third axis is the nodes; channels=C reads C numbers at "
                f"each, channels=None flows between them."
            )
        if self.channels is not None:
            return x
        return torch.cat([x, x[..., : self.nodes].mT], -1)
