"""Several networks of DF2 fitted in one batch on a GPU."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from costscape.data import Dataset, Fold
from costscape.methods.ensemble import take
from costscape.training import fit_all


def fit_stacked(methods: Sequence[Any], folds: Sequence[Fold], pairs: Dataset) -> bool:
    """Fit DF2 methods of one network each, each without its fold; False where that cannot be.

    All need the same number of epochs and the same rate.
    """
    first = methods[0]
    device = first.training.where()
    if device.type != "cuda" or any(m.folds > 1 or not m.training.record for m in methods):
        return False
    if len({replace(m.training, checkpoint=None) for m in methods}) > 1:
        return False
    pairs = pairs.to(device, pairs.x.dtype)
    fits = []
    for i, (method, fold) in enumerate(zip(methods, folds, strict=True)):
        method.x_shape_, method.y_shape_ = tuple(pairs.x.shape[1:]), tuple(pairs.y.shape[1:])
        fit = method.begin(take(pairs, fold.rows), take(pairs, fold.held))
        fits.append(replace(fit, rows=fold.rows.to(device), name=f"{fit.name}-{i}"))
    histories = fit_all(fits, pairs, first.training)
    for method, fit, history in zip(methods, fits, histories, strict=True):
        method.history_, method.model_ = [history], fit.model.eval()
    return True
