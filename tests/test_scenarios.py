"""g(x, a) = sum_s w_s(x) f(y_s, a), however it is cut into pieces."""

from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import Box, ExpectedCost, Scenarios, SeparableTask, Task
from costscape.scenarios import union

BOX = Box(-1.0, 1.0, dim=3)


def terms(y, a):
    return 3 * (y - a).relu() + (a - y).relu() + (y - a) ** 2 * y.cos()


def cost(y, a):
    """Not a sum over coordinates."""
    return terms(y, a).sum(-1) + a.prod(-1) * y.sum(-1)


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def scenarios(B=4, S=7, shared=False, dtype=torch.float64, d=3):
    weights = draw(B, S, seed=1, dtype=dtype).softmax(-1)
    return Scenarios(weights, draw(1 if shared else B, S, d, seed=2, dtype=dtype))


def by_loops(f, s, a):
    """The definition, one outcome and one action at a time."""
    (B, S), J = s.weights.shape, a.shape[1]
    values, a = s.values.expand(B, *s.values.shape[1:]), a.expand(B, *a.shape[1:])
    g = [[sum(s.weights[b, k] * f(values[b, k], a[b, j]) for k in range(S)) for j in range(J)]
         for b in range(B)]  # fmt: skip
    return torch.stack([torch.stack(row) for row in g])


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("rows", [1, 4], ids=["same actions", "own actions"])
@pytest.mark.parametrize("memory", [2**27, 500], ids=["whole", "in pieces"])
@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_g_is_the_double_loop(shared, rows, memory, dtype, tol):
    s, a = scenarios(shared=shared, dtype=dtype), draw(rows, 5, 3, dtype=dtype)
    g = ExpectedCost(Task(cost, BOX), s, memory)(a)
    assert g.dtype == dtype
    assert g.shape == (4, 5)
    torch.testing.assert_close(g, by_loops(cost, s, a), rtol=tol, atol=tol)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("rows", [1, 4], ids=["same actions", "own actions"])
@pytest.mark.parametrize("memory", [2**27, 5000, 500], ids=["whole", "some rows", "in pieces"])
def test_terms_are_the_double_loop_and_add_up_to_g(shared, rows, memory):
    s, a = scenarios(shared=shared), draw(rows, 5, 3)
    g = ExpectedCost(SeparableTask(terms, BOX), s, memory)
    assert g.terms(a).shape == (4, 5, 3)
    torch.testing.assert_close(g.terms(a), by_loops(terms, s, a))
    torch.testing.assert_close(g.terms(a).sum(-1), g(a))
    for same in (g, g.on(s.by_coordinate())):  # in memory as searches have it
        torch.testing.assert_close(same.search_terms(a), g.terms(a))


def test_outcomes_and_actions_that_are_shared_cost_what_their_copies_cost():
    s, a = scenarios(shared=True), draw(1, 5, 3)
    task = Task(cost, BOX)
    one = ExpectedCost(task, s)(a)
    copies = Scenarios(s.weights, s.values.repeat(4, 1, 1))
    for values, actions in ((s, a.repeat(4, 1, 1)), (copies, a), (copies, a.repeat(4, 1, 1))):
        torch.testing.assert_close(
            ExpectedCost(task, values)(actions), one, rtol=1e-12, atol=1e-12
        )


def test_rows_are_the_same_problem_without_the_others():
    a = draw(4, 5, 3)
    for shared in (True, False):
        g = ExpectedCost(Task(cost, BOX), scenarios(shared=shared), memory=300)
        assert len(g) == 4
        part = g.rows(slice(1, 3))
        assert len(part) == 2
        assert part.scenarios.shared == shared
        assert part.memory == 300
        torch.testing.assert_close(part(a[1:3]), g(a)[1:3])


def gradients(task, s, a, memory, of):
    leaves = [v.clone().requires_grad_() for v in (s.weights, s.values, a)]
    g = ExpectedCost(task, Scenarios(*leaves[:2]), memory)
    value = (g if of == "cost" else g.terms)(leaves[2])
    pull = draw(*value.shape, seed=9)  # each entry pulls by its own weight, so none can hide
    return [value.detach(), *torch.autograd.grad((pull * value).sum(), leaves)]


