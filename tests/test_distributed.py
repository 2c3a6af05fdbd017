import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import costscape as cs
from costscape import distributed
from costscape.distributed import Share

SCRIPT = Path(__file__).parent / "scripts" / "fit_together.py"
FITS = ["anchored", "absolute", "own-actions", "frozen-decay", "mixture", "plain"]
ALONE = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}


def script():
    spec = importlib.util.spec_from_file_location("fit_together", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def together(folder, *cases):
    """The exit status and the words of two processes that fit together."""
    folder.mkdir(exist_ok=True)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    env = {key: value for key, value in os.environ.items() if key not in ALONE}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, *command, str(SCRIPT), str(folder), *cases],
            env={**env, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        # one time in dozens torch aborts a process that is done, while it takes its threads down
        if "terminate called without an active exception" not in done.stderr:
            break
    return done.returncode, done.stderr


def results(folder):
    return [torch.load(folder / f"result-{r}.pt", weights_only=True) for r in (0, 1)]


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(value, b[name]) for name, value in a.items())


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """What each of two processes got in every case."""
    folder = tmp_path_factory.mktemp("pair")
    cases = [*FITS, "single-precision", "living", "row-draws", "unequal-rows"]
    code, words = together(folder, *cases)
    assert code == 0, words
    return folder, results(folder)


@pytest.fixture(scope="module")
def cases():
    return script().CASES


# ---- alone


def test_without_torchrun_there_is_one_process_and_nothing_changes():
    assert (distributed.size(), distributed.rank(), distributed.is_first()) == (1, 0, True)
    distributed.barrier()
    t = torch.arange(6.0).reshape(3, 2)
    assert distributed.gather_rows(t) is t
    assert distributed.own_rows(t) is t
    assert distributed.whole(3) == 3
    assert distributed.number_of_first(0.1) == 0.1
    state = {"epoch": 3}
    assert distributed.state_of_first(state) is state
    distributed.add_up([t])
    distributed.copy_first([t])
    distributed.check_same_rows(t, t)
    assert torch.equal(t, torch.arange(6.0).reshape(3, 2))
    rng = torch.Generator().manual_seed(1)
    before = rng.get_state()
    distributed.copy_generator(rng)
    assert torch.equal(rng.get_state(), before)
    assert not torch.distributed.is_initialized()


