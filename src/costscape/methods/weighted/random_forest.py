"""Random forest: decide for what followed the rows that share leaves with x.

    g(x, a) = sum_i w_i(x) f(y_i, a),
    w_i(x) = mean over trees t of 1[leaf_t(x_i) = leaf_t(x)] / (rows in leaf_t(x))

Bertsimas and Kallus, From Predictive to Prescriptive Analytics, Management Science 2020; Breiman,
Random Forests, Machine Learning 2001.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from costscape.data import Dataset
from costscape.methods.weighted.forest_weights import (
    Forest,
    ForestMethod,
    Grower,
    Nodes,
    forest_of,
)
from costscape.models import Standardise
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training.settings import Count, Share


@dataclass
class RandomForest(ForestMethod):
    """The forest is grown by scikit-learn on bootstrap samples, for the mean of standardised y.

    The rows in a leaf are counted over the whole training set, also those that the tree's
    bootstrap left out. The trees become tables of tensors, for model files and GPUs.

    Args:
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

    trial: ClassVar[int] = 50

    task: Task
    trees: Count = 200
    min_leaf: int | None = None
    features: Share = 1.0
    jobs: int = 1
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def _grower(self, train: Dataset) -> Grower:
        return partial(self._grow, train)

    def _grow(self, train: Dataset, min_leaf: int, trees: int) -> Forest:
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
        parts = [_tree(grown.tree_) for grown in forest.estimators_]
        depth = max(grown.tree_.max_depth for grown in forest.estimators_)
        return forest_of(train.y, parts, torch.as_tensor(forest.apply(x)), depth, min_leaf)


def _turned(y: Tensor) -> Tensor:
    """y turned into as few columns as there are rows: no distance changes, and so no split."""
    if y.shape[1] > len(y):
        left, size, _ = torch.linalg.svd(y, full_matrices=False)
        y = left * size
    return y


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
