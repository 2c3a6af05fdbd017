"""A forest as one table of nodes, whose leaves weigh the training rows.

    w_i(x) = mean over trees t of 1[leaf_t(x_i) = leaf_t(x)] / (rows in leaf_t(x))

The tables are tensors, so that a forest can be stored in a model file and used on a GPU, which
scikit-learn's ``apply`` does not allow.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.update_result import NewRows
from costscape.methods.weighted.weighted_labels import BLOCK, WeightedLabels, score_of_weights

TRIED = (5, 10, 20, 40, 80)

Grower = Callable[[int, int], "Forest"]  # the fewest rows in a leaf, trees -> the forest
Nodes = tuple[Tensor, Tensor, Tensor, Tensor]  # feature, cut, less, more of one tree


class ForestMethod(ScenarioMethod):
    """A method that grows a Forest, with the leaf size that costs least on validation."""

    trees: int
    min_leaf: int | None
    trial: ClassVar[int]  # trees of each forest that is tried

    @abstractmethod
    def _grower(self, train: Dataset) -> Grower:
        """How forests are grown on these rows."""

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        if self.min_leaf is not None and not 1 <= self.min_leaf <= len(train):
            raise ValueError(
                f"min_leaf needs to be from 1 to the {len(train)} training rows, but is "
                f"{self.min_leaf}."
            )
        grow, least = self._grower(train), self.min_leaf
        if least is None:
            score = score_of_weights(task, train, val, self.solver)
            sizes = [size for size in TRIED if size <= len(train)] or [1]
            few = min(self.trees, self.trial)
            least = min(sizes, key=lambda size: score(grow(size, few)))
        self.model_ = grow(least, self.trees)

    def _updated(self, batch: NewRows) -> nn.Module | None:
        model = self._fitted()
        assert isinstance(model, Forest)
        return model.with_rows(batch.new)

    def chosen(self) -> dict[str, Any]:
        return {"min_leaf": self.model_.min_leaf} if isinstance(self.model_, Forest) else {}

    def _facts(self) -> dict[str, Any]:
        model = self.model_
        assert isinstance(model, Forest)
        sizes = {"rows": len(model.y), "nodes": len(model.feature), "trees": len(model.root)}
        return {**sizes, "depth": model.depth, "min_leaf": model.min_leaf}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        _, y = self._blank(facts["rows"])
        n, trees = facts["nodes"], facts["trees"]
        sizes = dict.fromkeys(("feature", "cut", "less", "more"), n)
        sizes |= {"root": trees, "rows": len(y) * trees, "start": n + 1}
        empty = torch.zeros(0, dtype=torch.int64, device=y.device)
        tables = {name: empty.new_zeros(size) for name, size in sizes.items()}
        tables["cut"] = tables["cut"].float()
        return Forest(y, tables, facts["depth"], facts["min_leaf"])


class Forest(WeightedLabels):
    """All trees in one table of N nodes.

    From node i a row goes to ``less[i]`` where x[feature[i]] <= cut[i], else to ``more[i]``; a
    leaf leads to itself. Tree t begins at node root[t]. The training rows in leaf i are
    rows[start[i] : start[i + 1]].
    """

    feature: Int[Tensor, "N"]
    cut: Float[Tensor, "N"]
    less: Int[Tensor, "N"]
    more: Int[Tensor, "N"]
    root: Int[Tensor, "T"]
    rows: Int[Tensor, "n*T"]
    start: Int[Tensor, "N+1"]

    def __init__(
        self, y: Float[Tensor, "n ..."], tables: dict[str, Tensor], depth: int, min_leaf: int
    ) -> None:
        super().__init__(y)
        self.depth, self.min_leaf = depth, min_leaf
        for name, table in tables.items():
            self.register_buffer(name, table)

    def leaves(self, x: Float[Tensor, "B ..."]) -> Int[Tensor, "B T"]:
        """The node each x ends in, in each tree."""
        x = x.flatten(1).float()
        node = self.root.expand(len(x), -1)
        for _ in range(self.depth):
            low = x.gather(1, self.feature[node]) <= self.cut[node]
            node = torch.where(low, self.less[node], self.more[node])
        return node

    def with_rows(self, new: Dataset) -> "Forest":
        """The same trees with more rows in their leaves."""
        nodes = len(self.feature)
        node = torch.arange(nodes, device=self.rows.device).repeat_interleave(self.start.diff())
        tree = torch.searchsorted(self.root, node, right=True) - 1
        leaf = node.new_empty(len(self.y), len(self.root))
        leaf[self.rows, tree] = node
        rows, start = _by_leaf(torch.cat([leaf, self.leaves(new.x)]), nodes)
        tables = {name: getattr(self, name) for name in ("feature", "cut", "less", "more", "root")}
        tables |= {"rows": rows, "start": start}
        return Forest(torch.cat([self.y, new.y]), tables, self.depth, self.min_leaf)

    def unscaled(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B n"]:
        """sum over trees of 1[same leaf] / (rows in leaf), in time of the rows in those leaves."""
        leaf = self.leaves(x)
        size = self.start[leaf + 1] - self.start[leaf]
        block = max(1, BLOCK // int(size.sum(1).max()))
        pairs = zip(leaf.split(block), size.split(block), strict=True)
        return torch.cat([self._mates(*pair) for pair in pairs])

    def _mates(self, leaf: Tensor, size: Tensor) -> Tensor:
        n, length = len(self.y), size.flatten()
        # entry j of the flat list of mates is the (j - before)-th row of its leaf
        before = length.cumsum(0) - length
        shift = (self.start[leaf].flatten() - before).repeat_interleave(length)
        mate = self.rows[torch.arange(len(shift), device=shift.device) + shift]
        b = torch.arange(len(leaf), device=leaf.device).repeat_interleave(size.sum(1))
        share = (1 / length.to(self.y)).repeat_interleave(length)
        return self.y.new_zeros(len(leaf) * n).index_add(0, b * n + mate, share).view(-1, n)


def forest_of(
    y: Float[Tensor, "n ..."],
    trees: list[Nodes],
    leaf: Int[Tensor, "n T"],
    depth: int,
    min_leaf: int,
) -> Forest:
    """Put trees, the nodes of each counted from 0, and the leaf of each row into one table."""
    root = torch.tensor([0, *(len(part[0]) for part in trees)]).cumsum(0)
    moved = [(f, c, b + r, o + r) for (f, c, b, o), r in zip(trees, root, strict=False)]
    feature, cut, less, more = (torch.cat(part) for part in zip(*moved, strict=True))
    rows, start = _by_leaf(leaf + root[:-1], len(feature))
    tables = {"feature": feature, "cut": cut, "less": less, "more": more}
    tables |= {"root": root[:-1].clone(), "rows": rows, "start": start}
    return Forest(y, tables, depth, min_leaf).to(y.device)


def _by_leaf(leaf: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """The rows in order of their leaf, and where each node's begin."""
    n = len(leaf)
    flat = leaf.T.flatten()
    order = flat.argsort(stable=True)
    start = torch.cat([flat.new_zeros(1), flat.bincount(minlength=nodes).cumsum(0)])
    return order % n, start
