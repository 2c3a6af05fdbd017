"""The name of a run, from which its files and its entries in a store are named."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

NO_FILE_NAME = r"[^\w.+-]+"  # characters that are replaced in the name of a file
READABLE = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?|True|False|None")
LONGEST = 80  # characters of changes in a name, where a hash follows


def run_name(
    problem: str, method: str, seed: int, changes: Mapping[str, Any], quick: bool = False
) -> str:
    """Name a run; two runs that differ have different names.

    Changes other than plain numbers, True, False and None are followed by a hash, since different
    ones may look alike: "1/2" and "1_2", or 1 and "1".

    >>> run_name("wind", "df2", 0, {"points": 50}, quick=True)
    'wind--df2-points50--0.quick'
    """
    return f"{problem}--{method}{_label(changes)}--{seed}{'.quick' * quick}"


def _label(changes: Mapping[str, Any]) -> str:
    changes = dict(sorted(changes.items()))
    label = "".join(f"-{key}{value}" for key, value in changes.items())
    if all(_is_readable(key, value) for key, value in changes.items()):
        return label
    text = json.dumps(changes, default=repr)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{re.sub(NO_FILE_NAME, '_', label)[:LONGEST]}={digest}"


def _is_readable(key: str, value: Any) -> bool:
    """Whether key and value can be read off their text, one after the other."""
    plain = value is None or isinstance(value, int | float)
    return plain and bool(re.fullmatch("[a-z_]+", key) and READABLE.fullmatch(str(value)))
