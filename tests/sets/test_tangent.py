"""The directions that keep the active constraints active."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.sets import Box, Budget, Finite, Polytope, Simplex
from costscape.sets.constraint_set import Polyhedral

EYE = np.eye(4)
MAKE = {
    "Box": lambda: Box([-1.0, 0.0, 2.0, 0.0], [1.0, 0.5, 2.0, 3.0]),
    "Simplex": lambda: Simplex(total=2.0, dim=4),
    "Budget": lambda: Budget(total=3.0, dim=4),
    "Budget with caps": lambda: Budget(total=3.0, dim=4, upper=[0.5, 1.0, 2.5, 0.0]),
    "Polytope": lambda: Polytope(G=np.vstack([EYE, -EYE, np.ones((1, 4))]), h=[1.0] * 8 + [0.5]),
    "Polytope with equalities": lambda: Polytope(
        A=[[1, 1, 1, 1], [1, -1, 0, 0]], b=[1.0, 0.0], G=-EYE, h=0.0
    ),
    "Polytope of one point": lambda: Polytope(A=EYE, b=0.5),
    "Polytope with far rows": lambda: Polytope(
        G=np.vstack([1e3 * EYE, -1e-3 * EYE]), h=np.repeat([1e3, 1e-3], 4)
    ),
}


@cache
def made(name):
    return MAKE[name]().double()


def rank(c, a):
    P = c.tangent(torch.tensor([a], dtype=torch.float64))
    return round(float(P.diagonal(dim1=-2, dim2=-1).sum()))


@pytest.mark.parametrize("name", MAKE)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), far=st.sampled_from([0.0, 1.0, 10.0]))
def test_it_is_the_projector_onto_directions_that_move_along_the_active_rows(name, seed, far):
    c = made(name)
    rng = torch.Generator().manual_seed(seed)
    a = c.sample(5, rng)
    # far points land on faces of all dimensions
    a = c.project(a + far * torch.randn(a.shape, generator=rng, dtype=a.dtype))
    P = c.tangent(a)
    assert torch.allclose(P, P.mT, atol=1e-12)
    assert torch.allclose(P @ P, P, atol=1e-9)
    v = (P @ torch.randn(5, 4, 1, generator=rng, dtype=a.dtype))[..., 0]
    for sign in (-1, 1):  # a free direction may be walked both ways, for a while
        tiny = 1e-10 * v / v.norm(dim=-1, keepdim=True).clamp(min=1)
        assert (c.violation(a + sign * tiny) <= 2e-9).all()
    rows = c.rows()
    A, G, room = rows.A, rows.G, rows.h - a @ rows.G.T
    assert torch.allclose(v @ A.T, torch.zeros(5, len(A), dtype=a.dtype), atol=1e-8)
    held = room / G.norm(dim=1) <= c.tolerance
    assert (((v @ G.T).abs() / G.norm(dim=1)) * held <= 1e-5).all()
    # and nothing else is given up: the rank is what the active rows leave
    for b in range(5):
        active = torch.cat([A, G[held[b]]])
        left = 4 - (int(torch.linalg.matrix_rank(active)) if len(active) else 0)
        assert round(float(P[b].trace())) == left


@pytest.mark.parametrize("name", MAKE)
def test_the_rows_are_the_set(name):
    c = made(name)
    rng = torch.Generator().manual_seed(0)
    rows = c.rows()
    near = c.sample(200, rng)
    near = near + 0.3 * torch.randn(near.shape, generator=rng, dtype=near.dtype)
    for a in (near, c.project(near)):
        meets = (a @ rows.A.T - rows.b).abs().amax(1) <= 1e-9 if len(rows.A) else True
        meets = meets & (a @ rows.G.T <= rows.h + 1e-9).all(1)
        assert torch.equal(meets, c.contains(a, 1e-9)), name


def test_the_rank_on_a_box_is_the_number_of_coordinates_off_their_bounds():
    c = Box(0.0, 1.0, dim=3).double()
    assert [rank(c, a) for a in ([0.5, 0.5, 0.5], [0.0, 0.5, 1.0], [0, 1, 0])] == [3, 1, 0]


def test_the_rank_on_a_simplex_is_one_less_than_the_number_of_positive_coordinates():
    c = Simplex(total=2.0, dim=4).double()
    assert [rank(c, a) for a in ([0.5] * 4, [1.0, 0.0, 1.0, 0.0], [0, 2, 0, 0])] == [3, 1, 0]


def test_the_sum_of_a_budget_counts_only_where_it_binds():
    c = Budget(total=2.0, dim=3, upper=1.5).double()
    inside, spent, capped, bare = [0.2, 0.2, 0.2], [1.0, 0.5, 0.5], [1.5, 0.1, 0.0], [0, 0, 0]
    assert [rank(c, a) for a in (inside, spent, capped, bare)] == [3, 2, 1, 0]


def test_a_corner_with_more_rows_than_dimensions_has_no_direction():
    pyramid = Polytope(
        G=[[1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1], [0, 0, -1]], h=[1] * 4 + [0]
    )
    c = pyramid.double()
    assert [rank(c, a) for a in ([0.0, 0, 1], [0.5, 0, 0.5], [0.5, 0.5, 0.5])] == [0, 2, 1]


def test_the_tolerance_is_a_distance():
    c = Polytope(G=[[1e3, 0], [-1e3, 0], [0, 1e3], [0, -1e3]], h=[1e3] * 4).double()
    a = torch.tensor([[0.99, 0.0]], dtype=torch.float64)
    assert float(c.tangent(a, 0.02)[0].trace()) == 1
    assert float(c.tangent(a, 0.005)[0].trace()) == 2


def test_single_precision_points_on_a_face_are_found_there():
    c = Simplex(total=1.0, dim=5)
    a = c.project(torch.randn(50, 5, generator=torch.Generator().manual_seed(0)))
    P = c.tangent(a)
    assert P.dtype == torch.float32
    expected = (a > c.tolerance).sum(1) - 1
    assert torch.equal(P.diagonal(dim1=-2, dim2=-1).sum(-1).round().long(), expected)


def test_a_list_of_actions_has_no_faces():
    assert not isinstance(Finite([[0.0]]), Polyhedral)
