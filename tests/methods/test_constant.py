import pytest
import torch

from costscape import Auto, Budget, Constant, Finite, MirrorDescent, Task, load


def test_the_constant_is_the_quantile_of_the_training_labels(newsvendor, demand):
    x, y = demand(200)
    a = Constant(newsvendor()).fit(x, y, val=(x, y)).decide(x[:3])
    # any point between the order statistics around 0.75 n is a minimiser
    low, high = y.flatten().sort().values[[149, 150]].tolist()
    assert low - 1e-4 <= a[0].item() <= high + 1e-4
    assert torch.equal(a, a[:1].expand(3, 1))


def test_the_constant_is_the_brute_force_minimiser_where_f_is_not_convex(demand):
    actions = torch.linspace(0, 3, 301)[:, None]
    task = Task(lambda y, a: (10 * (y - a)).sin().sum(-1), Finite(actions))
    x, y = demand(100)
    brute = torch.stack([(10 * (y - a)).sin().sum(-1).mean() for a in actions]).argmin()
    assert Constant(task).fit(x, y, val=(x, y)).decide(x[:1])[0] == actions[brute]


@pytest.mark.parametrize("solver", [Auto(), MirrorDescent()], ids=str)
def test_the_constant_of_squares_on_a_budget_is_the_projected_mean(demand, solver):
    task = Task(lambda y, a: (y - a).square().sum(-1), Budget(total=2.0, dim=3))
    x, y = demand(100, dim=3)
    a = Constant(task, solver=solver).fit(x, y, val=(x, y)).decide(x[:1])[0]
    assert torch.allclose(a, task.feasible.project(y.mean(0)), atol=1e-3)


def test_it_learns_from_the_same_rows_as_every_method(newsvendor, demand):
    task, (x, y) = newsvendor(), demand(200)
    one = Constant(task).fit(x[:50], y[:50], val=(x[:10], y[:10])).decide(x[:1])
    two = Constant(task).fit(x[:50], y[:50], val=(x[50:], 10 * y[50:])).decide(x[:1])
    assert torch.equal(one, two)


def test_a_rule_of_thumb_is_taken_as_told_and_checked(tmp_path):
    task = Task(lambda y, a: (y - a).square().sum(-1), Budget(total=3.0, dim=2))
    x, y = torch.rand(20, 1), torch.rand(20, 2)
    told = Constant(task, action=(1.0, 2.0)).fit(x, y)
    assert torch.equal(told.decide(x[:2]), torch.tensor([[1.0, 2.0]] * 2))
    told.save(tmp_path / "told.model")
    assert torch.equal(load(tmp_path / "told.model", task).decide(x[:1]), told.decide(x[:1]))
    with pytest.raises(ValueError, match=r"2 numbers.*got 1"):
        Constant(task, action=(1.0,))
    with pytest.raises(RuntimeError, match="Constant"):
        Constant(task, action=(3.0, 1.0)).fit(x, y)
