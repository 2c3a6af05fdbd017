import pytest
import torch


@pytest.fixture(autouse=True)
def _same_weights_every_run():
    torch.manual_seed(0)
