"""An explanation of a decision as JSON."""

from typing import Any

import numpy as np

from costscape.methods.explanation import Explanation

PAST = 20  # of the heaviest past rows
SCENARIOS = 300  # of the heaviest scenarios
LEVELS = (0.1, 0.5, 0.9)  # of the cost of the decision


def to_json(why: Explanation) -> dict[str, Any]:
    """The tables of an explanation; numbers that are not known are null."""
    past, curves, steps, inputs = why.past, why.curves, why.deviations, why.inputs
    rows = zip(past.names()[:PAST], past.weights, past.outcomes, strict=False)
    return {
        "decision": why.decision.tolist(),
        "names": [str(name) for name in why.names],
        "expected_cost": why.expected_cost,
        "scenarios": why.scenarios,
        "effective_scenarios": why.effective_scenarios,
        "past_rows": [
            {"label": label, "weight": float(weight), "outcome": _known(outcome)}
            for label, weight, outcome in rows
        ],
        "deviations": [
            {
                "name": str(name),
                "step": float(steps.step[i]),
                "up": float(steps.up[i]),
                "down": float(steps.down[i]),
                "up_feasible": bool(steps.up_feasible[i]),
                "down_feasible": bool(steps.down_feasible[i]),
            }
            for i, name in enumerate(steps.names)
        ],
        "inputs": [
            {
                "name": str(inputs.names[j]),
                "price": float(inputs.price[j]),
                "change": _known(inputs.change[j]),
            }
            for j in inputs.order()
        ],
        "curves": [
            {
                "name": str(name),
                "actions": _known(curves.actions[i]),
                "costs": _known(curves.costs[i]),
                "feasible": curves.feasible[i].tolist(),
            }
            for i, name in enumerate(curves.names)
        ],
    }


def outcomes(model: Any, rows: np.ndarray, decision: np.ndarray) -> dict[str, Any]:
    """The heaviest scenarios at a single row, and quantiles of the cost of the decision."""
    s = model.scenarios(rows)
    weights, values = s.weights[0].double().numpy(), s.values[0].flatten(1).double().numpy()
    heaviest = np.argsort(-weights, kind="stable")[:SCENARIOS]
    names = model.columns_ or ()
    given = len(names) == values.shape[1]
    quantiles = np.asarray(model.cost_quantiles(rows, decision[None], LEVELS))[0]
    return {
        "outcomes": {
            "names": list(names) if given else [str(i) for i in range(values.shape[1])],
            "weights": weights[heaviest].tolist(),
            "values": values[heaviest].tolist(),
        },
        "cost_quantiles": {f"{u:g}": float(q) for u, q in zip(LEVELS, quantiles, strict=True)},
    }


def _known(values: np.ndarray) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in np.ravel(values)]
