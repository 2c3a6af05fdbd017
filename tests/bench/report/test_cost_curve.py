import subprocess
import sys

import numpy as np
from matplotlib.figure import Figure

from costscape.bench.report import CostCurve, cost_curve

WHAT = {
    "actions": [0.0, 1.0, 2.0],
    "costs": [4.0, 1.0, 3.0],
    "decision": 1.5,
    "outcome": 0.7,
    "action_label": "stock (units)",
    "cost_label": "cost (money)",
    "title": "Monday",
}


def test_a_picture_is_written_and_its_folder_made(tmp_path):
    path = tmp_path / "new" / "curve.png"
    cost_curve(path, CostCurve(**WHAT))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_picture_shows_the_curve_the_decision_and_all_pairs(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **rest: drawn.append(figure))
    cost_curve(tmp_path / "curve.png", CostCurve(**WHAT), [0.5, 0.9], [1.0, 2.0])
    left, right = drawn[0].axes
    curve, outcome, decision = left.get_lines()
    assert np.array_equal(curve.get_xydata(), [[0, 4], [1, 1], [2, 3]])
    assert np.array_equal(decision.get_xydata(), [[1.5, 2.0]])  # half way from 1 to 3
    assert list(outcome.get_xdata()) == [0.7, 0.7]
    pairs = right.get_lines()[0]
    assert np.array_equal(pairs.get_xydata(), [[1.0, 0.5], [2.0, 0.9]])
    assert (left.get_ylabel(), left.get_xlabel()) == ("cost (money)", "stock (units)")
    assert left.get_title() == "Monday"
    assert (right.get_xlabel(), right.get_ylabel()) == ("outcome", "decision")


def test_reports_import_neither_torch_nor_the_screen():
    code = (
        "import sys, tempfile, pathlib; from costscape.bench.report import CostCurve, cost_curve; "
        f"cost_curve(pathlib.Path(tempfile.mkdtemp()) / 'c.png', CostCurve(**{WHAT})); "
        "print({'torch', 'matplotlib.pyplot'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
