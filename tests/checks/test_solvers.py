"""check_solver passes a sound solver, and names what an unsound one does."""

from dataclasses import dataclass, replace

import pytest
import torch

from costscape import ExpectedCost, ProjectedAdam, Scenarios, Separable
from costscape.checks import check_solver
from costscape.problems import synthetic_convex, synthetic_nonconvex
from costscape.solvers import Solution, Solver


def surface(task):
    rng = torch.Generator().manual_seed(0)
    weights = torch.randn(4, 20, generator=rng).softmax(-1)
    return ExpectedCost(task, Scenarios(weights, torch.randn(4, 20, 2, generator=rng)))


@pytest.mark.parametrize("make", [synthetic_convex, synthetic_nonconvex])
def test_the_exact_solver_is_sound(make):
    check_solver(Separable(), surface(make()))


def test_adam_is_sound_on_a_convex_cost():
    check_solver(ProjectedAdam(), surface(synthetic_convex()))


@dataclass(frozen=True)
class Spoilt(Solver):
    """The exact answer, changed."""

    shift: float = 0.0
    lie: float = 0.0
    mates: float = 0.0

    def refuses(self, objective, feasible):
        return None

    def coarse(self):
        return self

    def _minimise(self, objective, feasible, batch, start):
        found = Separable().minimise(objective, feasible, batch)
        a = feasible.project(found.action + self.shift + (self.mates if batch == 1 else 0))
        with torch.no_grad():
            return Solution(a, objective(a[:, None])[:, 0] + self.lie)


SPOILT = {
    "a sampled action is": {"shift": 0.5},
    "does not have the cost returned": {"lie": 1.0},
    "by itself, .* in a batch": {"mates": 0.05},
}


@pytest.mark.parametrize("sentence", SPOILT)
def test_an_unsound_solver_is_found_out(sentence):
    check_solver(Spoilt(), surface(synthetic_convex()))
    with pytest.raises(AssertionError, match=sentence):
        check_solver(
            replace(Spoilt(), **SPOILT[sentence]), surface(synthetic_convex()), tolerance=1e-4
        )
