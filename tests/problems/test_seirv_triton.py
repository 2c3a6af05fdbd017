"""The kernels against the steps of torch; by Triton's interpreter where there is no GPU."""

import subprocess
import sys
from importlib.util import find_spec
from inspect import getsource

import costscape.tasks
import pytest
import torch

from costscape.problems.vaccine_doses import seirv, seirv_triton
from costscape.problems.vaccine_doses.seirv import new_infections, simulate, trip_shares

EVERY = ("start", "m", "doses", "beta", "population")
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
if not torch.cuda.is_available() and "triton" not in sys.modules:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # Triton asks when kernels are made
        import costscape.problems.vaccine_doses.seirv_kernels  # noqa: F401

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")


def problem(P, F, K=47, T=7, much=0.1, device="cpu"):
    rng = torch.Generator().manual_seed(0)

    def rand(*shape):
        return torch.rand(*shape, generator=rng).to(device)

    population = rand(K) * 9e5 + 1e5
    ill = rand(4, K) * torch.tensor([0.02, 0.02, 0.02, 0.0], device=device)[:, None]
    return {
        "start": torch.cat([1 - ill.sum(0, keepdim=True), ill]),
        "m": trip_shares(rand(P, T, K, K) + K * torch.eye(K, device=device)),
        "doses": population * much * rand(P, F, K) * (rand(P, F, K) > 0.2),
        "beta": 0.2 + 0.2 * rand(K),
        "population": population,
    }, rand(P, F, K)


def outcome(leaves, weight, wanted, **course):
    """infected, and its slopes."""
    leaves = {k: v.clone().requires_grad_(k in wanted) for k, v in leaves.items()}
    m = leaves.pop("m")
    infected = new_infections(m=m.unsqueeze(1), **leaves, **course)
    if not wanted:
        assert not infected.requires_grad
        return (infected,)
    leaves["m"] = m
    return infected.detach(), *torch.autograd.grad(
        (infected * weight).sum(), [leaves[k] for k in wanted]
    )


def assert_close(some, others, tol=3e-5):
    for one, other in zip(some, others, strict=True):
        assert one.shape == other.shape
        assert torch.isfinite(one).all()
        assert (one - other).abs().max() <= tol * other.abs().max()


def compare(monkeypatch, leaves, weight, wanted, kept=2**30, **course):
    monkeypatch.setattr(seirv, "KEPT", kept)
    launches = []
    launch = seirv_triton.forward
    monkeypatch.setattr(
        seirv_triton, "forward", lambda *args: (launches.append(1), launch(*args))[1]
    )
    got = outcome(leaves, weight, wanted, **course)
    assert launches == [1]
    with monkeypatch.context() as patch:
        patch.setattr(seirv_triton, "DEVICES", ())
        want = outcome(leaves, weight, wanted, **course)
    assert launches == [1]
    assert_close(got, want)
    return got


# anywhere


def test_a_cpu_is_served_by_torch():
    assert not seirv_triton.serves(torch.zeros(2, 3, 5), 3)


