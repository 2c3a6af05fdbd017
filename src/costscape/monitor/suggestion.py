"""Whether an update would help: the present and an updated model on the last logged outcomes.

The updated model learns from the logged rows before them, so neither model has seen the outcomes
on which they are compared.
"""

from copy import deepcopy
from typing import Any

import numpy as np

from costscape.methods.update_result import Update
from costscape.monitor.record_arrays import LoggedRows

HELD_OUT = 1 / 3  # of the rows with an outcome, the latest
MOST = 2000  # rows with an outcome that are used, the latest


def outcome_pairs(model: Any, rows: LoggedRows) -> tuple[Any, Any]:
    """X and Y of the logged rows with an outcome, as ``model.update`` takes them.

    Args:
        model: the fitted method.
        rows: of this model.
    """
    some = rows.of(rows.has_y)
    x, y = some.x.reshape(-1, *model.x_shape_), some.y.reshape(-1, *model.y_shape_)
    if not (model.x_columns_ and model.columns_):
        return x, y
    import pandas as pd

    return pd.DataFrame(x, columns=list(model.x_columns_)), pd.DataFrame(y, columns=rows.y_names)


def suggest_update(model: Any, rows: LoggedRows, fewest: int) -> str:
    """A sentence: what an update gains on the last outcomes, or why that is not known.

    Args:
        model: the fitted method. It stays as it is.
        rows: of this model.
        fewest: rows that both parts need.
    """
    known = np.flatnonzero(rows.has_y)[-MOST:]
    held = int(len(known) * HELD_OUT)
    if held < fewest:
        return (
            f"There are not enough outcomes to judge an update: {len(known)}, and "
            f"{round(fewest / HELD_OUT)} are needed."
        )
    cut = len(known) - held
    X, Y = outcome_pairs(model, rows.of(known[:cut]))
    val = outcome_pairs(model, rows.of(known[cut:]))
    try:
        made: Update = deepcopy(model).update(X, Y, val=val)
    except (TypeError, RuntimeError, ValueError) as error:
        return f"An update cannot be judged: {error}"
    if not made.comparisons:
        return made.reason
    (found,) = made.comparisons
    d = found.difference
    how = (
        f"on the last {found.rows} outcomes the present model costs {found.old_cost:.4g} and a "
        f"model updated on the {cut} before costs {found.new_cost:.4g}, a change of "
        f"{100 * found.change:+.1f} % (95 % interval of the difference {d.low:.3g} to "
        f"{d.high:.3g})"
    )
    if d.high < 0:
        return f"Update the model: {how}."
    return f"An update shows no clear gain: {how}. If costs stay high, fit again."
