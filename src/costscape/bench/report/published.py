"""The regrets that the DF2 paper printed, by our names of problems and methods.

Source: "DF2: Distribution-Free Decision-Focused Learning", UAI 2025, the table "Decision regret
of each method" (mean and standard deviation). Its synthetic results are a figure without numbers.
Those of the problem scheduling are in ``published_scheduling``.
"""

from costscape.bench.report import published_scheduling as scheduling

TABLE = (
    '"DF2: Distribution-Free Decision-Focused Learning", UAI 2025, table "Decision regret of '
    'each method"'
)

PROBLEMS = ("wind", "inventory", "vaccine")
PLACES = {
    "wind": 2,
    "inventory": 2,
    "vaccine": 0,
    scheduling.PROBLEM: 2,
}  # decimals of the printed means

# a row of the paper's table: wind, inventory, vaccine, each as mean, sd
REGRETS: dict[str, tuple[float, float, float, float, float, float]] = {
    "policy-net": (489.01, 12.39, 3.96, 0.28, 604.0, 12.30),
    "two-stage-pe": (518.19, 14.84, 3.97, 0.15, 573.0, 10.26),
    "two-stage-gmm1": (69.36, 4.33, 3.32, 0.10, 538.0, 9.30),
    "two-stage-gmm3": (69.89, 1.50, 3.27, 0.08, 534.0, 8.40),
    "two-stage-gmm10": (70.51, 2.29, 3.29, 0.05, 533.0, 7.95),
    "two-stage-gmm500": (66.84, 1.43, 3.24, 0.07, 524.0, 7.95),
    "two-stage-gmm1000": (65.83, 1.70, 3.27, 0.05, 527.0, 7.65),
    "so-ebm-gmm1": (67.32, 1.97, 3.37, 0.02, 512.0, 8.55),
    "so-ebm-gmm10": (66.93, 2.45, 3.26, 0.03, 513.0, 7.95),
    "so-ebm-gmm500": (67.02, 2.16, 3.37, 0.05, 513.0, 8.70),
    "so-ebm-gmm1000": (66.40, 2.23, 3.21, 0.07, 516.0, 9.45),
    "dfl-pe": (69.46, 1.21, 3.35, 0.03, 519.0, 7.37),
    "dfl-gmm1": (66.85, 1.47, 3.36, 0.02, 515.0, 8.25),
    "dfl-gmm3": (66.60, 3.23, 3.36, 0.05, 513.0, 7.05),
    "dfl-gmm10": (66.45, 2.32, 3.31, 0.01, 513.0, 7.65),
    "dfl-gmm500": (65.06, 0.88, 3.24, 0.09, 507.0, 6.60),
    "dfl-gmm1000": (64.65, 3.70, 3.21, 0.07, 513.0, 7.35),
    "lodl-pe": (67.92, 1.49, 3.36, 0.06, 512.0, 7.01),
    "lodl-gmm1": (66.87, 1.36, 3.34, 0.01, 508.0, 6.23),
    "lodl-gmm3": (65.75, 1.86, 3.31, 0.06, 506.0, 6.84),
    "lodl-gmm10": (65.29, 1.23, 3.26, 0.02, 504.0, 6.38),
    "lodl-gmm500": (64.24, 1.45, 3.22, 0.05, 502.0, 7.02),
    "lodl-gmm1000": (64.13, 2.47, 3.24, 0.04, 503.0, 7.01),
    "df2-paper": (60.90, 0.60, 3.09, 0.09, 492.0, 7.05),
    "df2": (60.90, 0.60, 3.09, 0.09, 492.0, 7.05),
}

NOTES = {
    "wind": "On wind it is in our units.",
    "inventory": "For inventory the paper names neither product nor scale: its numbers are not "
    "in our units, only their order can be compared.",
    "vaccine": "For vaccine the paper does not give the state of the epidemic: its numbers are "
    "not in our units, only their order can be compared.",
}


def published(problem: str, method: str) -> tuple[float, float | None] | None:
    """The paper's mean regret and its sd; None where it has no such number.

    Its one DF2 stands beside both ``df2-paper``, the same setting, and ``df2``, our defaults.

    >>> published("wind", "two-stage-gmm3")
    (69.89, 1.5)
    """
    if problem == scheduling.PROBLEM:
        return scheduling.COSTS.get(method)
    if problem not in PROBLEMS or method not in REGRETS:
        return None
    at = 2 * PROBLEMS.index(problem)
    return REGRETS[method][at], REGRETS[method][at + 1]


def printed(problem: str, method: str) -> str:
    """The same as the paper prints it; empty where it has no such number.

    >>> printed("vaccine", "df2"), printed("wind", "df2"), printed("wind", "cme")
    ('492 (7.05)', '60.90 (0.60)', '')
    """
    known = published(problem, method)
    return f"{known[0]:.{PLACES[problem]}f} ({known[1]:.2f})" if known else ""


def caption(problem: str) -> str | None:
    """What a reader must know of the paper's numbers on a problem; None where it has none."""
    if problem == scheduling.PROBLEM:
        return scheduling.CAPTION
    if problem not in PROBLEMS:
        return None
    return f"Paper: {TABLE}; regret, mean (sd), 100 draws for mixtures. {NOTES[problem]}"
