import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.checks import check_set
from costscape.sets import Box, Budget, HitAndRun, Polytope, Simplex

SQUARE = {"G": [[1, 0], [0, 1], [-1, 0], [0, -1]], "h": [1.0, 1.0, 0.0, 0.0]}
EYE = np.eye(3)


def assignment(m):
    """Row and column sums of an m x m matrix are 1: 2 m equalities, one of them redundant."""
    rows = np.kron(np.eye(m), np.ones(m))
    columns = np.kron(np.ones(m), np.eye(m))
    return {"A": np.vstack([rows, columns]), "b": 1.0, "G": -np.eye(m * m), "h": 0.0}


@given(st.integers(0, 2**31), st.integers(2, 4), st.integers(0, 5), st.integers(0, 1))
@settings(deadline=None, max_examples=40)
def test_projects_as_the_quadratic_program_does(qp, seed, d, more, equal):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=d)  # a point of the set
    A = rng.normal(size=(equal, d))
    G = np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(more, d))])
    h = G @ x + rng.uniform(0.0, 1.0, len(G))
    a = torch.tensor(x + 3 * rng.normal(size=(6, d)))
    rows = {"A": torch.tensor(A), "b": torch.tensor(A @ x)} if equal else {}
    c = Polytope(**rows, G=torch.tensor(G), h=torch.tensor(h))
    exact = qp(a, A, A @ x, G, h)
    size = max(1.0, float(exact.abs().max()))
    assert torch.allclose(c.project(a), exact, atol=1e-9 * size)
    assert torch.allclose(c.float().project(a.float()), exact.float(), atol=3e-6 * size)


def test_projects_as_the_sets_with_closed_forms_do(rng):
    a = 3 * torch.randn(100, 6, generator=rng(), dtype=torch.float64)
    eye, caps = np.eye(6), np.linspace(0.1, 1.0, 6)
    pairs = [
        (Box(-1.0, caps), {"G": np.vstack([-eye, eye]), "h": np.append(np.ones(6), caps)}),
        (Simplex(total=2.0, dim=6), {"A": np.ones((1, 6)), "b": 2.0, "G": -eye, "h": 0.0}),
        (
            Budget(total=2.0, dim=6, upper=caps),
            {"G": np.vstack([-eye, eye, np.ones((1, 6))]), "h": [*np.zeros(6), *caps, 2.0]},
        ),
    ]
    for exact, rows in pairs:
        same = Polytope(**rows)
        assert torch.allclose(same.double().project(a), exact.double().project(a), atol=1e-12)
        assert torch.allclose(same.violation(a), exact.violation(a), atol=1e-12)
        for ours, theirs in zip(same.bounds, exact.bounds, strict=True):
            assert torch.allclose(ours, theirs, atol=1e-9)


def test_the_derivative_of_the_projection_is_exact(rng):
    a = torch.randn(8, 4, generator=rng(), dtype=torch.float64).requires_grad_()
    G = np.vstack([np.eye(4), -np.eye(4), np.random.default_rng(0).normal(size=(3, 4))])
    c = Polytope(A=[[1.0, 2.0, -1.0, 0.5]], b=0.3, G=G, h=0.7).double()
    assert torch.autograd.gradcheck(c.project, (a,))


def test_points_of_a_set_without_equalities_are_not_touched(rng):
    a = torch.rand(50, 2, generator=rng(), dtype=torch.float64)
    c = Polytope(G=SQUARE["G"], h=[1.3, 1.7, 0.3, 0.1]).double()
    assert torch.equal(c.project(a), a)


def test_violation_by_hand():
    # each row is divided by its largest coefficient: 2 a_1 + 2 a_2 <= 2 is broken by 1 at (1, 1)
    c = Polytope(A=[[3.0, -3.0]], b=0.0, G=[[2.0, 2.0], [-1.0, 0.0]], h=[2.0, 0.0])
    a = torch.tensor([[0.5, 0.5], [1.0, 1.0], [0.25, 0.0], [-0.5, -0.5]])
    assert c.violation(a).tolist() == [0.0, 1.0, 0.25, 0.5]


