"""Continue a fitted method on new rows, and keep the result only if decisions are not worse.

Each fit k leaves out the same old rows as before and a part of the new rows. The old and the new
fit k decide for these rows, which neither of them learned from. The new model replaces the old one
unless

    c = d_old / f_old + d_new / f_new  >  its block standard error

with d the mean of new less old cost and f the mean size of the old cost, on old and on new
held-out rows. Both count alike, each as a share of its cost: a batch in wrong units costs most on
the old rows, and a series that drifts gains more on new rows than it loses on old ones.
"""

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import hypot
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from costscape.arrays import check_names, labels_of, read_pairs
from costscape.block_bootstrap import at_least_two, block_length, difference, standard_error
from costscape.data import Dataset, fold_numbers, time_folds
from costscape.methods.ensemble import Blended, EnsembleMethod
from costscape.methods.kept_rows import KeptRows
from costscape.methods.method import Method
from costscape.methods.selection import some_rows
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.update_result import EPOCHS, OLD, STEPS, HeldOutCosts, NewRows, Update
from costscape.training import Diverged

HELD_OUT = 0.5  # of the new rows, the latest: judged and not learned by a method without folds
EDGE = 10  # windows overlap: this part of the judged new rows, the first, is not judged

FEWEST = 100  # held-out old rows, the latest, on which both models are compared

OLD_ROWS, NEW_ROWS, GIVEN_ROWS = "held-out old rows", "held-out new rows", "rows of val"


@dataclass(frozen=True, eq=False)
class Member:
    """A fit of a method: itself, or one of an ensemble; its model, fold and share."""

    fit: Method
    model: nn.Module
    fold: int
    share: float


def update(method: Method, X: Any, Y: Any, val: tuple[Any, Any] | None = None) -> Update:
    """Update the method in place, or leave it as it is; the result says which, and why."""
    begin = time.perf_counter()
    kept = method._kept_rows("update")
    if not isinstance(method, ScenarioMethod):
        raise _refusal(method)
    new = _read(method, X, Y, "")
    judges = None if val is None else _read(method, *val, " of val")
    fold, judged = _parts(len(new), getattr(method, "folds", 1), val is not None)
    old = _members(method)
    try:
        members = [replace(m, model=_continued(m, kept, new, fold)) for m in old]
    except Diverged as error:
        seconds = time.perf_counter() - begin
        return Update(False, f"The old model stays. {error}", (), len(new), 0, seconds)
    if judges is None:
        found = _held_out(method, old, members, kept, new, judged)
    else:
        found = [_costs(GIVEN_ROWS, *(_decided(method, m, judges) for m in (old, members)))]
    change, bar = sum(p.change for p in found), hypot(*(p.change_error for p in found))
    names = " and ".join(part.name for part in found)
    if change > bar:
        reason = f"The old model stays: the new one costs more on {names}."
        return Update(False, reason, tuple(found), len(new), 0, time.perf_counter() - begin)
    stale = method.calibration_ is not None
    _adopt(method, members, kept.extended(new.x.cpu(), new.y.cpu(), fold, labels_of(X, Y)), new)
    seen = {m.fold for m in members}
    learned = len(new) if len(seen) > 1 else int((fold != next(iter(seen))).sum())
    reason = f"The model is updated: it does not cost clearly more on {names}."
    reason += " Calibrate it again: its levels were those of the old model." * stale
    return Update(True, reason, tuple(found), len(new), learned, time.perf_counter() - begin)


def _members(method: ScenarioMethod) -> list[Member]:
    if isinstance(method, EnsembleMethod) and isinstance(method._fitted(), Blended):
        parts = zip(method.fits_, method.jobs_, method.shares_, strict=True)
        return [Member(fit, fit._fitted(), job.fold, share) for fit, job, share in parts]
    return [Member(method, method._fitted(), 0, 1.0)]


def _continued(member: Member, kept: KeptRows, new: Dataset, fold: Int[Tensor, "k"]) -> nn.Module:
    """The model of a member after an update on the rows that it does not leave out."""
    fit = member.fit
    here = kept.fold[kept.positions] != member.fold
    old = Dataset(kept.x[here].to(new.x), kept.y[here].to(new.y))
    mine = (fold != member.fold).to(new.x.device)
    mine_new = Dataset(new.x[mine], new.y[mine])
    training, n, size = fit.trains(), len(kept.learned(member.fold)), 0
    if training is not None:
        full = training.for_rows(n).epochs or 1
        size = max(round(STEPS * full * n / EPOCHS), (1 + OLD) * len(mine_new))
    rng = Generator().manual_seed(fit.seed)
    some = torch.randperm(len(old), generator=rng)[: max(0, size - len(mine_new))].to(new.x.device)
    pool = Dataset(torch.cat([mine_new.x, old.x[some]]), torch.cat([mine_new.y, old.y[some]]))
    model = fit._updated(NewRows(mine_new, old, pool, len(mine_new) / (n + len(mine_new))))
    if model is None:
        raise _refusal(fit)
    return model


