"""A set that breaks the contract is told so."""

from typing import Any

import pytest
import torch
from torch import Generator, Tensor

from costscape.checks import check_set
from costscape.sets import ConstraintSet


class Cube(ConstraintSet):
    """[0, 1]^3, with one function exchanged for a wrong one."""

    def __init__(self, **wrong):
        super().__init__()
        self.dim = 3
        self.wrong = wrong
        self.register_buffer("one", torch.ones(3))

    def _or(self, name, right, *given):
        return self.wrong[name](self, *given) if name in self.wrong else right(*given)

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        return self._or("bounds", lambda: (0 * self.one, self.one))

    def sample(self, n: int, generator: Generator | None = None) -> Tensor:
        return self._or("sample", self._uniform, n, generator)

    def _uniform(self, n, generator):
        return torch.rand(n, 3, generator=generator, dtype=self.one.dtype)

    def project(self, a: Tensor) -> Tensor:
        return self._or("project", lambda a: a.clamp(0, 1), a)

    def violation(self, a: Tensor) -> Tensor:
        return self._or("violation", lambda a: (a - a.clamp(0, 1)).abs().amax(-1), a)

    def describe(self, a: Any) -> list[Any]:
        return [a >= 0, a <= 1]


def test_a_right_set_passes():
    check_set(Cube())


# a projection that is feasible and idempotent but not nearest: too far along the first axis
def shove(c, a):
    p = a.clamp(0, 1)
    outside = ((a < 0) | (a > 1)).any(-1, keepdim=True)
    return torch.where(outside, torch.cat([0.5 * p[..., :1], p[..., 1:]], -1), p).clamp(0, 1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sample": lambda c, n, g: torch.rand(n, 2)}, r"sample\(200\) has shape \(200, 2\)"),
        ({"sample": lambda c, n, g: c._uniform(n, g).double()}, "samples are torch.float64"),
        ({"sample": lambda c, n, g: 2 * c._uniform(n, g)}, r"sample\(\) left the set by"),
        ({"sample": lambda c, n, g: c._uniform(n, None)}, "a generator with the same seed"),
        ({"sample": lambda c, n, g: c._uniform(max(n, 1), g)}, r"sample\(0\) is not empty"),
        (
            {"violation": lambda c, a: (a - a.clamp(0, 1)).abs()},
            "violation of 200 points has shape",
        ),
        ({"violation": lambda c, a: (a - 1).amax(-1)}, r"violation\(\) is negative"),
        ({"violation": lambda c, a: 0 * a[..., 0]}, r"violation\(\) is 0 at a point that"),
        ({"bounds": lambda c: (c.one, 0 * c.one)}, "a lower bound above the upper one"),
        ({"bounds": lambda c: (0 * c.one, 0.5 * c.one)}, "bounds does not contain the samples"),
        ({"project": lambda c, a: a.clamp(0, 1).double()}, "changed the shape or the dtype"),
        ({"project": lambda c, a: a.clamp(0, 2)}, r"project\(\) left the set by 1"),
        ({"project": lambda c, a: 0.5 * a.clamp(0, 1)}, "moved a projection, a point of the set"),
        ({"project": lambda c, a: 0 * a}, "moved a sample, a point of the set"),
        ({"project": shove}, r"a point of the set is nearer than project\(\)"),
        (
            {"project": lambda c, a: a.clamp(0, 1) if a.ndim == 2 else 0 * a},
            r"depends on the batch shape \(2, 100, 3\)",
        ),
        (
            {"project": lambda c, a: a.clamp(0, 1) if a.ndim > 1 else 0 * a},
            r"project\(\) of a single point differs",
        ),
        (
            {"project": lambda c, a: a.double().clamp(0, 1).to(c.one.dtype)},
            r"project\(\) made torch.float64 of torch.float32",
        ),
    ],
)
def test_a_wrong_set_is_told_what_it_breaks(wrong, words):
    with pytest.raises(AssertionError, match=words):
        check_set(Cube(**wrong))


def test_a_slightly_wrong_projection_is_caught_by_its_angle():
    # a little too near the middle: no known point is nearer, but the optimality condition breaks
    def skew(c, a):
        p = a.clamp(0, 1)
        outside = (a != p).any(-1, keepdim=True)
        return torch.where(outside & (a == p), p + 0.002 * (0.5 - p), p)

    with pytest.raises(AssertionError, match="not the nearest point"):
        check_set(Cube(project=skew), far=0.5)


class Ball(ConstraintSet):
    """|a| <= 1, whose projection divides by a distance that is 0 at the centre."""

    def __init__(self):
        super().__init__()
        self.dim = 3
        self.register_buffer("radius", torch.ones(()))

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        return -self.radius.expand(3), self.radius.expand(3)

    def sample(self, n: int, generator: Generator | None = None) -> Tensor:
        z = self.radius.new_empty(n, 3).normal_(generator=generator)
        u = self.radius.new_empty(n, 1).uniform_(generator=generator)
        return u ** (1 / 3) * z / z.norm(dim=-1, keepdim=True)

    def project(self, a: Tensor) -> Tensor:
        return a * (1 / a.norm(dim=-1, keepdim=True)).clamp(max=1)

    def violation(self, a: Tensor) -> Tensor:
        return (a.norm(dim=-1) - 1).clamp(min=0)

    def describe(self, a: Any) -> list[Any]:
        return [(a**2).sum() <= 1]


class SmoothBall(Ball):
    """The same with finite slopes everywhere."""

    def project(self, a: Tensor) -> Tensor:
        return a / a.square().sum(-1, keepdim=True).clamp(min=1).sqrt()


def test_a_projection_without_a_finite_slope_is_refused():
    with pytest.raises(AssertionError, match="slope that is not finite at"):
        check_set(Ball())


def test_the_same_set_with_finite_slopes_passes():
    check_set(SmoothBall())
