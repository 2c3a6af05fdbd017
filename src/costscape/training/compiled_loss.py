"""A loss run through torch.compile, where that works."""

import warnings
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from costscape.data import Dataset

Loss = Callable[[Dataset, Generator], Tensor]  # of a batch; draws come from the generator


def compiled(loss: Loss) -> Loss:
    """torch.compile(loss), or loss itself from the first call that cannot be compiled."""
    fast: Loss | None = None

    def step(batch: Dataset, rng: Generator) -> Tensor:
        nonlocal fast
        state = rng.get_state()
        try:
            fast = fast or torch.compile(loss, dynamic=True)
            return fast(batch, rng)
        except Exception as error:
            if fast is loss:
                raise
            warnings.warn(f"torch.compile failed, going on without it: {error}", stacklevel=2)
            fast = loss
            rng.set_state(state)
            return loss(batch, rng)

    return step
