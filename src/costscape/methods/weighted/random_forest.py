"""Random forest: decide for what followed the rows that share leaves with x.

    g(x, a) = sum_i w_i(x) f(y_i, a),
    w_i(x) = mean over trees t of 1[leaf_t(x_i) = leaf_t(x)] / (rows in leaf_t(x))

Bertsimas and Kallus, From Predictive to Prescriptive Analytics, Management Science 2020.
Breiman, Random Forests, Machine Learning 2001.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.weighted.base import BLOCK, WeightedLabels, score_of_weights
from costscape.models import Standardise
from costscape.solvers import Auto, Solver
from costscape.task import Task

TRIED = (5, 10, 20, 40, 80)

Grower = Callable[[int, int], "Forest"]  # the fewest rows in a leaf, trees -> the forest


class ForestMethod(ScenarioMethod):
    """A method that grows a Forest, with the leaf size that costs least on validation."""

    trees: int
    min_leaf: int | None
    trial: ClassVar[int]  # trees of each forest that is tried

    @abstractmethod
    def _grower(self, train: Dataset) -> Grower:
        """How forests are grown on these rows."""

    def _fit(self, train: Dataset, val: Dataset) -> None:
        device = self.task.feasible.bounds[0].device
        task = self._move_task(device)
        train, val = (part.to(device, part.x.dtype) for part in (train, val))
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

    def _facts(self) -> dict[str, Any]:
        model = self.model_
        assert isinstance(model, Forest)
        return {
            "rows": len(model.y),
            "nodes": len(model.feature),
            "trees": len(model.root),
            "depth": model.depth,
            "min_leaf": model.min_leaf,
        }

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        _, y = self._blank(facts["rows"])
        n, trees = facts["nodes"], facts["trees"]
        sizes = (n, n, n, n, trees, len(y) * trees, n + 1)
        like = torch.zeros(0, dtype=torch.int64, device=y.device)
        feature, cut, less, more, root, rows, start = (like.new_zeros(size) for size in sizes)
        tree = (feature, cut.float(), less, more)
        return Forest(y, *tree, root, rows, start, facts["depth"], facts["min_leaf"])


@dataclass
class RandomForest(ForestMethod):
    """The forest is grown by scikit-learn on bootstrap samples, for the mean of standardised y.

    - ``min_leaf``: the fewest rows in a leaf. None takes the one of 5, 10, 20, 40, 80 whose
      forest of 50 trees costs least on validation.
    - ``features``: the share of the features each split looks at.
    - ``jobs``: processor cores that grow trees; -1 is all. The trees do not depend on it.

    The rows in a leaf are counted over the whole training set, also those that the tree's
    bootstrap left out. x is compared in single precision, as scikit-learn does. Deciding does not
    need scikit-learn.
    """

    trial = 50

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

    def _grower(self, train: Dataset) -> Grower:
        return partial(self._grow, train)

    def _grow(self, train: Dataset, min_leaf: int, trees: int) -> "Forest":
        forest = _sklearn()(
            trees,
            min_samples_leaf=min_leaf,
            max_features=float(self.features),
            random_state=self.seed,
            n_jobs=self.jobs,
        )
        x = train.x.flatten(1).float().cpu().numpy()
        y = _turned(Standardise(train.y)(train.y).flatten(1).double().cpu()).numpy()
        forest.fit(x, y[:, 0] if y.shape[1] == 1 else y)
        parts = [_tree(grown.tree_) for grown in forest.estimators_]
        depth = max(grown.tree_.max_depth for grown in forest.estimators_)
        return forest_of(train.y, parts, torch.as_tensor(forest.apply(x)), depth, min_leaf)


class Forest(WeightedLabels):
    """All trees in one table of N nodes.

    From node i the way leads to ``less[i]`` where x[feature[i]] <= cut[i], else to ``more[i]``;
    a leaf leads to itself. The training rows in leaf i are rows[start[i] : start[i + 1]].
    """

    def __init__(
        self,
        y: Float[Tensor, "n ..."],
        feature: Int[Tensor, "N"],
        cut: Float[Tensor, "N"],
        less: Int[Tensor, "N"],
        more: Int[Tensor, "N"],
        root: Int[Tensor, "T"],
        rows: Int[Tensor, "n*T"],
        start: Int[Tensor, "N+1"],
        depth: int,
        min_leaf: int,
    ) -> None:
        super().__init__(y)
        self.depth = depth
        self.min_leaf = min_leaf
        # sorted by name, a floating tensor comes first, from which restore reads the precision
        self.register_buffer("feature", feature)
        self.register_buffer("cut", cut)
        self.register_buffer("less", less)
        self.register_buffer("more", more)
        self.register_buffer("root", root)
        self.register_buffer("rows", rows)
        self.register_buffer("start", start)
        self.feature: Tensor
        self.cut: Tensor
        self.less: Tensor
        self.more: Tensor
        self.root: Tensor
        self.rows: Tensor
        self.start: Tensor

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


Nodes = tuple[Tensor, Tensor, Tensor, Tensor]  # feature, cut, less, more of one tree


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
    root = root[:-1].clone()
    made = Forest(y, feature, cut, less, more, root, rows, start, depth, min_leaf)
    return made.to(y.device)


def _sklearn() -> Any:
    try:
        from sklearn.ensemble import RandomForestRegressor
    except ImportError as error:
        raise ImportError(
            "RandomForest needs scikit-learn to grow its trees, and it is not installed. Run "
            "pip install scikit-learn."
        ) from error
    return RandomForestRegressor


def _turned(y: Tensor) -> Tensor:
    """y turned into as few columns as there are rows: no distance changes, and so no split."""
    if y.shape[1] <= len(y):
        return y
    left, size, _ = torch.linalg.svd(y, full_matrices=False)
    turned: Tensor = left * size
    return turned


def _tree(tree: Any) -> Nodes:
    """feature, cut, less, more of one tree, its nodes counted from 0."""
    less, more = torch.as_tensor(tree.children_left), torch.as_tensor(tree.children_right)
    leaf = less < 0
    here = torch.arange(len(leaf))
    feature = torch.as_tensor(tree.feature).where(~leaf, 0)
    # x is single and the threshold double: x <= threshold wherever x <= the single just below it
    threshold = torch.as_tensor(tree.threshold)
    cut = threshold.float()
    cut = cut.where(cut.double() <= threshold, cut.nextafter(torch.tensor(-torch.inf)))
    return feature, cut, less.where(~leaf, here), more.where(~leaf, here)


def _by_leaf(leaf: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """The rows in order of their leaf, and where each node's begin."""
    n = len(leaf)
    flat = leaf.T.flatten()
    order = flat.argsort(stable=True)
    start = torch.cat([flat.new_zeros(1), flat.bincount(minlength=nodes).cumsum(0)])
    return order % n, start