def test_one_process_of_torchrun_is_alone(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    assert (distributed.size(), distributed.is_first()) == (1, True)
    distributed.barrier()
    assert not torch.distributed.is_initialized()


def test_who_is_first_is_known_before_the_processes_have_met(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    assert (distributed.size(), distributed.rank(), distributed.is_first()) == (3, 1, False)
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(("n", "size"), [(13, 2), (12, 3), (1, 2), (2, 5), (7, 4)])
def test_every_row_of_a_batch_has_one_owner_and_weighs_the_same(n, size):
    shares = [Share.of(n, r, size) for r in range(size)]
    rows = list(range(n))
    assert [i for s in shares if s.weight for i in rows[s.own]] == rows
    assert sum(s.weight for s in shares) == pytest.approx(1)
    for r, s in enumerate(shares):
        assert len(rows[s.own]) == max(1, s.counts[r])
        assert s.weight == s.counts[r] / n
        assert s.even == (n % size == 0)


# ---- devices


def under_torchrun(monkeypatch, local, gpus):
    environment = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": local, "MASTER_ADDR": "here"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    chosen = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    return chosen


def test_each_process_of_a_host_gets_a_gpu_of_its_own(monkeypatch):
    chosen = under_torchrun(monkeypatch, "1", gpus=4)
    assert cs.Training().where() == torch.device("cuda:1")
    assert cs.Training(device="cuda").where() == torch.device("cuda:1")
    assert chosen == [1, 1]
    assert cs.Training(device="cuda:3").where() == torch.device("cuda:3")
    assert cs.Training(device="cpu").where() == torch.device("cpu")


def test_more_processes_than_gpus_are_refused_in_words(monkeypatch):
    under_torchrun(monkeypatch, "2", gpus=2)
    with pytest.raises(ValueError, match=r"process 3 on a host with 2\. Start no more than that"):
        cs.Training().where()


# ---- two processes


@pytest.mark.parametrize("name", FITS)
def test_two_processes_fit_what_one_does(pair, cases, name):
    one, two = cases[name](None), pair[1][0][name]
    for losses, expected in zip(two["losses"], one["losses"], strict=True):
        assert losses == pytest.approx(expected, rel=1e-6)  # the loop adds them up in float32
    for scores, expected in zip(two["scores"], one["scores"], strict=True):
        assert scores == pytest.approx(expected, rel=1e-9)
    assert two["best"] == one["best"]
    for key, value in one["weights"].items():
        assert torch.allclose(two["weights"][key], value, rtol=1e-9, atol=1e-9), key
    assert torch.allclose(two["decisions"], one["decisions"], rtol=0, atol=1e-9)


def test_two_processes_fit_what_one_does_in_single_precision(pair, cases):
    one, two = cases["single-precision"](None), pair[1][0]["single-precision"]
    for key in ("losses", "scores"):
        for values, expected in zip(two[key], one[key], strict=True):
            assert values == pytest.approx(expected, rel=1e-5)
    # near its least g is flat: where two decisions cost the same, rounding chooses
    assert torch.allclose(two["decisions"], one["decisions"], rtol=0, atol=5e-3)


@pytest.mark.parametrize("name", [*FITS, "single-precision", "living", "row-draws"])
def test_all_processes_end_with_the_same_bits(pair, name):
    first, second = (got[name] for got in pair[1])
    assert same(first["weights"], second["weights"])
    if "scores" in first:
        assert first["scores"] == second["scores"]
        assert first["losses"] == second["losses"]
        assert torch.equal(first["decisions"], second["decisions"])


def test_a_loss_that_draws_for_each_row_finds_the_same_stream_in_each_step(pair):
    first, second = (got["row-draws"]["states"] for got in pair[1])
    assert torch.equal(first, second)
    assert len(first.unique(dim=0)) == len(first) == 20


def test_rows_that_differ_between_processes_are_refused_in_all_of_them(pair):
    for got in pair[1]:
        assert "process 0 has 40 and process 1 has 39" in got["unequal-rows"]["error"]


def test_only_the_first_process_writes_checkpoints(pair):
    files = {path.name for path in pair[0].glob("checkpoint*")}
    assert files == {"checkpoint-0"}


def test_dropout_differs_between_processes_and_epochs(monkeypatch):
    from costscape.training.loop import _own_seed

    monkeypatch.setenv("MASTER_ADDR", "here")
    monkeypatch.setenv("WORLD_SIZE", "3")
    seeds = set()
    for rank in "12":
        monkeypatch.setenv("RANK", rank)
        seeds |= {_own_seed(seed, epoch) for seed in (0, 1) for epoch in (0, 1)}
    assert len(seeds) == 8


def test_when_one_process_dies_the_others_end_and_the_fit_goes_on_as_if_unbroken(pair, tmp_path):
    begin = time.monotonic()
    code, words = together(tmp_path, "dying")
    assert code != 0
    assert "this process dies" in words
    assert time.monotonic() - begin < 60
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"checkpoint-0"}
    saved = torch.load(tmp_path / "checkpoint-0", weights_only=True)
    assert saved["epoch"] < 4
    code, words = together(tmp_path, "living")
    assert code == 0, words
    unbroken = pair[1][0]["living"]
    for resumed in results(tmp_path):
        assert same(unbroken["weights"], resumed["living"]["weights"])
        for key in ("losses", "scores", "best"):
            assert unbroken[key] == resumed["living"][key]


def test_gradients_stay_away_where_no_process_has_one():
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))
    used.grad = torch.full((2,), 0.5)
    value = torch.tensor(1.5)
    distributed.add_up_gradients([used, unused], value)
    assert torch.equal(used.grad, torch.full((2,), 0.5))
    assert unused.grad is None
    assert value == 1.5
