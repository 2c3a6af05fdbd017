"""Which method to use, in words: of methods that tie, the simplest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import hypot

import numpy as np

from costscape.block_bootstrap import Difference
from costscape.comparison.sentences import listed, number, numbers
from costscape.methods import (
    DF2,
    Constant,
    CrossFit,
    Method,
    NearestNeighbours,
    RandomForest,
    TwoStage,
)
from costscape.models import Mixture, Point

FEW_ROWS = 30  # test rows below which no interval is reliable
LARGE_LOSS = 0.02  # of the cost: a possible loss that the advice mentions


@dataclass(frozen=True, eq=False)
class Standing:
    """One method on the test rows. Its cost on a row is the mean over its seeds.

    - ``standard_error``: of the mean cost over rows, by blocks;
    - ``regret``: the mean of f(y, a) - min_a f(y, a), None where the minimum is not known;
    - ``sd``: between the mean costs of the seeds, None where there is one fit;
    - ``above_best``: the cost above that of the cheapest method, row by row;
    - ``fit_seconds``, ``decide_seconds``: of one seed, on all rows;
    - ``model``: the fit of the first seed;
    - ``costs``: (n,), one for each test row;
    - ``by_origin``: the mean cost of each test part.
    """

    name: str
    cost: float
    standard_error: float
    regret: float | None
    seeds: int
    sd: float | None
    above_best: Difference
    fit_seconds: float
    decide_seconds: float
    model: Method = field(repr=False)
    costs: np.ndarray = field(repr=False)
    by_origin: tuple[float, ...] = ()


def simplicity(standing: Standing) -> tuple[int, float]:
    """Less is simpler; methods that are not in the list come last, by time to fit.

    A cross-fitted method is as simple as the method inside it.
    """
    model = standing.model
    while isinstance(model, CrossFit):
        model = model.method
    match model:
        case Constant():
            return 0, 0.0
        case NearestNeighbours():
            return 1, 0.0
        case TwoStage(forecast=Point()):
            return 2, 0.0
        case RandomForest():
            return 3, 0.0
        case TwoStage(forecast=Mixture(components=k)):
            return 4, float(k)
        case DF2():
            return 5, 0.0
    return 6, standing.fit_seconds


def recommend(standings: Sequence[Standing]) -> Standing:
    """The simplest of the methods that tie with the best; of two as simple, the cheaper."""
    return min((s for s in standings if not s.above_best.clear), key=simplicity)


def advise(standings: Sequence[Standing]) -> str:
    """The advice in sentences; ``standings`` are in order of cost."""
    best, rows = standings[0], len(standings[0].costs)
    tied = [s for s in standings if not s.above_best.clear]
    if len(standings) == 1:
        only = f"Use {best.name}: no other method decided."
        sentences = [only, f"It costs {number(best.cost)} on average."]
    elif len(tied) == 1:
        sentences = _clear(best, standings[1])
    else:
        sentences = _tie(tied)
    if rows < FEW_ROWS:
        sentences.append(f"There are only {rows} test rows: more data is needed for certainty.")
    return " ".join(sentences)


def _clear(best: Standing, second: Standing) -> list[str]:
    sentences = [
        f"Use {best.name}: it clearly costs least, {number(best.cost)} on average.",
        f"The next, {second.name}, costs {_more(second.above_best, best.cost)}.",
    ]
    noise = hypot(*((s.sd or 0.0) / s.seeds**0.5 for s in (best, second)))
    if second.above_best.mean <= 2 * noise:
        sentences.append(
            f"But the mean over seeds is itself unsure by about {number(noise, 2)}, which is not "
            f"small beside that: run more seeds."
        )
    return sentences


def _tie(tied: Sequence[Standing]) -> list[str]:
    best, chosen = tied[0], recommend(tied)
    if chosen is best:
        other, lead = tied[1], f"Use {best.name}: "
    else:
        other = chosen
        lead = f"Use {chosen.name}: {best.name} costs least, {number(best.cost)} on average, but "
    more = f"{other.name} costs {_more(other.above_best, best.cost)}"
    rest = [s.name for s in tied[1:] if s is not other]
    also = f" (nor from {listed(rest)})" if rest else ""
    alike = len({simplicity(s) for s in tied}) == 1
    end = "so any of them will do" if alike else "so the simpler model is enough here"
    sentences = [f"{lead}{more}, and no difference can be seen{also}, {end}."]
    most = chosen.above_best.high
    if most > LARGE_LOSS * abs(best.cost):
        loss = _percent(most, best.cost) or number(most, 2)
        sentences.append(
            f"Yet {loss} more cannot be ruled out: if that is much, bring more rows, or stay with "
            f"{best.name}."
        )
    if any(isinstance(s.model, Constant) for s in tied):
        sentences.append(
            "A constant action does as well: x carries no usable information for this decision "
            "at this sample size."
        )
    return sentences


def _percent(part: float, cost: float) -> str:
    """``part`` in percent of the cost, empty where the cost is near 0."""
    return f"{number(100 * part / abs(cost), 2)} %" if abs(part) <= 10 * abs(cost) else ""


def _more(d: Difference, cost: float) -> str:
    """A difference in percent of the cost, where that is not near 0, and in its units."""
    if not _percent(max(abs(d.low), abs(d.high)), cost):
        return f"{numbers(d)} more"
    return f"{numbers(d, ' %', 100 / abs(cost))} more, that is {numbers(d)}"
