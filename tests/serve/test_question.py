"""What-if sets are those of the task with other numbers, and risks are read by name."""

import pytest
import torch

import costscape as cs
from costscape.serve.question import Question, beyond_fit
from costscape.serve.refused import Refused


def changed(C, **ends):
    """The what-if set of a task on C."""
    return Question.from_json(ends, None).feasible(task_on(C))


def task_on(C):
    return cs.Task(lambda y, a: (y - a).abs().sum(-1), C)


SAME = {
    "box": (cs.Box(0.0, 3.0, dim=2), {"upper": [1, 2]}, cs.Box(0.0, [1.0, 2.0])),
    "lower": (cs.Box(0.0, 3.0, dim=2), {"lower": 1}, cs.Box(1.0, 3.0, dim=2)),
    "sum": (cs.Box(0.0, 3.0, dim=2), {"total": 2}, cs.Budget(total=2.0, dim=2, upper=3.0)),
    "budget": (
        cs.Budget(total=5.0, dim=2, upper=4.0),
        {"total": 3},
        cs.Budget(total=3.0, dim=2, upper=4.0),
    ),
    "caps": (
        cs.Budget(total=5.0, dim=2),
        {"upper": [1, 2]},
        cs.Budget(total=5.0, dim=2, upper=[1.0, 2.0]),
    ),
    "simplex": (cs.Simplex(dim=2), {"total": 4}, cs.Simplex(total=4.0, dim=2)),
    "whole": (cs.Box(0, 9, dim=2, step=2), {"upper": 5}, cs.Box(0, 5, dim=2, step=2)),
    "partly whole": (
        cs.Box(0, 9, dim=2, step=[2, float("nan")]),
        {"upper": 5},
        cs.Box(0, 5, dim=2, step=[2, float("nan")]),
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_a_what_if_set_is_the_set_with_other_numbers(case):
    C, ends, wanted = SAME[case]
    found = changed(C, **ends)
    assert type(found) is type(wanted)
    points = torch.tensor([[4.2, 0.3], [0.1, 7.7], [-1.0, 1.9], [2.9, 2.9]])
    assert torch.equal(found.project(points), wanted.project(points))


REFUSED = [
    (cs.Simplex(dim=2), {"upper": 1}),
    (cs.Budget(total=5.0, dim=2), {"lower": 1}),
    (cs.Box(1.0, 3.0, dim=2), {"total": 4}),
    (cs.Finite([[0.0, 1.0], [1.0, 0.0]]), {"upper": 1}),
    (cs.Box(0.0, 3.0, dim=2), {"middle": 1}),
    (cs.Box(0.0, 3.0, dim=2), {"total": [1, 2]}),
    (cs.Box(0.0, 3.0, dim=2), {"upper": "1"}),
    (lambda x: cs.Box(0.0, x[:, :1].expand(-1, 2)), {"upper": 1}),
]


@pytest.mark.parametrize(("C", "ends"), REFUSED)
def test_other_what_if_sets_are_refused(C, ends):
    with pytest.raises(Refused) as refused:
        Question.from_json(ends, None).feasible(
            task_on(C).bound(torch.ones(3, 2), None) if callable(C) else task_on(C)
        )
    assert refused.value.status == 422


def test_only_a_wider_set_gets_a_note():
    task = task_on(cs.Box(0.0, 3.0, dim=2))
    assert beyond_fit(cs.Box(1.0, 3.0, dim=2), task) is None
    assert "wider" in beyond_fit(cs.Box(0.0, [3.0, 3.1]), task)


def test_risks_are_read_by_name_and_equal_questions_are_equal():
    read = [
        Question.from_json(None, risk).risk
        for risk in ({"cvar": 0.8}, {"entropic": 2}, {"mean_deviation": 0.5}, {"worst_case": 0})
    ]
    assert read == [cs.CVaR(0.8), cs.Entropic(2.0), cs.MeanDeviation(0.5), cs.WorstCase(0.0)]
    one, other = (Question.from_json({"upper": [1, 2]}, {"cvar": 0.8}) for _ in range(2))
    assert len({one, other, Question()}) == 2
