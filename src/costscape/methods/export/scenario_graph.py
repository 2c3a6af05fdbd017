"""The scenarios of a fitted method as nodes of ONNX: x -> w (B, S) and y (B or 1, S, ...).

Networks of a blend that are built alike are traced once; the others are the same nodes with other
numbers.
"""

from typing import Any

import torch
from jaxtyping import Float
from onnx import numpy_helper
from torch import Tensor, nn

from costscape.methods.ensemble import Blended
from costscape.methods.export.traced import Graph, traced
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.weighted.nearest_neighbours import Nearest
from costscape.scenarios import Scenarios
from costscape.task import Task

TRACED = 7  # rows of the arguments with which modules are traced
Traced = dict[Any, Any]  # the ONNX model of each kind of network


class MethodScenarios(nn.Module):
    """x -> weights and outcomes of g, as a method without members has them."""

    def __init__(self, method: ScenarioMethod) -> None:
        super().__init__()
        self.model = method._fitted()
        self._surface: Any = method._surface

    def forward(self, x: Float[Tensor, "B ..."]) -> tuple[Tensor, Tensor]:
        found = self._surface(x).scenarios
        return found.weights, found.values


class MemberScenarios(nn.Module):
    """x -> weights and outcomes of one network."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Float[Tensor, "B ..."]) -> tuple[Tensor, Tensor]:
        found: Scenarios = self.model(x)
        return found.weights, found.values


class NearestScenarios(nn.Module):
    """The k nearest training rows, by distances up to a part of x alone, in double precision."""

    def __init__(self, model: Nearest) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Float[Tensor, "B ..."]) -> tuple[Tensor, Tensor]:
        model = self.model
        z, rows = model.scaler(x).flatten(1).double(), model.x.double()
        distance = rows.square().sum(1) - 2 * z @ rows.T
        index = distance.topk(model.k, largest=False).indices
        return torch.full_like(index, 1 / model.k, dtype=x.dtype), model.y[index]


class Joined(nn.Module):
    """x, y -> outcomes with the context of their rows."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.task.join(x, y)


def scenario_names(graph: Graph, method: ScenarioMethod) -> list[str]:
    """Add the nodes; return the names of w and y. The input is called x."""
    model, x, rows = method._fitted(), rows_like(method, TRACED), {0: "rows"}
    if not isinstance(model, Blended | Nearest):
        return graph.call(traced(MethodScenarios(method), [x], [rows]), "x")
    w, y = _member(graph, model, x, {})
    task = method.task_
    assert task is not None
    if task.joins:
        with torch.no_grad():
            outcomes = model(x).values
        own = len(outcomes) > 1
        part = traced(Joined(task), [x, outcomes], [rows, rows if own else {}])
        (y,) = graph.call(part, "x", y)
    return [w, y]


def _union(graph: Graph, model: Blended, x: Tensor, known: Traced) -> list[str]:
    """The mixture of the members' scenarios."""
    with torch.no_grad():
        own = len(model(x).values) > 1
    shares = model.shares or [1 / len(model.members)] * len(model.members)
    rows = graph.op("Shape", "x", start=0, end=1)
    weights, values = [], []
    for member, share in zip(model.members, shares, strict=True):
        w, y = _member(graph, member, x, known)
        dtype = str(x.dtype).removeprefix("torch.")
        weights.append(graph.op("Mul", w, graph.constant(share, dtype)))
        if own:
            with torch.no_grad():
                axes = member(x).values.ndim - 1
            shape = graph.op("Concat", rows, graph.index(*[1] * axes), axis=0)
            y = graph.op("Expand", y, shape)
        values.append(y)
    return [graph.op("Concat", *names, axis=1) for names in (weights, values)]


def _member(graph: Graph, model: nn.Module, x: Tensor, known: Traced) -> list[str]:
    if isinstance(model, Blended):
        return _union(graph, model, x, known)
    module = NearestScenarios(model) if isinstance(model, Nearest) else MemberScenarios(model)
    tensors = dict(module.named_parameters()) | dict(module.named_buffers())
    kind = (str(module), tuple((name, tuple(t.shape)) for name, t in tensors.items()))
    if kind not in known:
        known[kind] = traced(module, [x], [{0: "rows"}])
    part = type(known[kind])()
    part.CopyFrom(known[kind])
    for constant in part.graph.initializer:
        if constant.name in tensors:
            array = tensors[constant.name].detach().cpu().numpy()
            constant.CopyFrom(numpy_helper.from_array(array, constant.name))
    return graph.call(part, "x")


def rows_like(method: ScenarioMethod, count: int) -> Tensor:
    """Rows like those of fit."""
    task = method.task_
    assert task is not None
    return task.feasible.bounds[0].new_ones(count, *(method.x_shape_ or ()))
