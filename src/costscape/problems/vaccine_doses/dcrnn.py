"""The DC-RNN: sequences on the nodes of a graph, read and continued by diffusion GRUs.

    states_t = DCGRU(x_t, states_t-1),  t = 1..T,    code = A h_T + b            encoder
    states_t = DCGRU(z_t-1, states_t-1),  m_t, log s_t = C h_t + d,              decoder
    z_t = sum_c w_c m_tc,  z_0 = 0,  w = softmax(linear in the code)

with h the state of the top cell at all nodes. C is shared by all nodes and days: a mixture of k
components has 2 k nodes x hidden weights there, where a layer from one code to all flows of all
days has 2 k days nodes^2 x hidden. Li, Yu, Shahabi and Liu, Diffusion Convolutional Recurrent
Neural Network: Data-Driven Traffic Forecasting, ICLR 2018; they feed back their forecast, too, and
mix in true values while training.
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
        self.nodes, self.channels, self.extra, self.order = nodes, channels, extra, order
        powers = walk_powers(adjacency_of(nodes, edges), order)
        self.register_buffer("powers", powers.to(torch.get_default_dtype()))
        width = 2 * nodes + extra if channels is None else channels
        self.gru = DCGRU(width, hidden, layers, order, dropout)
        self.code = None if pool else nn.Linear(nodes * hidden, hidden)
        self.drop = nn.Dropout(dropout)
        self.out_features = hidden

    def forward(self, x: Float[Tensor, "B T *nodes"]) -> Float[Tensor, "B out"]:
        return self.code_of(self.states(x)[-1])

    def states(self, x: Float[Tensor, "B T *nodes"]) -> list[Float[Tensor, "B N h"]]:
        """Return each cell's last state at each node, the top cell's last."""
        states: list[Tensor] = self.gru(self._read(x), self.powers)
        return states

    def code_of(self, h: Float[Tensor, "B N h"]) -> Float[Tensor, "B out"]:
        """Return the code of the top cell's states."""
        code: Tensor = self.drop(h.mean(1) if self.code is None else self.code(h.flatten(1)))
        return code

    def mixture_head(self, labels: Float[Tensor, "k T N N"]) -> nn.Module:
        """Return a decoder, the head of mixtures whose linear head would be too large."""
        return DCRNNDecoder(self, labels)

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


class DCRNNDecoder(nn.Module):
    """Continues what a DCRNN has read, as a mixture of flows between its nodes.

    Args:
        encoder: DCRNN. Its sizes are those of the decoder; it is not kept.
        labels: (k, days, nodes, nodes). One outcome for each component; the mean over days and
            origins of the trips to each node is where the component starts.
    """

    def __init__(self, encoder: DCRNN, labels: Float[Tensor, "k T N N"]) -> None:
        super().__init__()
        k, self.days, self.nodes, _ = labels.shape
        hidden, layers = encoder.out_features, len(encoder.gru.cells)
        self.gru = DCGRU(self.nodes, hidden, layers, encoder.order, encoder.drop.p)
        self.logits = nn.Linear(hidden, k)
        self.answer = nn.Linear(hidden, 2 * k * self.nodes)
        with torch.no_grad():
            location, log_scale = self.answer.bias.view(2, k, self.nodes)
            location.copy_(labels.mean((1, 2)))
            log_scale.zero_()

    def forward(
        self, encoder: DCRNN, x: Float[Tensor, "B T *nodes"]
    ) -> tuple[Float[Tensor, "B k"], Float[Tensor, "B k days N N"], Float[Tensor, "B k days N N"]]:
        """Return logits, means and log deviations."""
        states = encoder.states(x)
        logits = self.logits(encoder.code_of(states[-1]))
        w = logits.softmax(-1)
        z = states[-1].new_zeros(len(x), self.nodes, self.nodes)
        days = []
        for _ in range(self.days):
            states = self.gru.step(z, states, encoder.powers)
            parts = self.answer(states[-1]).unflatten(-1, (2, w.shape[1], self.nodes))
            z = torch.einsum("bk,bnkj->bnj", w, parts[:, :, 0])
            days.append(parts)
        m, log_s = torch.stack(days, 1).permute(3, 0, 4, 1, 2, 5)
        return logits, m, log_s