def _parts(n: int, folds: int, all_learned: bool) -> tuple[Int[Tensor, "n"], list[Tensor]]:
    """The fold of each new row, and the new rows on which each fit is judged."""
    fold = fold_numbers(n, 1 if all_learned else folds)
    if all_learned:
        return fold, []
    if folds == 1:
        cut = n - int(n * HELD_OUT)
        fold[cut:] = 0
        return fold, [torch.arange(cut + (n - cut) // EDGE, n)]
    return fold, [part.held for part in time_folds(n, folds)]


def _held_out(
    method: ScenarioMethod,
    old: Sequence[Member],
    new: Sequence[Member],
    kept: KeptRows,
    rows: Dataset,
    judged: Sequence[Tensor],
) -> list[HeldOutCosts]:
    """Costs on old and on new rows, each row decided by the fits that left it out."""
    task, folds = method.task_, sorted({m.fold for m in old}, reverse=True)  # 0 is the latest
    assert task is not None
    most = -(-max(FEWEST, sum(map(len, judged))) // len(folds))
    sides: dict[str, list[tuple[Tensor, Tensor]]] = {OLD_ROWS: [], NEW_ROWS: []}
    for k in folds:
        before, after = ([m for m in members if m.fold == k] for members in (old, new))
        here = (kept.fold[kept.positions] == k).nonzero()[-most:, 0]
        held = Dataset(kept.x[here].to(rows.x), kept.y[here].to(rows.y))
        mine = judged[k].to(rows.x.device)
        for name, part in ((OLD_ROWS, held), (NEW_ROWS, Dataset(rows.x[mine], rows.y[mine]))):
            if len(part):
                part = some_rows(task, part, method.solver)
                pair = (_decided(method, before, part), _decided(method, after, part))
                sides[name].append(pair)
    return [
        _costs(name, *(torch.cat(side) for side in zip(*pairs, strict=True)))
        for name, pairs in sides.items()
        if pairs
    ]


def _decided(
    method: ScenarioMethod, members: Sequence[Member], data: Dataset
) -> Float[Tensor, "n"]:
    """The cost of each decision of the mixture of these members."""
    owner, task = copy(method), method.task_
    assert task is not None
    if isinstance(method, EnsembleMethod) and isinstance(method.model_, Blended):
        whole = sum(m.share for m in members)
        shares = [m.share / whole for m in members]
        owner.model_ = Blended([m.model for m in members], shares, method.most_scenarios).eval()
    else:
        owner.model_ = members[0].model
    with torch.no_grad():
        g = owner._surface(data.x)
        a = method.solver.coarse().minimise(g, task.sets(data.x), len(data)).action
        return task.cost(task.join(data.x, data.y), a).double().cpu()


def _costs(name: str, old: Float[Tensor, "n"], new: Float[Tensor, "n"]) -> HeldOutCosts:
    d = (new - old).numpy()
    block = at_least_two(block_length(len(d)), len(d))
    return HeldOutCosts(
        name,
        len(d),
        float(old.mean()),
        float(new.mean()),
        float(old.abs().mean().clamp(min=1e-30)),
        standard_error(d, block),
        difference(d, block),
    )


def _adopt(
    method: ScenarioMethod, members: Sequence[Member], rows: KeptRows, new: Dataset
) -> None:
    """Become the updated model."""
    for member in members:
        member.fit.model_ = member.model
    if isinstance(method, EnsembleMethod) and isinstance(method.model_, Blended):
        method._adopt(method.fits_, method.jobs_, method.shares_)
    method.rows_, method.calibration_ = rows, None
    if (known := method.record_) is not None:
        x = new.x.flatten(1).double().cpu()
        low, high = (torch.tensor(end).to(x) for end in (known.x_low, known.x_high))
        method.record_ = replace(
            known,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=len(rows.fold),
            x_low=torch.minimum(low, x.amin(0)).tolist(),
            x_high=torch.maximum(high, x.amax(0)).tolist(),
        )


def _read(method: Method, X: Any, Y: Any, of: str) -> Dataset:
    """New pairs like those of the fit, on the device of the model."""
    check_names(X, f"X{of}", method.x_columns_)
    check_names(Y, f"Y{of}", method.columns_)
    assert method.task_ is not None
    home = method.task_.feasible.bounds[0]
    x, y = read_pairs(X, Y, home.dtype, of)
    x = x.unsqueeze(-1) if x.ndim == 1 else x
    y = y.unsqueeze(-1) if y.ndim == 1 else y
    if tuple(x.shape[1:]) != method.x_shape_ or tuple(y.shape[1:]) != method.y_shape_:
        raise ValueError(
            f"update needs rows of shape {method.x_shape_} in X{of} and {method.y_shape_} in "
            f"Y{of}, as in fit, but got {tuple(x.shape[1:])} and {tuple(y.shape[1:])}."
        )
    return Dataset(x.to(home), y.to(home))


def _refusal(method: Method) -> TypeError:
    name = type(method).__name__
    if isinstance(method, EnsembleMethod):
        name += " with folds of its own inside an ensemble"
    return TypeError(
        f"update continues DF2, TwoStage, NearestNeighbours, KernelSmoother, RandomForest and "
        f"DecisionForest, and a CrossFit or Blend of them, but got {name}. "
        f"Fit it again on the old and the new rows."
    )
