import numpy as np
import pytest
from scipy.optimize import OptimizeResult
from scipy.spatial import ConvexHull, HalfspaceIntersection

from costscape.sets.polytope_geometry import hull


def cut_box(seed, d=3):
    rng = np.random.default_rng(seed)
    G = np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(4, d))])
    return G, rng.uniform(0.3, 1.0, len(G))


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_those_of_the_corners(seed):
    G, h = cut_box(seed)
    corners = HalfspaceIntersection(np.column_stack([G, -h]), np.zeros(3)).intersections
    found = hull(np.zeros((0, 3)), np.zeros(0), G, h, 1e-10)
    assert np.allclose(found.lower, corners.min(0), atol=1e-9)
    assert np.allclose(found.upper, corners.max(0), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_unit_ball_of_the_frame_lies_inside_and_fills_a_fair_part(seed):
    G, h = cut_box(seed)
    found = hull(np.zeros((0, 3)), np.zeros(0), G, h, 1e-10)
    # the support of the ellipsoid along each row stays within the row's room
    assert (np.linalg.norm(G @ found.frame, axis=1) <= h - G @ found.centre).all()
    ball = 4 / 3 * np.pi * abs(np.linalg.det(found.frame))
    corners = HalfspaceIntersection(np.column_stack([G, -h]), np.zeros(3)).intersections
    assert ball > 0.02 * ConvexHull(corners).volume


def test_the_centre_is_the_analytic_one():
    # of a simplex {a >= 0, sum a <= 1}: all four slacks equal
    G, h = np.vstack([-np.eye(3), np.ones((1, 3))]), np.array([0.0, 0, 0, 1])
    found = hull(np.zeros((0, 3)), np.zeros(0), G, h, 1e-10)
    assert np.allclose(found.centre, 0.25, atol=1e-6)


def test_free_coordinates_determine_the_others():
    # a_1 = 2 is fixed and cannot be free; of a_2 + a_3 = 1 either may be
    A, b = np.array([[1.0, 0, 0], [0, 1, 1]]), np.array([2.0, 1.0])
    found = hull(A, b, -np.eye(3), np.zeros(3), 1e-10)
    assert len(found.free) == 1
    assert found.free[0] in (1, 2)
    assert abs(found.frame[found.free[0], 0]) > 0


def test_corner_rows_meet_in_one_point():
    G, h = cut_box(0)
    found = hull(np.zeros((0, 3)), np.zeros(0), G, h, 1e-10)
    assert np.linalg.matrix_rank(G[found.live][found.corner] @ found.frame) == 3


def test_a_linear_program_that_fails_is_tried_again_and_then_told(monkeypatch):
    tried = []

    def fail(c, options, **program):
        tried.append(options)
        return OptimizeResult(status=4, message="numerical difficulties")

    monkeypatch.setattr("costscape.sets.polytope_geometry.linprog", fail)
    with pytest.raises(RuntimeError, match=r"status 4 \(numerical difficulties\). Bring the numb"):
        hull(np.zeros((0, 3)), np.zeros(0), *cut_box(0), 1e-10)
    assert tried[1] == {"presolve": False}
