"""Past days of a model: the kept training rows, by label, and what happened."""

from typing import Any

import numpy as np

from costscape.methods.explanation_tables import label_texts
from costscape.serve.refused import Refused
from costscape.serve.served_model import ServedModel


def past_labels(served: ServedModel) -> list[str]:
    """The label of each kept row; Refused where the model file has none."""
    kept = served.model.rows_
    if kept is None:
        raise Refused(
            422,
            "Past days need training rows, but the model file has none. Save the model with "
            "rows=True, or move the inputs.",
        )
    return label_texts(kept.names(kept.positions.numpy()))


def past_day(served: ServedModel, day: str) -> dict[str, Any]:
    """A row of X as a request takes it, and its outcome; ``day`` is its position as text."""
    labels = past_labels(served)
    if not (day.isascii() and day.isdigit() and len(day) < 10 and int(day) < len(labels)):
        raise Refused(422, f"day needs a position from 0 to {len(labels) - 1}. /past lists them.")
    i, kept, names = int(day), served.model.rows_, served.model.columns_
    outcome = _numbers(kept.y[i].numpy().ravel())
    columns = served.row_shape.columns
    row = _numbers(kept.x[i].numpy())
    return {
        "day": i,
        "label": labels[i],
        "row": dict(zip(columns, row, strict=True)) if columns else row,
        "outcome": outcome,
        "outcome_names": list(names)
        if names and len(names) == len(outcome)
        else [str(j) for j in range(len(outcome))],
    }


def _numbers(values: np.ndarray) -> Any:
    """Nested lists of the shortest decimal numbers that single precision reads as the same."""
    return np.array([float(str(v)) for v in values.ravel()]).reshape(values.shape).tolist()
