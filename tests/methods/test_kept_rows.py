import numpy as np
import torch

from costscape.methods import kept_rows
from costscape.methods.kept_rows import KeptRows


def kept(n, labels=None):
    x = torch.arange(float(n))[:, None]
    fold = torch.zeros(n, dtype=torch.int16)
    return KeptRows(x, x, torch.arange(n), fold, labels)


def test_a_large_sample_is_thinned_and_knows_its_positions(monkeypatch):
    monkeypatch.setattr(kept_rows, "ROWS", 10)
    new = torch.arange(20.0, 26.0)[:, None]
    grown = kept(20).thinned().extended(new, new, torch.full((6,), -1, dtype=torch.int16), None)
    assert len(grown.x) <= 10
    assert (grown.x[:, 0] == grown.positions).all()
    assert len(grown.fold) == 26
    assert grown.learned(0).tolist() == list(range(20, 26))


def test_labels_of_new_rows_follow_the_old_ones():
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]")
    x, fold = torch.zeros(1, 1), torch.zeros(1, dtype=torch.int16)
    later = np.array(["2024-01-03"], dtype="datetime64[ns]")
    assert kept(2, days).extended(x, x, fold, later).labels[-1] == later[0]
    assert kept(2, days).extended(x, x, fold, None).labels[-1] == "2"
    assert kept(2).extended(x, x, fold, None).labels is None
