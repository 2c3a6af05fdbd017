"""Hypothesis strategies: feasible sets, costs and pairs of rows, in any unit."""

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import costscape as cs

UNITS = (1e-6, 1.0, 1e6)


def _polytope(dim, unit, slope):
    """A box cut by one row through its upper half."""
    eye = np.eye(dim)
    G = np.vstack([eye, -eye, slope * np.ones((1, dim))])
    return cs.Polytope(G=G, h=unit * np.append(np.repeat([1.0, 0.0], dim), 0.7 * slope * dim))


@st.composite
def sets(draw, most=4):
    """A Box, Simplex, Budget, Polytope, Finite list or Whole set of 1 to ``most`` coordinates."""
    dim, unit = draw(st.integers(1, most)), draw(st.sampled_from(UNITS))
    size = unit * draw(st.floats(0.5, 2.0, width=32))
    kinds = {
        "box": lambda: cs.Box(-size, 2 * size, dim=dim),
        "point": lambda: cs.Box(size, size, dim=dim),
        "simplex": lambda: cs.Simplex(total=size, dim=dim),
        "budget": lambda: cs.Budget(total=size, dim=dim),
        "capped": lambda: cs.Budget(total=size, dim=dim, upper=0.6 * size),
        "polytope": lambda: _polytope(dim, unit, draw(st.sampled_from((0.1, 1.0, 10.0)))),
        "finite": lambda: cs.Finite(size * np.vstack([np.eye(dim), -np.eye(dim)])),
        "whole": lambda: cs.Box(0.0, 3 * size, dim=dim, step=size),
    }
    return kinds[draw(st.sampled_from(sorted(kinds)))]()


@st.composite
def costs(draw):
    """Terms f_i(y, a_i) by coordinate, smooth or with kinks, jumps or waves, in any unit."""
    money = draw(st.sampled_from(UNITS))
    return draw(
        st.sampled_from(
            [
                lambda y, a: money * (y - a) ** 2,
                lambda y, a: money * (3 * (y - a).relu() + (a - y).relu()),
                lambda y, a: money * y * a,
                lambda y, a: money * ((y - a).abs() + (a > y).to(a.dtype)),
                lambda y, a: money * torch.sin(a - y),
            ]
        )
    )


@st.composite
def pairs(draw, outcomes=1):
    """X (n, k) and Y (n, outcomes) of finite numbers, with columns that may be constant."""
    n, k = draw(st.integers(8, 30)), draw(st.integers(1, 4))
    numbers = st.floats(-100, 100, width=32)
    x = draw(hnp.arrays(np.float32, (n, k), elements=numbers))
    return x, draw(hnp.arrays(np.float32, (n, outcomes), elements=numbers))