@pytest.mark.parametrize("of", ["cost", "terms"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("rows", [1, 4], ids=["same actions", "own actions"])
@pytest.mark.parametrize("memory", [1, 400, 3000])
def test_pieces_give_the_values_and_gradients_of_the_whole(of, shared, rows, memory):
    s, a = scenarios(S=11, shared=shared), draw(rows, 6, 3)
    task = SeparableTask(terms, BOX)
    whole, pieces = (gradients(task, s, a, m, of) for m in (2**27, memory))
    for one, other in zip(whole, pieces, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_the_gradient_of_pieces_is_a_finite_difference():
    s, a = scenarios(B=2, S=5), draw(2, 3, 3)
    leaves = [v.clone().requires_grad_() for v in (s.weights, s.values, a)]

    def g(w, y, a):
        return ExpectedCost(Task(cost, BOX), Scenarios(w, y), memory=200)(a)

    assert torch.autograd.gradcheck(g, leaves)


def test_the_gradient_of_the_gradient_of_pieces_is_that_of_the_whole():
    s, a = scenarios(B=2, S=5), draw(2, 3, 3)

    def second(memory):
        leaves = [v.clone().requires_grad_() for v in (s.weights, s.values, a)]
        g = ExpectedCost(Task(cost, BOX), Scenarios(*leaves[:2]), memory)
        value = g(leaves[2])
        first = torch.autograd.grad(
            (draw(*value.shape, seed=9) * value).sum(), leaves, create_graph=True
        )
        return torch.autograd.grad(sum(v.square().sum() for v in first), leaves)

    for one, other in zip(second(2**27), second(200), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("memory", [2**27, 200], ids=["whole", "in pieces"])
def test_a_cost_may_learn_too(memory):
    s, a = scenarios(B=2, S=5), draw(2, 3, 3)
    price = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = s.values.clone().requires_grad_()

    def f(y, a):
        return price**2 * (y - a).square().sum(-1)

    g = ExpectedCost(Task(f, BOX), Scenarios(s.weights, y), memory)(a)
    to_price, to_y = torch.autograd.grad(g.sum(), [price, y])
    far = (y.detach().unsqueeze(1) - a.unsqueeze(2)).square().sum(-1)
    exact = 4 * (s.weights[:, None] * far).sum()
    torch.testing.assert_close(to_price, exact)
    assert (to_y != 0).all()


@pytest.mark.parametrize("memory", [2**27, 200], ids=["whole", "in pieces"])
def test_a_cost_that_does_not_look_at_y_has_no_gradient_to_it(memory):
    s, a = scenarios(B=2, S=5), draw(2, 3, 3)
    w, y = s.weights.clone().requires_grad_(), s.values.clone().requires_grad_()
    g = ExpectedCost(
        Task(lambda y, a: (a + 0 * y.detach()).square().sum(-1), BOX), Scenarios(w, y)
    )
    g = ExpectedCost(g.task, g.scenarios, memory)(a)
    to_w, to_y = torch.autograd.grad(g.sum(), [w, y], allow_unused=True)
    torch.testing.assert_close(to_w, a.square().sum((1, 2))[:, None].expand(-1, 5))
    assert to_y is None or not to_y.any()


def test_a_gradient_takes_no_more_memory_for_a_larger_batch():
    """Beyond weights, values and their gradients: the most that f holds at once is the same."""

    def held(B):
        f = Recorder()
        w = torch.rand(B, 200).requires_grad_()
        y = torch.rand(B, 200, 2).requires_grad_()
        g = ExpectedCost(SeparableTask(f, Box(0.0, 1.0, dim=2)), Scenarios(w, y), 2**17)
        bytes_of = {}  # by storage: a slice of y or w holds no memory of its own

        def count(t):
            bytes_of[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t

        with torch.autograd.graph.saved_tensors_hooks(count, lambda t: t):
            value = g.terms(torch.rand(1, 8, 2))
        value.sum().backward()
        assert sum(bytes_of.values()) <= 4 * (w.numel() + y.numel() + 16)
        return f.most

    assert held(256) == held(32) <= 2**17 / 4


class Recorder:
    """A cost that remembers the most it was asked for at once."""

    def __init__(self):
        self.most, self.calls = 0, 0

    def __call__(self, y, a):
        self.most = max(self.most, prod(torch.broadcast_shapes(y.shape, a.shape)))
        self.calls += 1
        return (y - a).abs()


@pytest.mark.parametrize(("B", "J", "shared"), [(3, 40, True), (4, 9, False), (1, 99, True)])
def test_a_hundred_thousand_points_stay_within_the_memory_allowed(B, J, shared):
    S, d, memory = 100_000, 2, 2**24
    f, rng = Recorder(), torch.Generator().manual_seed(0)
    w = torch.rand(B, S, generator=rng)
    w = w / w.sum(1, keepdim=True)
    y = torch.randn(1 if shared else B, S, d, generator=rng)
    a = torch.randn(1, J, d, generator=rng)
    task = SeparableTask(f, Box(-1.0, 1.0, dim=d))
    with torch.no_grad():
        g = ExpectedCost(task, Scenarios(w, y), memory)(a)
    assert f.most * 4 * 4 <= memory  # a few temporaries of float32
    assert f.calls > 1
    exact = torch.stack(
        [((y.double() - a[0, j]).abs().sum(-1) * w.double()).sum(1) for j in range(J)], 1
    )
    torch.testing.assert_close(g, exact.float(), rtol=1e-4, atol=1e-4)


def test_the_backward_pass_of_pieces_keeps_no_piece_alive():
    """How many numbers autograd keeps between forward and backward."""

    def alive(memory):
        y = draw(1, 2000, 2).requires_grad_()
        w = torch.full((1, 2000), 1 / 2000, dtype=torch.float64)
        kept = []

        def count(t):
            kept.append(t.numel())
            return t

        g = ExpectedCost(SeparableTask(terms, Box(0.0, 1.0, dim=2)), Scenarios(w, y), memory)
        with torch.autograd.graph.saved_tensors_hooks(count, lambda t: t):
            g(draw(1, 50, 2)).sum()
        return sum(kept)

    assert alive(2**16) < alive(2**27) / 10


@given(
    seed=st.integers(0, 2**31),
    sharp=st.floats(0, 30),
    shared=st.booleans(),
    t=st.floats(0, 1),
)
@settings(deadline=None, max_examples=60)
def test_a_softmax_mixture_of_convex_costs_is_convex(seed, sharp, shared, t):
    weights = (sharp * draw(3, 8, seed=seed)).softmax(-1)
    values = draw(1 if shared else 3, 8, 2, seed=seed + 1)

    def f(y, a):
        far = y - a
        return far.abs().amax(-1) + (2 * far.sum(-1)).relu() ** 2 + far.square().sum(-1).sqrt()

    g = ExpectedCost(Task(f, Box(-1.0, 1.0, dim=2)), Scenarios(weights, values))
    a, b = 3 * draw(2, 3, 5, 2, seed=seed + 2)
    chord = t * g(a) + (1 - t) * g(b)
    assert (g(t * a + (1 - t) * b) <= chord + 1e-10 * (1 + chord.abs())).all()


def test_a_mixture_with_a_concave_part_is_not_convex():
    # so that the test above can fail
    g = ExpectedCost(Task(lambda y, a: (y * a**2).sum(-1), BOX), scenarios(d=3))
    a, b = 3 * draw(2, 4, 50, 3, seed=5)
    assert (g((a + b) / 2) > (g(a) + g(b)) / 2).any()


@pytest.mark.parametrize("kinds", [(True,), (True, True), (False, False), (True, False, True)])
def test_the_union_is_the_mean_of_its_parts(kinds):
    parts = [
        Scenarios(
            draw(4, 5 + i, seed=i).softmax(-1),
            draw(1 if shared else 4, 5 + i, 3, seed=10 + i),
        )
        for i, shared in enumerate(kinds)
    ]
    task, a = Task(cost, BOX), draw(4, 6, 3)
    whole = union(parts)
    assert whole.shared == all(kinds)
    torch.testing.assert_close(whole.weights.sum(1), torch.ones(4).double())
    mean = torch.stack([ExpectedCost(task, p)(a) for p in parts]).mean(0)
    torch.testing.assert_close(ExpectedCost(task, whole)(a), mean, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("memory", [2**27, 2000])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_an_outcome_may_have_several_axes(memory, shared):
    def f(y, a):
        """y (..., 2, 3, 4): trips between places over days, a: what is spent on each place."""
        return torch.einsum("...ijt,...j->...", y.square(), a)

    s = Scenarios(draw(5, 6, seed=1).softmax(-1), draw(1 if shared else 5, 6, 2, 3, 4, seed=2))
    task = Task(f, BOX, y_dims=3)
    for rows in (1, 5):
        a = draw(rows, 7, 3)
        torch.testing.assert_close(ExpectedCost(task, s, memory)(a), by_loops(f, s, a))


# 8 numbers of y, four times, in single precision: 128 bytes an evaluation, or shared among J
@pytest.mark.parametrize(
    ("width", "J", "most"), [(None, 8, 8), (4, 8, 32), (4, 1, 4), (4, 32, 32)]
)
def test_what_is_computed_at_once_goes_by_the_width_a_task_tells(width, J, most):
    asked = []

    def cost(y, a):
        asked.append(prod(torch.broadcast_shapes(y.shape[:-1], a.shape[:-1])))
        return (y.mean(-1) - a[..., 0]).square()

    task = Task(cost, Box(0.0, 1.0, dim=1), width=width)
    scenarios = Scenarios(torch.full((1, 16), 1 / 16), torch.rand(1, 16, 8))
    ExpectedCost(task, scenarios, memory=1024)(torch.rand(1, J, 1))
    assert max(asked) == most
    assert sum(asked) == 16 * J


@given(
    seed=st.integers(0, 2**31),
    sharp=st.floats(0, 40),
    shared=st.booleans(),
    eps=st.sampled_from([0.0, 1e-6, 1e-3, 0.3]),
    B=st.integers(1, 4),
)
@settings(deadline=None, max_examples=80)
def test_what_is_pruned_weighs_at_most_eps_and_does_not_depend_on_the_others(
    seed, sharp, shared, eps, B
):
    w = (sharp * draw(B, 64, seed=seed)).softmax(-1)
    s = Scenarios(w, draw(1 if shared else B, 64, 2, seed=seed + 1))
    few = s.pruned(eps)
    assert few.weights.shape[1] <= 32 or few is s
    lost = w.sum(1) - few.weights.sum(1)
    assert ((lost > -1e-12) & (lost <= eps * (1 + 1e-9))).all()
    task, a = SeparableTask(terms, Box(-1.0, 1.0, dim=2)), draw(1, 9, 2, seed=seed + 2)
    kept = ExpectedCost(task, few)(a)
    most = task.cost(s.values[:, :, None], a).abs().amax()
    assert ((kept - ExpectedCost(task, s)(a)).abs() <= eps * most + 1e-9).all()
    alone = s.rows(slice(0, 1)).pruned(eps)
    if few is not s and alone.weights.shape[1] < 64:
        torch.testing.assert_close(ExpectedCost(task, alone)(a), kept[:1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("B", [1, 200])
def test_a_peak_is_few_outcomes_and_flat_weights_are_all(B, shared):
    values = draw(1 if shared else B, 5000, 2)
    flat = Scenarios(torch.full((B, 5000), 1 / 5000, dtype=torch.float64), values)
    assert flat.pruned(1e-6) is flat
    peaked = Scenarios((30 * draw(B, 5000, seed=3)).softmax(-1), values)
    assert peaked.pruned(1e-6).weights.shape[1] < 500


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_outcomes_side_by_side_cost_the_same(shared):
    s, task, a = scenarios(shared=shared), SeparableTask(terms, BOX), draw(4, 5, 3)
    laid = s.by_coordinate()
    assert torch.equal(laid.values, s.values)
    assert laid.values.stride(1) == 1
    torch.testing.assert_close(ExpectedCost(task, laid).terms(a), ExpectedCost(task, s).terms(a))
    odd = Scenarios(s.weights, draw(len(s.values), 7, 2, 2))
    assert odd.by_coordinate() is odd


def test_picked_rows_may_come_twice():
    for shared in (True, False):
        g = ExpectedCost(Task(cost, BOX), scenarios(shared=shared))
        a = draw(1, 5, 3)
        i = torch.tensor([2, 0, 2])
        torch.testing.assert_close(g.on(g.scenarios.rows(i))(a), g(a)[i])


def test_one_row_of_outcomes_of_its_own_stays_its_own():
    w, y = torch.full((3, 4), 0.25), torch.randn(3, 4, 2)
    many = Scenarios(w, y)
    assert not many.rows(slice(0, 1)).shared
    assert not many.rows(torch.tensor([2])).shared
    assert not Scenarios(w[:1], y[:1], own=True).by_coordinate().shared
    assert Scenarios(w, y[:1]).rows(slice(0, 1)).shared
    alone = Scenarios(w[:1], y[:1], own=True)
    assert not union([alone, Scenarios(w[:1], y[:1])]).shared
    assert union([Scenarios(w[:1], y[:1]), Scenarios(w[:1], y[:1])]).shared


# ---- shares, and fewer scenarios


def test_a_union_by_shares_is_the_weighted_mean_of_its_parts():
    parts = [
        Scenarios(draw(4, 5, seed=1).softmax(-1), draw(1, 5, 3, seed=2)),
        Scenarios(draw(4, 6, seed=3).softmax(-1), draw(4, 6, 3, seed=4)),
    ]
    task, a = Task(cost, BOX), draw(4, 6, 3)
    one, other = (ExpectedCost(task, part)(a) for part in parts)
    mixed = ExpectedCost(task, union(parts, [0.2, 0.8]))(a)
    torch.testing.assert_close(mixed, 0.2 * one + 0.8 * other, rtol=1e-12, atol=1e-12)


@given(
    st.integers(1, 40), st.integers(2, 60), st.integers(1, 5), st.booleans(), st.integers(0, 1000)
)
@settings(max_examples=100, deadline=None)
def test_thinned_scenarios_keep_each_weight_up_to_one_part(most, S, B, shared, seed):
    rng = torch.Generator().manual_seed(seed)
    w = torch.rand(B, S, generator=rng, dtype=torch.float64) ** 4
    w[:, : S // 3] *= torch.rand(B, S // 3, generator=rng, dtype=torch.float64) > 0.5
    w = w / w.sum(1, keepdim=True)
    rows = 1 if shared else B
    numbers = torch.arange(float(rows * S), dtype=torch.float64).reshape(rows, S, 1)
    s = Scenarios(w, numbers, own=not shared)
    thin = s.thinned(most)
    if most >= S:
        assert thin is s
        return
    assert thin.weights.shape == (B, most)
    assert torch.equal(thin.weights, torch.full_like(thin.weights, 1 / most))
    assert not thin.shared
    for b in range(B):
        taken = thin.values[b, :, 0] - (0 if shared else b * S)
        count = torch.bincount(taken.long(), minlength=S)
        assert ((count / most - w[b]).abs() < 1 / most + 1e-9).all()
        assert (count[w[b] == 0] == 0).all()


def test_thinning_equal_weights_to_a_divisor_takes_every_kth():
    s = Scenarios(torch.full((2, 12), 1 / 12), torch.arange(12.0).expand(2, 12)[..., None])
    assert s.thinned(4).values[0, :, 0].tolist() == [1.0, 4.0, 7.0, 10.0]


def test_an_expected_cost_stays_near_when_thinned():
    s = Scenarios(draw(3, 4000, seed=1).softmax(-1), draw(3, 4000, 3, seed=2))
    task, a = SeparableTask(terms, BOX), draw(3, 5, 3)
    whole = ExpectedCost(task, s)(a)
    off = (ExpectedCost(task, s.thinned(1000))(a) - whole).abs() / whole.abs()
    assert float(off.max()) < 0.1
