"""Numbers, lists and arrays as tensors of one dtype, with the errors of bad ones."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@runtime_checkable
class HasArray(Protocol):
    """A table of numbers, such as a frame of pandas."""

    def __array__(self, *args: Any, **settings: Any) -> Any: ...


Numbers = float | int | np.number[Any] | Sequence[Any] | npt.NDArray[Any] | Tensor | HasArray


def as_tensors(owner: str, **values: Numbers) -> list[Tensor]:
    """The values as new tensors of one floating dtype on one device.

    Tensors decide the dtype (the widest floating one) and the device (the first one's); without
    a floating tensor it is torch's default dtype, on the CPU.
    """
    given = [v for v in values.values() if isinstance(v, Tensor)]
    kinds = [v.dtype for v in given if v.is_floating_point()]
    dtype = kinds[0] if kinds else torch.get_default_dtype()
    for kind in kinds[1:]:
        dtype = torch.promote_types(dtype, kind)
    device = given[0].device if given else torch.device("cpu")
    return [_read(owner, k, v).to(device, dtype, copy=True) for k, v in values.items()]


def as_vector(owner: str, name: str, value: Tensor, dim: int) -> Tensor:
    """A number repeated ``dim`` times, or a vector that has ``dim`` numbers already."""
    if value.ndim == 0:
        return value.repeat(dim)
    if value.shape != (dim,):
        raise ValueError(
            f"{owner} needs {name} to be a number or a vector of {dim} numbers, but got shape "
            f"{tuple(value.shape)}. Give one number for each of the {dim} coordinates."
        )
    return value


def check_dim(owner: str, dim: int) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:
        raise ValueError(
            f"{owner} needs dim, the number of coordinates of an action, to be a whole number "
            f"of at least 1, but got {dim!r}. Write for example dim=7."
        )


def check_total(owner: str, total: Tensor) -> None:
    if total.ndim != 0 or not (total.isfinite() and total > 0):
        raise ValueError(
            f"{owner} needs total to be one positive number, but got {total.tolist()}. Write "
            f"for example total=1.0."
        )
    check_size(owner, "total", total)
    if total < 1 / largest(total.dtype):
        raise ValueError(
            f"{owner} needs a total whose square is not 0 in {total.dtype}, but got {total:g}. "
            f"Count actions in smaller units."
        )


def largest(dtype: torch.dtype) -> float:
    """The size from which on squares are infinite: no number of a set may be larger."""
    return float(torch.finfo(dtype).max ** 0.5)


def check_size(owner: str, name: str, value: Tensor) -> None:
    """Raise ValueError where the square of a finite number is not finite."""
    size = value.abs().max() if value.numel() else value.new_zeros(())
    if size > largest(value.dtype):
        raise ValueError(
            f"{owner} needs numbers of at most {largest(value.dtype):.2g} in {value.dtype}, but "
            f"{name} has {float(size):g}. Count actions in larger units, or bound the set by "
            f"numbers no sensible action passes."
        )


def check_finite(owner: str, name: str, value: Tensor, hint: str) -> None:
    if len(bad := (~value.isfinite()).nonzero()):
        i = tuple(bad[0].tolist())
        raise ValueError(
            f"{owner} needs finite numbers, but {name}[{', '.join(map(str, i))}] is {value[i]:g} "
            f"({len(bad)} such). {hint}"
        )
    check_size(owner, name, value)


def read_rows(
    A: Numbers | None, b: Numbers | None, G: Numbers | None, h: Numbers | None
) -> list[Tensor]:
    """A, b, G, h of a Polytope as tensors of one dtype, with no rows where none were given."""
    for left, right, names in ((A, b, "A and b"), (G, h, "G and h")):
        if (left is None) != (right is None):
            raise ValueError(
                f"Polytope needs {names} together, but got one without the other. Each row has "
                f"its right-hand side."
            )
    given = {k: v for k, v in {"A": A, "b": b, "G": G, "h": h}.items() if v is not None}
    read = dict(zip(given, as_tensors("Polytope", **given), strict=True))
    matrices = {name: value for name, value in read.items() if name in "AG"}
    sizes = {m.shape[1] if m.ndim == 2 and len(m) else 0 for m in matrices.values()}
    if len(sizes) != 1 or 0 in sizes:
        shapes = " and ".join(f"{k} of shape {tuple(v.shape)}" for k, v in matrices.items())
        raise ValueError(
            f"Polytope needs A and b (A a = b), G and h (G a <= h) or both, in matrices with at "
            f"least one row and one column for each coordinate of an action, but got "
            f"{shapes or 'none'}. A single row is written [[1.0, 1.0]]."
        )
    none = next(iter(matrices.values())).new_zeros(0, *sizes)
    tensors = []
    for left, right in ("Ab", "Gh"):
        rows = read.get(left, none)
        values = as_vector("Polytope", right, read.get(right, none[:, 0]), len(rows))
        check_finite("Polytope", left, rows, "Write 0 for a coefficient that has no number.")
        check_finite("Polytope", right, values, "Drop the rows that do not bind.")
        if len(bad := (rows == 0).all(1).nonzero()):
            raise ValueError(
                f"Polytope needs rows that constrain something, but row {int(bad[0])} of {left} "
                f"is all zeros ({len(bad)} such). Drop it."
            )
        tensors += [rows, values]
    return tensors


def axes(value: Any) -> int:
    """How many axes a number, list, array, frame or tensor has; 0 for what is none of these."""
    if isinstance(value, Tensor):
        return value.ndim
    try:
        return np.ndim(value)
    except ValueError:
        return 0


def as_numpy(value: Tensor) -> npt.NDArray[np.float64]:
    """In double precision, for scipy and cvxpy."""
    array: npt.NDArray[np.float64] = value.double().cpu().numpy()
    return array


def brief(value: Tensor) -> str:
    """A vector in a few characters, for a repr."""
    low, high = float(value.min()), float(value.max())
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"


def _read(owner: str, name: str, value: Numbers) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        return torch.from_numpy(np.array(value, dtype=np.float64, order="C"))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{owner} needs {name} to be a number, a list of numbers, an array or a tensor, but "
            f"got {value!r} of type {type(value).__name__}."
        ) from error
