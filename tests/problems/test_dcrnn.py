from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from costscape import DF2, Anchored, Box, SeparableTask, Training, load
from costscape.checks import check_method
from costscape.models import MLP, Mixture, Units, mixture_heads
from costscape.problems.vaccine_doses.dcrnn import DCRNN, DCRNNDecoder
from costscape.problems.vaccine_doses.graph_convolution import DCGRU, adjacency_of, walk_powers
from costscape.task import Refusal

RING = tuple((i, (i + 1) % 5) for i in range(5))
PATH = ((0, 1), (1, 2, 3.0), (2, 1, 0.5))  # of five nodes: 3 and 4 are alone


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize(
    ("channels", "shape"), [(None, (4, 3, 5, 5)), (2, (4, 3, 5, 2)), (1, (4, 3, 5))]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_an_encoder_answers_with_out_features_numbers_a_row(pool, channels, shape, dtype):
    net = DCRNN(5, PATH, channels, hidden=6, pool=pool).to(dtype)
    x = torch.randn(shape, dtype=dtype)
    code = net(x)
    assert net.out_features == 6
    assert code.shape == (4, 6)
    assert code.dtype == dtype
    assert bool(code.isfinite().all())
    assert torch.allclose(net(x[1:2]), code[1:2], atol=1e-6)


def test_the_defaults_are_two_cells_of_128():
    net = DCRNN(5, RING)
    assert [cell.hidden for cell in net.gru.cells] == [128, 128]
    assert net.out_features == 128


def test_a_node_sees_its_row_and_its_column_of_the_flows():
    net = DCRNN(5, (), hidden=4, layers=1)  # no edges: nothing else comes to a node
    x = torch.randn(1, 3, 5, 5)
    near, far = x.clone(), x.clone()
    near[0, 1, 3, 0] += 1  # from 3 to 0
    far[0, 1, 3, 4] += 1
    first, after, other = (
        net.gru(net._read(value), net.powers)[-1][0, 0] for value in (x, near, far)
    )
    assert not torch.equal(first, after)
    assert torch.equal(first, other)


@settings(deadline=None, max_examples=15)
@given(order=st.permutations(range(5)), channels=st.integers(1, 2), seed=st.integers(0, 99))
def test_renumbering_the_nodes_renumbers_the_answers(order, channels, seed):
    torch.manual_seed(seed)
    new = {old: i for i, old in enumerate(order)}
    moved = tuple((new[i], new[j], *w) for i, j, *w in PATH)
    x = torch.randn(2, 3, 5, channels).double()
    mean, again = (DCRNN(5, e, channels, hidden=4, pool=True).double() for e in (PATH, moved))
    again.load_state_dict({**mean.state_dict(), "powers": again.powers})
    assert torch.allclose(again(x[:, :, order]), mean(x))


def test_a_code_that_is_not_pooled_knows_which_node_is_which():
    x = torch.randn(2, 3, 5, 1)
    turned = x.roll(1, dims=2)  # the same ring, seen from the next node
    mean, own = (DCRNN(5, RING, 1, hidden=4, pool=pool) for pool in (True, False))
    assert torch.allclose(mean(x), mean(turned), atol=1e-6)
    assert not torch.allclose(own(x), own(turned), atol=1e-3)


def test_dropout_acts_in_training_only():
    x = torch.randn(2, 3, 5, 5)
    net = DCRNN(5, RING, dropout=0.5)
    assert not torch.equal(net.train()(x), net(x))
    assert torch.equal(net.eval()(x), net(x))


def test_every_weight_is_learned():
    net = DCRNN(5, RING, hidden=3)
    net(torch.randn(2, 3, 5, 5)).square().sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in net.parameters())


