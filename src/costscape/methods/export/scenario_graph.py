"""The scenarios of a fitted method as nodes of ONNX: x -> w (B, S) and y (B or 1, S, ...).

Networks of a blend that are built alike are traced once; the others are the same nodes with other
numbers.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.methods.ensemble import Blended
from costscape.methods.export.traced import Graph, Names, Part, Traced
from costscape.methods.surfaces import ScenarioMethod
from costscape.scenarios import Scenarios
from costscape.task import Task

TRACED = 7  # rows of the arguments with which modules are traced


@runtime_checkable
class Traceable(Protocol):
    """A model whose forward cannot be traced, with another one that can."""

    def traceable(self) -> nn.Module:
        """The same model from x to Scenarios, in operations that ONNX has."""


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


class Joined(nn.Module):
    """x, y -> outcomes with the context of their rows."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.task.join(x, y)


class ScenarioParts:
    """The modules whose nodes make the scenarios of a method.

    Args:
        method: ScenarioMethod. Fitted.
    """

    def __init__(self, method: ScenarioMethod) -> None:
        self.model, self.x = method._fitted(), rows_like(method, TRACED)
        self.parts: list[Part] = []
        self._place: dict[Any, int] = {}  # of each kind of network among the parts
        rows, task = {0: "rows"}, method.task_
        assert task is not None
        self._joins = False
        if not isinstance(self.model, Blended | Traceable):
            self.parts.append(Part(MethodScenarios(method), [self.x], [rows]))
            return
        for leaf in _leaves(self.model):
            if _kind(leaf) not in self._place:
                self._place[_kind(leaf)] = len(self.parts)
                self.parts.append(Part(leaf, [self.x], [rows]))
        self._joins = task.joins
        if task.joins:
            y = self._values(self.model)
            self.parts.append(Part(Joined(task), [self.x, y], [rows, rows if len(y) > 1 else {}]))

    def add(self, graph: Graph, traced: Sequence[Traced]) -> Names:
        """Add the nodes; return the names of w and y. The input is called x."""
        if not self._place:
            return graph.call(traced[0], "x")
        w, y = self._member(graph, self.model, traced)
        if self._joins:
            (y,) = graph.call(traced[len(self.parts) - 1], "x", y)
        return [w, y]

    def _member(self, graph: Graph, model: nn.Module, traced: Sequence[Traced]) -> Names:
        if isinstance(model, Blended):
            return self._union(graph, model, traced)
        (leaf,) = _leaves(model)
        return graph.call(traced[self._place[_kind(leaf)]], "x", tensors=_tensors(leaf))

    def _union(self, graph: Graph, model: Blended, traced: Sequence[Traced]) -> Names:
        """The mixture of the members' scenarios."""
        own = len(self._values(model)) > 1
        shares = model.shares or [1 / len(model.members)] * len(model.members)
        rows = graph.op("Shape", "x", start=0, end=1)
        dtype = str(self.x.dtype).removeprefix("torch.")
        weights, values = [], []
        for member, share in zip(model.members, shares, strict=True):
            w, y = self._member(graph, member, traced)
            weights.append(graph.op("Mul", w, graph.constant(share, dtype)))
            if own:
                ones = graph.index(*[1] * (self._values(member).ndim - 1))
                y = graph.op("Expand", y, graph.op("Concat", rows, ones, axis=0))
            values.append(y)
        return [graph.op("Concat", *names, axis=1) for names in (weights, values)]

    def _values(self, model: nn.Module) -> Tensor:
        with torch.no_grad():
            values: Tensor = model(self.x).values
        return values


def _leaves(model: nn.Module) -> list[MemberScenarios]:
    """The networks of a blend, or the model itself, as they are traced."""
    if isinstance(model, Blended):
        return [leaf for member in model.members for leaf in _leaves(member)]
    return [MemberScenarios(model.traceable() if isinstance(model, Traceable) else model)]


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return dict(module.named_parameters()) | dict(module.named_buffers())


def _kind(module: nn.Module) -> tuple[Any, ...]:
    """Equal for modules that are built alike."""
    return str(module), tuple((name, tuple(t.shape)) for name, t in _tensors(module).items())


def rows_like(method: ScenarioMethod, count: int) -> Tensor:
    """Rows like those of fit."""
    task = method.task_
    assert task is not None
    return task.feasible.bounds[0].new_ones(count, *(method.x_shape_ or ()))
