"""Folds on a Ray cluster, in a process of its own: Ray leaves threads and sockets behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "folds_on_ray.py"


@pytest.mark.slow
def test_folds_on_a_ray_cluster_decide_with_the_same_bits():
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "True"
