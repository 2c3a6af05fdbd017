"""The method of a name, with its suffixes."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial

from costscape.bench.catalog import FAMILIES, METHODS
from costscape.bench.search_space import Settings, with_settings
from costscape.methods import CrossFit, Method
from costscape.problems.problem import Problem

Make = Callable[[Problem, int], Method]
Tuned = Callable[[str], Settings]  # the best settings of the search of a method, by its name
CROSSFIT = "+crossfit"  # after a method's name: once for each fold, averaged
LEVELS = "+levels"  # after a method's name: outcomes relative to what the problem says
ENCODER = "+encoder"  # after a method's name: the paper's encoder
TUNED = "+tuned"  # after a method's name: the best settings of its search


def method_of(name: str, tuned: Tuned | None = None) -> Make:
    """The maker of a named method; ``two-stage-gmm10`` is the family's with K = 10.

    ``two-stage-gmm10+levels`` sees windows and outcomes as multiples of the problem's ``level``.
    ``two-stage-gmm10+encoder`` has the paper's encoder, and ``two-stage-gmm10+crossfit`` is
    fitted once for each of four folds, as DF2 is. ``two-stage-gmm10+tuned`` has the best settings
    of the search of ``two-stage-gmm10``, which ``tuned`` returns for that name.
    """
    if name.endswith(TUNED):
        return _tuned(name, name.removesuffix(TUNED), tuned)
    if name.endswith(CROSSFIT):
        make = method_of(name.removesuffix(CROSSFIT), tuned)
        return lambda p, seed: CrossFit(make(p, seed))
    for suffix, setting in ((LEVELS, "level"), (ENCODER, "encoder")):
        if name.endswith(suffix):
            return partial(_with, method_of(name.removesuffix(suffix), tuned), name, setting)
    if name in METHODS:
        return partial(_made, METHODS[name])
    match = re.fullmatch(r"(.*-gmm)([1-9]\d*)", name)
    if match and match[1] in FAMILIES:
        family, k = FAMILIES[match[1]], int(match[2])
        return partial(_made, lambda p, seed: family(p, seed, k))
    families = ", ".join(f"{family}K" for family in FAMILIES)
    raise ValueError(
        f"There is no method named {name!r}. There are {', '.join(METHODS)}, and {families} with "
        f"K any whole number, such as two-stage-gmm10."
    )


def _tuned(name: str, searched: str, tuned: Tuned | None) -> Make:
    make = method_of(searched)
    if tuned is None:
        raise ValueError(
            f"{name} takes its settings from a search on a named problem, and none is given here. "
            f"Name {searched}, or run {name} by `costscape run`."
        )
    return lambda p, seed: with_settings(
        make(p, seed), tuned(searched), tuple(p.data.train.x.shape[1:])
    )


def _with(make: Make, name: str, setting: str, p: Problem, seed: int) -> Method:
    method = make(p, seed)
    if setting not in {f.name for f in fields(method)}:  # type: ignore[arg-type]
        raise ValueError(
            f"There is no method named {name!r}: {type(method).__name__} has no setting "
            f"{setting}. Those that forecast have one, such as two-stage-gmm1."
        )
    return replace(method, **{setting: getattr(p, setting)})  # type: ignore[type-var]


def _made(make: Make, p: Problem, seed: int) -> Method:
    method = make(p, seed)
    training = method.trains()
    if p.score_every == 1 or training is None:
        return method
    return method.changed(training=replace(training, score_every=p.score_every))