def test_triton_is_not_imported_before_a_gpu_needs_it():
    code = (
        "import sys, costscape.problems.vaccine_doses.allocation; "
        "assert 'costscape.problems.vaccine_doses.seirv_triton' in sys.modules; "
        "assert 'costscape.problems.vaccine_doses.seirv_kernels' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_triton_the_kernels_can_be_read_and_serve_nothing():
    code = (
        "import sys; sys.modules['triton'] = None; import torch; "
        "from costscape.tasks import seirv_kernels, seirv_triton; "
        "assert seirv_kernels.forward is None; "
        "seirv_triton.DEVICES = ('cpu',); "
        "assert not seirv_triton.serves(torch.zeros(2, 3, 5), 3)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_triton
@pytest.mark.parametrize(
    ("shape", "dtype", "C"),
    [
        ((2, 3, 5), torch.float64, 3),
        ((2, 3, 5), torch.float32, 5),
        ((2, 3, 129), torch.float32, 3),
        ((0, 3, 5), torch.float32, 3),
    ],
    ids=["double", "all compartments", "many regions", "nothing"],
)
def test_what_kernels_cannot_do_is_left_to_torch(shape, dtype, C, monkeypatch):
    monkeypatch.setattr(seirv_triton, "DEVICES", ("cpu",))
    assert not seirv_triton.serves(torch.zeros(shape, dtype=dtype), C)
    assert seirv_triton.serves(torch.zeros(2, 3, 5), 3)


# by the interpreter


@pytest.fixture
def interpreted(monkeypatch):
    if find_spec("triton") is None:
        pytest.skip("needs Triton")
    if torch.cuda.is_available():
        pytest.skip("the same is tested on the GPU")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    kernels = sys.modules.get("costscape.problems.vaccine_doses.seirv_kernels")
    if kernels is None or not type(kernels.forward).__name__.startswith("Interpreted"):
        pytest.skip("Triton was imported before, to compile")
    from triton.runtime import interpreter

    if "int(self.handle.data))" in getsource(interpreter):
        numpy = pytest.importorskip("numpy")
        if numpy.lib.NumpyVersion(numpy.__version__) >= "2.4.0":
            pytest.skip("this Triton's interpreter cannot loop with numpy 2.4 or later")
    monkeypatch.setattr(seirv_triton, "DEVICES", ("cpu",))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("wanted", "settings"),
    [
        (EVERY, {}),
        (("doses",), {}),
        (("m",), {}),
        (("beta",), {}),
        ((), {}),
        (EVERY, {"much": 3.0}),
        (EVERY, {"kept": 1}),
        (("doses",), {"kept": 1}),
        (EVERY, {"F": 3, "kept": 600}),
        (EVERY, {"days": 3, "dose_days": 1}),
        (EVERY, {"days": 3, "steps": 1, "T": 2}),
        (EVERY, {"P": 1, "F": 1, "K": 1}),
        (EVERY, {"P": 1, "F": 1, "K": 47}),
    ],
    ids=str,
)
def test_interpreted_kernels_are_the_steps_of_torch(wanted, settings, interpreted, monkeypatch):
    sizes = {"P": 2, "F": 2, "K": 5, "T": 3, "much": 0.1, "days": 2, "kept": 2**30} | settings
    leaves, weight = problem(*(sizes.pop(k) for k in ("P", "F", "K", "T", "much")))
    compare(monkeypatch, leaves, weight, wanted, **sizes)


# on a GPU


@on_a_gpu
@needs_triton
@pytest.mark.parametrize("wanted", [(), ("doses",), ("m",), EVERY], ids=str)
@pytest.mark.parametrize(
    ("P", "F", "days"),
    [(20, 1, 7), (1, 100, 7), (100, 100, 7), (20, 1, 56), (1, 100, 56), (30, 30, 56)],
)
def test_kernels_are_the_steps_of_torch(P, F, days, wanted, monkeypatch):
    leaves, weight = problem(P, F, device="cuda")
    compare(monkeypatch, leaves, weight, wanted, days=days)


@on_a_gpu
@needs_triton
@pytest.mark.parametrize("K", [1, 13, 32, 64, 100, 128])
def test_kernels_serve_few_and_many_regions(K, monkeypatch):
    leaves, weight = problem(3, 4, K, 2, device="cuda")
    compare(monkeypatch, leaves, weight, EVERY, days=5, dose_days=3)


@on_a_gpu
@needs_triton
@pytest.mark.parametrize("kept", [1, 3 * 7 * 47 * 47 * 4 * 2], ids=["no", "little"])
@pytest.mark.parametrize("much", [0.1, 3.0], ids=["few doses", "many doses"])
def test_kernels_serve_with_little_memory(kept, much, monkeypatch):
    leaves, weight = problem(3, 5, much=much, device="cuda")
    compare(monkeypatch, leaves, weight, EVERY, kept=kept, days=16)


@on_a_gpu
@needs_triton
def test_kernels_give_the_same_bits_again():
    leaves, weight = problem(7, 20, device="cuda")
    first, again = (outcome(leaves, weight, EVERY) for _ in range(2))
    assert all(torch.equal(v, w) for v, w in zip(first, again, strict=True))


@on_a_gpu
@needs_triton
def test_a_simulation_by_kernels_does_not_depend_on_its_mates():
    leaves, weight = problem(7, 20, device="cuda")
    every = outcome(leaves, weight, ("doses",))
    few = {**leaves, "m": leaves["m"][2:3], "doses": leaves["doses"][2:3, 4:6]}
    alone = outcome(few, weight[2:3, 4:6], ("doses",))
    assert all(torch.equal(v[2:3, 4:6], w) for v, w in zip(every, alone, strict=True))


@on_a_gpu
@needs_triton
def test_a_graph_holds_the_kernels():
    leaves, weight = problem(20, 3, device="cuda")
    m, doses = (leaves.pop(k).requires_grad_() for k in ("m", "doses"))

    def slopes():
        infected = new_infections(m=m.unsqueeze(1), doses=doses, **leaves)
        return torch.autograd.grad((infected * weight).sum(), (m, doses))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        want = slopes()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        got = slopes()
    for v in got:
        v.zero_()
    graph.replay()
    assert all(torch.equal(v, w) for v, w in zip(got, want, strict=True))


@on_a_gpu
@needs_triton
def test_a_gpu_follows_all_compartments_and_double_precision_by_torch(monkeypatch):
    def never(*_):
        raise AssertionError("launched")

    monkeypatch.setattr(seirv_triton, "forward", never)
    leaves, weight = problem(2, 3, 9, device="cuda")
    infected, end = simulate(m=leaves.pop("m").unsqueeze(1), **leaves)
    assert infected.shape == (2, 3, 9)
    assert end.shape == (2, 3, 5, 9)
    leaves, _ = problem(2, 3, 9, device="cuda")
    double = {k: v.double() for k, v in leaves.items()}
    assert_close([infected.double()], [outcome(double, weight, ("doses",))[0]])
