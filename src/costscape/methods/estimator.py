"""scikit-learn's contract: settings by name, clones, predict, score.

scikit-learn itself is imported only where it has asked, so that methods stay quick to import.
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch

from costscape.arrays import check_names, read_pairs
from costscape.methods.fitted_method import FittedMethod

E = TypeVar("E", bound="Estimator")


class Estimator(FittedMethod):
    """A method as scikit-learn's tools use it: pipelines, searches, cross-validation.

    Settings of a part have two underscores in their name: ``training__lr`` is the ``lr`` of
    ``training``, and ``method__k`` is the ``k`` of the method inside a CrossFit. ``seed`` is what
    scikit-learn calls ``random_state``.

    >>> import costscape as cs
    >>> method = cs.CrossFit(cs.NearestNeighbours(cs.problems.inventory()))
    >>> method.set_params(method__k=5).get_params()["method__k"]
    5
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; ``deep`` adds those of parts that have settings too."""
        return _settings(self, deep)

    def set_params(self: E, **params: Any) -> E:
        """Change settings in place and return the method; what was fitted stays until ``fit``.

        Parts are replaced by changed copies, so other methods that share them stay as they are.
        Where a value is refused, no setting changes.
        """
        if params:
            vars(self).update(vars(_with(self, params, type(self).__name__)))
        return self

    def predict(self, X: Any) -> Any:
        """One feasible action for each row of X: the same as ``decide(X)``."""
        return self.decide(X)

    def score(self, X: Any, Y: Any) -> float:
        """Return minus the mean cost of the decisions for X at the outcomes Y.

        Higher is better, as scikit-learn needs it. It is minus the ``cost`` of ``evaluate``.
        """
        self._fitted()
        check_names(X, "X", self.x_columns_)
        check_names(Y, "Y", self.columns_)
        x, y = (t.cpu() for t in read_pairs(X, Y, self.task.feasible.bounds[0].dtype))
        a = self.decide(x).reshape(len(x), -1)
        x, y = (t.unsqueeze(-1) if t.ndim == 1 else t for t in (x, y))
        if tuple(y.shape[1:]) != self.y_shape_:
            raise ValueError(
                f"Y needs rows of shape {self.y_shape_}, as in fit, but has rows of shape "
                f"{tuple(y.shape[1:])}. Pass the outcomes the model was fitted for."
            )
        task = self._task()
        here = task.feasible.bounds[0]
        with torch.no_grad():
            costs = task.cost(task.join(x, y).to(here), a.to(here))
        return -float(costs.double().mean())

    @property
    def n_features_in_(self) -> int:
        """Columns of the X of ``fit``; no attribute where its rows are sequences."""
        self._fitted()
        if self.x_shape_ is None or len(self.x_shape_) != 1:
            raise AttributeError(f"n_features_in_ needs flat X, but rows are {self.x_shape_}.")
        return self.x_shape_[0]

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of the X of ``fit``; no attribute where it had none."""
        if len(self.x_columns_ or ()) != self.n_features_in_:
            raise AttributeError("feature_names_in_ needs an X with names of its columns.")
        return np.array(self.x_columns_, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return self.model_ is not None

    def __sklearn_clone__(self: E) -> E:
        """An unfitted copy; it shares the task and other parts that nobody changes in place."""
        copies = {name: _unfitted(getattr(self, name)) for name in _names(self)}
        return replace(self, **copies)  # type: ignore[type-var]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        # no regressor: an action is no estimate of y, and scores of regressors do not apply
        y = TargetTags(required=True, one_d_labels=True, two_d_labels=True, multi_output=True)
        x = InputTags(three_d_array=True)
        return Tags(estimator_type=None, target_tags=y, input_tags=x)


def _names(part: Any) -> list[str]:
    """The settings of a method, of Training and so on; none of what is no such part."""
    if not is_dataclass(part) or isinstance(part, type):
        return []
    return [f.name for f in fields(part) if f.init]


def _settings(part: Any, deep: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _names(part):
        value = found[name] = getattr(part, name)
        if deep:
            found |= {f"{name}__{key}": inner for key, inner in _settings(value, deep).items()}
    return found


def _with(part: Any, params: dict[str, Any], owner: str) -> Any:
    """A copy of the part with these settings, each by its name or by part__name."""
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    names = _names(part)
    for key, value in params.items():
        name, _, rest = key.partition("__")
        if name not in names:
            raise ValueError(
                f"{owner} needs settings among {', '.join(names)}, but got {key!r}. See "
                f"get_params()."
                if names
                else f"{owner} has no settings of its own, but got {key!r}. Set it as a whole."
            )
        if rest:
            inner.setdefault(name, {})[rest] = value
        else:
            own[name] = value
    for name, changes in inner.items():  # on top of a part that is given whole
        own[name] = _with(own.get(name, getattr(part, name)), changes, f"{owner}.{name}")
    return replace(part, **own)


def _unfitted(value: Any) -> Any:
    if isinstance(value, Estimator):
        return value.__sklearn_clone__()
    return [_unfitted(item) for item in value] if isinstance(value, list) else value
