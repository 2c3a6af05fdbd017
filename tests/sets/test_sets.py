"""What all sets have in common."""

import copy
import pickle

import cvxpy as cp
import numpy as np
import pytest
import torch

from costscape.checks import check_set
from costscape.sets import BallWalk, Box, Budget, Finite, OuterBox, Polytope, Simplex, Whole

EYE = np.eye(4)
CUT = np.vstack([EYE, -EYE, np.ones((1, 4))])

MAKE = {
    "Box": lambda: Box([-1.0, 0.0, 2.0], [1.0, 0.5, 2.0]),
    "Box of one number": lambda: Box(0.0, 3.0, dim=1),
    "Simplex": lambda: Simplex(total=2.0, dim=5),
    "Simplex of one number": lambda: Simplex(dim=1),
    "Budget": lambda: Budget(total=3.0, dim=4),
    "Budget with caps": lambda: Budget(total=3.0, dim=4, upper=[0.5, 1.0, 2.5, 0.0]),
    "Budget of doses": lambda: Budget(total=5e6, dim=47, upper=np.linspace(5e4, 1.4e6, 47)),
    "Budget that only its caps bind": lambda: Budget(total=9.0, dim=3, upper=1.0),
    "Polytope": lambda: Polytope(G=CUT, h=[1.0] * 8 + [0.5]),
    "Polytope by ball walk": lambda: Polytope(G=CUT, h=[1.0] * 8 + [0.5], sampler=BallWalk()),
    "Polytope by outer box": lambda: Polytope(G=CUT, h=[1.0] * 8 + [0.5], sampler=OuterBox()),
    "Polytope with equalities": lambda: Polytope(
        A=[[1, 1, 1, 1], [1, -1, 0, 0]], b=[1.0, 0.0], G=-EYE, h=0.0
    ),
    "Polytope of one point": lambda: Polytope(A=EYE, b=0.5),
    "Finite": lambda: Finite([[0.0, 1.0], [2.0, 3.0], [2.0, -3.0]]),
    "Finite of one action": lambda: Finite([[1.0, 2.0]]),
    "Whole box": lambda: Box([0.0, 1.0, 0.0], [60.0, 9.5, 1.0], step=[12, 2, None]),
    "Whole budget": lambda: Whole(Budget(total=40.0, dim=3, upper=[30.0, 40.0, 13.0]), 12.0),
    "Whole simplex": lambda: Whole(Simplex(total=6.0, dim=3), [1.0, 2.0, 3.0]),
    "Whole polytope": lambda: Whole(Polytope(G=CUT, h=[2.0] * 8 + [1.0])),
}
CONVEX = [name for name in MAKE if not name.startswith(("Finite", "Whole"))]


@pytest.mark.parametrize("far", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("name", MAKE)
def test_keeps_the_contract(name, far):
    check_set(MAKE[name](), far)


@pytest.mark.parametrize("name", MAKE)
def test_keeps_the_contract_in_double_precision(name):
    check_set(MAKE[name]().double())


@pytest.mark.parametrize("name", MAKE)
def test_the_default_dtype_at_construction_is_that_of_the_set(name):
    assert MAKE[name]().bounds[0].dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        c = MAKE[name]()
        assert c.bounds[0].dtype == torch.float64
        assert c.tolerance < 1e-8 * max(1.0, float(c.bounds[1].abs().max()))
        check_set(c)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3), (2, 1, 3), (0,)])
def test_leading_axes_are_a_batch(name, batch, rng):
    c = MAKE[name]()
    a = torch.randn(*batch, c.dim, generator=rng())
    assert c.project(a).shape == a.shape
    assert c.violation(a).shape == batch
    assert c.contains(a).shape == batch
    for i in np.ndindex(batch):
        assert torch.allclose(c.project(a)[i], c.project(a[i]), atol=c.tolerance)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kept", [torch.float32, torch.float64])
def test_a_projection_has_the_dtype_of_the_point(name, dtype, kept):
    c = MAKE[name]().to(kept)
    assert c.project(torch.zeros(3, c.dim, dtype=dtype)).dtype == dtype


@pytest.mark.parametrize("name", MAKE)
def test_copies_pickles_and_state_dicts_are_the_same_set(name, rng):
    c = MAKE[name]()
    a = c.sample(20, rng())
    far = 3 * torch.randn(20, c.dim, generator=rng())
    loaded = MAKE[name]()
    for buffer in loaded.buffers():
        buffer.zero_()
    loaded.load_state_dict(c.state_dict())
    for twin in (copy.deepcopy(c), pickle.loads(pickle.dumps(c)), loaded):
        assert torch.equal(twin.sample(20, rng()), a)
        assert torch.equal(twin.project(far), c.project(far))
        assert repr(twin) == repr(c)


@pytest.mark.parametrize("name", MAKE)
def test_every_tensor_is_a_buffer(name):
    c = MAKE[name]()
    held = {k for k, v in vars(c).items() if isinstance(v, torch.Tensor)}
    assert not held
    assert all(isinstance(v, torch.Tensor) for v in c.state_dict().values())
    assert not list(c.parameters())


@pytest.mark.parametrize("name", CONVEX)
def test_cvxpy_finds_the_same_set_in_the_description(name, rng):
    # the lowest point of C in a random direction, and its bounds
    c = MAKE[name]().double()
    lower, upper = (v.numpy() for v in c.bounds)
    size = max(1.0, np.abs(upper).max())
    a = cp.Variable(c.dim)
    way = torch.randn(c.dim, generator=rng(), dtype=torch.float64).numpy()
    best = cp.Problem(cp.Minimize(way @ a), c.describe(a)).solve(solver=cp.CLARABEL)
    assert c.violation(torch.tensor(a.value)) < 1e-5 * size
    far = c.project(torch.tensor((lower + upper) / 2 - 1e5 * size * way))
    assert abs(float(torch.tensor(way) @ far) - best) < 1e-5 * size * c.dim
    for i in {0, c.dim - 1}:
        least = cp.Problem(cp.Minimize(a[i]), c.describe(a)).solve(solver=cp.CLARABEL)
        most = cp.Problem(cp.Maximize(a[i]), c.describe(a)).solve(solver=cp.CLARABEL)
        assert abs(least - lower[i]) < 1e-5 * size
        assert abs(most - upper[i]) < 1e-5 * size


@pytest.mark.parametrize("name", ["Box", "Simplex", "Budget with caps", "Polytope"])
def test_cvxpy_projects_to_the_same_point(name, rng):
    c = MAKE[name]().double()
    a = cp.Variable(c.dim)
    for q in 2 * torch.randn(3, c.dim, generator=rng(), dtype=torch.float64):
        cp.Problem(cp.Minimize(cp.sum_squares(a - q.numpy())), c.describe(a)).solve(
            solver=cp.CLARABEL
        )
        assert torch.allclose(torch.tensor(a.value), c.project(q), atol=1e-5)