def _error_on_a_ring(order):
    """A signal moves one node a step; the mean squared error of the next step's forecast."""
    nodes, rng = 8, torch.Generator().manual_seed(0)
    edges = tuple((i, (i + 1) % nodes) for i in range(nodes))
    torch.manual_seed(0)
    powers = walk_powers(adjacency_of(nodes, edges), order)
    gru, out = DCGRU(1, 16, layers=1, order=order), torch.nn.Linear(16, 1)
    optimiser = torch.optim.Adam([*gru.parameters(), *out.parameters()], lr=2e-2)

    def net(x):
        return out(gru(x[..., None], powers.float())[-1])[:, None]

    def moving(n):
        start = torch.randn(n, nodes, generator=rng)
        steps = torch.stack([start.roll(t, dims=1) for t in range(3)], 1)
        return steps[:, :2], steps[:, 2:, :, None]

    for _ in range(100):
        x, y = moving(32)
        loss = (net(x) - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        x, y = moving(500)
        return float((net(x) - y).square().mean())


def test_a_signal_that_moves_along_the_edges_is_followed_by_the_graph_alone():
    assert _error_on_a_ring(order=1) < 0.02
    assert _error_on_a_ring(order=0) > 0.9  # the variance of the signal is 1


def test_weights_and_graph_are_saved_and_loaded(tmp_path):
    net, other = DCRNN(5, PATH, hidden=4), DCRNN(5, RING, hidden=4)
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    other.load_state_dict(load_file(tmp_path / "net.safetensors"))
    x = torch.randn(2, 3, 5, 5)
    assert torch.equal(other(x), net(x))


@pytest.mark.parametrize(
    ("channels", "shape"),
    [(None, (2, 3, 5, 4)), (None, (2, 5, 5)), (2, (2, 3, 4, 2)), (2, (2, 3, 5)), (1, (2, 3, 4))],
)
def test_x_of_another_shape_is_refused(channels, shape):
    with pytest.raises(ValueError, match="reads x of shape"):
        DCRNN(5, RING, channels, hidden=4)(torch.randn(shape))


@pytest.mark.parametrize("bad", [{"channels": 0}, {"nodes": 0}, {"layers": 0}], ids=str)
def test_a_network_of_nothing_is_refused(bad):
    with pytest.raises(ValueError, match="at least 1"):
        DCRNN(**{"nodes": 5, "edges": (), **bad})


def flows(n):
    """Flows of three days; what is needed at two nodes is near the last day's inflow."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(n, 3, 5, 5, generator=rng)
    return x, x[:, -1].sum(1)[:, :2] / 2 + 0.2 * torch.rand(n, 2, generator=rng)


def newsvendor():
    def terms(y, a):
        return 3 * (y - a).clamp(min=0) + (a - y).clamp(min=0)

    return SeparableTask(terms, Box(0.0, 4.0, dim=2), convex=True)


def small(task, epochs=2, **settings):
    training = Training(epochs=epochs, batch_size=32, lr=5e-3, progress=False, device="cpu")
    encoder = partial(DCRNN, 5, PATH, hidden=6)
    fixed = {"encoder": encoder, "points": 16, "folds": 1, "training": training}
    return DF2(task, **{**fixed, **settings})


def test_df2_with_this_encoder_keeps_the_contract_of_a_method():
    method = small(newsvendor(), outcomes=Anchored())
    check_method(method, *flows(60), encoder=method.encoder)


def test_df2_with_this_encoder_learns():
    x, y = flows(400)
    task = newsvendor()
    model = small(task, epochs=15, outcomes=Anchored()).fit(x[:300], y[:300])
    a = model.decide(x[300:])
    constant = y[:300].quantile(0.75, 0).expand(100, -1)
    paid, plain = (float(task.cost(y[300:], each).mean()) for each in (a, constant))
    assert paid < 0.75 * plain


def test_df2_with_this_encoder_works_in_double_precision():
    x, y = flows(40)
    model = small(newsvendor().double(), outcomes=Anchored()).fit(x.double(), y.double())
    assert model.decide(x.double()).dtype == torch.float64
    assert {p.dtype for p in model.model_.parameters()} == {torch.float64}


def test_a_model_file_asks_for_the_encoder_of_a_problem(tmp_path):
    x, y = flows(40)
    model = small(newsvendor(), outcomes=Anchored()).fit(x, y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="fitted with encoder=DCRNN"):
        load(tmp_path / "model", newsvendor())
    again = load(tmp_path / "model", newsvendor(), encoder=model.encoder)
    assert torch.equal(again.decide(x), model.decide(x))


def decoded(nodes=5, edges=PATH, k=3, days=4, **settings):
    torch.manual_seed(1)
    encoder = DCRNN(nodes, edges, hidden=4, **settings).double()
    labels = torch.randn(k, days, nodes, nodes).double()
    return encoder, encoder.mixture_head(labels).double(), labels


def test_a_decoder_shares_its_weights_among_nodes_and_days():
    for days in (1, 4):
        encoder, head, labels = decoded(days=days)
        x = torch.randn(2, 7, 5, 5).double()
        logits, m, log_s = head(encoder, x)
        assert logits.shape == (2, 3)
        assert m.shape == log_s.shape == (2, 3, days, 5, 5)
        assert head.answer.weight.shape == (2 * 3 * 5, 4)
        assert torch.allclose(head.answer.bias[:15].view(3, 5), labels.mean((1, 2)))


def test_a_decoder_takes_the_steps_of_its_formula():
    encoder, head, _ = decoded()
    x = torch.randn(2, 7, 5, 5).double()
    logits, m, log_s = head(encoder, x)
    w = logits.softmax(-1)
    states, z = encoder.gru(encoder._read(x), encoder.powers), torch.zeros(2, 5, 5).double()
    for day in range(4):
        below = z
        for i, cell in enumerate(head.gru.cells):
            both, h = cell.inputs(below, encoder.powers), states[i]
            gates = (both[..., :8] + cell.gates(h, encoder.powers)).sigmoid()
            r, u = gates[..., :4], gates[..., 4:]
            new = (both[..., 8:] + cell.candidate(r * h, encoder.powers)).tanh()
            states[i] = below = u * h + (1 - u) * new
        z = torch.zeros(2, 5, 5).double()
        for c in range(3):
            for node in range(5):
                own = slice(c * 5, c * 5 + 5)
                row = below[:, node] @ head.answer.weight[own].T + head.answer.bias[own]
                assert torch.allclose(m[:, c, day, node], row)
                z[:, node] += w[:, c : c + 1] * row
                own = slice(15 + c * 5, 15 + c * 5 + 5)
                row = below[:, node] @ head.answer.weight[own].T + head.answer.bias[own]
                assert torch.allclose(log_s[:, c, day, node], row)


def test_an_encoder_brings_its_head_where_a_linear_one_is_too_large(monkeypatch):
    torch.manual_seed(0)
    x, y = torch.randn(20, 7, 5, 5), torch.rand(20, 2, 5, 5)
    units = Units(x, y)
    linear = Mixture(3).network(DCRNN(5, RING, hidden=4), units, x, y, 10)
    assert linear.head.location.weight.shape == (3 * 50, 4)
    monkeypatch.setattr(mixture_heads, "MOST", 100)
    net = Mixture(3).network(DCRNN(5, RING, hidden=4), units, x, y, 10)
    assert isinstance(net.head, DCRNNDecoder)
    assert net(x).values.shape == (20, 10, 2, 5, 5)
    net.loss(x, y).sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in net.parameters())
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    first = float(net.loss(x, y).mean().detach())
    for _ in range(30):
        optimiser.zero_grad()
        loss = net.loss(x, y).mean()
        loss.backward()
        optimiser.step()
    assert float(loss.detach()) < first - 1
    with pytest.raises(Refusal, match="Take fewer components"):
        Mixture(3).network(MLP(175), Units(x.flatten(1), y), x.flatten(1), y, 10)


def test_a_thousand_components_for_the_prefectures_have_millions_of_weights_not_billions():
    head = mixture_heads.mixture_head(DCRNN(47, ()), torch.zeros(1000, 7, 47, 47))
    assert isinstance(head, DCRNNDecoder)
    assert sum(p.numel() for p in head.parameters()) < 15e6
