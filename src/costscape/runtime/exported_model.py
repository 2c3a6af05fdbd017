"""A model that decides by onnxruntime: loaded, checked, and without torch."""

from hashlib import sha256
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt

from costscape.runtime.facts import Facts, Reference
from costscape.runtime.onnx_file import digest, metadata, read_bytes
from costscape.runtime.rows import read_rows

ENOUGH = 30  # training rows from which on a range is known well enough to warn
Numbers = npt.NDArray[np.float64]


class OutsideTraining(UserWarning):
    """``decide`` of an exported model got rows far outside the range of the training rows.

    >>> issubclass(OutsideTraining, UserWarning)
    True
    """


class ExportedModel:
    """Decisions of an exported model; ``costscape.runtime.load`` makes it.

    Args:
        facts: Facts. What the file says about itself.
        session: the InferenceSession of onnxruntime.
        version: str. Twelve digits of the SHA-256 of the file.

    ``decide`` keeps no state, so several threads may call it.

    >>> ExportedModel.__name__
    'ExportedModel'
    """

    def __init__(self, facts: Facts, session: Any, version: str) -> None:
        self.facts, self.version = facts, version
        self._session = session

    def decide(self, X: Any) -> Any:
        """One feasible action for each row of X; a frame of pandas where X is one.

        Every decision is checked to lie in the set. Warns of ``OutsideTraining`` where rows are
        far outside the range of the training rows.
        """
        rows = read_rows(X, self.facts)
        outside = self.outside(rows)
        flagged = int((outside.mean(1) > self.facts.wide).sum())
        if flagged and self.facts.fit_rows >= ENOUGH:
            warn(
                f"{flagged} of {len(rows)} rows are far outside the range of the training rows. "
                f"Decisions there are extrapolated.",
                OutsideTraining,
                stacklevel=2,
            )
        a, _ = self.decisions(rows)
        if self.facts.flat and a.shape[1] == 1:
            a = a[:, 0]
        if not hasattr(X, "iloc"):
            return a
        import pandas as pd  # X is one of its frames

        names = self.facts.decision_names
        return (
            pd.Series(a, X.index, name=names[0])
            if a.ndim == 1
            else pd.DataFrame(a, X.index, names)
        )

    def decisions(self, rows: Numbers) -> tuple[Numbers, Numbers | None]:
        """Actions (n, d) and their expected costs (n,), None where the model has none."""
        facts = self.facts
        k, parts = facts.rows_at_once, []
        x = rows.astype(facts.dtype)
        for i in range(0, max(len(x), 1), k):
            parts.append(self._session.run(None, {"x": x[i : i + k]}))
        a, *costs = (np.concatenate(part).astype(np.float64) for part in zip(*parts, strict=True))
        facts.feasible.check(a)
        return a, costs[0] if costs else None

    def check(self, X: Any) -> dict[int, list[str]]:
        """The columns in which rows of X are far outside the training range, by position."""
        outside = self.outside(read_rows(X, self.facts))
        names = self.facts.column_names
        flagged = np.flatnonzero(outside.mean(1) > self.facts.wide).tolist()
        return {i: [names[j] for j in np.flatnonzero(outside[i])] for i in flagged}

    def outside(self, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Which values of rows (n, *x_shape) are far outside the training range, (n, k)."""
        x, facts = rows.reshape(len(rows), -1), self.facts
        return (x < facts.x_low - facts.margin) | (x > facts.x_high + facts.margin)

    def self_check(self) -> float:
        """Decide the reference rows; the largest difference, in widths of the interval.

        ValueError where a row is decided otherwise than at the export, and costs more.
        """
        reference = self.facts.reference
        if not len(reference.rows):
            return 0.0
        off, same = self.compare(reference)
        if not same.all():
            raise ValueError(
                f"{int((~same).sum())} of {len(off)} reference rows are decided otherwise than at "
                f"the export, by up to {off[~same].max():.2g} of the width of the set (allowed "
                f"{reference.tolerance:g})"
            )
        return float(off.max())

    def compare(self, reference: Reference) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """How far each row is decided otherwise, in widths, and whether that is the same.

        A decision further off counts as the same where it has the same expected cost.
        """
        a, cost = self.decisions(reference.rows)
        C = self.facts.feasible
        width = np.maximum(C.upper - C.lower, np.finfo(np.float32).tiny)
        off = (np.abs(a - reference.decisions) / width).max(1)
        same = off <= reference.tolerance
        if cost is not None:
            near = reference.cost_tolerance * np.abs(reference.costs).max()
            same |= np.abs(cost - reference.costs) <= near
        return off, same


def load(path: str | Path, threads: int = 1) -> ExportedModel:
    """Loads an exported model, and checks it on its reference rows.

    Args:
        path: str or Path. The file that ``model.export`` wrote.
        threads: int, default 1. Threads of one call of ``decide``.

    Returns:
        ExportedModel.

    The file executes no Python code. It is refused where it is too large, cut off, changed, not
    written by ``model.export``, refers to other files, has operators that are not standard, or
    decides its reference rows otherwise.
    """
    import onnxruntime

    content = read_bytes(Path(path))
    try:
        facts = Facts.from_text(metadata(content))
        if digest(content) != facts.digest:
            raise ValueError("its graph does not match its checksum")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.enable_cpu_mem_arena = False  # it would keep the memory of the largest call
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises its own kinds, without a common base
            raise ValueError(f"onnxruntime cannot read it ({_brief(error)})") from error
        _check_ends(session, facts)
        model = ExportedModel(facts, session, sha256(content).hexdigest()[:12])
        model.self_check()
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} is no model that can be run: {error}. Export the model again."
        ) from error
    return model


def _check_ends(session: Any, facts: Facts) -> None:
    kinds = {"float32": "tensor(float)", "float64": "tensor(double)"}
    inputs, outputs = session.get_inputs(), [value.name for value in session.get_outputs()]
    known = len(inputs) == 1 and inputs[0].name == "x" and inputs[0].type == kinds[facts.dtype]
    if not known or outputs not in (["decision", "expected_cost"], ["decision"]):
        raise ValueError("its input or its outputs are not those of an exported model")


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"
