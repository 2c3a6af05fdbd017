import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.problems.vaccine_doses.graph_convolution import (
    DCGRU,
    DCGRUCell,
    DiffusionConv,
    adjacency_of,
    edges_of,
    walk_powers,
)

RING = tuple((i, (i + 1) % 5) for i in range(5))


def random_graph(nodes, density, seed):
    rng = torch.Generator().manual_seed(seed)
    w = torch.rand(nodes, nodes, generator=rng, dtype=torch.float64) + 0.1
    return w * (torch.rand(nodes, nodes, generator=rng) < density)


graphs = st.builds(
    random_graph, st.integers(1, 8), st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 999)
)


def dense(conv, w, order, x):
    """The formula of the paper, term by term, with dense matrix powers."""
    from_out, from_in = (
        torch.tensor([1 / d if d else 0.0 for d in w.sum(axis).tolist()], dtype=w.dtype)
        for axis in (1, 0)
    )
    walks = [torch.diag(from_out) @ w, torch.diag(from_in) @ w.T]
    parts = conv.linear.weight.T.split(x.shape[-1])
    out = x @ parts[0] + conv.linear.bias
    for a, walk in enumerate(walks):
        for k in range(1, order + 1):
            out = out + torch.linalg.matrix_power(walk, k) @ x @ parts[a * order + k]
    return out


@settings(deadline=None, max_examples=60)
@given(w=graphs, order=st.integers(0, 3), seed=st.integers(0, 99))
def test_a_convolution_is_the_sum_of_dense_matrix_powers(w, order, seed):
    torch.manual_seed(seed)
    conv = DiffusionConv(3, 4, order).double()
    x = torch.randn(2, 6, len(w), 3, dtype=torch.float64)
    expected = dense(conv, w, order, x)
    assert torch.allclose(conv(x, walk_powers(w, order)), expected, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(w=graphs, order=st.integers(1, 4))
def test_a_walk_stays_on_the_graph_or_ends(w, order):
    powers = walk_powers(w, order)
    assert powers.shape == (2 * order, len(w), len(w))
    sums = powers.sum(-1)
    assert bool((powers >= 0).all())
    assert bool((sums <= 1 + 1e-12).all())
    for weights, first in ((w, sums[0]), (w.T, sums[order])):
        assert torch.allclose(first, (weights.sum(1) > 0).double())


@settings(deadline=None, max_examples=40)
@given(w=graphs)
def test_edges_give_back_their_matrix(w):
    assert torch.equal(adjacency_of(len(w), edges_of(w)), w)


def test_an_edge_without_a_weight_has_weight_one():
    assert torch.equal(adjacency_of(5, RING), adjacency_of(5, [(*e, 1.0) for e in RING]))


def test_a_backward_walk_on_a_ring_brings_the_node_before():
    forward, backward = walk_powers(adjacency_of(5, RING), 1)
    x = torch.arange(5.0).double()
    assert (backward @ x).tolist() == [4, 0, 1, 2, 3]
    assert (forward @ x).tolist() == [1, 2, 3, 4, 0]


def test_a_node_without_neighbours_sees_itself_only_and_is_seen_by_none():
    powers = walk_powers(adjacency_of(4, [(0, 1), (1, 2, 3.0)]), 2)  # node 3 is alone
    conv = DiffusionConv(2, 3).double()
    x = torch.randn(4, 2, dtype=torch.float64)
    out, other = conv(x, powers), x.clone()
    assert torch.allclose(out[3], x[3] @ conv.linear.weight[:, :2].T + conv.linear.bias)
    other[3] += 1
    assert torch.equal(conv(other, powers)[:3], out[:3])
    assert not torch.equal(conv(other, powers)[3], out[3])
    assert bool(powers.isfinite().all())


def test_a_cell_is_the_gru_of_the_paper_by_hand():
    cell = DCGRUCell(2, 3).double()
    powers = walk_powers(adjacency_of(5, RING), 2)
    x = torch.randn(4, 6, 5, 2).double()
    states = cell(x, powers)
    h = torch.zeros(4, 5, 3).double()
    for t in range(6):
        of_x, of_h = cell.inputs(x[:, t], powers), cell.gates(h, powers)
        r = torch.sigmoid(of_x[..., :3] + of_h[..., :3])
        u = torch.sigmoid(of_x[..., 3:6] + of_h[..., 3:])
        c = torch.tanh(of_x[..., 6:] + cell.candidate(r * h, powers))
        h = u * h + (1 - u) * c
        assert torch.allclose(states[:, t], h)


def test_cells_read_the_states_of_the_cell_below():
    gru = DCGRU(2, 3, layers=2, order=2).double()
    powers = walk_powers(adjacency_of(5, RING), 2)
    x = torch.randn(4, 6, 5, 2).double()
    below = gru.cells[0](x, powers)
    first, last = gru(x, powers)
    assert torch.equal(first, below[:, -1])
    assert torch.equal(last, gru.cells[1](below, powers)[:, -1])


def test_gradients_are_those_of_finite_differences():
    cell = DCGRUCell(1, 2).double()
    powers = walk_powers(adjacency_of(4, [(0, 1), (1, 2, 3.0)]), 2)
    x = torch.randn(1, 2, 4, 1, dtype=torch.float64, requires_grad=True)
    weights = tuple(cell.parameters())

    def states(x, *values):
        named = dict(zip((name for name, _ in cell.named_parameters()), values, strict=True))
        return torch.func.functional_call(cell, named, (x, powers))

    assert torch.autograd.gradcheck(states, (x, *weights))


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([(0, 5)], "nodes 0..4"),
        ([(-1, 0)], "nodes 0..4"),
        ([(0.5, 1)], "nodes 0..4"),
        ([(0, 1, -1.0)], "positive weight"),
        ([(0, 1, float("nan"))], "positive weight"),
        ([(0, 1), (0, 1, 2.0)], "came twice"),
    ],
)
def test_edges_that_are_none_are_refused(edges, words):
    with pytest.raises(ValueError, match=words):
        adjacency_of(5, edges)


def test_a_matrix_that_is_not_square_has_no_edges():
    with pytest.raises(ValueError, match="square"):
        edges_of(torch.ones(2, 3))


def test_a_negative_order_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        walk_powers(torch.ones(2, 2), -1)
