"""Kinds of fits, so that a method is compared with its like.

A search and the mean of several fits help every method. So single fits are compared with single
fits, those with searched settings and cross-fitted ones with their own.
"""

from collections.abc import Mapping
from typing import Any

CROSSFIT, TUNED = "+crossfit", "+tuned"  # in the names of methods
FOLDED = ("df2", "blend")  # cross-fitted without saying so, unless ``folds`` is 1
KINDS = ("cross-fitted", "tuned, cross-fitted", "single fit", "tuned fit")  # as in tables


def kind_of(method: str, changes: Mapping[str, Any]) -> str:
    """One of KINDS, by the name of a method and its changed settings.

    >>> kind_of("df2", {}), kind_of("df2", {"folds": 1}), kind_of("two-stage-pe+crossfit", {})
    ('cross-fitted', 'single fit', 'cross-fitted')
    >>> kind_of("egl+tuned", {}), kind_of("egl+tuned+crossfit", {})
    ('tuned fit', 'tuned, cross-fitted')
    """
    folded = method.split("+")[0] in FOLDED and changes.get("folds", 2) > 1
    single = not folded and CROSSFIT not in method
    return KINDS[2 * single + (TUNED in method)]
