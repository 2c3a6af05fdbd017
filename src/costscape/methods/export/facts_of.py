"""The bytes of an exported model: the graph, and what the file says about itself."""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, helper
from torch import Tensor

import costscape
from costscape.methods.export.traced import OPSET, Graph
from costscape.methods.fitted_method import FittedMethod
from costscape.methods.training_range import ROUNDING, SHARE, WIDE
from costscape.runtime.facts import FORMAT, Reference
from costscape.runtime.onnx_file import KEY, digest
from costscape.sets import Box, ConstraintSet, Whole
from costscape.sets.constraint_set import Polyhedral, couples

IR = 10  # the version of the format that onnxruntime 1.23 and later read


@dataclass(frozen=True, eq=False)
class Known:
    """What the metadata are made of.

    Args:
        method: FittedMethod.
        kind: str. "exact" or "distilled".
        rows_at_once: int. Rows of one call.
        units: dict of str. Unit by column.
        loss: dict or None. Costs of a distilled policy on held-out rows.
    """

    method: FittedMethod
    kind: str
    rows_at_once: int
    units: dict[str, str] = field(default_factory=dict)
    loss: dict[str, float] | None = None


def model_bytes(graph: Graph, facts: dict[str, Any]) -> bytes:
    """The file; its metadata have the digest of its graph."""
    kind = {"float32": 1, "float64": 11}[facts["dtype"]]
    d = len(facts["feasible"]["lower"])
    shapes: dict[str, list[str | int]] = {"decision": ["rows", d], "expected_cost": ["rows"]}
    made = {name for node in graph.nodes for name in node.output}
    outputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, shape in shapes.items()
        if name in made
    ]
    x = helper.make_tensor_value_info("x", kind, ["rows", *facts["x_shape"]])
    body = helper.make_graph(graph.nodes, "costscape", [x], outputs, graph.constants)
    model: ModelProto = helper.make_model(
        body,
        ir_version=IR,
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="costscape",
        producer_version=costscape.__version__,
    )
    found = digest(model.SerializeToString(deterministic=True))
    helper.set_model_props(model, {KEY: json.dumps({**facts, "digest": found})})
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def facts_of(known: Known, reference: Reference, difference: float) -> dict[str, Any]:
    """The metadata as JSON, the digest apart."""
    method = known.method
    record = method.record_
    if record is None:
        raise ValueError(
            "export needs the ranges of the training rows, but the file of this model is of an "
            "earlier version. Fit the model again."
        )
    low, high = np.array(record.x_low), np.array(record.x_high)
    margin = SHARE * (high - low) + ROUNDING * np.maximum(np.abs(low), np.abs(high))
    task = method._task()
    lower = task.feasible.bounds[0]
    return {
        "format": FORMAT,
        "kind": known.kind,
        "method": type(method).__name__,
        "costscape": costscape.__version__,
        "fit_date": record.date,
        "fit_rows": record.rows,
        "fingerprint": _fingerprint(method._fitted().state_dict()),
        "dtype": str(lower.dtype).removeprefix("torch."),
        "rows_at_once": known.rows_at_once,
        "x_shape": list(method.x_shape_ or ()),
        "x_columns": method.x_columns_ and list(method.x_columns_),
        "columns": method.columns_ and list(method.columns_),
        "units": known.units,
        "flat": method.flat_,
        "x_low": low.tolist(),
        "x_high": high.tolist(),
        "margin": margin.tolist(),
        "wide": WIDE,
        "feasible": _set(task.feasible),
        "reference": {
            "rows": reference.rows.tolist(),
            "decisions": reference.decisions.tolist(),
            "costs": [None if np.isnan(c) else c for c in reference.costs.tolist()],
            "tolerance": reference.tolerance,
            "cost_tolerance": reference.cost_tolerance,
        },
        "difference": difference,
        "loss": known.loss,
    }


def _set(C: ConstraintSet) -> dict[str, Any]:
    lower, upper = (end.double().tolist() for end in C.bounds)
    found: dict[str, Any] = {
        "kind": type(C).__name__,
        "lower": lower,
        "upper": upper,
        "tolerance": C.tolerance,
    }
    if isinstance(C, Whole):
        return found | {"step": C.step.double().tolist(), "origin": C.origin.double().tolist()}
    if isinstance(C, Polyhedral) and not isinstance(C, Box):
        rows = C.rows()
        for A, b, names in ((rows.A, rows.b, "Ab"), (rows.G, rows.h, "Gh")):
            some = couples(A) if len(A) else torch.zeros(0, dtype=torch.bool)
            found[names[0]] = A[some].double().tolist()
            found[names[1]] = b[some].double().tolist()
    return found


def _fingerprint(tensors: dict[str, Tensor]) -> str:
    found = sha256()
    for name in sorted(tensors):
        array = tensors[name].detach().cpu().numpy()
        found.update(repr((name, array.shape, str(array.dtype))).encode())
        found.update(array.tobytes())
    return found.hexdigest()
