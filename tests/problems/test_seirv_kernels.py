"""The kernels against torch: on a GPU as they are, elsewhere with a stand-in for tl."""

from types import SimpleNamespace

import pytest
import torch

from costscape.problems.vaccine_doses import (
    kernel_parts,
    people_kernels,
    seirv_fused,
    seirv_kernels,
)
from costscape.problems.vaccine_doses.seirv import (
    _by_pattern,
    new_infections,
    simulate,
    trip_shares,
)

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"


class Address:
    """Numbers of a tensor, by their place in memory."""

    def __init__(self, memory, at=0):
        self.memory, self.at = memory, at

    def __add__(self, more):
        return Address(self.memory, self.at + more)

    def load(self, here=None, other=0.0):
        if here is None:
            return self.memory[self.at]
        return torch.where(here, self.memory[torch.where(here, self.at, 0)], other)

    def store(self, value, here):
        self.memory[self.at[here]] = value[here]


class Looped:
    """A kernel whose programs run one after the other."""

    def __init__(self, kernel, language):
        self.kernel, self.language = kernel, language

    def __getitem__(self, grid):
        def launch(*arguments, num_warps, **constants):
            flat = [Address(v.view(-1)) if isinstance(v, torch.Tensor) else v for v in arguments]
            for i in range(*grid):
                self.language.program_id = lambda axis, i=i: torch.tensor(i)
                self.kernel(*flat, **constants)

        return launch


@pytest.fixture
def kernels(monkeypatch):
    if GPU:
        return
    language = SimpleNamespace(
        arange=torch.arange,
        int64=torch.int64,
        load=Address.load,
        maximum=torch.maximum,
        store=Address.store,
        sum=torch.sum,
        where=lambda so, one, other: torch.where(torch.as_tensor(so), one, other),
    )
    monkeypatch.setattr(kernel_parts, "tl", language)
    for module in (seirv_kernels, people_kernels):
        monkeypatch.setattr(module, "tl", language)
        for name in ("forward", "backward"):
            monkeypatch.setattr(module, name, Looped(getattr(module, name), language))


def made_up(K, P, F, T=7, much=0.1, dtype=torch.float64):
    rng = torch.Generator().manual_seed(K)

    def rand(*shape):
        return torch.rand(*shape, generator=rng, dtype=torch.float64).to(DEVICE, dtype)

    population = rand(K) * 9e5 + 1e5
    ill = rand(4, K) * torch.tensor([[0.02], [0.02], [0.02], [0.0]], device=DEVICE, dtype=dtype)
    m = trip_shares(rand(P, 1, T, K, K) + K * torch.eye(K, device=DEVICE, dtype=dtype))
    doses = population * much * rand(P, F, K) * (rand(P, F, K) > 0.2)
    start = torch.cat([1 - ill.sum(0, keepdim=True), ill])
    return start, m, doses, 0.2 + 0.2 * rand(K), population


def fused(start, m, doses, beta, population, days, steps):
    flow, given, restored = _by_pattern(m, doses, population)
    course = seirv_fused.Course(1 / 5, 1 / 10, days, 7, steps)
    return restored(seirv_fused.new_infections(flow, given, start, beta, course)) * population


@pytest.mark.parametrize("travel", [False, True], ids=["doses", "trips-too"])
@pytest.mark.parametrize(
    ("group", "fewer"), [(4, 4), (100, 100), (100, 4)], ids=["again", "kept", "kept-in-parts"]
)
@pytest.mark.parametrize(
    ("K", "P", "F", "T", "days", "steps", "much"),
    [
        (3, 1, 1, 7, 9, 2, 0.1),
        (5, 3, 2, 7, 10, 2, 0.1),
        (17, 1, 2, 2, 8, 1, 0.3),
        (4, 2, 3, 7, 7, 3, 5.0),
        (3, 1, 2, 7, 3, 2, 0.0),
    ],
    ids=["one", "plans", "padded", "more-than-people", "no-doses"],
)
def test_infections_and_their_slopes_are_those_of_torch(
    kernels, monkeypatch, K, P, F, T, days, steps, much, travel, group, fewer
):
    start, m, doses, beta, population = made_up(K, P, F, T, much)
    monkeypatch.setattr(seirv_fused, "GROUP", group)
    monkeypatch.setattr(seirv_fused, "FEWER", fewer)
    weight = torch.linspace(-1, 2, K, dtype=torch.float64, device=DEVICE)
    plain = lambda *a: simulate(*a[:3], beta=a[3], population=a[4], days=days, steps=steps)[0]  # noqa: E731
    results = []
    for run in (plain, lambda *a: fused(*a, days, steps)):
        a, y = doses.clone().requires_grad_(), m.clone().requires_grad_(travel)
        infected = run(start, y, a, beta, population)
        assert infected.shape == (P, F, K)
        slopes = torch.autograd.grad((infected * weight).sum(), [a, y] if travel else [a])
        results.append([infected.detach(), *slopes])
    for want, got in zip(*results, strict=True):
        assert torch.allclose(got, want, rtol=1e-10, atol=1e-13 * float(want.abs().max()))


def test_without_gradients_no_state_is_kept(kernels, monkeypatch):
    start, m, doses, beta, population = made_up(3, 1, 2)
    sizes = []
    empty = torch.Tensor.new_empty
    monkeypatch.setattr(
        torch.Tensor, "new_empty", lambda self, *n: sizes.append(n) or empty(self, *n)
    )
    with torch.no_grad():
        fused(start, m, doses, beta, population, 2, 2)
    people, states = sizes[:2]
    assert people[:2] == (1, 4)
    assert states[:3] == (0, 2, 4)


def test_the_kernels_serve_neither_a_cpu_nor_gradients_of_rates():
    _, _, doses, beta, _ = made_up(3, 1, 2)
    assert seirv_fused.serves(doses, beta) is GPU
    assert not seirv_fused.serves(doses.cpu(), beta)
    assert not seirv_fused.serves(doses, beta.clone().requires_grad_())
    assert not seirv_fused.serves(doses[:0], beta)


@pytest.mark.parametrize(
    ("triton", "compiler", "there"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_triton_needs_a_compiler(monkeypatch, triton, compiler, there):
    monkeypatch.setattr(seirv_fused, "find_spec", lambda name: object() if triton else None)
    monkeypatch.setattr(seirv_fused, "which", lambda name: f"/bin/{name}" if compiler else None)
    assert seirv_fused._has_triton.__wrapped__() is there


@pytest.mark.skipif(not GPU, reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_wave_of_47_regions_on_a_gpu(dtype):
    start, m, doses, beta, population = made_up(47, 3, 5, dtype=dtype)
    course = seirv_fused.Course(1 / 5, 1 / 10, 56, 7, 2)
    a, y = doses.clone().requires_grad_(), m.clone().requires_grad_()
    want = simulate(start, y, a, beta=beta, population=population, **vars(course))[0]
    slopes = torch.autograd.grad(want.sum(), [a, y])
    got = new_infections(start, y, a, beta, population, course)
    got_slopes = torch.autograd.grad(got.sum(), [a, y])
    tol = 1e-4 if dtype == torch.float32 else 1e-11
    assert torch.allclose(got, want, rtol=tol)
    for one, other in zip(got_slopes, slopes, strict=True):
        assert (one - other).abs().max() <= tol * other.abs().max()