def test_bounds_come_from_all_rows_together():
    # 0 <= a_1 <= a_2 <= a_3, sum = 1
    c = Polytope(A=[[1, 1, 1]], b=1.0, G=[[-1, 0, 0], [1, -1, 0], [0, 1, -1]], h=0.0)
    lower, upper = c.bounds
    assert torch.allclose(lower, torch.tensor([0.0, 0.0, 1 / 3]), atol=1e-7)
    assert torch.allclose(upper, torch.tensor([1 / 3, 1 / 2, 1.0]), atol=1e-7)


FLAT = {
    "redundant equalities": ({"A": [[1 / 3] * 3, [1.0] * 3, [2.0] * 3], "b": [0.1, 0.3, 0.6],
                              "G": -EYE, "h": 0.0}, 2),
    "assignment": (assignment(3), 4),
    "two inequalities that make an equality": ({"G": np.vstack([[[1.0] * 3, [-3.0] * 3], -EYE]),
                                                "h": [0.1, -0.3, 0.0, 0.0, 0.0]}, 2),
    "inequalities that leave one point": ({"G": np.vstack([[[1.0] * 3], -EYE]), "h": 0.0}, 0),
    "equalities that leave one point": ({"A": EYE, "b": [1.0, 2.0, 3.0]}, 0),
    "both together leave one point": ({"A": EYE[:2], "b": [0.1, 0.2], "G": [[0, 0, 1], [0, 0, -3]],
                                       "h": [0.1, -0.3]}, 0),
    "a segment": ({"A": [[1, 1, 1], [1, -1, 0]], "b": [1.0, 0.0], "G": -EYE, "h": 0.0}, 1),
    "an inequality that repeats an equality": ({"A": [[1, 1, 1]], "b": 1.0, "h": [0, 0, 0, 1, -1],
                                                "G": np.vstack([-EYE, [[1] * 3, [-1] * 3]])}, 2),
    "an equality by way of three rows": ({"G": [[1, 0, 0], [0, 1, 0], [-1, -1, 0], [0, 0, 1],
                                                [0, 0, -1]], "h": [0.5, 0.5, -1.0, 1.0, 1.0]}, 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FLAT)
def test_flat_sets_have_the_dimension_they_have_and_keep_the_contract(name, dtype, qp, rng):
    rows, k = FLAT[name]
    rows = {key: torch.as_tensor(np.asarray(v), dtype=dtype) for key, v in rows.items()}
    c = Polytope(**rows)
    assert c.frame.shape == (c.dim, k)
    assert len(c.A) == c.dim - k
    check_set(c)
    a = torch.randn(10, c.dim, generator=rng(), dtype=dtype)
    exact = qp(a, *(v.double().numpy() for v in (c.A, c.b, c.G, c.h)))
    assert torch.allclose(c.project(a).double(), exact, atol=1e-6 if dtype.itemsize == 4 else 1e-9)
    # the rows as they were given hold too
    given = c.project(a).double()
    if "A" in rows:
        miss = given @ rows["A"].double().T - rows["b"].double()
        assert miss.abs().max() < 1e-6
    if "G" in rows:
        assert (given @ rows["G"].double().T - rows["h"].double()).max() < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("low", "high"),
    [([0, 0, 0], [1, 1e-3, 1e6]), ([1e4] * 3, [1e4 + 1] * 3), ([-1e-7] * 3, [1e-7] * 3)],
)
def test_coordinates_of_very_different_sizes_are_all_there(low, high, dtype, rng):
    low, high = torch.tensor(low, dtype=dtype), torch.tensor(high, dtype=dtype)
    c = Polytope(G=np.vstack([EYE, -EYE]), h=torch.cat([high, -low]))
    assert c.frame.shape == (3, 3)
    a = c.sample(2000, rng())
    spread = (high - low) / 12**0.5
    assert torch.allclose(a.std(0) / spread, torch.ones(3, dtype=dtype), atol=0.06)
    far = (low + high) / 2 + 4 * (high - low) * torch.randn(50, 3, generator=rng()).to(dtype)
    assert torch.allclose(
        c.project(far), far.clamp(low, high), rtol=1e-6, atol=1e-15 * float(high[2])
    )


