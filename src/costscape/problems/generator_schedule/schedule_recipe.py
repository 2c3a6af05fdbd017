"""The problems ``scheduling`` and ``scheduling-measured``, as runs use them."""

import os
from functools import partial

import numpy as np

from costscape.models import MLP
from costscape.problems.files.sources import VARIABLE
from costscape.problems.generator_schedule.pjm_load import PJM, pjm
from costscape.problems.generator_schedule.scheduling import generator_scheduling
from costscape.problems.problem import Problem, fixed_epochs, read_once


def generator_schedule(seed: int = 0) -> Problem:
    """Generation of tomorrow's 24 hours, PJM 2008-2016 (the same for every seed)."""
    return _scheduling(measured=False)


def measured_schedule(seed: int = 0) -> Problem:
    """The same for 2008-2011, with measured temperatures (the same for every seed)."""
    return _scheduling(measured=True)


def _scheduling(*, measured: bool) -> Problem:
    data: PJM = read_once(_load, (measured,), os.environ.get(VARIABLE))
    return Problem(
        data=data.splits,
        task=generator_scheduling(),
        # the published network has batch normalisation, and a linear part beside it
        encoder=partial(MLP, data.splits.train.x.shape[1], hidden=200, layers=2, dropout=0.2),
        training=fixed_epochs(200),
        points=500,
        variances=(0.02, 0.05, 0.1),
        source=data.source,
        reach=np.timedelta64(2, "D"),  # the load of one day, and of the next
    )


def _load(measured: bool) -> PJM:
    return pjm(measured=measured)
