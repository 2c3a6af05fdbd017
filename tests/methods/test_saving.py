import errno
import json
import os
import struct
from dataclasses import dataclass, replace
from functools import partial

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from torch import nn

from costscape import (
    LSTM,
    MLP,
    Absolute,
    Anchored,
    Auto,
    Box,
    Constant,
    Costs,
    Finite,
    Greedy,
    Implicit,
    LocationScale,
    Method,
    MirrorDescent,
    NearestNeighbours,
    ProjectedAdam,
    Separable,
    SeparableTask,
    Slopes,
    SlopeWeights,
    Task,
    Training,
    WindowLevels,
    load,
)
from costscape.methods import saving

DF2_SETTINGS = {
    "absolute, two folds": {"outcomes": Absolute(), "folds": 2},
    "anchored, values fixed": {"outcomes": Anchored(), "learn_values": False},
    "anchored, values learned": {"outcomes": Anchored()},
    "levels of anchored": {"outcomes": WindowLevels(Anchored())},
    "levels of absolute, fixed": {"outcomes": WindowLevels(Absolute()), "learn_values": False},
    "location and scale, two folds": {"outcomes": LocationScale(), "folds": 2},
    "location and scale, fixed": {"outcomes": LocationScale(), "learn_values": False},
    "levels of location and scale": {"outcomes": WindowLevels(LocationScale())},
    "blended": {"outcomes": None, "folds": 2},
    "blended by slopes": {"outcomes": None, "folds": 2, "selection": SlopeWeights()},
    "costs": {"outcomes": Absolute(), "target": Costs(weighting=False)},
    "own units": {"outcomes": Absolute(), "standardise": False, "ema": None},
    "default encoder": {"outcomes": Absolute(), "encoder": None},
    "own grid": {"outcomes": Absolute(), "solver": Separable(grid=65)},
}


@pytest.fixture(params=[*DF2_SETTINGS, "constant", "neighbours", "neighbours, k given"])
def method(request, tiny, newsvendor):
    task = newsvendor(2)
    if request.param in DF2_SETTINGS:
        return tiny(task, {"epochs": 1}, **DF2_SETTINGS[request.param])
    return {
        "constant": Constant(task),
        "neighbours": NearestNeighbours(task),
        "neighbours, k given": NearestNeighbours(task, k=3),
    }[request.param]


def test_a_loaded_method_answers_bit_for_bit_as_before(method, newsvendor, demand, tmp_path):
    x, y = demand(60, dim=2)
    method.fit(x, y)
    method.save(tmp_path / "model")
    back = load(str(tmp_path / "model"), newsvendor(2))
    new, _ = demand(20, seed=1)
    assert type(back) is type(method)
    assert torch.equal(back.decide(new), method.decide(new))
    if not isinstance(method, Constant):
        ours, theirs = method.scenarios(new), back.scenarios(new)
        assert torch.equal(ours.weights, theirs.weights)
        assert torch.equal(ours.values, theirs.values)
        assert torch.equal(back.expected_cost(new, y[:20]), method.expected_cost(new, y[:20]))
    settings = {k: v for k, v in vars(back).items() if not k.endswith("_") and k != "task"}
    for name, value in settings.items():
        assert str(value) == str(getattr(method, name)), name
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_loaded_method_can_be_fitted_again(tiny, newsvendor, demand, tmp_path):
    x, y = demand(60)
    model = tiny(newsvendor(), outcomes=None).fit(x, y)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", newsvendor()).fit(x, y)
    assert torch.equal(again.decide(x), model.decide(x))


def test_names_of_columns_travel_with_the_model(tiny, newsvendor, demand, tmp_path):
    x, y = demand(60, dim=2)
    index = pd.date_range("2024-01-01", periods=60, name="day")
    frame, wanted = pd.DataFrame(x.numpy(), index), pd.DataFrame(y.numpy(), index, ["ham", "egg"])
    model = tiny(newsvendor(2), {"epochs": 1}, outcomes=Absolute()).fit(frame, wanted)
    model.save(tmp_path / "m")
    pd.testing.assert_frame_equal(
        load(tmp_path / "m", newsvendor(2)).decide(frame), model.decide(frame)
    )
    assert list(load(tmp_path / "m", newsvendor(2)).decide(frame[:2]).columns) == ["ham", "egg"]


