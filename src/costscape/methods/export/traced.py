"""Modules of torch as nodes of ONNX, and a graph that is put together from them.

Tracing takes milliseconds for each node, so only what is the user's or a network is traced: once
for each module. The search, whose steps repeat, is written in operators.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import config
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
        self._count = 0

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or of its outputs as a list."""
        from onnx import helper

        names = [self._name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant, in the dtype of the search unless given."""
        from onnx import numpy_helper

        name = self._name()
        array = np.asarray(value, dtype=self.dtype if dtype is None else dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def index(self, *values: int) -> str:
        """A constant vector of integers, such as axes or a shape."""
        return self.constant(list(values), np.int64)

    def call(self, part: Any, *inputs: str) -> Names:
        """Add the nodes of a traced module; return the names of its outputs."""
        prefix = f"{self._name()}."
        given = dict(zip([v.name for v in part.graph.input], inputs, strict=True))

        def renamed(name: str) -> str:
            return given.get(name) or (prefix + name if name else "")

        for constant in part.graph.initializer:
            self.constants.append(type(constant)())
            self.constants[-1].CopyFrom(constant)
            self.constants[-1].name = renamed(constant.name)
        for node in part.graph.node:
            copy = type(node)()
            copy.CopyFrom(node)
            for names in (copy.input, copy.output):
                names[:] = [renamed(name) for name in names]
            copy.name, copy.doc_string = "", ""
            del copy.metadata_props[:]  # files and lines of the machine that exports
            self.nodes.append(copy)
        return [renamed(v.name) for v in part.graph.output]

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"


def traced(
    module: nn.Module, arguments: Sequence[Tensor], dynamic: Sequence[dict[int, str]]
) -> Any:
    """The ONNX model of a module; ``dynamic`` names the axes of each argument that may vary."""
    from onnx import inliner
    from torch.export import Dim, export

    names = {name for axes in dynamic for name in axes.values()}
    dims = {name: Dim(name, min=2) for name in names}
    shapes = tuple({axis: dims[name] for axis, name in axes.items()} for axes in dynamic)
    try:
        with _quiet(), torch.no_grad():
            program = export(module.eval(), tuple(arguments), dynamic_shapes=shapes, strict=False)
            made = torch.onnx.export(
                program,
                dynamo=True,
                optimize=False,
                verbose=False,
                opset_version=OPSET,
                custom_translation_table={torch.ops.aten.searchsorted.Tensor: _searchsorted},
            )
        assert made is not None
        model = inliner.inline_local_functions(made.model_proto)
    except Exception as error:  # torch raises its own kinds for each stage
        raise NotTraced(_first_line(error)) from error
    domains = {node.domain for node in model.graph.node} - {"", "ai.onnx"}
    subgraphs = [n for n in model.graph.node for a in n.attribute if a.HasField("g")]
    if domains or subgraphs:
        raise NotTraced("it needs operators beside the standard ones, or branches")
    return model


def _searchsorted(sorted_sequence: Any, self: Any, **options: Any) -> Any:
    """How many entries of each row are less than each value: ONNX has no such operator."""
    from onnxscript import opset20 as op

    rows, values = op.Unsqueeze(sorted_sequence, [-2]), op.Unsqueeze(self, [-1])
    below = op.Cast(op.Less(rows, values), to=7)
    return op.ReduceSum(below, [-1], keepdims=0)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's warnings, and without shape checks, which would fix symbolic sizes."""
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
