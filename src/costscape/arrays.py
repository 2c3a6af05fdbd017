"""Arrays and frames in, the same kind out.

    x, form = read(X, "X")             # a tensor, and how X came
    ...
    return form.give(a, columns)       # numpy, torch or pandas, as X was

pandas is imported only where a frame has come: by then its owner has imported it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor


class Form(ABC):
    """How a value came, so that results go back in the same form."""

    @abstractmethod
    def give(self, result: Float[Tensor, "n ..."], columns: Sequence[Any] | None = None) -> Any:
        """The result as numpy, torch or pandas; ``columns`` are the names a frame needs."""


@dataclass(frozen=True)
class NumpyForm(Form):
    """A numpy array of the input's floating dtype; float64 for integers and lists of them."""

    dtype: np.dtype[Any]

    def give(
        self, result: Float[Tensor, "n ..."], columns: Sequence[Any] | None = None
    ) -> np.ndarray:
        return _numpy(result, self.dtype)


@dataclass(frozen=True)
class TorchForm(Form):
    """A tensor on the input's device and of its floating dtype; the default one for integers."""

    device: torch.device
    dtype: torch.dtype

    def give(self, result: Float[Tensor, "n ..."], columns: Sequence[Any] | None = None) -> Tensor:
        return result.detach().to(self.device, self.dtype)


@dataclass(frozen=True, eq=False)
class PandasForm(Form):
    """A DataFrame with the input's index; a Series where the result has one axis.

    Of float32 where all columns of the input were, else of float64.
    """

    index: Any
    dtype: np.dtype[Any]

    def give(self, result: Float[Tensor, "n ..."], columns: Sequence[Any] | None = None) -> Any:
        import pandas as pd

        if result.ndim > 2:
            raise ValueError(
                f"A frame has two axes, but the result has shape {tuple(result.shape)}. Pass an "
                f"array, frame.to_numpy(), to receive one."
            )
        values = _numpy(result, self.dtype)
        if values.ndim == 1:
            return pd.Series(values, self.index, name=columns[0] if columns else None)
        names = None if columns is None else list(columns)
        return pd.DataFrame(values, self.index, names)


