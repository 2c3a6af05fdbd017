"""Test the package with the oldest and the newest versions that its metadata allow.

    python benchmarks/trust/versions.py                      # every Python found, both ends
    python benchmarks/trust/versions.py --python 3.12 --only oldest --tests tests/sets

Each pair has an environment of its own in out/versions, with the package, the versions of
oldest.txt or the newest ones, and the packages that the tests need, cvxpy and pandas among them.
Test files that import anything else are left out, and slow tests too. Prints a line for each
environment and writes the table of docs/reliability.md.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from page import write_rows

ROOT = Path(__file__).parents[2]
OLDEST = Path(__file__).with_name("oldest.txt")
HOME = ROOT / "out" / "versions"
PYTHONS = ("3.11", "3.12", "3.13")
ENDS = ("oldest", "newest")
CORE = ("torch", "numpy", "scipy", "scikit-learn", "joblib", "safetensors", "jaxtyping")
FOR_TESTS = ("beartype", "cvxpy", "hypothesis", "pandas", "pytest", "pytest-timeout")
WITHOUT = "not cvxpylayers and not cvxpy_layer"  # built from source, by a compiler
FOLDERS = ("data", "methods", "models", "risk", "sets", "solvers", "training")
FILES = ("any_problem", "block_bootstrap", "context", "evaluation", "scenarios", "task")
IMPORTED = {"costscape", "sklearn", "conftest", "strategies"} | {
    name.replace("-", "_") for name in (*CORE, *FOR_TESTS)
}
HEAD = (
    "| environment | versions | tests | passed | failed | skipped | date |\n"
    "|---|---|---|---|---|---|---|\n"
)


def interpreter(version):
    """The program of this Python, or None where there is none that runs."""
    path = shutil.which(f"python{version}")
    if path is None or subprocess.run([path, "-c", ""], capture_output=True).returncode:
        return None
    return path


def needs_an_extra(path):
    """Whether a test file imports anything but the core and what the tests need."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return bool(names - IMPORTED - sys.stdlib_module_names)


def test_files():
    files = [path for name in FOLDERS for path in (ROOT / "tests" / name).glob("test_*.py")]
    files += [ROOT / "tests" / f"test_{name}.py" for name in FILES]
    return sorted(str(path.relative_to(ROOT)) for path in files if not needs_an_extra(path))


def install(python, folder, end):
    """Make the environment, or bring it up to date; its Python."""
    own = folder / "bin" / "python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    wanted = ["-r", str(OLDEST)] if end == "oldest" else [*CORE, "--upgrade"]
    pip = [str(own), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--only-binary", ",".join(CORE), *wanted, *FOR_TESTS, str(ROOT)], check=True
    )
    return str(own)


def installed(own):
    code = (
        "import platform, sys\nfrom importlib.metadata import version\n"
        "print(', '.join(['Python ' + platform.python_version()]"
        " + [name + ' ' + version(name) for name in sys.argv[1:]]))"
    )
    done = subprocess.run([own, "-c", code, *CORE], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def tested(own, folder, files):
    """Counts of passed, failed and skipped tests; the output is kept in the folder."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env |= {"OMP_NUM_THREADS": "1", "CI": "1"}
    report, log = folder / "tests.xml", folder / "tests.log"
    report.unlink(missing_ok=True)
    picked = ["-m", "not slow", "-k", WITHOUT, f"--junit-xml={report}", *files]
    words = [own, "-m", "pytest", *picked]
    with log.open("w") as out:
        done = subprocess.run(
            words, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode not in (0, 1):  # interrupted, or not begun: its counts say nothing
        raise SystemExit(f"The tests of {folder.name} did not run; see {log}.")
    suite = ElementTree.parse(report).getroot()[0]
    every, failed, errors, skipped = (
        int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")
    )
    return every - failed - errors - skipped, failed + errors, skipped


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--python", choices=PYTHONS, help="one Python; all that are found if left out"
    )
    parser.add_argument("--only", choices=ENDS, help="one end; both if left out")
    parser.add_argument("--tests", nargs="+", help="files or folders in place of the selection")
    args = parser.parse_args(arguments)
    files = sorted(args.tests or test_files())
    order = [f"python{version}-{end}" for version in PYTHONS for end in ENDS]
    broken = 0
    for version in [args.python] if args.python else PYTHONS:
        if (python := interpreter(version)) is None:
            print(f"python{version}: not installed on this machine, so not tested.", flush=True)
            continue
        for end in [args.only] if args.only else ENDS:
            name = f"python{version}-{end}"
            own = install(python, HOME / name, end)
            versions = installed(own)
            passed, failed, skipped = tested(own, HOME / name, files)
            print(
                f"{name}: {versions}: {passed} passed, {failed} failed, {skipped} skipped",
                flush=True,
            )
            day = datetime.now(UTC).date().isoformat()
            which = " ".join(args.tests or ["the selection"])
            cells = [name, versions, which, f"{passed:,}", f"{failed:,}", f"{skipped:,}", day]
            write_rows("versions", HEAD, {name: "| " + " | ".join(cells) + " |"}, order)
            broken += failed
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
