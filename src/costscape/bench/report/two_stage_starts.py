"""Methods that begin at a fitted two-stage forecast, and whether they have left it."""

from costscape.bench.report.read_rows import Row

START = "= two-stage"  # in place of the number of a method that is its start in every run
SECOND_STAGES = ("dfl-", "so-ebm-", "lodl-")  # each followed by its forecast
# start from two-stage-pe
OF_POINTS = (
    *("egl", "egl-directed", "lodl-directed"),
    *("lancer", "lancer-unsigned", "taskmet"),
)
# The relative difference of the problem's measure, up to which decisions are those of the start.
# Rows of earlier versions do not record whether a run ended at its start, and a start fitted again
# on a GPU has other digits. The standard error is 2 % in the median run, so a tenth of it is no
# result. A share of the cost would not do where most of the cost is unavoidable.
SAME = 0.002


def start_of(method: str) -> str | None:
    """The two-stage method from which a method starts, with the same additions.

    >>> start_of("so-ebm-gmm3"), start_of("dfl-pe+crossfit"), start_of("egl"), start_of("df2")
    ('two-stage-gmm3', 'two-stage-pe+crossfit', 'two-stage-pe', None)
    """
    name, *added = method.split("+")
    if name in OF_POINTS:
        return "+".join(["two-stage-pe", *added])
    for stage in SECOND_STAGES:
        if name.startswith(stage):
            return "+".join(["two-stage-" + name.removeprefix(stage), *added])
    return None


def is_unchanged(row: Row, start: Row | None, measure: str) -> bool | None:
    """Whether the second stage of a run changed nothing; None where that is not known.

    ``row["chosen"]`` has the epoch of the second stage, 0 for its start, of one fit or of each fit
    of a cross-fitted method. ``start`` is the two-stage run with the same seed, if there is one.
    """
    if start_of(row["method"]) is None:
        return None
    chosen = row.get("chosen", {})
    epochs = [fit.get("epoch") for fit in chosen.get("fits", [chosen])]
    if epochs and all(epoch == 0 for epoch in epochs):
        return True
    if start is not None and None not in (row[measure], start[measure]):
        return bool(abs(row[measure] - start[measure]) <= SAME * abs(start[measure]))
    return None if not epochs or None in epochs else False
