"""Which method to use, in words, and what choosing wrongly may cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import hypot

import numpy as np

from costscape.block_bootstrap import Difference
from costscape.comparison.present_rules import Rule
from costscape.comparison.sentences import higher, listed, number, percent
from costscape.methods import (
    DF2,
    Constant,
    CrossFit,
    Method,
    NearestNeighbours,
    RandomForest,
    ResidualSAA,
    SafetyStock,
    TwoStage,
)
from costscape.models import Mixture, Point

FEW_ROWS = 30  # test rows below which no interval is reliable
SIMPLE = "simple"  # the one preference that can be asked for


@dataclass(frozen=True, eq=False)
class Standing:
    """One method on the test rows. Its cost on a row is the mean over its seeds.

    - ``standard_error``: of the mean cost over rows, by blocks;
    - ``regret``: the mean of f(y, a) - min_a f(y, a), None where the minimum is not known;
    - ``sd``: between the mean costs of the seeds, None where there is one fit;
    - ``above_best``: the cost above that of the cheapest method, row by row;
    - ``fit_seconds``, ``decide_seconds``: of one seed, on all rows;
    - ``model``: the fit of the first seed; None where decisions were given;
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
    model: Method | None = field(repr=False)
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
        case None | Rule():
            return -1, 0.0
        case Constant():
            return 0, 0.0
        case NearestNeighbours():
            return 1, 0.0
        case ResidualSAA():
            return 2, 0.0
        case TwoStage(forecast=Point()):
            return 3, 0.0
        case SafetyStock():
            return 3, 1.0
        case RandomForest():
            return 4, 0.0
        case TwoStage(forecast=Mixture(components=k)):
            return 5, float(k)
        case DF2():
            return 6, float(model.folds > 1)
    return 7, standing.fit_seconds


def ties(standings: Sequence[Standing]) -> list[Standing]:
    """The methods that are not clearly worse than the first."""
    return [s for s in standings if not s.above_best.clear]


def recommend(standings: Sequence[Standing], prefer: str | None = None) -> Standing:
    """The method of the lowest mean cost.

    With ``prefer="simple"`` the simplest of those that tie with it; of two as simple, the cheaper.
    """
    return min(ties(standings), key=simplicity) if prefer == SIMPLE else standings[0]


def advise(standings: Sequence[Standing], prefer: str | None = None) -> str:
    """The advice in sentences; ``standings`` are in order of cost."""
    best, rows, tied = standings[0], len(standings[0].costs), ties(standings)
    if len(standings) == 1:
        sentences = [f"Use {best.name}: no other method decided."]
        sentences.append(f"The mean cost is {number(best.cost)}.")
    elif len(tied) == 1:
        sentences = _clear(best, standings[1])
    else:
        sentences = _tie(tied, prefer)
    if rows < FEW_ROWS:
        sentences.append(f"There are only {rows} test rows: more data is needed for certainty.")
    return " ".join(sentences)


def _clear(best: Standing, second: Standing) -> list[str]:
    sentences = [
        f"Use {best.name}: the mean cost of {number(best.cost)} is clearly the lowest.",
        f"With {second.name}, the next, it is higher by {higher(second.above_best, best.cost)}.",
    ]
    noise = hypot(*((s.sd or 0.0) / s.seeds**0.5 for s in (best, second)))
    if second.above_best.mean <= 2 * noise:
        sentences.append(
            f"But the mean over seeds is itself unsure by about {number(noise, 2)}, which is not "
            f"small beside that: run more seeds."
        )
    return sentences


def _tie(tied: Sequence[Standing], prefer: str | None) -> list[str]:
    """The lowest mean against the simplest that may be as good, or the next where it is simplest.

    The ends of the interval are what choosing the other wrongly costs, and what it may save.
    """
    best, simplest = tied[0], recommend(tied, SIMPLE)
    other = tied[1] if simplest is best else simplest
    d = other.above_best
    loss, gain = (percent(end, best.cost) or number(end, 2) for end in (d.high, max(-d.low, 0.0)))
    if prefer == SIMPLE and simplest is not best:
        sentences = [
            f"Use {simplest.name}, the simplest method that is not clearly worse than "
            f"{best.name}, whose mean cost of {number(best.cost)} is the lowest.",
            f"With {simplest.name} it is higher by {higher(d, best.cost)}.",
            f"So {simplest.name} may cost up to {loss} more, and may save up to {gain}.",
        ]
    else:
        why = "not clearly worse" if simplest is best else "the simplest that is not clearly worse"
        sentences = [
            f"Use {best.name}: the mean cost of {number(best.cost)} is the lowest.",
            f"With {other.name}, {why}, it is higher by {higher(d, best.cost)}.",
            f"So {other.name} instead may cost up to {loss} more, and may save up to {gain}.",
        ]
    if rest := [s.name for s in tied[1:] if s is not other]:
        sentences.append(f"Not clearly worse either: {listed(rest)}.")
    if any(isinstance(s.model, Constant) for s in tied):
        sentences.append(
            "A constant action may do as well: x carries little usable information for this "
            "decision at this sample size."
        )
    return sentences
