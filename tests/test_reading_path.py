"""How many of our files one default fit runs through: what a newcomer has to read."""

import sys
from pathlib import Path

import numpy as np

import costscape as cs

SOURCE = str(Path(cs.__file__).parent)
MOST = 25


def files_of(call):
    """The source files whose functions ``call`` executes, relative to the package."""
    seen = set()

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            seen.add(str(Path(frame.f_code.co_filename).relative_to(SOURCE)))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return sorted(seen)


def test_a_default_fit_runs_through_few_files():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    Y = np.abs(X[:, :3] + rng.normal(size=(120, 3)))
    task = cs.SeparableTask(
        lambda y, a: 4 * (y - a).relu() + (a - y).relu(), cs.Box(0.0, 4.0, dim=3)
    )
    model = cs.DF2(task, training=cs.Training(epochs=2, progress=False))
    files = files_of(lambda: model.fit(X, Y))
    print("\n".join(files))
    assert len(files) <= MOST, f"a default fit runs through {len(files)} files: {files}"
