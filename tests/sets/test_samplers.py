import numpy as np
import pytest
import torch
from scipy import stats

from costscape.sets import BallWalk, Budget, HitAndRun, OuterBox, Polytope

# false alarms of all the tests of laws together stay rare: they are about a hundred
LEVEL = 1e-5
WALKS = [HitAndRun(), BallWalk()]


def simplex(d, sampler):
    return Polytope(A=np.ones((1, d)), b=1.0, G=-np.eye(d), h=0.0, sampler=sampler).double()


def assert_same_law(a, b, seed=0):
    """Two samples agree in their coordinates and in five random directions."""
    d = a.shape[1]
    for v in np.vstack([np.eye(d), np.random.default_rng(seed).normal(size=(5, d))]):
        assert stats.ks_2samp(a.numpy() @ v, b.numpy() @ v).pvalue > LEVEL


@pytest.mark.parametrize("sampler", [*WALKS, OuterBox()])
def test_on_a_simplex_the_law_is_flat_dirichlet(sampler, rng):
    d, n = 4, 10_000
    a = simplex(d, sampler).sample(n, rng())
    for i in range(d):
        assert stats.kstest(a[:, i].numpy(), stats.beta(1, d - 1).cdf).pvalue > LEVEL
    cov = torch.full((d, d), -1.0).fill_diagonal_(d - 1.0) / (d**2 * (d + 1))
    assert torch.allclose(a.T.cov().float(), cov, atol=2e-3)


@pytest.mark.parametrize("sampler", WALKS)
def test_on_a_skew_triangle_the_law_is_what_rejection_leaves(sampler, rng):
    G, h = [[1.0, 0.1], [-1.0, 1.0], [0.0, -1.0]], [1.0, 0.0, 0.0]
    points = Polytope(G=G, h=h, sampler=sampler).sample(10_000, rng())
    box = torch.rand(100_000, 2, generator=rng(1))  # the triangle lies in the unit square
    exact = box[(box @ torch.tensor(G).T <= torch.tensor(h)).all(-1)]
    assert len(exact) > 30_000
    assert_same_law(points, exact)


@pytest.mark.parametrize("sampler", WALKS)
def test_on_a_cut_box_in_3d_the_law_is_what_rejection_leaves(sampler, rng):
    G = np.vstack([np.eye(3), -np.eye(3), [[1, 1, 1], [1, -2, 0.5]]])
    h = np.array([1, 2, 100, 0, 0, 0, 60, 10])  # one side a hundred times another
    points = Polytope(G=G, h=h, sampler=sampler).sample(10_000, rng())
    box = torch.rand(200_000, 3, generator=rng(1)) * torch.tensor([1.0, 2.0, 100.0])
    inside = (box.double() @ torch.tensor(G).T <= torch.tensor(h)).all(-1)
    assert_same_law(points, box[inside][:50_000])


@pytest.mark.parametrize("steps", [10, 20])
def test_hit_and_run_has_mixed_in_47_dimensions(steps, rng):
    # caps that bind here and there; the capped Budget draws from the exact law
    caps = np.exp(np.random.default_rng(0).normal(size=47))
    caps *= 2.5 / caps.sum()
    G = np.vstack([np.ones((1, 47)), -np.eye(47), np.eye(47)])
    h = np.concatenate([[1.0], np.zeros(47), caps])
    a = Polytope(G=G, h=h, sampler=HitAndRun(steps)).sample(1500, rng())
    exact = Budget(total=1.0, dim=47, upper=caps).sample(20_000, rng(1))
    assert abs(a.var(0).sum() / exact.var(0).sum() - 1) < 0.03
    assert_same_law(a, exact)


def test_one_step_of_hit_and_run_has_not_mixed_yet(rng):
    # so that the tests above are able to fail
    a = simplex(20, HitAndRun(steps=1)).sample(2000, rng())
    assert a.var(0).mean() < 0.7 * 19 / (20**2 * 21)


def test_edges_of_a_corner_mix_where_random_directions_are_slow(rng):
    # 0 <= a_1 <= ... <= a_20 <= 1: order statistics, Var = i (d + 1 - i) / ((d + 1)^2 (d + 2))
    d = 20
    G = np.vstack([np.eye(d), np.zeros((1, d))]) * -1.0
    G[1:] += np.eye(d)
    a = Polytope(G=G, h=np.append(np.zeros(d), 1.0)).sample(4000, rng())
    i = torch.arange(1.0, d + 1)
    for j in (0, 9, 19):
        law = stats.beta(j + 1, d - j)
        assert stats.kstest(a[:, j].double().numpy(), law.cdf).pvalue > LEVEL
    assert torch.allclose(a.var(0), i * (d + 1 - i) / ((d + 1) ** 2 * (d + 2)), rtol=0.15)


