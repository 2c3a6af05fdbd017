"""The file from which an interrupted fit continues."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
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
        """Replace the file by this state; it is never half-written, whoever else writes it."""
        from costscape.whole_file import write_whole

        content = io.BytesIO()
        torch.save({"mark": self.mark, **state}, content)
        write_whole(self.path, content.getvalue())

    def load(self) -> dict[str, Any] | None:
        """The state in the file, or None without one; ValueError for the file of another fit."""
        if not self.path.exists():
            return None
        with self.reading():
            if not self.path.is_file():  # a pipe would be waited for
                raise OSError("no plain file")
            saved: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
            mark = saved["mark"]
        if mark != self.mark:
            raise ValueError(
                f"The checkpoint {self.path} belongs to a fit with other data, cost, settings or "
                f"seed. Delete it to start afresh, or name another file."
            )
        return saved

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Say of errors inside that the file is broken."""
        try:
            yield
        except Exception as error:
            # torch's message advises loading files that run code, so it is not repeated here
            raise ValueError(
                f"The checkpoint {self.path} cannot be read ({type(error).__name__}). "
                f"Delete it to start afresh, or name another file."
            ) from error


def torch_generator(device: torch.device) -> Generator:
    """The generator of torch that dropout on this device draws from."""
    if device.type != "cuda":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]
