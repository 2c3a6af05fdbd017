"""What the kernels of the epidemic share.

Triton is imported with this file and comes with torch's builds for CUDA. Without it the kernels
are plain functions, which tests run with a stand-in for ``tl``.
"""

# ruff: noqa: ANN001, ANN201
from types import SimpleNamespace
from typing import Any, no_type_check

__all__ = ["compiled", "move", "tl"]

try:
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton, tl = None, SimpleNamespace(constexpr=Any)


def compiled(f: Any) -> Any:
    """One kernel for all lengths and addresses: a second one cannot be compiled in a recording."""
    if triton is None:
        return f
    # triton would compile anew for lengths of 1 and for addresses that 16 divides
    named = [name for name in f.__code__.co_varnames[: f.__code__.co_argcount] if name.islower()]
    return triton.jit(f, do_not_specialize=named, do_not_specialize_on_alignment=named)


@compiled
@no_type_check
def move(x, flow):
    """x @ flow"""
    return tl.sum(x[:, None] * flow, 0)
