import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from costscape import Auto, ProjectedAdam, Simplex, Task, load
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.selection import validation_cost
from costscape.methods.weighted import weighted_labels as labels
from costscape.methods.weighted.kernel_smoother import TRIED, KernelSmoother

QUICK = ProjectedAdam(steps=60, starts=1)


def test_weights_are_sklearns_kernel_of_standardised_rows_normed(newsvendor):
    rng = torch.Generator().manual_seed(0)
    units = torch.tensor([1.0, 100.0, 0.01])
    x, new = (torch.randn(n, 3, generator=rng, dtype=torch.float64) * units for n in (100, 15))
    y = torch.rand(100, 2, generator=rng, dtype=torch.float64)
    model = KernelSmoother(newsvendor(2).double(), width=0.4).fit(x, y, val=(x, y))
    scaler = StandardScaler().fit(x)
    k = rbf_kernel(scaler.transform(new), scaler.transform(x), gamma=1 / (2 * 0.4**2))
    s = model.scenarios(new)
    assert torch.allclose(s.weights, torch.as_tensor(k / k.sum(1, keepdims=True)), atol=1e-12)
    assert torch.equal(s.values, y[None])


def test_sequences_are_compared_as_a_whole(newsvendor):
    x, y = torch.rand(30, 4, 2), torch.rand(30, 1)
    model = KernelSmoother(newsvendor(), width=0.5).fit(x, y, val=(x, y))
    z = (x - x.mean((0, 1))) / x.std((0, 1), correction=0)
    expected = (-torch.cdist(z.flatten(1), z.flatten(1)).square() / 0.5).softmax(1)
    assert torch.allclose(model.scenarios(x).weights, expected, atol=1e-4)


@pytest.mark.parametrize("width", [1e-200, 1e-3, 1.0])
def test_far_from_all_rows_the_nearest_one_counts(newsvendor, width):
    x = torch.tensor([[0.0], [1.0], [2.0]])
    y = torch.tensor([[1.0], [2.0], [3.0]])
    model = KernelSmoother(newsvendor(), width=width).fit(x, y, val=(x, y))
    w = model.scenarios(torch.tensor([[1e6], [-1e6], [1e12]])).weights
    assert torch.equal(w, torch.eye(3)[[2, 0, 2]])


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 30),
    seed=st.integers(0, 99),
    width=st.floats(1e-9, 1e9),
    far=st.floats(-1e12, 1e12),
)
def test_weights_are_a_distribution_wherever_x_is(newsvendor, n, seed, width, far):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=rng).round(decimals=1)
    y = torch.rand(n, 1, generator=rng)
    model = KernelSmoother(newsvendor(), width=width).fit(x, y, val=(x, y))
    w = model.scenarios(torch.cat([x, x + far])).weights
    assert (w >= 0).all()
    assert torch.allclose(w.sum(1), torch.ones(len(w)), atol=1e-5)


def test_blocks_give_the_same_weights(newsvendor, demand, monkeypatch):
    x, y = demand(70)
    model = KernelSmoother(newsvendor(), width=0.3).fit(x, y, val=(x, y))
    whole = model.scenarios(x).weights
    monkeypatch.setattr(labels, "BLOCK", 300)
    assert torch.allclose(model.scenarios(x).weights, whole, atol=1e-7)


def test_the_width_that_costs_least_on_validation_is_taken(newsvendor, demand):
    (x, y), val = demand(200), demand(100, seed=1)
    task = newsvendor()
    model = KernelSmoother(task).fit(x, y, val=val)
    unit = float(torch.pdist(model.model_.x.double()).median())
    score = validation_cost(task, Dataset(*val), Auto())
    costs = {
        w: score(KernelSmoother(task, width=w).fit(x, y, val=val).model_)
        for w in (unit * part for part in TRIED)
    }
    assert model.chosen() == pytest.approx({"width": min(costs, key=costs.get)})
    assert len(set(costs.values())) > 3
    assert TRIED[0] == 1
    assert TRIED[-1] == pytest.approx(2**-6.5)


def test_a_long_validation_part_is_thinned_but_not_below_256_rows(newsvendor, demand, monkeypatch):
    seen = []

    def note(task, val, solver):
        seen.append(len(val))
        return float

    monkeypatch.setattr(labels, "validation_cost", note)
    train = Dataset(*demand(100))
    for rows, most in ((300, 2**22), (2000, 50_000), (2000, 100), (100, 100)):
        monkeypatch.setattr(labels, "SCORED", most)
        labels.score_of_weights(newsvendor(), train, Dataset(*demand(rows)), Auto())
    assert seen == [300, 500, 286, 100]


def test_rows_that_are_all_equal_count_equally(newsvendor):
    x, y = torch.full((20, 2), 3.0), torch.rand(20, 1)
    model = KernelSmoother(newsvendor()).fit(x, y, val=(x, y))
    assert torch.allclose(model.scenarios(x[:1]).weights, torch.full((1, 20), 1 / 20))


def test_the_median_distance_leaves_duplicates_out():
    x = torch.tensor([[0.0], [0.0], [0.0], [0.0], [0.0], [3.0]])
    assert labels.median_distance(x) == 3.0
    assert labels.median_distance(x[:5]) == 1.0
    assert labels.median_distance(x[:1]) == 1.0


@pytest.mark.parametrize("double", [False, True])
def test_a_loaded_smoother_decides_bit_for_bit(newsvendor, demand, tmp_path, double):
    task = newsvendor(2)
    if double:
        task.double()
    x, y = demand(60, dim=2)
    model = KernelSmoother(task).fit(x, y)
    model.save(tmp_path / "kernel")
    back = load(tmp_path / "kernel", task, method=KernelSmoother)
    new, _ = demand(20, seed=1)
    assert torch.equal(back.decide(new), model.decide(new))
    assert torch.equal(back.scenarios(new).weights, model.scenarios(new).weights)


@pytest.mark.parametrize("problem", ["synthetic-convex", "synthetic-nonconvex"])
def test_the_smoother_keeps_the_contract_of_a_method(problem):
    p = PROBLEMS[problem](0)
    check_method(KernelSmoother(p.task), p.data.train.x[:150], p.data.train.y[:150])


def test_the_smoother_keeps_the_contract_on_a_simplex(demand):
    x, y = demand(60, dim=3)
    task = Task(lambda y, a: -(y * (a + 0.1).sqrt()).sum(-1), Simplex(dim=3), convex=True)
    check_method(KernelSmoother(task, width=0.5, solver=QUICK), x, y)


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), float("inf")])
def test_a_width_that_is_not_positive_is_refused(newsvendor, width):
    with pytest.raises(ValueError, match=r"width to be a (positive )?number"):
        KernelSmoother(newsvendor(), width=width)
