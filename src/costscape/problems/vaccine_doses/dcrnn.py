"""The DC-RNN: sequences on the nodes of a graph, read and continued by diffusion GRUs.

    states_t = DCGRU(x_t, states_t-1),  t = 1..T                    encoder
    z_s = A h_s + b,  states_s = DCGRU(z_s-1, states_s-1),  z_0 = 0  decoder

with h the state of the top cell. Li, Yu, Shahabi and Liu, Diffusion Convolutional Recurrent
Neural Network: Data-Driven Traffic Forecasting, ICLR 2018.
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

    - ``edges``: a tuple of (from, to) or (from, to, weight), such as ``edges_of(W)`` gives; nodes
      without any are allowed.
    - ``channels`` None: x (B, T, nodes, nodes) are flows from row to column, and a node sees its
      row and its column, 2 x nodes channels: what leaves it and what comes to it, also from nodes
      that no walk of ``order`` steps reaches.
    - ``order``: the longest walk, in steps; 0 leaves the graph out.
    - ``pool`` False: the code is linear in all nodes' last states and knows which node is which;
      True: it is their mean, the same however the nodes are numbered.
    - ``dropout`` acts between the cells and on the code, while training only.

    The paper's size is 2 x 128.
    """

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
    ) -> None:
        super().__init__()
        self.reader = _Reader(nodes, edges, channels, order)
        self.gru = DCGRU(self.reader.width, hidden, layers, order, dropout)
        self.code = (
            _Mean() if pool else nn.Sequential(nn.Flatten(), nn.Linear(nodes * hidden, hidden))
        )
        self.drop = nn.Dropout(dropout)
        self.out_features = hidden

    def states(self, x: Float[Tensor, "B T *nodes"]) -> list[Float[Tensor, "B N h"]]:
        """Each cell's last state at each node, the top cell's last."""
        states: list[Tensor] = self.gru(self.reader(x), self.reader.powers)
        return states

    def forward(self, x: Float[Tensor, "B T *nodes"]) -> Float[Tensor, "B out"]:
        code: Tensor = self.drop(self.code(self.states(x)[-1]))
        return code


class DCRNNForecaster(nn.Module):
    """Reads x as DCRNN does and continues it: (B, ``steps``, nodes, ``out``).

    ``out`` None is what x has at each node: its channels, or a row of flows. The decoder is fed
    its own answers, in training too, so that it needs no y; the authors mix in true ones.
    """

    def __init__(
        self,
        nodes: int,
        edges: Edges,
        steps: int,
        channels: int | None = None,
        out: int | None = None,
        hidden: int = 128,
        layers: int = 2,
        order: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.steps = steps
        self.reader = _Reader(nodes, edges, channels, order)
        self.out = self.reader.given if out is None else out
        self.encoder = DCGRU(self.reader.width, hidden, layers, order, dropout)
        self.decoder = DCGRU(self.out, hidden, layers, order, dropout)
        self.answer = nn.Linear(hidden, self.out)

    def forward(self, x: Float[Tensor, "B T *nodes"]) -> Float[Tensor, "B steps N out"]:
        return self.decode(self.encoder(self.reader(x), self.reader.powers), self.steps)

    def decode(
        self, states: list[Float[Tensor, "B N h"]], steps: int
    ) -> Float[Tensor, "B steps N out"]:
        """What follows the states, one from each cell; any number of steps."""
        z = states[-1].new_zeros(*states[-1].shape[:2], self.out)
        answers = []
        for _ in range(steps):
            states = self.decoder.step(z, states, self.reader.powers)
            z = self.answer(states[-1])
            answers.append(z)
        return torch.stack(answers, 1)


class _Reader(nn.Module):
    """The graph, and x as (B, T, nodes, width) numbers on it."""

    def __init__(self, nodes: int, edges: Edges, channels: int | None, order: int) -> None:
        super().__init__()
        if nodes < 1 or (channels is not None and channels < 1):
            raise ValueError(
                f"A DCRNN needs at least 1 node and 1 channel, but got nodes={nodes} and "
                f"channels={channels}. channels=None reads flows between the nodes."
            )
        self.nodes, self.edges, self.flows = nodes, len(edges), channels is None
        self.given = nodes if channels is None else channels  # at each node of x
        self.width = 2 * nodes if channels is None else channels  # at each node, for the cells
        self.powers: Tensor
        powers = walk_powers(adjacency_of(nodes, edges), order)
        self.register_buffer("powers", powers.to(torch.get_default_dtype()))

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 3 and self.width == 1:
            x = x.unsqueeze(-1)
        if x.ndim != 4 or x.shape[2:] != (self.nodes, self.given):
            raise ValueError(
                f"This DCRNN reads x of shape (B, T, {self.nodes}, {self.given}), but got "
                f"{tuple(x.shape)}. The third axis is the nodes; channels=C reads C numbers at "
                f"each, channels=None flows between them."
            )
        return torch.cat([x, x.mT], -1) if self.flows else x

    def extra_repr(self) -> str:
        return f"nodes={self.nodes}, edges={self.edges}, width={self.width}"


class _Mean(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return states.mean(1)
