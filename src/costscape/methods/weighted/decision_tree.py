"""A tree whose splits minimise the cost of the decisions on both sides.

    cost of a split  =  min_j sum_{i left} T_ij  +  min_j sum_{i right} T_ij,   T_ij = f(y_i, a_j)

over candidate actions a_j. Where the cost is a sum over coordinates and C is a Box, T_ij is a
vector with one entry for each coordinate, and the cost is the sum of the minima by coordinate.

The rows of a node are binned between the cuts of a feature, T is summed in each bin, and the
cumulated sums are those of all left sides.
"""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from costscape.methods.weighted.forest_weights import Nodes

CUTS = 32  # of each feature at a node, evenly spread over its sorted rows
BLOCK = 2**20  # costs that are binned at once


def grow_tree(
    x: Float[Tensor, "n p"],
    T: Float[Tensor, "n c J"],
    sample: Int[Tensor, "m"],
    min_leaf: int,
    tried: int,
    rng: Generator,
) -> tuple[Nodes, Int[Tensor, "n"], int]:
    """Grow one tree on the rows ``sample``; return its nodes, the leaf of all n rows, its depth.

    Args:
        x: features, in single precision.
        T: costs of candidate actions.
        sample: rows that choose the splits.
        min_leaf: the fewest of these rows in a leaf.
        tried: features, drawn without replacement, that each node looks at.
        rng: draws them.
    """
    feature, cut, less, more = [0], [0.0], [0], [0]
    columns = x.T.contiguous()
    leaf = torch.zeros(len(x), dtype=torch.int64)
    depth = 0
    todo = [(0, 0, sample, torch.arange(len(x)))]
    while todo:
        node, level, rows, everyone = todo.pop()
        depth = max(depth, level)
        leaf[everyone] = node
        if len(rows) < 2 * min_leaf:
            continue
        some = torch.randperm(x.shape[1], generator=rng)[:tried]
        found = best_split(columns[some[:, None], rows], T.index_select(0, rows), min_leaf)
        if found is None:
            continue
        feature[node], cut[node] = int(some[found[0]]), found[1]
        less[node], more[node] = len(cut), len(cut) + 1
        low = columns[feature[node]] <= cut[node]
        of_sample, of_all = low[rows], low[everyone]
        todo.append((len(cut), level + 1, rows[of_sample], everyone[of_all]))
        todo.append((len(cut) + 1, level + 1, rows[~of_sample], everyone[~of_all]))
        feature += [0, 0]
        less += [len(cut), len(cut) + 1]  # a leaf leads to itself
        more += [len(cut), len(cut) + 1]
        cut += [0.0, 0.0]
    nodes = (torch.tensor(feature), torch.tensor(cut), torch.tensor(less), torch.tensor(more))
    return nodes, leaf, depth


def best_split(
    x: Float[Tensor, "q m"], T: Float[Tensor, "m c J"], min_leaf: int
) -> tuple[int, float] | None:
    """The feature and the cut of least cost; None where no split lowers the cost.

    Up to 32 cuts of each of q features are tried: between neighbours in sorted order, at evenly
    spread ranks, with ``min_leaf`` rows or more on each side.
    """
    q, m = x.shape
    cuts = _cuts(x, min_leaf)
    K = cuts.shape[1] + 1  # bins; the last has the rows above all cuts
    bins = torch.searchsorted(cuts, x) + K * torch.arange(q)[:, None]
    flat = T.flatten(1)
    sums = flat.new_zeros(q * K, flat.shape[1])
    for some in bins.split(max(1, BLOCK // flat.numel())):
        sums.index_add_(0, some.flatten(), flat.repeat(len(some), 1))
    left = sums.view(q, K, -1).cumsum(1).view(q * K, *T.shape[1:])
    total = left[K - 1]
    size = bins.flatten().bincount(minlength=q * K).view(q, K).cumsum(1).flatten()
    cost = _least(left) + _least(total - left)
    cost = cost.masked_fill((size < min_leaf) | (size > m - min_leaf), torch.inf)
    i = int(cost.argmin())
    if not cost[i] < _least(total[None])[0]:
        return None
    return i // K, float(cuts[i // K, i % K])


def _least(sums: Float[Tensor, "s c J"]) -> Float[Tensor, "s"]:
    """The cost of the best candidate, in each coordinate where there are several."""
    return sums.amin(2).sum(1)


def _cuts(x: Float[Tensor, "q m"], min_leaf: int) -> Float[Tensor, "q K"]:
    """Halfway between neighbours; at the lower one where halfway is rounded to the upper one."""
    m = x.shape[1]
    ordered = x.sort(1).values
    count = min(CUTS, m - 2 * min_leaf + 1)
    at = torch.linspace(min_leaf - 1, m - min_leaf - 1, count, dtype=torch.float64).round().long()
    low, high = ordered[:, at], ordered[:, at + 1]
    half = low + (high - low) / 2
    return torch.where(half < high, half, low)
