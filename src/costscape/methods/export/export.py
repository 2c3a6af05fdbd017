"""Export: a fitted method as one ONNX file, exactly where the search fits, else distilled.

The file is loaded by ``costscape.runtime`` and compared with the method before it gets its name.
"""

import sys
from copy import copy, deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costscape.methods.export.facts_of import Known, facts_of, model_bytes
from costscape.methods.export.traced import Graph, NotTraced
from costscape.methods.fitted_method import FittedMethod
from costscape.methods.surfaces import ScenarioMethod
from costscape.runtime import Reference, load
from costscape.task import Refusal
from costscape.whole_file import write_whole

REFERENCE, CHECKED = 20, 200  # rows in the file, and rows that are compared at the export
REFERENCE_NUMBERS = 2**16  # numbers of X of the reference rows
TOLERANCE = 1e-4  # of the interval
COST_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-5}  # of the largest cost
ROW_NUMBERS = 2**20  # costs that a call of the graph holds at once


@dataclass(frozen=True)
class Exported:
    """What ``export`` wrote.

    Args:
        path: Path. The file.
        kind: str. "exact" or "distilled".
        bytes: int. The size of the file.
        difference: float. The largest difference to the method on ``checked`` rows, in widths of
            the interval; rows with ties of the cost apart.
        tied: int. Rows on which another decision of the same expected cost came out.
        checked: int. Rows that were compared.
        reason: str or None. Why the exact search does not fit.
        loss: dict or None. Of a distilled policy, costs on held-out rows.

    >>> from pathlib import Path
    >>> print(Exported(Path("m.onnx"), "exact", 2**20, 1e-6, 0, 200, None, None))
    m.onnx: exact, 1.0 MiB; decides as the model to 1e-06 of the interval on 200 rows.
    """

    path: Path
    kind: str
    bytes: int
    difference: float
    tied: int
    checked: int
    reason: str | None
    loss: dict[str, float] | None

    def __str__(self) -> str:
        size = f"{self.path}: {self.kind}, {self.bytes / 2**20:.1f} MiB"
        if self.loss is None:
            ties = f", {self.tied} of them elsewhere at equal cost" if self.tied else ""
            return (
                f"{size}; decides as the model to {self.difference:.0e} of the interval on "
                f"{self.checked} rows{ties}."
            )
        more = self.loss["policy_cost"] - self.loss["model_cost"]
        return (
            f"{size}, since {self.reason}. On {self.loss['rows']:.0f} held-out rows its decisions "
            f"cost {self.loss['policy_cost']:.4g}, those of the model "
            f"{self.loss['model_cost']:.4g}: a loss of {more:.2g}, with a standard error of "
            f"{self.loss['standard_error']:.2g}."
        )


def export(
    method: FittedMethod,
    path: str | Path,
    X: Any = None,
    units: dict[str, str] | None = None,
    distil: bool = True,
) -> Exported:
    """Write a fitted method to an ONNX file.

    Args:
        method: a fitted method.
        path: the file.
        X: rows to compare on; None for kept training rows.
        units: unit by column of X or Y.
        distil: False refuses where the exact search does not fit.
    """
    from costscape.methods.export.box_graph import box_graph, numbers, refusal

    method._fitted()
    rows = _rows(method, X)
    name = type(method).__name__
    if method._task().sets_of is not None:
        raise Refusal(
            f"{name} cannot be exported: its set is a function of x, which a file cannot hold. "
            f"Fit with one set for all rows."
        )
    reason = refusal(method)
    path = Path(path)
    if reason is None:
        assert isinstance(method, ScenarioMethod)
        exact = _in_double(method)
        solved = [exact.solution(part) for part in rows.double().split(64)]
        a = torch.cat([s.action for s in solved]).numpy()
        cost = torch.cat([s.cost for s in solved]).numpy()
        for dtype in (torch.float64, torch.float32):  # onnxruntime has some operators in one only
            reference = Reference(rows.double().numpy(), a, cost, TOLERANCE, COST_TOLERANCE[dtype])
            known = Known(method, "exact", max(1, ROW_NUMBERS // numbers(method)), units or {})
            try:
                return _write(path, box_graph(method, dtype), known, reference)
            except NotTraced as error:
                reason = f"a part of it has no form in ONNX ({error})"
                break
            except ValueError as error:
                reason = f"its graph cannot be run ({error})"
    if not distil:
        raise Refusal(f"{name} cannot be exported exactly: {reason}. Pass distil=True.")
    from costscape.methods.export.distil import distilled

    graph, policy, loss = distilled(method, reason)
    with torch.no_grad():
        a = policy(rows).double().numpy()
    reference = Reference(rows.double().numpy(), a, np.full(len(a), np.nan), TOLERANCE, 0.0)
    made = _write(path, graph, Known(method, "distilled", 4096, units or {}, loss), reference)
    made = Exported(**{**vars(made), "reason": reason})
    print(made, file=sys.stderr)
    return made


def _write(path: Path, graph: Graph, known: Known, reference: Reference) -> Exported:
    """Write to a temporary folder, load, compare, then write to the path."""
    few = min(REFERENCE, REFERENCE_NUMBERS // max(1, reference.rows[0].size))
    k = -(-len(reference.rows) // max(1, few))
    kept = Reference(
        reference.rows[::k],
        reference.decisions[::k],
        reference.costs[::k],
        reference.tolerance,
        reference.cost_tolerance,
    )
    with TemporaryDirectory() as folder:
        tried = Path(folder) / path.name
        tried.write_bytes(model_bytes(graph, facts_of(known, kept, 0.0)))
        off, same = load(tried).compare(reference)
    if not same.all():
        raise ValueError(
            f"{int((~same).sum())} of {len(same)} rows are decided otherwise, by up to "
            f"{off[~same].max():.2g} of the interval"
        )
    untied = off <= reference.tolerance
    difference = float(off[untied].max(initial=0.0))
    write_whole(path, model_bytes(graph, facts_of(known, kept, difference)))
    size, tied = path.stat().st_size, int((~untied).sum())
    return Exported(path, known.kind, size, difference, tied, len(off), None, known.loss)


def _in_double(method: ScenarioMethod) -> ScenarioMethod:
    """The same method in double precision; the user's own stays as it is."""
    exact = copy(method)
    exact.task_, exact.model_ = deepcopy(method.task_), deepcopy(method._fitted())
    assert exact.task_ is not None
    exact.task_.double()
    exact.model_.double()
    return exact


def _rows(method: FittedMethod, X: Any) -> Tensor:
    """Up to CHECKED rows to compare on, spread over all."""
    if X is not None:
        x, _ = method._read(X)
    elif method.rows_ is not None:
        assert method.task_ is not None
        x = method.rows_.x.to(method.task_.feasible.bounds[0])
    else:
        raise ValueError(
            f"export compares the file with the model on some rows, but this "
            f"{type(method).__name__} has none: its file was saved with rows=False. Pass rows of "
            f"X: model.export(path, X)."
        )
    if not len(x):
        raise ValueError("export needs at least one row of X, but got none.")
    return x[:: -(-len(x) // CHECKED)].cpu()
