"""The parts of a generated problem, and how a seed turns them into data, a task and the truth."""

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from costscape.bench.zoo.assemble import assemble
from costscape.bench.zoo.decisions import Decision
from costscape.bench.zoo.features import FeatureMaker
from costscape.bench.zoo.laws import LawMaker
from costscape.bench.zoo.sampled_truth import SampledTruth
from costscape.data import Dataset, Splits
from costscape.problems.problem import Problem

TEST_ROWS = 1000


@dataclass(frozen=True)
class Generated:
    """A recipe: draw ``rows`` training rows of x, then y from the law, then decide.

    There are a quarter as many validation rows, at least 100, and ``test`` test rows. ``draws``
    is the number of scenarios of the truth.
    """

    decision: Callable[[], Decision]
    features: FeatureMaker
    law: LawMaker
    rows: int
    draws: int = 500
    test: int = TEST_ROWS

    def make(self, name: str, seed: int) -> Problem:
        """The problem of one seed, which draws the coefficients of the law, x and y."""
        rng = np.random.default_rng([seed, crc32(name.encode())])
        found = self.decision()
        dim = found.task.feasible.dim
        law = self.law(rng, dim)
        cuts = np.cumsum([self.rows, max(100, self.rows // 4), self.test])
        x = self.features(rng, int(cuts[-1]))
        data = Dataset(x, law.sample(x, dim, rng))
        parts = Splits(data[: cuts[0]], data[cuts[0] : cuts[1]], data[cuts[1] :])
        truth = SampledTruth(found.task, law, found.best, self.draws)
        return assemble(parts, found.task, f"{name}: generated with seed {seed}", truth)
