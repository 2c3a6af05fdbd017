"""Numbers as a reader wants them: four significant digits, sd to the decimals of its mean."""

import math

PLAIN = (1e-4, 1e9)  # outside of it: powers of ten


def decimals(value: float, digits: int = 4) -> int:
    """Decimals that show ``digits`` significant digits of a number.

    >>> [decimals(v) for v in (60.9, 9.99996, 0.0086, 16600.0)]
    [2, 2, 6, 0]
    """
    if value == 0 or not math.isfinite(value):
        return 0
    return max(0, digits - 1 - int(f"{value:.{digits - 1}e}".split("e")[1]))


def number(value: float, digits: int = 4) -> str:
    """
    >>> [number(v) for v in (60.9, 0.00863739, 16600.4, 0.0, 1.236e-7)]
    ['60.90', '0.008637', '16,600', '0', '1.236e-07']
    """
    if not math.isfinite(value):
        return str(value)
    if value and not PLAIN[0] <= abs(value) < PLAIN[1]:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{decimals(value, digits)}f}"


def mean_sd(mean: float, sd: float | None) -> str:
    """
    >>> mean_sd(60.73, 0.6249), mean_sd(4.7586, 0.00012), mean_sd(60.73, None)
    ('60.73 (0.62)', '4.759 (0.00012)', '60.73')
    """
    if sd is None:
        return number(mean)
    places = decimals(mean)
    if PLAIN[0] <= abs(mean) < PLAIN[1] and (sd == 0 or f"{sd:.{places}f}".strip("0.")):
        return f"{number(mean)} ({sd:,.{places}f})"
    return f"{number(mean)} ({number(sd, 2)})"


def interval(mean: float, low: float | None, high: float | None) -> str:
    """A signed difference with its interval, three digits of the largest of them.

    >>> interval(-3.104, -4.0211, -2.187), interval(0.5, None, None)
    ('-3.10 [-4.02, -2.19]', '+0.500')
    """
    if low is None or high is None:
        return f"{'+' * (mean > 0)}{number(mean, 3)}"
    largest = max(abs(low), abs(high))
    if largest and not PLAIN[0] <= largest < PLAIN[1]:
        return f"{mean:+.2e} [{low:+.2e}, {high:+.2e}]"
    places = decimals(largest, 3)
    mean, low, high = (round(v, places) + 0.0 for v in (mean, low, high))  # no -0.00
    return f"{mean:+,.{places}f} [{low:+,.{places}f}, {high:+,.{places}f}]"


def seconds(value: float | None) -> str:
    """
    >>> [seconds(v) for v in (478.7, 12.34, 0.9357, 0.00004, None)]
    ['479', '12.3', '0.936', '<0.001', '']
    """
    if value is None:
        return ""
    if value < 0.001:
        return "<0.001"
    return f"{value:,.{min(decimals(value, 3), 3)}f}"
