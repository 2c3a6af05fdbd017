"""The encoder and the training of a method's networks, as rows and tables name them."""

import inspect
from functools import partial
from math import ceil
from typing import Any

from costscape.bench.search_space import inner_of
from costscape.data import Dataset
from costscape.methods import Method
from costscape.methods.saving import from_json
from costscape.training.settings import RATE

SEVERAL = "several"  # candidates with different encoders


def network_terms(method: Method, train: Dataset) -> dict[str, Any] | None:
    """Encoder, dropout, rate, batch, epochs, steps, patience and smooth; None without networks.

    Args:
        method: unfitted, or a CrossFit of one.
        train: the training rows, which set epochs and patience where the settings leave them open.
    """
    inner = inner_of(method)
    training = inner.trains()
    if training is None:
        return None
    now = training.for_rows(len(train))
    assert now.epochs is not None
    encoder, dropout = _encoder(inner, train)
    return {
        "encoder": encoder,
        "dropout": dropout,
        "rate": training.lr or RATE,
        "batch": now.batch_size,
        "epochs": now.epochs,
        "steps": now.epochs * ceil(len(train) / now.batch_size),
        "patience": now.patience,
        "smooth": now.smooth,
    }


def _encoder(method: Method, train: Dataset) -> tuple[str, float | str]:
    """The class with its layers and their width, and the dropout."""
    if "encoder" not in method.setting_names():
        return SEVERAL, SEVERAL
    builder: Any = getattr(method, "encoder", None)
    if builder is None:
        builder = from_json(method.resolved_defaults(train)["encoder"])
    kind = builder.func if isinstance(builder, partial) else builder
    takes = {name: arg.default for name, arg in inspect.signature(builder).parameters.items()}
    size = f" {takes['layers']} x {takes['hidden']}" if "layers" in takes else ""
    return f"{kind.__name__}{size}", takes.get("dropout", 0.0)
