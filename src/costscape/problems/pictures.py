"""What all pictures share: arrays in, with the errors of bad ones, labels, a file out."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

LETTERS = 50  # of all labels together, that fit beside each other


def read(owner: str, name: str, value: Any, shape: tuple[int | None, ...], axes: str) -> Array:
    """``value`` as finite numbers of ``shape``, where None is any length of at least 1.

    ``axes`` names the shape in errors. A tensor is taken off its device and graph by its own
    methods, so that torch is not imported here.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array: Array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{owner} needs {name} to be {axes}, but got a {type(value).__name__} that is no "
            f"array of numbers ({error})."
        ) from error
    fits = array.ndim == len(shape) and all(
        have == want if want is not None else have > 0
        for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(
            f"{owner} needs {name} to be {axes}, of shape ({wanted}), but got shape "
            f"{array.shape}. Select one example, or one item, first."
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"{owner} needs finite numbers, but {name} holds {array[~np.isfinite(array)][0]} "
            f"({int((~np.isfinite(array)).sum())} such). Drop or fill them first."
        )
    return array


def labels(owner: str, name: str, value: Iterable[Any], count: int) -> list[str]:
    """One label for each of ``count`` things."""
    names = [str(v) for v in value]
    if len(names) != count:
        raise ValueError(
            f"{owner} needs one of {name} for each of the {count} numbers, but got {len(names)}. "
            f"Give as many as there are numbers, or none."
        )
    return names


def mark_time(axes: "Axes", at: npt.NDArray[Any], names: list[str]) -> None:
    """Ticks, slanted where their labels would meet."""
    axes.set_xticks(at, names)
    if sum(map(len, names)) > LETTERS:
        for text in axes.get_xticklabels():
            text.set(rotation=45, ha="right", rotation_mode="anchor")


def one_panel() -> "tuple[Figure, Axes]":
    """A figure of one panel, which needs no display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def write(figure: "Figure", path: Path | str | None) -> "Figure":
    """The figure, and a file of it where a path is given; its folder is made."""
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
    return figure
