"""The problems ``wind`` (the paper's grid) and ``wind-farm`` (a French farm), as runs use them."""

import os
from functools import partial

import numpy as np

from costscape.data import Splits
from costscape.models import LSTM
from costscape.problems.files.sources import VARIABLE, find
from costscape.problems.problem import Problem, fixed_epochs, read_once
from costscape.problems.wind_bids.bidding import wind_bidding
from costscape.problems.wind_bids.wind_power import GAP, HISTORY, HORIZON, Wind, wind, wind_farm


def wind_power(seed: int = 0) -> Problem:
    """Bids for hours 12 to 23 ahead, from 24 h of TenneT's grid (the same for every seed)."""
    if find("wind") is None:
        raise FileNotFoundError(
            f"The problem wind needs TenneT's public file, which is neither in the folder named "
            f"by {VARIABLE} nor in the cache. Run `costscape fetch wind`, or run the problem "
            f"wind-farm, whose data come with the package."
        )
    data: Wind = read_once(wind, (), os.environ.get(VARIABLE))
    return _bidding(data.splits, data.source)


def wind_farm_bidding(seed: int = 0) -> Problem:
    """Bids for hours 12 to 23 ahead, from 24 h of a French wind farm (the same for every seed)."""
    return _bidding(wind_farm(), "La Haute Borne wind farm 2014-2015 (ENGIE), embedded")


def _bidding(data: Splits, source: str) -> Problem:
    return Problem(
        data=data,
        task=wind_bidding(),
        encoder=partial(LSTM, hidden=256),
        training=fixed_epochs(200),
        points=500,
        variances=(0.02, 0.05, 0.1),
        source=source,
        reach=np.timedelta64(HISTORY + GAP + HORIZON, "h"),
    )