def test_long_and_thin_sets_are_as_well_sampled_as_round_ones(rng):
    # a box turned by 30 degrees, a thousand times longer than wide
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turn = np.array([[c, s], [-s, c]])
    for sampler in WALKS:
        P = Polytope(
            G=np.vstack([turn, -turn]), h=[1000.0, 1.0, 1000.0, 1.0], sampler=sampler
        ).double()
        u = P.sample(5000, rng()).numpy() @ turn.T
        assert stats.kstest(u[:, 0], stats.uniform(-1000, 2000).cdf).pvalue > LEVEL
        assert stats.kstest(u[:, 1], stats.uniform(-1, 2).cdf).pvalue > LEVEL


def test_a_ball_too_small_stays_near_the_centre_and_one_too_large_is_refused(rng):
    small = simplex(5, BallWalk(steps=20, radius=0.01)).sample(500, rng())
    assert (small - 0.2).abs().max() < 0.02
    large = simplex(5, BallWalk(steps=20, radius=1e6)).sample(500, rng())
    assert (large - 0.2).abs().max() < 1e-12


def test_a_step_of_the_ball_walk_is_uniform_in_a_ball(rng):
    # of [-1, 1]^3 the Dikin ellipsoid is the ball of radius 1 / sqrt(2): its Hessian is 2 I
    c = Polytope(G=np.vstack([np.eye(3), -np.eye(3)]), h=1.0, sampler=BallWalk(1, radius=0.8))
    a = c.double().sample(5000, rng())
    share = (a.norm(dim=-1) / (0.8 / 2**0.5)) ** 3
    assert stats.kstest(share.numpy(), stats.uniform.cdf).pvalue > LEVEL
    assert a.mean(0).abs().max() < 0.03


def test_the_outer_box_keeps_the_equalities_and_not_the_inequalities(rng):
    # two coordinates of the simplex are free, uniform on [0, 1] and independent; their sum
    # passes 1 half the time, and then the third is negative
    c = simplex(3, OuterBox(keep_outside=True))
    a = c.sample(20_000, rng())
    free, (rest,) = c.free.tolist(), set(range(3)) - set(c.free.tolist())
    assert torch.allclose(a.sum(-1), torch.ones(20_000, dtype=a.dtype))
    for i in free:
        assert stats.kstest(a[:, i].numpy(), stats.uniform.cdf).pvalue > LEVEL
    assert abs(np.corrcoef(a[:, free].T.numpy())[0, 1]) < 5 / 20_000**0.5
    law = stats.triang(0.5, loc=-1, scale=2)  # 1 minus the sum of two uniforms
    assert stats.kstest(a[:, rest].numpy(), law.cdf).pvalue > LEVEL
    assert abs((c.violation(a) > 1e-9).double().mean() - 0.5) < 5 * 0.5 / 20_000**0.5


def test_the_outer_box_has_the_bounds_of_the_set_not_of_its_rows(rng):
    # a_1 <= 5 is not reached: a_1 + a_2 <= 2 stops it
    G, h = [[1, 0], [0, 1], [1, 1], [-1, 0], [0, -1]], [5, 1, 2, 0, 0]
    a = Polytope(G=G, h=h, sampler=OuterBox(keep_outside=True)).sample(5000, rng())
    assert stats.kstest(a[:, 0].numpy(), stats.uniform(0, 2).cdf).pvalue > LEVEL
    assert stats.kstest(a[:, 1].numpy(), stats.uniform(0, 1).cdf).pvalue > LEVEL


def test_the_outer_box_gives_up_where_the_set_is_a_speck_in_it():
    # the simplex fills 1 / 11! of the box of its free coordinates
    with pytest.raises(RuntimeError, match=r"found 0 points of C in 1000 draws.*Use HitAndRun"):
        simplex(12, OuterBox(tries=10)).sample(5)


@pytest.mark.parametrize("sampler", [*WALKS, OuterBox()])
def test_a_seed_decides_the_points_and_none_is_drawn_where_none_is_asked_for(sampler, rng):
    c = simplex(3, sampler)
    assert torch.equal(c.sample(5, rng(3)), c.sample(5, rng(3)))
    assert not torch.equal(c.sample(5, rng(3)), c.sample(5, rng(4)))
    assert c.sample(0, rng()).shape == (0, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HitAndRun(steps=0), "HitAndRun needs at least one step, but got steps=0"),
        (lambda: BallWalk(steps=-1), "BallWalk needs at least one step, but got steps=-1"),
        (lambda: BallWalk(radius=0.0), "positive radius, but got radius=0"),
        (lambda: BallWalk(radius=float("nan")), "positive radius, but got radius=nan"),
        (lambda: OuterBox(tries=0), "at least one try a point, but got tries=0"),
    ],
)
def test_a_wrong_sampler_says_what_to_do(make, words):
    with pytest.raises(ValueError, match=words):
        make()
