"""Surfaces of g(x, .): true, at the start, learned."""

import json
import sys

import pytest
import torch

from costscape.bench import Run, landscape, prepare, write_landscape
from costscape.bench.report import read_landscapes
from costscape.problems import MixtureTruth

RUN = Run("synthetic-nonconvex", "df2-paper", 0, {"epochs": 10, "lr": 0.01}, quick=True)


@pytest.fixture(scope="module")
def found():
    return landscape(RUN, row=2, device="cpu")


def surface(found, name):
    return torch.tensor(found["surfaces"][name], dtype=torch.float64)


def test_the_true_surface_is_that_of_the_mixture(found):
    p = prepare(RUN).problem
    assert isinstance(p.truth, MixtureTruth)
    x = p.data.test.x[2]
    assert found["x"] == pytest.approx(x.tolist(), rel=1e-3)
    for i, j in ((0, 0), (3, 20), (24, 1), (12, 12)):
        a = torch.tensor([found["a1"][i], found["a2"][j]])
        true = float(p.truth.expected_cost(x, a))
        assert found["surfaces"]["true"][i][j] == pytest.approx(true, rel=2e-3, abs=2e-3)


def test_the_grid_spans_the_set(found):
    for name in ("a1", "a2"):
        assert (found[name][0], found[name][-1], len(found[name])) == (-2.0, 2.0, 25)


def test_the_learned_surface_is_nearer_to_the_true_one_than_the_first(found):
    true = surface(found, "true")
    far, near = ((surface(found, n) - true).square().mean().sqrt() for n in ("initial", "learned"))
    assert near < 0.8 * far


def test_a_landscape_is_written_once_and_read_by_the_report(found, tmp_path, monkeypatch):
    path = write_landscape(RUN, tmp_path, device="cpu")
    assert path == tmp_path / "landscapes.jsonl"
    (read,) = read_landscapes(tmp_path)
    assert read["surfaces"].keys() == {"initial", "learned", "true"}
    assert (read["problem"], read["method"], read["seed"]) == (RUN.problem, "df2-paper", 0)
    before = path.read_text()

    def fail(run, row=0, device=None):
        raise AssertionError("made again")

    monkeypatch.setattr(sys.modules["costscape.bench.cost_landscape"], "landscape", fail)
    assert write_landscape(RUN, tmp_path) == path
    assert path.read_text() == before
    with pytest.raises(AssertionError, match="made again"):
        write_landscape(Run(RUN.problem, RUN.method, 0, {"epochs": 11}, True), tmp_path)
    with pytest.raises(AssertionError, match="made again"):
        write_landscape(Run(RUN.problem, RUN.method, 0, RUN.changes), tmp_path)
    path.write_text(json.dumps(json.loads(before) | {"recipe": "other"}) + "\n")
    with pytest.raises(AssertionError, match="made again"):
        write_landscape(RUN, tmp_path)
    monkeypatch.undo()
    write_landscape(RUN, tmp_path)
    assert path.read_text() == before


@pytest.mark.parametrize("pair", [("wind-farm", "df2"), ("synthetic-convex", "constant")])
def test_a_landscape_without_a_truth_or_df2_is_refused(pair):
    with pytest.raises(ValueError, match=f"but got {pair[1]} on {pair[0]}"):
        landscape(Run(*pair, quick=True))
