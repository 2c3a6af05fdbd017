"""The file from which an interrupted fit continues."""

import hashlib
import os
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn

from costscape.data import Dataset


class Checkpoint:
    """The file of a running fit; it accepts only the state of the same fit.

    Args:
        path: of the file.
        recipe: describes the fit. A hash of it, of the data and of the shapes of the model marks
            the file.
        data: the rows of the fit.
        model: the network.
    """

    def __init__(self, path: Path | str, recipe: str, data: Dataset, model: nn.Module) -> None:
        self.path = Path(path)
        shapes = [(name, tuple(value.shape)) for name, value in model.state_dict().items()]
        digest = hashlib.sha256(repr((recipe, shapes)).encode())
        for part in (data.x, data.y):
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
        self.mark = digest.hexdigest()

    def save(self, **state: Any) -> None:
        """Write the state to a temporary file and rename it, so that it is never half-written."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(self.path.name + ".part")
        torch.save({"mark": self.mark, **state}, part)
        os.replace(part, self.path)

    def load(self) -> dict[str, Any] | None:
        """The state in the file, or None without one; ValueError for the file of another fit."""
        if not self.path.exists():
            return None
        try:
            saved: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
            mark = saved["mark"]
        except Exception as error:
            # torch's message advises loading files that run code, so it is not repeated here
            raise ValueError(
                f"The checkpoint {self.path} cannot be read ({type(error).__name__}). "
                f"Delete it to start afresh, or name another file."
            ) from error
        if mark != self.mark:
            raise ValueError(
                f"The checkpoint {self.path} belongs to a fit with other data, settings or seed. "
                f"Delete it to start afresh, or name another file."
            )
        return saved


def torch_generator(device: torch.device) -> Generator:
    """The generator of torch that dropout on this device draws from."""
    if device.type != "cuda":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]
