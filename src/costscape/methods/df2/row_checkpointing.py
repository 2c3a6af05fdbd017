"""g of a model that gives each x outcomes of its own, made some rows at a time.

A batch's outcomes are B x S x d numbers, and their gradient as many: more than all else in a step
where f is evaluated by parts. Here the model is asked for some rows, g is taken, and the outcomes
are forgotten; on the way back the same rows are made again, and their gradient goes to the
parameters at once. Memory is that of some rows, whatever the batch. The model is computed twice,
f no more often than by parts.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from costscape.expectation import Function, fits, learns, pulled_back
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.task import SeparableTask, Task

ROWS = 128  # made at a time


@dataclass(frozen=True)
class ByRows:
    """As ExpectedCost(task, model(x)), where that is too large for one gradient."""

    task: Task
    model: nn.Module
    x: Float[Tensor, "B ..."]
    like: Scenarios  # those of one x

    @property
    def shared(self) -> bool:
        return False

    def __call__(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J"]:
        return self._mean(self.task.cost, a)

    def terms(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J d"]:
        assert isinstance(self.task, SeparableTask)
        return self._mean(self.task.terms, a)

    def whole(self) -> ExpectedCost:
        return ExpectedCost(self.task, self.model(self.x))

    def _mean(self, f: Function, a: Tensor) -> Tensor:
        y = self.like.values
        few = fits(a, len(self.x), y, self.task.width, None)
        if few or not torch.is_grad_enabled() or a.requires_grad or learns(f, a, y):
            return self.whole().mean(f, a)
        weights = [p for p in self.model.parameters() if p.requires_grad]
        return _Again.apply(self, f, a, *weights)  # type: ignore[no-any-return,no-untyped-call]


def learned(task: Task, model: nn.Module, x: Float[Tensor, "B ..."]) -> ExpectedCost | ByRows:
    """g of a model in training. By rows on a CPU, for outcomes of their own and many x.

    Not where a layer looks at the whole batch.
    """
    if len(x) <= ROWS or x.is_cuda or any(isinstance(m, _NormBase) for m in model.modules()):
        return ExpectedCost(task, model(x))
    with torch.no_grad(), torch.random.fork_rng([]):
        like = model(x[:1])
    if like.shared:
        return ExpectedCost(task, model(x))
    return ByRows(task, model, x, like)


class _Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: ByRows, f: Function, a: Tensor, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(a, *weights)
        ctx.g, ctx.f = g, f
        ctx.state = torch.get_rng_state() if g.model.training else None
        return torch.cat(
            [ExpectedCost(g.task, g.model(g.x[i])).mean(f, _of(a, i)) for i in _slices(len(g.x))]
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (a, *weights), g = ctx.saved_tensors, ctx.g
        with torch.random.fork_rng([]):
            if ctx.state is not None:
                torch.set_rng_state(ctx.state)
            if torch.is_grad_enabled():  # a gradient of the gradient will be asked for
                out = g.whole().mean(ctx.f, a)
                found = torch.autograd.grad(
                    out, weights, grad, create_graph=True, allow_unused=True
                )
                return None, None, None, *found
            total: list[Tensor | None] = [None] * len(weights)
            for i in _slices(len(g.x)):
                for n, part in enumerate(_part(g, ctx.f, a, weights, grad, i)):
                    before = total[n]
                    total[n] = part if before is None or part is None else before.add_(part)
        return None, None, None, *total


def _part(
    g: ByRows, f: Function, a: Tensor, weights: list[Tensor], grad: Tensor, i: slice
) -> tuple[Tensor | None, ...]:
    with torch.enable_grad():
        s = g.model(g.x[i])
    w, y = s.weights.detach(), s.values.detach()
    back = pulled_back(f, _of(a, i), w, y, grad[i], g.task.width)
    learning = [
        (v, b) for v, b in zip((s.weights, s.values), back, strict=True) if v.requires_grad
    ]
    outs, grads = zip(*learning, strict=True)
    return torch.autograd.grad(outs, weights, grads, allow_unused=True)


def _of(a: Tensor, i: slice) -> Tensor:
    return a if len(a) == 1 else a[i]


def _slices(n: int) -> list[slice]:
    return [slice(i, i + ROWS) for i in range(0, n, ROWS)]
