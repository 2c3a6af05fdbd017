"""Random forest: decide for what followed the rows that share leaves with x.

    g(x, a) = sum_i w_i(x) f(y_i, a),
    w_i(x) = mean over trees t of 1[leaf_t(x_i) = leaf_t(x)] / (rows in leaf_t(x))

Bertsimas and Kallus, From Predictive to Prescriptive Analytics, Management Science 2020; Breiman,
Random Forests, Machine Learning 2001.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.weighted.weighted_labels import BLOCK, WeightedLabels, score_of_weights
from costscape.models import Standardise
from costscape.solvers import Auto, Solver
from costscape.task import Task

TRIED = (5, 10, 20, 40, 80)
TRIAL = 50  # trees of each forest that is tried


@dataclass
class RandomForest(ScenarioMethod):
    """The forest is grown by scikit-learn on bootstrap samples, for the mean of standardised y.

    The rows in a leaf are counted over the whole training set, also those that the tree's
    bootstrap left out. The trees become tables of tensors, for model files and GPUs.

    Arguments:
        task: Task. The cost and the feasible set.
        trees: int, default 200.
        min_leaf: int, the fewest rows in a leaf, default None: the one of 5, 10, 20, 40, 80 whose
            forest of 50 trees costs least on validation.
        features: float, default 1.0. The share of the features each split looks at.
        jobs: int, default 1. Cores that grow trees; -1 is all.
        solver: Solver, default Auto().
        seed: int, default 0. Of the bootstrap samples.

    >>> import costscape as cs
    >>> cs.RandomForest(cs.problems.inventory(), trees=100).trees
    100
    """

    task: Task
    trees: int = 200
    min_leaf: int | None = None
    features: float = 1.0
    jobs: int = 1
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trees < 1:
            raise ValueError(f"RandomForest needs trees of at least 1, but got {self.trees}.")
        if not 0 < self.features <= 1:
            raise ValueError(
                f"RandomForest needs features, a share, above 0 and at most 1, but got "
                f"{self.features}."
            )

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        if self.min_leaf is not None and not 1 <= self.min_leaf <= len(train):
            raise ValueError(
                f"min_leaf needs to be from 1 to the {len(train)} training rows, but is "
                f"{self.min_leaf}."
            )
        least = self.min_leaf
        if least is None:
            score = score_of_weights(task, train, val, self.solver)
            sizes = [size for size in TRIED if size <= len(train)] or [1]
            few = min(self.trees, TRIAL)
            least = min(sizes, key=lambda size: score(self._grow(train, size, few)))
        self.model_ = self._grow(train, least, self.trees)

    def _grow(self, train: Dataset, min_leaf: int, trees: int) -> "Forest":
        from sklearn.ensemble import RandomForestRegressor  # slow to import

        forest = RandomForestRegressor(
            trees,
            min_samples_leaf=min_leaf,
            max_features=float(self.features),
            random_state=self.seed,
            n_jobs=self.jobs,
        )
        x = train.x.flatten(1).float().cpu().numpy()
        y = _turned(Standardise(train.y)(train.y).flatten(1).double().cpu()).numpy()
        forest.fit(x, y[:, 0] if y.shape[1] == 1 else y)
        trees_ = [grown.tree_ for grown in forest.estimators_]
        sizes = torch.tensor([tree.node_count for tree in trees_])
        root = sizes.cumsum(0) - sizes
        parts = [_tree(tree, int(first)) for tree, first in zip(trees_, root, strict=True)]
        feature, cut, less, more = (torch.cat(part) for part in zip(*parts, strict=True))
        rows, start = _by_leaf(torch.as_tensor(forest.apply(x)) + root, len(feature))
        tables = {"feature": feature, "cut": cut, "less": less, "more": more, "root": root}
        depth = max(tree.max_depth for tree in trees_)
        made = Forest(train.y, {**tables, "rows": rows, "start": start}, depth, min_leaf)
        return made.to(train.y.device)

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


def _turned(y: Tensor) -> Tensor:
    """y turned into as few columns as there are rows: no distance changes, and so no split."""
    if y.shape[1] > len(y):
        left, size, _ = torch.linalg.svd(y, full_matrices=False)
        y = left * size
    return y


def _tree(tree: Any, first: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """feature, cut, less, more of one tree, its nodes counted from ``first``."""
    less, more = torch.as_tensor(tree.children_left), torch.as_tensor(tree.children_right)
    leaf, here = less < 0, torch.arange(len(less))
    feature = torch.as_tensor(tree.feature).where(~leaf, 0)
    # x is single and the threshold double: x <= threshold wherever x <= the single just below it
    threshold = torch.as_tensor(tree.threshold)
    cut = threshold.float()
    cut = cut.where(cut.double() <= threshold, cut.nextafter(torch.tensor(-torch.inf)))
    return feature, cut, less.where(~leaf, here) + first, more.where(~leaf, here) + first


def _by_leaf(leaf: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """The rows in order of their leaf, and where each node's begin."""
    n = len(leaf)
    flat = leaf.T.flatten()
    order = flat.argsort(stable=True)
    start = torch.cat([flat.new_zeros(1), flat.bincount(minlength=nodes).cumsum(0)])
    return order % n, start
