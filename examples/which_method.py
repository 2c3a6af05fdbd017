"""Which method for this data? Order a week of one item, a week ahead, from its last 14 days.

python examples/which_method.py

The data are five years of real sales of a store, which come with the package. ``compare`` fits
the usual methods on the earlier rows and tests them in pairs on the last fifth. The fits are
short: for a real comparison leave ``seeds`` and the trainings out.
"""

import torch

import costscape as cs


def sales_of(item):
    """Every second window, in order of time: x the last 14 days, y days 7 to 13 ahead."""
    parts = [part[::2] for part in vars(cs.problems.sales(item).splits).values()]
    return torch.cat([part.x[..., 0] for part in parts]), torch.cat([part.y for part in parts])


def main():
    x, y = sales_of(item=1)
    task, brief = cs.problems.inventory(), cs.Training(epochs=8, lr=0.002)
    methods = cs.default_methods(task, brief)
    # the level of sales changes: outcomes are multiples of the level of the last days; one network
    methods["DF2"] = cs.DF2(task, outcomes=cs.WindowLevels(), folds=1, training=brief)
    # a window spans 28 days, or 14 rows: 14 rows are left out before each cut, and blocks of 14
    # rows are resampled
    found = cs.compare(task, x, y, methods=methods, seeds=1, gap=14, block=14, progress=False)
    print(found)
    model = found.fitted[found.recommended].fit(x, y)  # now from all rows
    print(f"for next week order {[round(a, 2) for a in model.decide(x[-1:])[0].tolist()]}")


if __name__ == "__main__":
    main()
