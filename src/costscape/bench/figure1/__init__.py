"""Figure 1 of the paper as numbers: three errors of learning through a forecast.

    mismatch   the gap of decisions for a law of the wrong kind        (model_mismatch)
    sampling   the variance of DFL's gradient with M draws             (gradient_variance)
    local      the minimum while outcomes move, and that of a local quadratic   (local_quadratic)

Kong et al., UAI 2025, section 2.2. The law of y given x is known on the synthetic problems, so
each error is computed without the other two.
"""

from costscape.bench.figure1.panels import (
    QUICK,
    Size,
    bottlenecks,
    read_bottlenecks,
    write_bottlenecks,
)

__all__ = ["QUICK", "Size", "bottlenecks", "read_bottlenecks", "write_bottlenecks"]
