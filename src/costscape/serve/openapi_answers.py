"""The answers of each path in the OpenAPI document: what 200 holds, and the other statuses."""

from typing import Any

NUMBER, TEXT, COUNT = {"type": "number"}, {"type": "string"}, {"type": "integer", "minimum": 0}
FLAG = {"type": "boolean"}
MAYBE = {"anyOf": [NUMBER, {"type": "null"}]}  # null: not known, or not finite


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(needed: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(needed),
        "properties": {**needed, **(more or {})},
        "additionalProperties": False,
    }


HEAD = {"model": TEXT, "version": TEXT, "request_id": TEXT}
FLAGS = _list(_object({"row": COUNT, "columns": _list(TEXT)}))
COLUMN = _object(
    {"name": TEXT, "low": NUMBER, "high": NUMBER, "unit": {"anyOf": [TEXT, {"type": "null"}]}}
)
STATE = _object({"status": TEXT})
REFUSED = _object({"error": TEXT, "request_id": TEXT})
DECISIONS = _object(
    {
        **HEAD,
        "names": _list(TEXT),
        "decisions": _list({"anyOf": [NUMBER, _list(NUMBER)]}),
        "flags": FLAGS,
        "notes": _list(TEXT),
    },
    {
        "expected_cost": _list(NUMBER),
        "risk": _list(NUMBER),
        "quantiles": _list(_list(NUMBER)),
        "ids": _list(TEXT),
    },
)
EXPLANATION = _object(
    {
        **HEAD,
        "decision": _list(NUMBER),
        "names": _list(TEXT),
        "expected_cost": NUMBER,
        "scenarios": COUNT,
        "effective_scenarios": NUMBER,
        "past_rows": _list(_object({"label": TEXT, "weight": NUMBER, "outcome": _list(MAYBE)})),
        "deviations": _list(
            _object(
                {
                    "name": TEXT,
                    **dict.fromkeys(("step", "up", "down"), NUMBER),
                    "up_feasible": FLAG,
                    "down_feasible": FLAG,
                }
            )
        ),
        "inputs": _list(_object({"name": TEXT, "price": NUMBER, "change": _list(MAYBE)})),
        "curves": _list(
            _object(
                {
                    "name": TEXT,
                    "actions": _list(MAYBE),
                    "costs": _list(MAYBE),
                    "feasible": _list(FLAG),
                }
            )
        ),
        "outcomes": _object(
            {"names": _list(TEXT), "weights": _list(NUMBER), "values": _list(_list(NUMBER))}
        ),
        "cost_quantiles": {"type": "object", "additionalProperties": NUMBER},
        "flags": FLAGS,
        "notes": _list(TEXT),
    }
)
MODELS = _object(
    {
        "models": _list(
            _object(
                {
                    **dict.fromkeys(("name", "version", "method", "fit_date"), TEXT),
                    "fit_rows": COUNT,
                    "row_shape": _list(COUNT),
                    "columns": _list(COLUMN),
                    "decisions": _list(COLUMN),
                    "what_if": {"type": "object"},
                    "service_level": MAYBE,
                }
            )
        )
    }
)
SERVED = {"model": TEXT, "version": TEXT}
PAST = {
    "anyOf": [
        _object({**SERVED, "labels": _list(TEXT)}),
        _object(
            {
                **SERVED,
                "day": COUNT,
                "label": TEXT,
                "row": {"anyOf": [{"type": "object"}, {"type": "array"}]},
                "outcome": _list(NUMBER),
                "outcome_names": _list(TEXT),
            }
        ),
    ]
}
BACKTEST = _object(
    {
        **dict.fromkeys(("model", "recommended", "reference", "advice"), TEXT),
        "labels": _list(TEXT),
        "costs": {"type": "object", "additionalProperties": _list(NUMBER)},
    }
)
ANSWERS: dict[str, dict[str, Any]] = {
    "/decide": DECISIONS,
    "/explain": EXPLANATION,
    "/models": MODELS,
    "/models/{name}/reload": _object(SERVED),
    "/outcomes": _object(
        {**HEAD, **dict.fromkeys(("rows", "decisions", "replaced", "unmatched"), COUNT)}
    ),
    "/past": PAST,
    "/backtest": BACKTEST,
    "/health": STATE,
    "/ready": STATE,
}
EVERYWHERE = {
    "401": "The token is missing or wrong.",
    "408": "The body did not arrive in time.",
    "413": "Too many bytes or rows.",
    "500": "The service failed; its log has the request id.",
    "503": "The service is busy, not ready, or ends. Retry-After has seconds.",
}
ASKING = {
    "404": "No model of this name.",
    "415": "Another content type.",
    "422": "Other columns, shapes or values than needed.",
    "429": "The queue is full. Retry-After has seconds.",
}
MORE = {
    "/decide": ASKING,
    "/explain": ASKING,
    "/outcomes": {**ASKING, "409": "The service keeps no log of decisions."},
    "/past": {"404": ASKING["404"], "422": "No such day, or a model file without rows."},
    "/backtest": {
        "404": "No model of this name, or no comparison of it.",
        "409": "The file of the comparison cannot be read.",
    },
    "/models/{name}/reload": {
        "403": "The service has no token.",
        "404": "No model of this name.",
        "409": "The new files are refused, and the old version stays.",
    },
}


def add_answers(document: dict[str, Any]) -> None:
    """Write the answers into a document; a path that is not known here keeps its own 200.

    Args:
        document: as FastAPI makes it.
    """
    document["components"]["schemas"]["Refused"] = REFUSED
    refusal = _content({"$ref": "#/components/schemas/Refused"})
    for path, operations in document["paths"].items():
        words = {**EVERYWHERE, **MORE.get(path, {})}
        for operation in operations.values():
            found = operation["responses"]
            if path in MORE:
                found.pop("422", None)  # FastAPI's own, which the service never sends
            if path in ANSWERS:
                found["200"] = {"description": "The answer.", "content": _content(ANSWERS[path])}
            if path == "/metrics":
                text = {"text/plain": {"schema": TEXT}}
                found["200"] = {"description": "Text of Prometheus.", "content": text}
            for status, reason in words.items():
                found[status] = {"description": reason, "content": refusal}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
