"""A few kills of fits; `python benchmarks/trust/kills.py --fits 100 --sweeps 100` makes many."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "trust" / "kills.py"


@pytest.mark.slow
@pytest.mark.long
def test_killed_fits_end_with_the_bits_of_whole_ones():
    words = [sys.executable, str(SCRIPT), "--fits", "2", "--sweeps", "0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    line = json.loads(done.stdout)
    assert (line["count"], line["failures"]) == (2, 0)
    assert line["notes"]["fits"]["kills"] > 0