def test_one_number_a_row_comes_back_as_such(tiny, newsvendor, demand, tmp_path):
    x, y = demand(60)
    model = tiny(newsvendor(), {"epochs": 1}, outcomes=Absolute()).fit(x, y[:, 0])
    model.save(tmp_path / "m")
    a = load(tmp_path / "m", newsvendor()).decide(x)
    assert a.shape == (60,)
    assert torch.equal(a, model.decide(x))


@pytest.mark.parametrize(
    "form",
    [Anchored(), LocationScale(), WindowLevels(LocationScale())],
    ids=["anchored", "location", "levels of location"],
)
def test_a_sequence_model_comes_back(newsvendor, demand, tiny, tmp_path, form):
    _, y = demand(40)
    x = torch.rand(40, 5, 2)
    told = {"encoder": partial(LSTM, 2, hidden=4), "outcomes": form}
    model = tiny(newsvendor(), {"epochs": 1}, **told).fit(x, y)
    model.save(tmp_path / "m")
    assert torch.equal(load(tmp_path / "m", newsvendor()).decide(x), model.decide(x))


def test_settings_can_be_replaced_at_load(tiny, newsvendor, demand, tmp_path):
    x, y = demand(60)
    tiny(newsvendor(), {"epochs": 1}, outcomes=Absolute()).fit(x, y).save(tmp_path / "m")
    back = load(tmp_path / "m", newsvendor(), solver=ProjectedAdam(steps=5))
    assert back.solver == ProjectedAdam(steps=5)


def test_a_double_model_can_be_loaded_for_a_single_task(tiny, newsvendor, demand, tmp_path):
    x, y = demand(60)
    model = tiny(newsvendor().double(), {"epochs": 1}, outcomes=Absolute()).fit(x, y)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m", newsvendor())
    assert back.scenarios(x).values.dtype == torch.float32
    assert torch.allclose(back.decide(x).double(), model.decide(x), atol=1e-3)


# ---- code is not in the file


class Mine(nn.Module):
    out_features = 4

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 4)

    def forward(self, x):
        return self.net(x)


@pytest.mark.parametrize(
    ("encoder", "name"),
    [
        (lambda: MLP(2, hidden=4), r"encoder=<lambda>"),
        (Mine, "encoder=Mine"),
        (partial(Mine), "encoder=Mine"),
    ],
)
def test_an_encoder_of_the_users_own_is_asked_for_by_name(
    tiny, newsvendor, demand, tmp_path, encoder, name
):
    x, y = demand(60)
    told = {"outcomes": Absolute(), "encoder": encoder}
    model = tiny(newsvendor(), {"epochs": 1}, **told).fit(x, y)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=rf"fitted with {name}.* load\(path, task, {name}\)"):
        load(tmp_path / "m", newsvendor())
    assert torch.equal(
        load(tmp_path / "m", newsvendor(), encoder=encoder).decide(x), model.decide(x)
    )


def test_a_level_of_the_users_own_is_asked_for(tiny, newsvendor, demand, tmp_path):
    x, y = demand(60)
    # which is not a number on an empty window
    form = WindowLevels(Absolute(), level=lambda x: x.square().sum(1) / x.sum(1))
    model = tiny(newsvendor(), {"epochs": 1}, outcomes=form).fit(x, y)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="outcomes=WindowLevels, which is your own code"):
        load(tmp_path / "m", newsvendor())
    assert torch.equal(
        load(tmp_path / "m", newsvendor(), outcomes=form).decide(x), model.decide(x)
    )


@dataclass
class Middle(Method):
    """The middle of C, whatever x: a method of a user's own."""

    task: Task
    seed: int = 0

    def _fit(self, train, val):
        lower, upper = self.task.feasible.bounds
        self.model_ = nn.Linear(1, 1)
        self.model_.register_buffer("middle", (lower + upper) / 2)
        self.task_ = self.task

    def _decide(self, x):
        return self.model_.middle.expand(len(x), -1)

    def _facts(self):
        return {}

    def _rebuild(self, facts):
        self._fit(None, None)
        return self.model_


