"""Modules of torch as nodes of ONNX, and a graph that is put together from them.

Tracing takes milliseconds for each node, so only what is the user's or a network is traced: once
for each module. The search, whose steps repeat, is written in operators.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import config
from onnx import helper, inliner, numpy_helper
from torch import Tensor, nn

OPSET = 20
Names = list[str]  # of the outputs of a node


class NotTraced(Exception):
    """A module uses an operation that cannot be written as ONNX. The message says which."""


class Graph:
    """Nodes and constants of an ONNX graph under construction; values have names.

    Args:
        dtype: numpy dtype of the numbers of the search.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._shared: dict[int, dict[str, str]] = {}
        self._count = 0

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or of its outputs as a list."""
        names = [self._name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant, in the dtype of the search unless given."""
        name = self._name()
        array = np.asarray(value, dtype=self.dtype if dtype is None else dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def index(self, *values: int) -> str:
        """A constant vector of integers, such as axes or a shape."""
        return self.constant(list(values), np.int64)

    def call(
        self, part: "Traced", *inputs: str, tensors: Mapping[str, Tensor] | None = None
    ) -> Names:
        """Add the nodes of a traced module; return the names of its outputs.

        ``tensors`` replace parameters and buffers of the module, by their names.
        """
        prefix = f"{self._name()}."
        given = dict(zip(part.inputs, inputs, strict=True)) | dict.fromkeys(part.rows_of, "x")
        given |= self._constants_of(part, prefix, tensors)

        def renamed(name: str) -> str:
            return given.get(name) or (prefix + name if name else "")

        for node in part.nodes:
            copy = type(node)()
            copy.CopyFrom(node)
            for names in (copy.input, copy.output):
                names[:] = [renamed(name) for name in names]
            copy.name, copy.doc_string = "", ""
            del copy.metadata_props[:]  # files and lines of the machine that exports
            self.nodes.append(copy)
        return [renamed(name) for name in part.outputs]

    def _constants_of(
        self, part: "Traced", prefix: str, tensors: Mapping[str, Tensor] | None
    ) -> dict[str, str]:
        """The constants of a module by name; calls with the same numbers share them."""
        if tensors is None and id(part) in self._shared:
            return self._shared[id(part)]
        for name, constant in part.constants.items():
            copy = type(constant)()
            copy.CopyFrom(constant)
            if tensors is not None and name in tensors:
                copy = numpy_helper.from_array(tensors[name].detach().cpu().numpy())
            copy.name = prefix + constant.name
            self.constants.append(copy)
        names = {c.name: prefix + c.name for c in part.constants.values()}
        if tensors is None:
            self._shared[id(part)] = names
        return names

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"


@dataclass(frozen=True, eq=False)
class Part:
    """A module to be traced.

    Args:
        module: nn.Module. From tensors to a tensor, or to a tuple of tensors.
        arguments: sequence of tensors. With which it is traced.
        dynamic: sequence of dict. The name of each axis of each argument that may vary.
    """

    module: nn.Module
    arguments: Sequence[Tensor]
    dynamic: Sequence[dict[int, str]]


@dataclass(frozen=True, eq=False)
class Traced:
    """The nodes of a module, and the names of its inputs and outputs.

    ``constants`` has its parameters and buffers by their names in the module. ``rows_of`` has the
    argument of another module, rows of X, whose number of rows this one may read.
    """

    inputs: Names
    outputs: Names
    nodes: list[Any]
    constants: dict[str, Any]
    rows_of: Names


class _Parts(nn.Module):
    """Several modules side by side, since each call of the exporter takes a second."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__()
        self.parts = nn.ModuleList([part.module for part in parts])
        self.sizes = [len(part.arguments) for part in parts]

    def forward(self, arguments: list[Tensor]) -> list[Tensor]:
        outputs: list[Tensor] = []
        begin = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            found = part(*arguments[begin : begin + size])
            outputs += [found] if isinstance(found, Tensor) else found
            begin += size
        return outputs


def traced(parts: Sequence[Part]) -> list[Traced]:
    """Each module as nodes of ONNX; NotTraced where one has an operation that ONNX lacks."""
    from torch.export import Dim, export

    names = {name for part in parts for axes in part.dynamic for name in axes.values()}
    dims = {name: Dim(name, min=2) for name in names}
    shapes = [{k: dims[v] for k, v in axes.items()} for part in parts for axes in part.dynamic]
    # copies: one tensor given twice would be one input
    arguments = [argument.clone() for part in parts for argument in part.arguments]
    try:
        with _quiet(), torch.no_grad():
            # the number of outputs of each module
            answers = [part.module.eval()(*part.arguments) for part in parts]
            program = export(
                _Parts(parts).eval(), (arguments,), dynamic_shapes=(shapes,), strict=False
            )
            made = torch.onnx.export(
                program,
                dynamo=True,
                optimize=False,
                verbose=False,
                opset_version=OPSET,
                custom_translation_table={torch.ops.aten.searchsorted.Tensor: _searchsorted},
            )
        assert made is not None
        graph = inliner.inline_local_functions(made.model_proto).graph
    except Exception as error:  # torch raises its own kinds for each stage
        raise NotTraced(_first_line(error)) from error
    domains = {node.domain for node in graph.node} - {"", "ai.onnx"}
    if domains or any(a.HasField("g") for node in graph.node for a in node.attribute):
        raise NotTraced("it needs operators beside the standard ones, or branches")
    inputs, outputs = ([value.name for value in end] for end in (graph.input, graph.output))
    found, first = [], inputs[:1]
    for i, (part, answer) in enumerate(zip(parts, answers, strict=True)):
        count = 1 if isinstance(answer, Tensor) else len(answer)
        own, outputs = outputs[:count], outputs[count:]
        given, inputs = inputs[: len(part.arguments)], inputs[len(part.arguments) :]
        found.append(_needed(graph, given, own, f"parts.{i}.", first if i else []))
    return found


def _needed(graph: Any, inputs: Names, outputs: Names, prefix: str, rows_of: Names) -> Traced:
    """The nodes and constants on which some outputs depend."""
    needed, nodes = set(outputs), []
    for node in reversed(graph.node):
        if needed & set(node.output):
            nodes.append(node)
            needed |= set(node.input)
    constants = {c.name.removeprefix(prefix): c for c in graph.initializer if c.name in needed}
    for node in [n for n in nodes if n.op_type == "Constant" and n.attribute[0].HasField("t")]:
        nodes.remove(node)
        tensor = node.attribute[0].t
        tensor.name = node.output[0]
        constants[tensor.name] = tensor
    return Traced(inputs, outputs, nodes[::-1], constants, rows_of)


def _searchsorted(sorted_sequence: Any, self: Any, **options: Any) -> Any:
    """How many entries of each row are less than each value: ONNX has no such operator."""
    from onnxscript import opset20

    op: Any = opset20  # its types take constants for tensors only
    rows, values = op.Unsqueeze(sorted_sequence, [-2]), op.Unsqueeze(self, [-1])
    below = op.Cast(op.Less(rows, values), to=7)
    return op.ReduceSum(below, [-1], keepdims=0)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's warnings, and without checks of shapes, which would fix sizes."""
    disabled, level = config.jaxtyping_disable, logging.root.manager.disable
    config.update("jaxtyping_disable", True)
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        config.update("jaxtyping_disable", disabled)


def _first_line(error: BaseException) -> str:
    """The first line of the innermost message, short."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:160]}"
