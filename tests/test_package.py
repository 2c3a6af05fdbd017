"""What a user installs: the source archive, the wheel made from it, and a fit from that wheel."""

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSIDE = (
    "costscape/py.typed",
    "costscape/__init__.pyi",
    "costscape/bench/report/page.html",
    "costscape/comparison/page.html",
    "costscape/problems/embedded/NOTICE.md",
    "costscape/problems/embedded/bakery_sales.npz",
    "costscape/problems/embedded/la_haute_borne_hourly.csv.gz",
    "costscape/problems/embedded/restaurant_sales.npz",
    "costscape/problems/embedded/sales.csv",
    "costscape/problems/embedded/sid_store1.npz",
)
FIT = """
import sys
from pathlib import Path
import numpy as np
import costscape as cs
assert Path(cs.__file__).is_relative_to(sys.argv[1]), cs.__file__
assert cs.problems.wind_farm().train.x.shape[0] > 1000  # data that travels with the package
rng = np.random.default_rng(0)
X, Y = rng.random((40, 3)), rng.random((40, 2))
task = cs.problems.inventory(days=2)
model = cs.TwoStage(task, cs.Point(), training=cs.Training(epochs=1, progress=False)).fit(X, Y)
model.save("model")
assert (cs.load("model", task).decide(X) == model.decide(X)).all()
print("decided", model.decide(X).shape)
"""


def call(*words, **settings):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **settings)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, made from the source archive and not from this tree."""
    pytest.importorskip("hatchling", reason="hatchling, the build backend, is not installed")
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    call(*build, "-t", "sdist", cwd=ROOT)
    with tarfile.open(next(out.glob("*.tar.gz"))) as archive:
        archive.extractall(out / "source", filter="data")
    (source,) = (out / "source").iterdir()
    for name in ("LICENSE", "SECURITY.md", "CHANGELOG.md", "tests/test_package.py"):
        assert (source / name).is_file(), name
    call(*build, "-t", "wheel", cwd=source)
    return next(out.glob("*.whl"))


def test_everything_that_is_read_at_run_time_is_in_the_wheel(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in INSIDE:
        assert name in names
    here = (path for path in (ROOT / "src").rglob("*") if "__pycache__" not in path.parts)
    sources = {str(path.relative_to(ROOT / "src")) for path in here if path.is_file()}
    assert sources <= set(names)
    licences = [name for name in names if ".dist-info/licenses/" in name]
    assert {Path(name).name for name in licences} == {"LICENSE", "NOTICE.md"}
    assert all(name.startswith(("costscape/", "costscape-")) for name in names)


def test_the_installed_wheel_fits_saves_and_decides(wheel, tmp_path):
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile"]
    target = tmp_path / "installed"
    call(*pip, "--disable-pip-version-check", "--target", str(target), str(wheel))
    env = {**os.environ, "PYTHONPATH": str(target), "OMP_NUM_THREADS": "1"}
    env.pop("COSTSCAPE_DATA", None)
    said = call(sys.executable, "-c", FIT, str(target), cwd=tmp_path, env=env)
    assert said == "decided (40, 2)\n"
    assert "from costscape.__main__ import main" in (target / "bin" / "costscape").read_text()


def test_embedded_data_have_a_source_a_licence_and_a_checksum():
    folder = ROOT / "src" / "costscape" / "problems" / "embedded"
    notice = (folder / "NOTICE.md").read_text()
    for path in folder.iterdir():
        if path.suffix not in (".md", ".py") and path.is_file():
            section = notice.split(f"## {path.name}\n")[1].split("\n## ")[0]
            assert "licence" in section.lower()
            assert hashlib.sha256(path.read_bytes()).hexdigest() in section