def test_a_method_of_the_users_own_is_loaded_when_its_class_is_given(newsvendor, demand, tmp_path):
    x, y = demand(20)
    Middle(newsvendor()).fit(x, y).save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"holds a Middle.* load\(path, task, method=Middle\)"):
        load(tmp_path / "m", newsvendor())
    with pytest.raises(ValueError, match="holds a Middle"):
        load(tmp_path / "m", newsvendor(), method=Constant)
    assert load(tmp_path / "m", newsvendor(), method=Middle).decide(x[:2]).tolist() == [[2.0]] * 2


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, 0.5, "auto"),
        partial(MLP, 24, hidden=7, dropout=0.2),
        partial(LSTM, 3),
        *(Absolute(), Anchored(), WindowLevels(Absolute())),
        *(LocationScale(), WindowLevels(LocationScale()), Greedy(rounds=3), SlopeWeights()),
        *(Slopes(), Costs(), Costs(weighting=False, by_coordinate=False)),
        *(Separable(grid=9), Auto(rough=True), ProjectedAdam(lr=0.1), MirrorDescent(steps=3)),
        Training(epochs=3, device="cpu"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_setting_comes_back_from_json_as_it_was(value):
    there_and_back = saving.from_json(json.loads(json.dumps(saving.to_json(value))))
    assert str(there_and_back) == str(value)
    if not isinstance(value, partial):
        assert there_and_back == value


def test_the_automatic_solver_is_the_string_auto_in_files(newsvendor, demand, tmp_path):
    layer = Implicit()
    assert saving.to_json(Auto()) == "auto"
    assert saving.to_json(layer)["kwargs"] == {"solver": "auto", "window": "auto"}
    assert saving.from_json(saving.to_json(layer)) == layer
    Constant(newsvendor()).fit(*demand(20)).save(tmp_path / "m")
    assert saving.read(tmp_path / "m")[1]["settings"]["solver"] == "auto"
    assert load(tmp_path / "m", newsvendor()).solver == Auto()


def test_the_string_auto_is_no_solver(newsvendor, demand, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for a user
    sentence = r"Constant needs solver to be a Solver, but got 'auto'\."
    with pytest.raises(TypeError, match=sentence):
        Constant(newsvendor(), solver="auto").fit(*demand(20))
    with pytest.raises(TypeError, match="Implicit needs solver to be a Solver"):
        Implicit("auto")


def test_numbers_of_numpy_are_numbers(newsvendor, demand, tmp_path, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # k is to be an int
    x, y = demand(60)
    NearestNeighbours(newsvendor(), k=np.int64(3)).fit(x, y).save(tmp_path / "m")
    assert load(tmp_path / "m", newsvendor()).k == 3
    assert saving.to_json(np.float32(0.5)) == 0.5


# ---- files that are not whole, or not ours


@pytest.fixture
def saved(newsvendor, demand, tmp_path):
    """The path of a model of a few hundred numbers."""
    x, y = demand(60)
    NearestNeighbours(newsvendor(), k=3).fit(x, y).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_missing_file_is_named(newsvendor, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model file .*nowhere.*model\.save\("):
        load(tmp_path / "nowhere", newsvendor())


@pytest.mark.parametrize("keep", [0, 4, 40, 0.5, -1])
def test_a_cut_off_file_is_refused(saved, newsvendor, keep):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match=r"is not a whole costscape model file.* save the"):
        load(saved, newsvendor())


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_one_flipped_bit_among_the_numbers_is_noticed(saved, newsvendor, at):
    content = bytearray(saved.read_bytes())
    (header,) = struct.unpack("<Q", content[:8])
    first, last = 8 + header, len(content) - 1
    content[round(first + at * (last - first))] ^= 1
    saved.write_bytes(content)
    with pytest.raises(ValueError, match="is corrupt: its content does not match its checksum"):
        load(saved, newsvendor())


def test_other_files_are_refused(newsvendor, tmp_path):
    safetensors.torch.save_file({"w": torch.zeros(3)}, tmp_path / "theirs")
    (tmp_path / "text").write_text("x,y\n1,2\n")
    (tmp_path / "folder").mkdir()
    for name in ("theirs", "text", "folder"):
        with pytest.raises(ValueError, match=f"{name} is not a whole costscape model file"):
            load(tmp_path / name, newsvendor())


def rewritten(path, **changes):
    """The same numbers under a header with other entries, and the old checksum."""
    with safetensors.safe_open(path, framework="pt") as file:
        head = json.loads(file.metadata()["costscape"])
        tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    safetensors.torch.save_file(tensors, path, metadata={"costscape": json.dumps(head | changes)})


def test_a_file_of_another_format_is_refused(saved, newsvendor):
    rewritten(saved, format=99)
    with pytest.raises(ValueError, match="has format 99, and this version reads formats 1 and 2"):
        load(saved, newsvendor())


def test_a_changed_setting_is_noticed(saved, newsvendor):
    rewritten(saved, settings={**saving.read(saved)[1]["settings"], "k": 1})
    with pytest.raises(ValueError, match="is corrupt: its content does not match its checksum"):
        load(saved, newsvendor())


def test_a_file_of_format_1_is_read_with_a_warning(saved, newsvendor, demand):
    before = load(saved, newsvendor()).decide(demand(20)[0])
    tensors, _ = saving.read(saved)
    rewritten(saved, format=1, sha256=saving._digest(tensors, None))
    with pytest.warns(UserWarning, match="has format 1: its settings cannot be checked"):
        old = load(saved, newsvendor())
    assert torch.equal(old.decide(demand(20)[0]), before)
    rewritten(saved, sha256="0" * 64)
    format_1 = pytest.warns(UserWarning, match="format 1")
    with format_1, pytest.raises(ValueError, match="is corrupt"):
        load(saved, newsvendor())


def test_an_unknown_method_is_refused(saved, newsvendor):
    tensors, head = saving.read(saved)
    saving.write(saved, tensors, {**head, "method": "Oracle"})
    with pytest.raises(ValueError, match="holds a Oracle, and costscape has no such method"):
        load(saved, newsvendor())


def test_an_unknown_setting_is_refused(saved, newsvendor):
    with pytest.raises(TypeError, match="NearestNeighbours has no setting named colour"):
        load(saved, newsvendor(), colour="red")


def test_a_task_of_another_dimension_is_refused(saved, newsvendor):
    with pytest.raises(ValueError, match=r"decisions of 1 numbers, .* feasible set has 3\. Pass"):
        load(saved, newsvendor(3))


# ---- writing


def test_a_write_that_fails_leaves_the_old_file_whole(saved, newsvendor, demand, monkeypatch):
    x, y = demand(60)
    before = saved.read_bytes()
    old = load(saved, newsvendor()).decide(x)
    new = NearestNeighbours(newsvendor(), k=9).fit(x, y)

    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"model could not be written \(No space left on device"):
            new.save(saved)
    assert saved.read_bytes() == before
    assert torch.equal(load(saved, newsvendor()).decide(x), old)
    new.save(saved)
    assert torch.equal(load(saved, newsvendor()).decide(x), new.decide(x))
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_missing_folders_are_made(newsvendor, demand, tmp_path):
    x, y = demand(20)
    model = Constant(newsvendor()).fit(x, y)
    model.save(tmp_path / "a" / "b" / "m")
    assert torch.equal(load(tmp_path / "a" / "b" / "m", newsvendor()).decide(x), model.decide(x))


def test_a_method_that_is_not_fitted_cannot_be_saved(newsvendor, tmp_path):
    with pytest.raises(
        RuntimeError, match=r"Constant has not been fitted. Call fit\(X, Y\) first"
    ):
        Constant(newsvendor()).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_the_device_and_the_checkpoint_of_the_fit_are_no_hindrance(
    tiny, newsvendor, demand, tmp_path
):
    x, y = demand(60)
    model = tiny(newsvendor(), {"epochs": 1, "checkpoint": tmp_path / "c"}, outcomes=Absolute())
    model.fit(x, y)
    model.training = replace(model.training, device="cuda:7")
    model.save(tmp_path / "m")
    back = load(tmp_path / "m", newsvendor())
    assert torch.equal(back.decide(x), model.decide(x))
    assert back.training.checkpoint is None


def test_a_model_for_a_finite_set_comes_back(demand, tiny, tmp_path):
    def task():
        return Task(lambda y, a: (y - a).square().sum(-1), Finite([[0.0], [1.0], [2.0]]))

    x, y = demand(40)
    model = tiny(task(), {"epochs": 1}, outcomes=Absolute()).fit(x.numpy(), y.numpy())
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m", task()).decide(x.numpy()), model.decide(x.numpy()))


def test_the_box_of_the_task_may_move_after_the_fit(newsvendor, demand, tiny, tmp_path):
    # the costs are learned; the limits are the task's, and may be others at load
    x, y = demand(60)
    tiny(newsvendor(), {"epochs": 1}, outcomes=Absolute()).fit(x, y).save(tmp_path / "m")
    narrow = SeparableTask(newsvendor().f_terms, Box(0.0, 1.2, dim=1), convex=True)
    a = load(tmp_path / "m", narrow).decide(x)
    assert a.max() <= 1.2
