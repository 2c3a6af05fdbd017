import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler

from costscape import Auto, Budget, ProjectedAdam, Task, load
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.selection import validation_cost
from costscape.methods.weighted.cme import CME, PENALTIES, WIDTHS, Embedding, _exact, _nystroem
from costscape.methods.weighted.weighted_labels import median_distance
from costscape.models import Standardise

QUICK = ProjectedAdam(steps=60, starts=1)


@pytest.fixture(scope="module")
def rows():
    rng = torch.Generator().manual_seed(0)
    units = torch.tensor([1.0, 100.0, 0.01])
    x, new = (torch.randn(n, 3, generator=rng, dtype=torch.float64) * units for n in (90, 25))
    return x, torch.rand(90, 2, generator=rng, dtype=torch.float64), new


@pytest.mark.parametrize("penalty", [1e-1, 1e-3, 1e-6])
def test_before_clipping_the_weighted_labels_are_kernel_ridge_predictions(
    newsvendor, rows, penalty
):
    x, y, new = rows
    model = CME(newsvendor(2).double(), penalty=penalty, width=0.7).fit(x, y, val=(x, y)).model_
    scaler = StandardScaler().fit(x)
    ridge = KernelRidge(alpha=90 * penalty, kernel="rbf", gamma=1 / (2 * 0.7**2))
    ridge.fit(scaler.transform(x), y)
    beta = model.coefficients(new)
    expected = torch.as_tensor(ridge.predict(scaler.transform(new)))
    assert torch.allclose(beta @ y, expected, rtol=1e-7, atol=1e-8)
    # the identity as label gives each weight
    ridge.fit(scaler.transform(x), torch.eye(90, dtype=torch.float64))
    each = torch.as_tensor(ridge.predict(scaler.transform(new)))
    assert torch.allclose(beta, each, rtol=1e-6, atol=1e-7)


def test_negative_weights_are_clipped_and_the_rest_normed(newsvendor, rows):
    x, y, new = rows
    model = CME(newsvendor(2).double(), penalty=1e-4, width=1.0).fit(x, y, val=(x, y))
    beta = model.model_.coefficients(new)
    assert (beta < 0).any(1).all()
    kept = beta.clamp(min=0)
    s = model.scenarios(new)
    assert torch.allclose(s.weights, kept / kept.sum(1, keepdim=True), atol=1e-10)
    assert torch.equal(s.values, y[None])


def embedding(factors, x, y, index, width, penalty):
    scaler = Standardise(x)
    z = scaler(x).flatten(1)
    return Embedding(scaler, z[index], y, index, *factors(z, index, width), width, penalty)


def test_with_every_row_a_landmark_nystroem_is_the_full_form(rows):
    x, y, new = rows
    index = torch.arange(90)
    full, low = (embedding(form, x, y, index, 0.7, 1e-3) for form in (_exact, _nystroem))
    assert torch.allclose(low.coefficients(new), full.coefficients(new), atol=1e-6)
    assert torch.allclose(low(new).weights, full(new).weights, atol=1e-5)


def test_nystroem_is_its_formula(newsvendor, rows):
    x, y, new = rows
    method = CME(newsvendor(2).double(), penalty=1e-3, width=0.9, landmarks=20, seed=4)
    model = method.fit(x, y, val=(x, y)).model_
    z, at = (model.scaler(v) for v in (x, new))
    index = model.index
    assert len(index) == len(set(index.tolist())) == 20
    assert torch.equal(model.centres, z[index])

    def kernel(a, b):
        return (-torch.cdist(a, b).square() / (2 * 0.9**2)).exp()

    mn = kernel(z[index], z)
    middle = mn @ mn.T + 90 * 1e-3 * kernel(z[index], z[index])
    expected = kernel(at, z[index]) @ torch.linalg.solve(middle, mn)
    assert torch.allclose(model.coefficients(new), expected, atol=1e-6)


def test_landmarks_follow_the_seed(newsvendor, rows):
    x, y, _ = rows

    def drawn(seed):
        made = CME(newsvendor(2), penalty=0.1, width=1.0, landmarks=20, seed=seed)
        return made.fit(x, y, val=(x, y)).model_.index

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_single_precision_weights_are_those_of_double(newsvendor, rows):
    x, y, new = rows
    found = []
    for task in (newsvendor(2), newsvendor(2).double()):
        for landmarks in (30, 1000):
            made = CME(task, penalty=1e-5, width=1.0, landmarks=landmarks)
            found.append(made.fit(x, y, val=(x, y)).scenarios(new).weights.double())
    assert torch.allclose(found[0], found[2], atol=2e-4)
    assert torch.allclose(found[1], found[3], atol=2e-4)


@pytest.mark.parametrize("landmarks", [2, 1000])
def test_far_from_all_rows_the_weights_are_those_of_the_limit(newsvendor, landmarks):
    x = torch.tensor([[0.0], [1.0], [2.0]])
    y = torch.tensor([[1.0], [2.0], [3.0]])
    model = CME(newsvendor(), penalty=0.1, width=0.1, landmarks=landmarks)
    w = model.fit(x, y, val=(x, y)).scenarios(torch.tensor([[1e6], [-1e6]])).weights
    nearest = model.model_.centres[:, 0].argmax(), model.model_.centres[:, 0].argmin()
    expected = torch.eye(3)[model.model_.index[torch.stack(nearest)]]
    assert torch.allclose(w, expected, atol=1e-5)


