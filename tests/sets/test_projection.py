import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.sets import projection as module
from costscape.sets.projection import nearest


def unit(H, s):
    H, s = torch.as_tensor(H, dtype=torch.float64), torch.as_tensor(s, dtype=torch.float64)
    length = H.norm(dim=1)
    return H / length[:, None], s / length


def assert_nearest(qp, q, H, s, atol=1e-10):
    z, W = nearest(q, H, s)
    assert (z @ H.T - s).max() <= 1e-11
    assert torch.allclose(z, qp(q, [], [], H.numpy(), s.numpy()), atol=atol)
    # the rows that hold a point hold with equality, and no more of them than dimensions
    assert ((z @ H.T - s)[W].abs() <= 1e-10).all()
    assert W.sum(1).max() <= H.shape[1]


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(0, 6))
@settings(deadline=None, max_examples=40)
def test_agrees_with_the_enumeration_of_all_faces(qp, seed, k, more):
    rng = np.random.default_rng(seed)
    rows = np.vstack([np.eye(k), -np.eye(k), rng.normal(size=(more, k))])
    H, s = unit(rows, rng.uniform(0.1, 1.0, len(rows)))
    q = torch.tensor(rng.normal(size=(8, k)) * rng.choice([0.3, 2.0, 50.0], size=(8, 1)))
    assert_nearest(qp, q, H, s)


@given(st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_whole_numbers_bring_ties_and_degenerate_corners(qp, seed):
    rng = np.random.default_rng(seed)
    rows = np.vstack([np.eye(3), -np.eye(3), rng.integers(-2, 3, size=(10, 3))])
    rows = rows[(rows != 0).any(1)]
    H, s = unit(rows, np.full(len(rows), 2.0))
    assert_nearest(qp, torch.tensor(rng.integers(-6, 7, size=(8, 3)) * 1.0), H, s)


@pytest.mark.parametrize("near", [0.0, 1e-12, 1e-8, 1e-6])
def test_rows_that_stand_twice_or_nearly_so_do_no_harm(near, qp):
    rng = np.random.default_rng(0)
    box = np.vstack([np.eye(4), -np.eye(4)])
    twice = np.vstack([box, box + near * rng.normal(size=box.shape)])
    H, s = unit(twice, np.ones(16))
    q = torch.tensor(3 * rng.normal(size=(100, 4)))
    z, _ = nearest(q, H, s)
    assert (z @ H.T - s).max() <= 1e-11
    assert torch.allclose(z, qp(q, [], [], H.numpy(), s.numpy()), atol=1e-10)
    assert torch.allclose(z, q.clamp(-1, 1), atol=30 * near + 1e-12)


def test_corners_where_many_rows_meet():
    # the 1-norm ball has 2^5 faces at each of its corners; its projection is a threshold
    H, s = unit(list(itertools.product([-1.0, 1.0], repeat=6)), np.ones(64))
    rng = np.random.default_rng(0)
    q = torch.tensor(rng.normal(size=(50, 6)) * 10)
    z, _ = nearest(q, H, s)
    ranked = q.abs().sort(descending=True).values
    tau = ((ranked.cumsum(1) - 1) / torch.arange(1, 7)).amax(1, keepdim=True)
    assert torch.allclose(z, q.sign() * (q.abs() - tau).clamp(min=0), atol=1e-12)


@pytest.mark.parametrize("thin", [1e-3, 1e-6, 1e-9])
def test_thin_sets(qp, thin):
    rows = np.vstack([np.eye(3), -np.eye(3), [[1, 1, 1], [-1, -1, -1]]])
    H, s = unit(rows, [1.0] * 6 + [thin] * 2)
    q = torch.tensor(np.random.default_rng(0).normal(size=(30, 3)) * 2)
    assert_nearest(qp, q, H, s)


def test_the_tip_of_a_needle():
    # 1e-4 wide, from (0, 1) down: two nearly opposite rows hold it
    H, s = unit([[1, 1e-4], [-1, 1e-4], [0, -1]], [1e-4, 1e-4, 0.5])
    q = torch.tensor([[3.0, 40.0], [-3.0, 40.0], [0.0, 2.0]], dtype=torch.float64)
    z, W = nearest(q, H, s)
    assert torch.allclose(z, torch.tensor([[0.0, 1.0]], dtype=torch.float64), atol=1e-9)
    assert (z @ H.T - s).max() <= 1e-13
    assert W.tolist() == [[True, True, False]] * 3


def test_rows_that_clash_end_the_search():
    # z <= -1 and z >= 1: no point, and nothing to let go of
    H, s = unit([[1.0], [-1.0]], [-1.0, -1.0])
    z, _ = module._dual(torch.zeros(3, 1, dtype=torch.float64), H, s)
    assert z.isfinite().all()


@pytest.mark.parametrize("far", [1e3, 1e6, 1e12, 1e30])
def test_from_afar_the_nearest_point_is_a_corner(far):
    # of the cube, the one with the signs of q
    H, s = unit(np.vstack([np.eye(5), -np.eye(5)]), np.ones(10))
    sign = torch.tensor(np.random.default_rng(0).choice([-1.0, 1.0], size=(20, 5)))
    z, _ = nearest(far * sign * torch.linspace(1, 2, 5, dtype=torch.float64), H, s)
    assert torch.allclose(z, sign, atol=1e-12)


@pytest.mark.parametrize("thin", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("far", [1e2, 1e5, 1e7, 1e10])
def test_all_points_of_a_normal_have_the_same_nearest_point(far, thin):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(60, 8)), np.eye(8), -np.eye(8), np.ones((1, 8))])
    H, s = unit(np.vstack([rows, -rows[-1:]]), np.append(np.ones(76), [thin, thin]))
    q = torch.tensor(rng.normal(size=(200, 8)) * 2)
    z, _ = nearest(q, H, s)
    again, _ = nearest(z + far * (q - z), H, s)
    assert (again @ H.T - s).max() <= 1e-11
    assert torch.allclose(again, z, atol=1e-13 * far + 1e-12)


def test_should_rounding_leave_a_point_outside_it_is_drawn_inside(monkeypatch):
    H, s = unit(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    monkeypatch.setattr(module, "_near", lambda q, H, s: (q, q @ H.T > s))
    z, _ = nearest(torch.tensor([[2.0, 1.0], [0.5, 0.5]], dtype=torch.float64), H, s)
    assert z.tolist() == [[1.0, 0.5], [0.5, 0.5]]


def test_points_of_the_set_stay_and_nan_stays_nan():
    H, s = unit(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    q = torch.tensor([[0.5, -0.25], [1.0, 1.0], [float("nan"), 0.0]], dtype=torch.float64)
    z, W = nearest(q, H, s)
    assert torch.equal(z[:2], q[:2])
    assert not W[:2].any()
    assert z[2].isnan().any()
    assert nearest(q[:0], H, s)[0].shape == (0, 2)


def test_parts_of_the_batch_do_not_change_the_answer(monkeypatch):
    rng = np.random.default_rng(0)
    H, s = unit(rng.normal(size=(30, 8)), rng.uniform(0.1, 1, 30))
    q = torch.tensor(rng.normal(size=(100, 8)) * 3)
    whole, rows = nearest(q, H, s)
    monkeypatch.setattr(module, "BLOCK", {"cpu": 1000})
    parts, again = nearest(q, H, s)
    assert torch.allclose(whole, parts, atol=1e-13)
    assert torch.equal(rows, again)
