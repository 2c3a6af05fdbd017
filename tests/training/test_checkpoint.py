import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from costscape.data import Dataset
from costscape.training.checkpoint import Checkpoint

DATA = Dataset(torch.arange(6.0).reshape(3, 2), torch.ones(3, 1))


def keeper(path, recipe="r", data=DATA, model=None):
    return Checkpoint(path, recipe, data, model or nn.Linear(2, 1))


def test_what_was_saved_comes_back(tmp_path):
    keeper(tmp_path / "c").save(epoch=3, best={"w": torch.tensor([1.5])})
    back = keeper(tmp_path / "c").load()
    assert back["epoch"] == 3
    assert torch.equal(back["best"]["w"], torch.tensor([1.5]))


def test_without_a_file_there_is_nothing_to_load(tmp_path):
    assert keeper(tmp_path / "c").load() is None


def test_missing_folders_are_made(tmp_path):
    keeper(tmp_path / "a" / "b" / "c").save(epoch=0)
    assert keeper(tmp_path / "a" / "b" / "c").load()["epoch"] == 0


def test_a_write_that_fails_leaves_the_last_epoch_whole(tmp_path, monkeypatch):
    keeper(tmp_path / "c").save(epoch=3)

    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    last = keeper(tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"c could not be written \(No space left on device\)"):
            last.save(epoch=4)
    assert keeper(tmp_path / "c").load()["epoch"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "c")
    with pytest.raises(ValueError, match=r"c cannot be read \(OSError\)"):
        keeper(tmp_path / "c").load()


@pytest.mark.parametrize(
    "other",
    [
        {"recipe": "s"},
        {"data": Dataset(DATA.x, DATA.y + 1)},
        {"data": Dataset(DATA.x + 1e-6, DATA.y)},
        {"model": nn.Linear(2, 2)},
        {"model": nn.Sequential(nn.Linear(2, 1))},
    ],
)
def test_the_file_of_another_fit_is_refused(tmp_path, other):
    keeper(tmp_path / "c").save(epoch=3)
    with pytest.raises(
        ValueError, match="belongs to a fit with other data, cost, settings or seed"
    ):
        keeper(tmp_path / "c", **other).load()


def _cut(path):
    path.write_bytes(path.read_bytes()[:-200])


def _text(path):
    path.write_text("not a checkpoint")


def _empty(path):
    path.write_bytes(b"")


def _no_mark(path):
    torch.save({"epoch": 3}, path)


def _list(path):
    torch.save([1, 2], path)


class Evil:
    def __reduce__(self):
        return print, ("executed",)


def _code(path):
    torch.save({"mark": Evil()}, path)


@pytest.mark.parametrize("spoil", [_cut, _text, _empty, _no_mark, _list, _code])
def test_a_file_that_is_no_checkpoint_is_refused_by_name_and_never_executed(
    tmp_path, capsys, spoil
):
    path = tmp_path / "c"
    keeper(path).save(epoch=3, best={"w": torch.zeros(1000)})
    spoil(path)
    with pytest.raises(ValueError, match=r"checkpoint .*c cannot be read .*Delete it to start"):
        keeper(path).load()
    assert "executed" not in capsys.readouterr().out


def test_fits_at_once_with_one_file_leave_the_state_of_one_of_them(tmp_path):
    def save(epoch):
        for _ in range(20):
            keeper(tmp_path / "c").save(epoch=epoch, w=torch.full((500,), float(epoch)))
            seen = keeper(tmp_path / "c").load()
            assert (seen["w"] == seen["epoch"]).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
