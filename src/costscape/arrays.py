"""Arrays and frames in, results of the same kind out.

    x, form = read(X, "X")             # a tensor, and the kind of X
    ...
    return form.give(a, columns)       # numpy, torch or pandas, as X was

pandas is imported only for a frame, whose owner has imported it already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.frame_index import as_numpy, check_agree, check_order, is_plain

LISTED = 12  # columns that an error names at most


@dataclass(frozen=True, eq=False)
class Form:
    """The kind of a value, so that results are returned as the same kind.

    Args:
        dtype: floating dtype of the value, numpy's or torch's. Integers come back as float64,
            or as torch's default dtype.
        device: of a tensor; None for numpy and pandas.
        index: of a frame or series; None for numpy and torch.
    """

    dtype: Any
    device: torch.device | None = None
    index: Any = None

    def give(self, result: Float[Tensor, "n ..."], columns: Sequence[Any] | None = None) -> Any:
        """The result as numpy, torch or pandas; ``columns`` are the names of a frame.

        Its precision is that of the rows or of the result, whichever is finer: decisions that are
        rounded to fewer digits leave their set.
        """
        if self.device is not None:
            fine = torch.promote_types(self.dtype, result.dtype)
            return result.detach().to(self.device, fine)
        whole = result.detach().cpu().double().numpy()  # no bfloat16 in numpy
        own = np.dtype(f"f{max(4, result.element_size())}")
        array = whole.astype(np.promote_types(self.dtype, own))
        if self.index is None:
            return array
        import pandas as pd

        if array.ndim > 2:
            raise ValueError(
                f"A frame has two axes, but the result has shape {array.shape}. Pass an array, "
                f"frame.to_numpy(), to receive one."
            )
        if array.ndim == 1:
            return pd.Series(array, self.index, name=columns[0] if columns else None)
        return pd.DataFrame(array, self.index, None if columns is None else list(columns))


def read(
    value: Any, name: str, dtype: torch.dtype | None = None
) -> tuple[Float[Tensor, "n ..."], Form]:
    """A copy of ``value`` (n, ...) as a tensor of finite numbers, and its form.

    Args:
        value: a numpy array, a tensor, a DataFrame or Series of numbers, or nested lists.
        name: what errors call the value. They count rows and columns from 0.
        dtype: of the tensor; None for torch's default dtype. The device is that of a tensor, or
            the CPU.

    >>> x, form = read(np.array([[1, 2], [3, 4]]), "X")
    >>> x
    tensor([[1., 2.],
            [3., 4.]])
    >>> form.give(x.sum(-1))
    array([3., 7.])
    """
    source, form = _open(value, name)
    if source.ndim == 0 or 0 in source.shape:
        got = f"shape {tuple(source.shape)}" if source.ndim else f"the single number {source}"
        raise ValueError(
            f"{name} needs at least one row and one column, but got {got}. Give one row for each "
            f"example."
        )
    dtype = dtype or torch.get_default_dtype()
    # a frame's numbers lie column by column, and sums in another order end in other bits
    tensor = source.to(dtype=dtype, copy=True, memory_format=torch.contiguous_format)
    if not tensor.isfinite().all():
        bad = (~tensor.isfinite()).nonzero()
        at = tuple(bad[0].tolist())
        raise ValueError(
            f"{name} needs numbers that are finite in {str(dtype).removeprefix('torch.')}, but "
            f"{_place(value, at)} holds {source[at].item()} ({len(bad)} such). "
            f"Fill values that are NaN or infinite, or drop their rows."
        )
    if len(source) > 1 and source.dtype != dtype:
        n = len(source)
        _check_precision(source.reshape(n, -1), tensor.reshape(n, -1), name)
    return tensor, form


def _check_precision(source: Tensor, tensor: Tensor, name: str) -> None:
    """Raise ValueError where numbers of a column that differ are equal as the method sees them."""
    low, high = tensor.amin(0), tensor.amax(0)
    close = high - low < 1e-4 * torch.maximum(low.abs(), high.abs())
    for i in close.nonzero()[:, 0].tolist():
        came, left = (len(part[:, i].unique()) for part in (source, tensor))
        if 2 * left < came:
            raise ValueError(
                f"{name} needs columns whose numbers differ in "
                f"{str(tensor.dtype).removeprefix('torch.')}, but of {came} different numbers "
                f"near {source[0, i].item():g} in column {i} only {left} remain. Subtract their "
                f"mean, or use task.double()."
            )


def read_pairs(
    X: Any, Y: Any, dtype: torch.dtype, of: str = ""
) -> tuple[Float[Tensor, "n ..."], Float[Tensor, "n ..."]]:
    """X and Y as tensors with as many rows, whose labels do not contradict each other.

    Frames are paired by position, so their labels must be equal, row by row. The labels 0, 1, ...,
    n - 1, in this order, are those of a frame without labels, and go with any others.
    """
    (x, _), (y, _) = read(X, f"X{of}", dtype), read(Y, f"Y{of}", dtype)
    if len(x) != len(y):
        raise ValueError(
            f"X{of} and Y{of} need the same number of rows, but have {len(x)} and {len(y)}. "
            f"Each row of X goes with the outcome that followed it."
        )
    if _is_frame(X) and _is_frame(Y):
        check_agree(X.index, Y.index, of)
    return x, y


def check_time_order(value: Any, name: str) -> None:
    """Raise ValueError where a frame has dates as (first) labels that go back in time."""
    if _is_frame(value):
        check_order(value.index.get_level_values(0), name)


def columns_of(value: Any) -> list[Any] | None:
    """The names of the columns of a frame or of a named Series; None for everything else.

    Besides pandas, any table with ``columns``, such as one of polars, has names.
    """
    if _is_frame(value) and value.ndim == 1:
        return None if value.name is None else [value.name]
    columns = getattr(value, "columns", None)
    return None if columns is None else list(columns)


def labels_of(X: Any, Y: Any) -> np.ndarray | None:
    """The labels of the rows of X, or else of Y, as dates, integers or texts of numpy.

    None where both have none, or have 0, 1, 2, ... as frames without labels have. Dates lose
    their time zone, periods become their first moment, line breaks in texts become spaces.
    """
    frames = [value.index for value in (X, Y) if _is_frame(value)]
    index = next((index for index in frames if not is_plain(index)), None)
    return None if index is None else as_numpy(index)


def names_of(value: Any) -> tuple[str, ...] | None:
    """The columns as texts; None where there are none, or where they are 0, 1, 2, ..."""
    columns = columns_of(value)
    if columns is None or columns == list(range(len(columns))):
        return None
    return tuple(map(str, columns))


def check_names(value: Any, name: str, needed: Sequence[str] | None) -> None:
    """Raise ValueError where a table has other columns than ``needed``, or another order.

    Values without names pass: only their number of columns can be checked.
    """
    names = names_of(value)
    if needed is None or names is None or names == tuple(needed):
        return
    if len(value.shape) == 1 and len(needed) > 1:
        return  # one row as a Series, whose name is a label: its shape is refused elsewhere
    missing = [c for c in needed if c not in names]
    unknown = [c for c in names if c not in needed]
    if not missing and not unknown:
        raise ValueError(
            f"{name} needs its columns in the order of fit, {_listed(needed)}, but has the order "
            f"{_listed(names)}. Write {name[0]} = {name[0]}[[{_listed(needed)}]]."
        )
    came = [f"lacks {_listed(missing)}"] * bool(missing)
    came += [f"has {_listed(unknown)}, which fit did not have"] * bool(unknown)
    raise ValueError(
        f"{name} needs the columns of fit, {_listed(needed)}, but {' and '.join(came)}. Add, "
        f"rename or drop columns."
    )


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(repr(name) for name in names[:LISTED])
    return some if len(names) <= LISTED else f"{some}, ... ({len(names)} in all)"


def _open(value: Any, name: str) -> tuple[Tensor, Form]:
    """The value as a tensor of its own precision, not yet checked."""
    if isinstance(value, Tensor):
        if value.is_complex() or value.layout != torch.strided:
            raise TypeError(
                f"{name} needs a dense tensor of real numbers, but got dtype {value.dtype} and "
                f"layout {value.layout}. Pass value.to_dense(), or its real and imaginary parts."
            )
        floating = value.dtype if value.is_floating_point() else torch.get_default_dtype()
        return value.detach(), Form(floating, device=value.device)
    if _is_frame(value):
        array = _of_frame(value, name)
        return torch.from_numpy(array), Form(array.dtype, index=value.index)
    array = _of_array(value, name)
    # torch takes no foreign byte order, negative stride or long double, and warns of read-only
    narrow = array.dtype in (np.dtype(np.float16), np.dtype(np.float32))
    native = np.array(array, dtype=array.dtype if narrow else np.float64, order="C")
    return torch.from_numpy(native), Form(
        array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
    )


def _of_frame(value: Any, name: str) -> np.ndarray:
    frame = value if value.ndim == 2 else value.to_frame(value.name)
    for i, dtype in enumerate(frame.dtypes if len(frame) else ()):
        if dtype.kind not in "biuf":
            raise TypeError(
                f"{name} needs columns of real numbers, but column {frame.columns[i]!r} has dtype "
                f"{dtype} and begins with {frame.iloc[0, i]!r}. Encode it as numbers or drop it."
            )
    narrow = all(str(dtype) == "float32" for dtype in frame.dtypes)
    array: np.ndarray = frame.to_numpy(
        dtype=np.float32 if narrow else np.float64, na_value=np.nan, copy=True
    )
    return array.reshape(value.shape)


def _of_array(value: Any, name: str) -> np.ndarray:
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
    if hasattr(value, "toarray"):  # numpy holds a sparse matrix of scipy as one object
        raise TypeError(
            f"{name} needs a dense array, but got a sparse {type(value).__name__}. Pass "
            f"{name.split()[0]}.toarray()."
        )
    problem = f"got {type(value).__name__} of dtype {array.dtype}"
    if array.ndim and array.dtype.kind in "OUS":
        for at, item in np.ndenumerate(np.asarray(value, dtype=object)):
            if not isinstance(item, Real):
                problem = f"{_place(value, at)} holds {item!r}"
                break
    raise TypeError(
        f"{name} needs an array of real numbers, but {problem}. Encode it as numbers, for example "
        f"with .astype(float), or drop it."
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
