import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from costscape.bench.report import cost_curve

WHAT = {
    "actions": [0.0, 1.0, 2.0],
    "costs": [4.0, 1.0, 3.0],
    "decision": 1.5,
    "outcome": 0.7,
    "outcomes": [0.5, 0.9, 1.9],
    "weights": [0.2, 0.3, 0.5],
    "labels": ("stock (units)", "cost (money)"),
    "title": "Monday",
}


def test_a_picture_is_written_and_its_folder_made(tmp_path):
    path = tmp_path / "new" / "curve.png"
    cost_curve(path, **WHAT)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_picture_shows_the_curve_the_decision_on_it_and_the_scenarios(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **told: drawn.append(figure))
    cost_curve(tmp_path / "curve.png", **WHAT)
    top, below = drawn[0].axes
    curve, decision, came = top.get_lines()
    assert np.array_equal(curve.get_xydata(), [[0, 4], [1, 1], [2, 3]])
    assert np.array_equal(decision.get_xydata(), [[1.5, 2.0]])  # half way from 1 to 3
    assert list(came.get_xdata()) == [0.7, 0.7]
    bars = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in below.patches]
    assert sum(height for _, height in bars) == pytest.approx(1)
    assert sum(x * height for x, height in bars) == pytest.approx(1.32, abs=0.05)  # their mean
    assert (top.get_ylabel(), below.get_xlabel()) == ("cost (money)", "stock (units)")
    assert top.get_title() == "Monday"


def test_reports_know_neither_torch_nor_the_screen():
    code = (
        "import sys, tempfile, pathlib; from costscape.bench.report import cost_curve; "
        f"cost_curve(pathlib.Path(tempfile.mkdtemp()) / 'c.png', **{WHAT}); "
        "print({'torch', 'matplotlib.pyplot'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