def test_where_every_weight_is_clipped_the_landmarks_are_weighted_by_the_kernel(rows):
    x, y, new = rows
    index = torch.tensor([3, 8, 50])
    model = embedding(_nystroem, x, y, index, 1.0, 0.1)
    model.right.fill_(0.0)
    z = model.scaler(new)
    expected = torch.zeros(25, 90, dtype=torch.float64)
    expected[:, index] = (-torch.cdist(z, model.centres).square() / 2).softmax(1)
    assert torch.allclose(model(new).weights, expected)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 30),
    landmarks=st.integers(1, 40),
    seed=st.integers(0, 99),
    width=st.floats(1e-3, 1e3),
    penalty=st.floats(1e-8, 10.0),
    far=st.floats(-1e6, 1e6),
)
def test_weights_are_a_distribution_wherever_x_is(
    newsvendor, n, landmarks, seed, width, penalty, far
):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=rng).round(decimals=1)
    y = torch.rand(n, 1, generator=rng)
    model = CME(newsvendor(), penalty=penalty, width=width, landmarks=landmarks, seed=seed)
    w = model.fit(x, y, val=(x, y)).scenarios(torch.cat([x, x + far])).weights
    assert (w >= 0).all()
    assert torch.allclose(w.sum(1), torch.ones(len(w)), atol=1e-5)


@pytest.mark.parametrize("landmarks", [40, 1000])
def test_the_pair_that_costs_least_on_validation_is_taken(newsvendor, demand, landmarks):
    (x, y), val = demand(120), demand(100, seed=1)
    task = newsvendor()
    chosen = CME(task, landmarks=landmarks).fit(x, y, val=val).chosen()
    unit = median_distance(Standardise(x)(x))
    score = validation_cost(task, Dataset(*val), Auto())
    costs = {}
    for width in (unit * part for part in WIDTHS):
        for penalty in PENALTIES:
            one = CME(task, penalty=penalty, width=width, landmarks=landmarks)
            costs[width, penalty] = score(one.fit(x, y, val=val).model_)
    width, penalty = min(costs, key=costs.get)
    assert chosen == pytest.approx({"width": width, "penalty": penalty})
    assert len(set(costs.values())) > 10


def test_a_setting_that_is_given_is_kept(newsvendor, demand):
    x, y = demand(60)
    assert CME(newsvendor(), width=0.3).fit(x, y).model_.width == 0.3
    assert CME(newsvendor(), penalty=0.3).fit(x, y).model_.penalty == 0.3


@pytest.mark.parametrize("landmarks", [10, 1000])
def test_rows_that_are_all_equal_count_equally(newsvendor, landmarks):
    x, y = torch.full((20, 2), 3.0), torch.rand(20, 1)
    model = CME(newsvendor(), landmarks=landmarks).fit(x, y, val=(x, y))
    assert torch.allclose(model.scenarios(x[:1]).weights, torch.full((1, 20), 1 / 20), atol=1e-5)


@pytest.mark.parametrize("landmarks", [25, 1000])
def test_duplicated_rows_share_their_weight(newsvendor, rows, landmarks):
    x, y, new = rows
    x, y = torch.cat([x, x]), torch.cat([y, y])
    model = CME(newsvendor(2).double(), penalty=1e-3, width=1.0, landmarks=landmarks)
    w = model.fit(x, y, val=(x, y)).scenarios(new).weights
    assert torch.allclose(w[:, :90], w[:, 90:], atol=1e-6)


def test_sequences_are_compared_as_a_whole(newsvendor, rows):
    x, y, new = rows
    scale = torch.ones(3).double()
    flat = CME(newsvendor(2).double(), penalty=0.01, width=1.0).fit(x / scale, y, val=(x, y))
    long = CME(newsvendor(2).double(), penalty=0.01, width=1.0)
    long.fit(x[:, None], y, val=(x[:, None], y))
    assert torch.allclose(
        long.scenarios(new[:, None]).weights, flat.scenarios(new).weights, atol=1e-9
    )


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("landmarks", [15, 1000])
def test_a_loaded_embedding_decides_bit_for_bit(newsvendor, demand, tmp_path, double, landmarks):
    task = newsvendor(2)
    if double:
        task.double()
    x, y = demand(60, dim=2)
    model = CME(task, landmarks=landmarks).fit(x, y)
    model.save(tmp_path / "cme")
    back = load(tmp_path / "cme", task, method=CME)
    new, _ = demand(20, seed=1)
    assert torch.equal(back.decide(new), model.decide(new))
    assert torch.equal(back.scenarios(new).weights, model.scenarios(new).weights)


@pytest.mark.parametrize("problem", ["synthetic-convex", "synthetic-nonconvex"])
def test_the_embedding_keeps_the_contract_of_a_method(problem):
    p = PROBLEMS[problem](0)
    check_method(CME(p.task, landmarks=50), p.data.train.x[:150], p.data.train.y[:150])


def test_the_embedding_keeps_the_contract_on_a_budget(demand):
    x, y = demand(60, dim=3)
    task = Task(
        lambda y, a: -(y * (a + 0.1).sqrt()).sum(-1), Budget(total=1.0, dim=3), convex=True
    )
    check_method(CME(task, penalty=0.01, width=0.5, solver=QUICK), x, y)


@pytest.mark.parametrize("name", ["penalty", "width"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_settings_that_are_not_positive_are_refused(newsvendor, name, value):
    with pytest.raises(ValueError, match=f"{name} to be a number above 0 or None"):
        CME(newsvendor(), **{name: value})


def test_no_landmarks_are_refused(newsvendor):
    with pytest.raises(ValueError, match="landmarks to be a whole number of at least 1"):
        CME(newsvendor(), landmarks=0)
