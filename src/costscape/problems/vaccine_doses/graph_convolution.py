"""Diffusion on a weighted directed graph: random walks, their convolution, a GRU made of it.

    P_f = D_out^-1 W,   P_b = D_in^-1 W^T
    conv(X) = X A_0 + sum_k  P_f^k X A_k + P_b^k X B_k + bias,   k = 1..K

    r = sigmoid(conv_r[x, h]),  u = sigmoid(conv_u[x, h]),  c = tanh(conv_c[x, r h])
    h' = u h + (1 - u) c

Li, Yu, Shahabi and Liu, Diffusion Convolutional Recurrent Neural Network: Data-Driven Traffic
Forecasting, ICLR 2018 (Eq. 2 and 3; one A_0 for their two of k = 0, which only act as a sum).
"""

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

Edges = Sequence[Sequence[int | float]]  # (from, to) of weight 1, or (from, to, weight)


def edges_of(adjacency: Any) -> tuple[tuple[int, int, float], ...]:
    """The edges of a matrix W (nodes, nodes), row by row: plain numbers, as model files keep them.

    >>> edges_of([[0, 1], [0.5, 0]])
    ((0, 1, 1.0), (1, 0, 0.5))
    """
    w = torch.as_tensor(adjacency, dtype=torch.float64)
    if w.ndim != 2 or w.shape[0] != w.shape[1]:
        raise ValueError(
            f"edges_of needs a square matrix, nodes by nodes, but got shape {tuple(w.shape)}. "
            f"Entry [i, j] is the weight of the edge from node i to node j."
        )
    pairs: list[list[int]] = w.nonzero().tolist()
    return tuple((i, j, float(w[i, j])) for i, j in pairs)


def adjacency_of(nodes: int, edges: Edges) -> Float[Tensor, "N N"]:
    """W in double precision, with zeros where there is no edge."""
    w = torch.zeros(nodes, nodes, dtype=torch.float64)
    seen = set()
    for edge in edges:
        i, j, weight = (*edge, 1.0) if len(edge) == 2 else edge
        if not all(k in range(nodes) for k in (i, j)) or not 0 < weight < float("inf"):
            raise ValueError(
                f"An edge needs two of the nodes 0..{nodes - 1} and a positive weight, but got "
                f"{tuple(edge)}. Number the nodes from 0, and leave edges of weight 0 out."
            )
        if (i, j) in seen:
            raise ValueError(
                f"edges needs each pair once, but ({i}, {j}) came twice. Add up their weights."
            )
        seen.add((i, j))
        w[int(i), int(j)] = weight
    return w


def walk_powers(w: Float[Tensor, "N N"], order: int) -> Float[Tensor, "P N N"]:
    """P_f, .., P_f^K, P_b, .., P_b^K: 2 K matrices.

    The row of a node that no edge leaves is zero: its walk ends there.
    """
    if order < 0:
        raise ValueError(f"A diffusion needs an order of at least 0, but got {order}.")
    powers = []
    for weights in (w, w.T):
        degree = weights.sum(1, keepdim=True)
        walk = weights / degree.where(degree > 0, 1.0)
        power = torch.eye(len(w), dtype=w.dtype, device=w.device)
        for _ in range(order):
            power = walk @ power
            powers.append(power)
    return torch.stack(powers) if powers else w.new_zeros(0, *w.shape)


class DiffusionConv(nn.Module):
    """conv(X) above; the graph comes with each call, so that many layers share one.

    Costs 2 K nodes^2 in_features for the walks: dense, for graphs of up to some thousand nodes.
    """

    def __init__(
        self, in_features: int, out_features: int, order: int = 2, bias: bool = True
    ) -> None:
        super().__init__()
        self.linear = nn.Linear((2 * order + 1) * in_features, out_features, bias)

    def forward(
        self, x: Float[Tensor, "*batch N i"], powers: Float[Tensor, "P N N"]
    ) -> Float[Tensor, "*batch N o"]:
        flat = powers.flatten(0, 1)  # all walks in one product
        walked = (flat @ x).unflatten(-2, powers.shape[:2]).movedim(-3, -2).flatten(-2)
        out: Tensor = self.linear(torch.cat([x, walked], -1))
        return out


class DCGRUCell(nn.Module):
    """The GRU above along a sequence, for all nodes at once.

    A convolution of [x, h] is one of x plus one of h: that of x needs no h and is done for all
    steps together. The gates start open to the past, with a bias of 1, as in the authors' code.
    """

    def __init__(self, in_features: int, hidden: int, order: int = 2) -> None:
        super().__init__()
        self.hidden = hidden
        self.inputs = DiffusionConv(in_features, 3 * hidden, order)
        self.gates = DiffusionConv(hidden, 2 * hidden, order, bias=False)
        self.candidate = DiffusionConv(hidden, hidden, order, bias=False)
        with torch.no_grad():
            bias = self.inputs.linear.bias
            bias[: 2 * hidden], bias[2 * hidden :] = 1.0, 0.0

    def forward(
        self, x: Float[Tensor, "B T N i"], powers: Float[Tensor, "P N N"]
    ) -> Float[Tensor, "B T N h"]:
        """The states after each step, from a first one of zeros."""
        h = x.new_zeros(x.shape[0], x.shape[2], self.hidden)
        states = []
        for inputs in self.inputs(x, powers).unbind(1):
            h = self._next(inputs, h, powers)
            states.append(h)
        return torch.stack(states, 1)

    def step(
        self, x: Float[Tensor, "B N i"], h: Float[Tensor, "B N h"], powers: Float[Tensor, "P N N"]
    ) -> Float[Tensor, "B N h"]:
        """The state after one more step."""
        return self._next(self.inputs(x, powers), h, powers)

    def _next(self, inputs: Tensor, h: Tensor, powers: Tensor) -> Tensor:
        to_gates, to_candidate = inputs.split([2 * self.hidden, self.hidden], -1)
        r, u = (to_gates + self.gates(h, powers)).sigmoid().chunk(2, -1)
        c = (to_candidate + self.candidate(r * h, powers)).tanh()
        new: Tensor = u * h + (1 - u) * c
        return new


class DCGRU(nn.Module):
    """Cells above one another; ``dropout`` acts between them, while training only."""

    def __init__(
        self, in_features: int, hidden: int, layers: int, order: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if layers < 1:
            raise ValueError(f"A DCGRU needs at least 1 layer, but got {layers}.")
        widths = chain([in_features], layers * [hidden])
        self.cells = nn.ModuleList(DCGRUCell(i, o, order) for i, o in pairwise(widths))
        self.drop = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "B T N i"], powers: Float[Tensor, "P N N"]
    ) -> list[Float[Tensor, "B N h"]]:
        """Each cell's state after the last step, the top one last."""
        states = []
        for i, cell in enumerate(self.cells):
            x = cell(self.drop(x) if i else x, powers)
            states.append(x[:, -1])
        return states

    def step(
        self,
        x: Float[Tensor, "B N i"],
        states: list[Float[Tensor, "B N h"]],
        powers: Float[Tensor, "P N N"],
    ) -> list[Float[Tensor, "B N h"]]:
        """Each cell's state after one more step."""
        new = []
        for i, (cell, h) in enumerate(zip(self.cells, states, strict=True)):
            assert isinstance(cell, DCGRUCell)
            x = cell.step(self.drop(x) if i else x, h, powers)
            new.append(x)
        return new