def test_rounding_to_single_and_back_leaves_a_set_whole(rng):
    c = Polytope(**assignment(3), sampler=HitAndRun(5)).double()
    for moved in (c.float(), c.float().double()):
        check_set(moved)


def test_keeps_the_rows_that_matter_and_moves_hidden_equalities_to_A():
    c = Polytope(
        A=[[1.0, 1.0], [2.0, 2.0]], b=[1.0, 2.0], G=[[-1, 0], [0, -1], [1, 1]], h=[0, 0, 5]
    )
    assert c.A.shape == (1, 2)
    assert c.G.tolist() == [[-1, 0], [0, -1]]  # a_1 + a_2 <= 5 follows from a_1 + a_2 = 1


def test_repr_tells_rows_and_sampler():
    shown = "Polytope(equalities=0, inequalities=4, dim=2, sampler=HitAndRun(steps=5))"
    assert repr(Polytope(**SQUARE, sampler=HitAndRun(steps=5))) == shown


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({}, "but got none"),
        ({"A": [[1.0]]}, "A and b together, but got one without"),
        ({"h": [1.0]}, "G and h together, but got one without"),
        ({"G": [1.0, 2.0], "h": 1.0}, r"got G of shape \(2,\)"),
        (
            {"A": [[1.0, 1.0]], "b": 1.0, "G": [[1.0]], "h": 1.0},
            r"got A of shape \(1, 2\) and G of shape \(1, 1\)",
        ),
        ({"G": np.zeros((0, 2)), "h": []}, r"got G of shape \(0, 2\)"),
        ({**SQUARE, "h": [1.0, 1.0]}, r"h to be .* 4 numbers, but got shape \(2,\)"),
        ({**SQUARE, "h": [1, 1, float("inf"), 0]}, r"h\[2\] is inf.*Drop the rows"),
        ({"G": [[1.0, float("nan")]], "h": 1.0}, r"G\[0, 1\] is nan"),
        ({"G": [[1.0, 1.0], [0.0, 0.0]], "h": 1.0}, "row 1 of G is all zeros"),
        (
            {"A": [[1.0, 1.0]], "b": -1.0, "G": -np.eye(2), "h": 0.0},
            r"no point.*rows A\[0\], G\[0\], G\[1\] clash.*Loosen or drop",
        ),
        (
            {"A": [[1.0, 1.0], [2.0, 2.0]], "b": [1.0, 3.0], **SQUARE},
            r"rows A\[0\], A\[1\] clash",
        ),
        (
            # in units of the large coordinate the clash of the small one is nearly nothing
            {"G": [[1, 0], [-1, 0], [0, 1], [0, -1]], "h": [0.0, -0.5, 1e7, 0.0]},
            r"rows G\[0\], G\[1\] clash, and every point is at least 0.25 away",
        ),
        (
            {"G": [[-1, 0], [0, 1], [0, -1]], "h": [0.0, 1.0, 0.0]},
            "bounded set, but coordinate 0 can grow without end. Add a row",
        ),
        (
            {"A": [[1.0, 1.0]], "b": 1.0},
            r"coordinate 0 can fall without end \(so can coordinates 1\)",
        ),
    ],
)
def test_a_wrong_polytope_says_what_to_do(rows, words):
    with pytest.raises(ValueError, match=words):
        Polytope(**rows)


@pytest.mark.parametrize("sampler", ["hit-and-run", HitAndRun])
def test_a_sampler_that_is_none_says_what_to_do(sampler, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the annotation is first
    with pytest.raises(TypeError, match=r"sampler such as HitAndRun\(\).*Pass an object"):
        Polytope(**SQUARE, sampler=sampler)
