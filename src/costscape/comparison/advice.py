"""Which method to use, in words: a tie goes to the simplest."""

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

FEW = 30  # test rows below which no interval is to be trusted
MUCH = 0.02  # of the cost: a possible loss that is worth a word


@dataclass(frozen=True, eq=False)
class Standing:
    """One method on the test rows, its cost on a row being the mean over its seeds.

    - ``standard_error``: of the mean cost over rows, by blocks;
    - ``regret``: the mean of f(y, a) - min_a f(y, a), None where the least is not known;
    - ``sd``: between the mean costs of the seeds, None where there is one fit;
    - ``above_best``: what it costs above the cheapest method, row by row;
    - ``fit_seconds``, ``decide_seconds``: of one seed, on all rows;
    - ``model``: the first seed's fit;
    - ``costs``: one for each test row.
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


def simplicity(standing: Standing) -> tuple[int, float]:
    """Less is simpler; methods that have no place in the list come last, by time to fit.

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


def tied_with_best(standings: Sequence[Standing]) -> list[Standing]:
    """Those the best, the first, is not clearly cheaper than, itself among them."""
    return [s for s in standings if not s.above_best.clear]


def recommend(standings: Sequence[Standing]) -> Standing:
    """The simplest of the tied; of two as simple, the cheaper."""
    return min(tied_with_best(standings), key=simplicity)


def advise(standings: Sequence[Standing]) -> str:
    """``standings`` in order of cost."""
    tied, rows = tied_with_best(standings), len(standings[0].costs)
    if len(standings) == 1:
        sentences = [_alone(standings[0])]
    elif len(tied) == 1:
        sentences = [_clear(standings), *_of_seeds(standings)]
    else:
        sentences = [_tie(tied), *_of_losses(tied)]
        if any(isinstance(s.model, Constant) for s in tied):
            sentences.append(
                "A constant action does as well: x carries no usable information for this "
                "decision at this sample size."
            )
    if rows < FEW:
        sentences.append(f"There are only {rows} test rows: more data is needed for certainty.")
    return " ".join(sentences)


def _alone(only: Standing) -> str:
    return f"Use {only.name}: no other method decided. It costs {number(only.cost)} on average."


def _clear(standings: Sequence[Standing]) -> str:
    best, second = standings[:2]
    return (
        f"Use {best.name}: it clearly costs least, {number(best.cost)} on average. The next, "
        f"{second.name}, costs {_more(second.above_best, best.cost)}."
    )


def _of_seeds(standings: Sequence[Standing]) -> list[str]:
    """A warning where the seeds could turn the result over."""
    best, second = standings[:2]
    noise = hypot(*((s.sd or 0.0) / s.seeds**0.5 for s in (best, second)))
    if second.above_best.mean > 2 * noise:
        return []
    return [
        "But the mean over seeds is itself unsure by about "
        f"{number(noise, 2)}, which is not small beside that: run more seeds."
    ]


def _tie(tied: Sequence[Standing]) -> str:
    best, chosen = tied[0], recommend(tied)
    if chosen is best:
        first, *others = tied[1:]
        lead = f"Use {best.name}: {first.name} costs {_more(first.above_best, best.cost)}"
    else:
        others = [s for s in tied[1:] if s is not chosen]
        lead = (
            f"Use {chosen.name}: {best.name} costs least, {number(best.cost)} on average, but "
            f"{chosen.name} costs {_more(chosen.above_best, best.cost)}"
        )
    also = f" (nor from {listed([s.name for s in others])})" if others else ""
    alike = len({simplicity(s) for s in tied}) == 1
    end = "so any of them will do" if alike else "so the simpler model is enough here"
    return f"{lead}, and no difference can be seen{also}, {end}."


def _of_losses(tied: Sequence[Standing]) -> list[str]:
    """A warning where the simpler may be much dearer than the rows can tell."""
    best, chosen = tied[0], recommend(tied)
    most = chosen.above_best.high
    if most <= MUCH * abs(best.cost):
        return []
    share = f"{number(100 * most / abs(best.cost), 2)} %" if _has_share(best.cost, most) else ""
    return [
        f"Yet {share or number(most, 2)} more cannot be ruled out: if that is much, bring more "
        f"rows, or stay with {best.name}."
    ]


def _has_share(cost: float, difference: float) -> bool:
    """Whether a percentage of this cost tells anything."""
    return abs(difference) <= 10 * abs(cost)


def _more(d: Difference, cost: float) -> str:
    """In percent of ``cost``, where that is not near 0, and in units of the cost."""
    if not _has_share(cost, max(abs(d.low), abs(d.high))):
        return f"{numbers(d)} more"
    return f"{numbers(d, ' %', 100 / abs(cost))} more, that is {numbers(d)}"
