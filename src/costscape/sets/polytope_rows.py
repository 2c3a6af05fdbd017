"""The rows A a = b and G a <= h as they come from a user."""

from torch import Tensor

from costscape.sets.validation import Numbers, as_tensors, as_vector, check_finite


def read_rows(
    A: Numbers | None, b: Numbers | None, G: Numbers | None, h: Numbers | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four as tensors of one dtype, with no rows where none were given."""
    _check_pair("A", A, "b", b)
    _check_pair("G", G, "h", h)
    if A is None and G is None:
        raise ValueError(
            "Polytope needs constraints, but got none. Give A and b (A a = b), G and h "
            "(G a <= h), or both."
        )
    given = {k: v for k, v in {"A": A, "b": b, "G": G, "h": h}.items() if v is not None}
    read = dict(zip(given, as_tensors("Polytope", **given), strict=True))
    matrices = [v for k, v in read.items() if k in "AG"]
    if any(m.ndim != 2 or 0 in m.shape or m.shape[1] != matrices[0].shape[-1] for m in matrices):
        shapes = " and ".join(
            f"{k} of shape {tuple(v.shape)}" for k, v in read.items() if k in "AG"
        )
        raise ValueError(
            f"Polytope needs matrices with at least one row and one column for each coordinate "
            f"of an action, but got {shapes}. A single row is written [[1.0, 1.0]]."
        )
    none = matrices[0].new_zeros(0, matrices[0].shape[1])
    pairs = []
    for left, right in ("Ab", "Gh"):
        rows = read.get(left, none)
        values = read.get(right, none[:, 0])
        pairs += [rows, as_vector("Polytope", right, values, len(rows))]
        _check_rows(left, rows, right, pairs[-1])
    A_, b_, G_, h_ = pairs
    return A_, b_, G_, h_


def _check_pair(left: str, rows: Numbers | None, right: str, values: Numbers | None) -> None:
    if (rows is None) == (values is None):
        return
    have, lack = (left, right) if values is None else (right, left)
    raise ValueError(
        f"Polytope needs {left} and {right} together, but got {have} without {lack}. Each row of "
        f"{left} has its right-hand side in {right}."
    )


def _check_rows(left: str, rows: Tensor, right: str, values: Tensor) -> None:
    check_finite("Polytope", left, rows, "Give every coefficient a number, 0 where it has none.")
    check_finite("Polytope", right, values, "Drop the rows that do not bind.")
    if len(bad := (rows == 0).all(1).nonzero()):
        raise ValueError(
            f"Polytope needs rows that constrain something, but row {int(bad[0])} of {left} is "
            f"all zeros ({len(bad)} such). Drop it."
        )
