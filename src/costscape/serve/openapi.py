"""The OpenAPI document: the columns and ranges of the models that serve now."""

from collections.abc import Sequence
from typing import Any

from costscape.serve.question import RISKS
from costscape.serve.read_request import KEYS
from costscape.serve.served_model import ServedModel

NUMBERS = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}
MODEL = {
    "name": "model",
    "in": "query",
    "required": False,
    "schema": {"type": "string"},
    "description": "The name of the model; needed where there are several.",
}
FILE = {"type": "string", "format": "binary"}


def asking(many: bool) -> dict[str, Any]:
    """What FastAPI adds for a path that takes rows."""
    content: dict[str, Any] = {"application/json": {"schema": _reference("Ask")}}
    if many:
        form = {"file": FILE, **{key: {"type": "string"} for key in KEYS[1:]}}
        content |= {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": FILE},
            "multipart/form-data": {"schema": {"type": "object", "properties": form}},
        }
    return {"parameters": [MODEL], "requestBody": {"required": True, "content": content}}


def schemas(models: Sequence[ServedModel]) -> dict[str, Any]:
    """The row of each model, and what a request for decisions holds."""
    rows = {f"Row-{served.name}": _row(served) for served in models}
    ask = {
        "type": "object",
        "required": ["rows"],
        "properties": {
            "rows": {
                "type": "array",
                "minItems": 1,
                "items": {"anyOf": [*map(_reference, rows), {"type": "array"}]},
            },
            "feasible": {
                "type": "object",
                "description": "Another set: what if the bounds or the total were others.",
                "properties": {"lower": NUMBERS, "upper": NUMBERS, "total": {"type": "number"}},
            },
            "risk": {
                "type": "object",
                "description": "One of these, minimised in place of the expected cost.",
                "properties": {name: {"type": "number"} for name in RISKS},
            },
            "service_level": {
                "type": "number",
                "description": "Another level of the chance constraint of the task.",
            },
        },
    }
    return {**rows, "Ask": ask}


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