def read(
    value: Any,
    name: str,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> tuple[Float[Tensor, "n ..."], Form]:
    """A copy of ``value`` (n, ...) as a tensor of finite numbers, and the form in which it came.

    Takes a numpy array, a tensor, a DataFrame or Series of numbers, or nested lists. ``dtype``
    None is torch's default one; ``device`` None is the CPU, or the device of a tensor. Errors
    call the value ``name``, and count rows and columns from 0.

    >>> x, form = read(np.array([[1, 2], [3, 4]]), "X")
    >>> x
    tensor([[1., 2.],
            [3., 4.]])
    >>> form.give(x.sum(-1))
    array([3., 7.])
    """
    source, form = _open(value, name)
    if source.ndim == 0:
        raise ValueError(
            f"{name} needs one row for each example, but got the single number {source.item()}. "
            f"Wrap it in a list."
        )
    if 0 in source.shape:
        raise ValueError(
            f"{name} needs at least one row and one column, but got shape {tuple(source.shape)}. "
            f"Look at how it was selected."
        )
    dtype = dtype or torch.get_default_dtype()
    # a frame's numbers lie column by column, and sums in another order end in other bits
    tensor = source.to(device, dtype, copy=True, memory_format=torch.contiguous_format)
    if not tensor.isfinite().all():
        bad = (~tensor.isfinite()).nonzero()
        at = tuple(bad[0].tolist())
        raise ValueError(
            f"{name} needs numbers that are finite in {str(dtype).removeprefix('torch.')}, but "
            f"{_place(value, at)} holds {source[at].item()} ({len(bad)} such). "
            f"Fill these values or drop their rows."
        )
    return tensor, form


def to_tensor(
    value: Any,
    name: str,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "n ..."]:
    """The tensor of ``read``, where nothing has to go back."""
    return read(value, name, dtype, device)[0]


def columns_of(value: Any) -> list[Any] | None:
    """The names of a DataFrame's columns or of a named Series; None for everything else."""
    if not _is_frame(value):
        return None
    if value.ndim == 2:
        return list(value.columns)
    return None if value.name is None else [value.name]


def _open(value: Any, name: str) -> tuple[Shaped[Tensor, "..."], Form]:
    """The value as a tensor of its own precision, not yet looked into."""
    if isinstance(value, Tensor):
        if value.is_complex() or value.layout != torch.strided:
            raise TypeError(
                f"{name} needs a dense tensor of real numbers, but got dtype {value.dtype} and "
                f"layout {value.layout}. Pass value.to_dense(), or its real and imaginary parts."
            )
        floating = value.dtype if value.is_floating_point() else torch.get_default_dtype()
        return value.detach(), TorchForm(value.device, floating)
    if _is_frame(value):
        array = _frame(value, name)
        return torch.from_numpy(array), PandasForm(value.index, array.dtype)
    array = _array(value, name)
    # torch takes no foreign byte order, negative stride or long double, and warns of read-only
    narrow = array.dtype in (np.dtype(np.float16), np.dtype(np.float32))
    native = np.array(array, dtype=array.dtype if narrow else np.float64, order="C")
    form = NumpyForm(array.dtype if array.dtype.kind == "f" else np.dtype(np.float64))
    return torch.from_numpy(native), form


def _frame(frame: Any, name: str) -> np.ndarray:
    if frame.size == 0:
        return np.zeros(frame.shape)
    dtypes = list(frame.dtypes) if frame.ndim == 2 else [frame.dtype]
    for i, dtype in enumerate(dtypes):
        if dtype.kind not in "biuf":
            label = frame.columns[i] if frame.ndim == 2 else frame.name
            first = frame.iloc[0, i] if frame.ndim == 2 else frame.iloc[0]
            raise TypeError(
                f"{name} needs columns of real numbers, but column {label!r} has dtype {dtype} "
                f"and begins with {first!r}. Encode it as numbers or drop it."
            )
    narrow = all(str(dtype) == "float32" for dtype in dtypes)
    array: np.ndarray = frame.to_numpy(
        dtype=np.float32 if narrow else np.float64, na_value=np.nan, copy=True
    )
    return array


def _array(value: Any, name: str) -> np.ndarray:
    if value is None:
        raise TypeError(f"{name} needs an array, but got None. Did a function forget to return?")
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan)
    try:
        array = np.asarray(value)
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} needs one array, or rows of equal length, but numpy cannot read this "
            f"{type(value).__name__} as such ({error}). Make all rows alike."
        ) from error
    if array.dtype.kind in "biuf":
        return array
    if array.ndim == 0 or array.dtype.kind not in "OUS":
        what = type(value).__name__ if array.ndim == 0 else f"dtype {array.dtype}"
        raise TypeError(
            f"{name} needs an array of real numbers, but got {what}. Turn it into columns of "
            f"numbers first."
        )
    for at, item in np.ndenumerate(np.asarray(value, dtype=object)):
        if not isinstance(item, Real):
            raise TypeError(
                f"{name} needs numbers everywhere, but {_place(value, at)} holds {item!r}. "
                f"Encode it as a number or drop it."
            )
    raise TypeError(
        f"{name} needs an array of numbers, but got dtype object. Convert it with .astype(float)."
    )


def _place(value: Any, at: tuple[int, ...]) -> str:
    row = f"row {at[0]}"
    if _is_frame(value):
        row += f" (index {value.index[at[0]]})"
    if len(at) == 1:
        return row
    if len(at) > 2:
        return f"{row}, position {at[1:]}"
    column = value.columns[at[1]] if _is_frame(value) else at[1]
    return f"{row}, column {column!r}"


def _is_frame(value: Any) -> bool:
    names = {k.__name__ for k in type(value).__mro__ if k.__module__.split(".")[0] == "pandas"}
    return not names.isdisjoint({"DataFrame", "Series"})


def _numpy(result: Tensor, dtype: np.dtype[Any]) -> np.ndarray:
    # through double: numpy has no bfloat16
    array: np.ndarray = result.detach().cpu().double().numpy().astype(dtype)
    return array
