"""What happens to a model, for metrics and log: flagged rows, and versions that were loaded."""

from typing import Any

from costscape.serve.logs import log
from costscape.serve.metrics import Metrics
from costscape.serve.refused import Refused


def count_rows(
    metrics: Metrics,
    name: str,
    rows: int,
    flags: dict[int, list[str]],
    facts: dict[str, Any],
    strict: bool,
) -> None:
    """Count the rows of a model and those of them that are flagged; Refused for these if strict.

    Args:
        metrics: Metrics. Counts them.
        name: str. The name of the model.
        rows: int. How many rows were asked for.
        flags: dict. The columns that are far out of range, by the position of the row.
        facts: dict. What the log says of the request; gets the number of flagged rows.
        strict: bool. Whether flagged rows are refused.
    """
    facts["flagged"] = len(flags)
    metrics.rows.labels(name).inc(rows)
    metrics.flagged.labels(name).inc(len(flags))
    if flags and strict:
        row, columns = next(iter(flags.items()))
        raise Refused(
            422,
            f"{len(flags)} of {rows} rows are far outside the range of the training rows, "
            f"first row {row} in {', '.join(columns[:8])}.",
        )


def report_reload(metrics: Metrics, name: str, served: Any, error: str | None) -> None:
    """Count and log an attempt to load another version; ``served`` is the one that serves now."""
    metrics.reloads.labels(name, "refused" if error else "loaded").inc()
    metrics.serve(served)
    log("reload", model=name, version=served.version, refused=error)
