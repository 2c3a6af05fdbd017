"""Where a long fit can be taken up again."""

import hashlib
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from costscape.data import Dataset


class Checkpoint:
    """The file of a fit under way; without a path it keeps nothing.

    Its mark is a hash of ``recipe``, the data and the shapes of the model: a fit goes on only
    from its own file.
    """

    def __init__(
        self,
        path: Path | str | None,
        recipe: str,
        data: Dataset,
        model: nn.Module,
    ) -> None:
        self.path = None if path is None else Path(path)
        if self.path is None:
            return
        shapes = [(name, tuple(value.shape)) for name, value in model.state_dict().items()]
        digest = hashlib.sha256(repr((recipe, shapes)).encode())
        for part in (data.x, data.y):
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
        self.mark = digest.hexdigest()

    def save(self, **state: Any) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(self.path.name + ".part")
        torch.save({"mark": self.mark, **state}, part)
        os.replace(part, self.path)  # a fit that dies while writing leaves the last epoch whole

    def load(self) -> dict[str, Any] | None:
        if self.path is None or not self.path.exists():
            return None
        try:
            saved: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
            mark = saved["mark"]
        except Exception as error:
            # torch's own words go on to advise loading files that run code
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
