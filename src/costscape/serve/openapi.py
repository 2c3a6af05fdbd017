"""The OpenAPI document: the columns and ranges of the models that serve now."""

from collections.abc import Sequence
from typing import Any

from costscape.serve.openapi_answers import add_answers
from costscape.serve.question import RISKS
from costscape.serve.read_request import ASKED
from costscape.serve.served_model import ServedModel

NUMBERS = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}
MODEL = {
    "name": "model",
    "in": "query",
    "required": False,
    "schema": {"type": "string"},
    "description": "The name of the model; needed where there are several.",
}
TRIAL = {
    "name": "trial",
    "in": "query",
    "required": False,
    "schema": {"type": "string", "enum": ["0", "1"]},
    "description": "1: nobody will carry the decisions out, so they are not logged.",
}
FILE = {"type": "string", "format": "binary"}


def asking(many: bool) -> dict[str, Any]:
    """What FastAPI adds for a path that takes rows."""
    name = "Ask" if many else "AskOne"
    content: dict[str, Any] = {"application/json": {"schema": _reference(name)}}
    if many:
        form = {"file": FILE, **{name: {"type": "string"} for name in ASKED}}
        content |= {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": FILE},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": form,
                    "additionalProperties": False,
                }
            },
        }
    parameters = [MODEL, TRIAL] if many else [MODEL]
    return {"parameters": parameters, "requestBody": {"required": True, "content": content}}


def outcomes() -> dict[str, Any]:
    """What FastAPI adds for the path that takes outcomes."""
    row = {"type": "object", "description": "The outcome by column; and id, or key columns."}
    rows = {"type": "array", "minItems": 1, "items": row}
    body = {"type": "object", "required": ["rows"], "properties": {"rows": rows}}
    content = {
        "application/json": {"schema": body},
        "text/csv": {"schema": {"type": "string"}},
    }
    return {"parameters": [MODEL], "requestBody": {"required": True, "content": content}}


def complete(document: dict[str, Any], models: Sequence[ServedModel]) -> None:
    """Add to FastAPI's document what it does not know: columns, names of models, answers.

    Args:
        document: changed in place.
        models: those that serve now.
    """
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas(models))
    names = {**MODEL, "schema": {"type": "string", "enum": [served.name for served in models]}}
    for operations in document["paths"].values():
        for operation in operations.values():
            given = operation.get("parameters", [])
            operation["parameters"] = [names if one == MODEL else one for one in given]
    add_answers(document)


def schemas(models: Sequence[ServedModel]) -> dict[str, Any]:
    """The row of each model, and what a request for decisions holds."""
    rows = {f"Row-{served.name}": _row(served) for served in models}
    kinds = [_reference(name) for name, row in rows.items() if row["type"] == "object"]
    kinds += [_nested(served.row_shape.shape) for served in models]
    ends = {"lower": NUMBERS, "upper": NUMBERS, "total": {"type": "number"}}
    more = {
        "feasible": {
            "type": "object",
            "description": "Another set: what if the bounds or the total were others.",
            "properties": ends,
            "additionalProperties": False,
        },
        "risk": {
            "type": "object",
            "description": "One of these, minimised in place of the expected cost.",
            "properties": {name: {"type": "number"} for name in RISKS},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
        "quantiles": {
            "type": "array",
            "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "description": "Levels of the cost that are wanted, too.",
        },
        "service_level": {
            "type": "number",
            "description": "Another level of the chance constraint of the task.",
        },
        "keys": {
            "type": "array",
            "items": {"type": "object"},
            "description": "What you call each row, such as a date; kept with the decision.",
        },
    }
    return {**rows, "Ask": _ask(kinds, {}, more), "AskOne": _ask(kinds, {"maxItems": 1}, more)}


def _ask(
    kinds: Sequence[dict[str, Any]], limits: dict[str, int], more: dict[str, Any]
) -> dict[str, Any]:
    """A body with rows, all of one kind."""
    lists = [{"type": "array", "minItems": 1, **limits, "items": kind} for kind in kinds]
    return {
        "type": "object",
        "required": ["rows"],
        "properties": {"rows": {"anyOf": lists}, **more},
        "additionalProperties": False,
    }


def _nested(shape: Sequence[int]) -> dict[str, Any]:
    """Numbers in lists of these lengths."""
    if not shape:
        return {"type": "number"}
    inner = _nested(shape[1:])
    return {"type": "array", "minItems": shape[0], "maxItems": shape[0], "items": inner}


def _row(served: ServedModel) -> dict[str, Any]:
    """An object with the model's columns; the ranges are those of the training rows."""
    facts = served.describe()
    if not facts["columns"]:
        return {"type": "array", "description": f"Nested lists of shape {facts['row_shape']}."}
    columns = {
        column["name"]: {
            "type": "number",
            "description": f"{column['low']:g} to {column['high']:g} in training"
            + (f", in {column['unit']}" if column["unit"] else ""),
        }
        for column in facts["columns"]
    }
    return {
        "type": "object",
        "description": f"A row of {served.name}, version {served.version}.",
        "required": list(columns),
        "properties": columns,
        "additionalProperties": False,
    }


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
