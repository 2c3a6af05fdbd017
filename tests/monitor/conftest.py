"""A small model, its logged decisions with outcomes, and a PostgreSQL server of the tests."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import costscape as cs
from costscape.monitor import Record, open_store

NAMES, OUTCOMES = ["temp", "wind", "price"], ["bread", "soup"]


def _law(rng, n, level=1.0, shift=0.0):
    x = rng.random((n, 3)) + np.array([shift, 0, 0])
    y = np.stack([x[:, 0] + x[:, 1], x[:, 2]], 1) + level * rng.random((n, 2))
    return pd.DataFrame(x, columns=NAMES), pd.DataFrame(y, columns=OUTCOMES)


@pytest.fixture
def opened():
    """opened(place, create=True): a store that is closed at the end of the test."""
    stores = []

    def opened(place, create=True):
        stores.append(open_store(place, create))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def law():
    """law(rng, n, level, shift): n rows of X and Y, of the law of the training rows by default.

    ``level`` scales the noise of Y, ``shift`` moves the first column of X.
    """
    return _law


@pytest.fixture(scope="session")
def model():
    task = cs.SeparableTask(
        lambda y, a: 4 * (y - a).relu() + (a - y).relu(), cs.Box(0.0, 6.0, dim=2), convex=True
    )
    return cs.NearestNeighbours(task, k=20).fit(*_law(np.random.default_rng(0), 400))


@pytest.fixture
def decided(model):
    """decided(X, Y, first): records of the model's decisions for X, with outcomes Y or None."""

    def decided(X, Y=None, first=0, version="v1"):
        a = model.decide(X.to_numpy())
        expected = model.expected_cost(X.to_numpy(), a)
        return [
            Record(
                f"{first + i}",
                f"2026-01-{1 + (first + i) // 1440:02d}T{(first + i) // 60 % 24:02d}:"
                f"{(first + i) % 60:02d}:00.000000Z",
                "shop",
                version,
                "r",
                X.iloc[i].to_dict(),
                dict(zip(OUTCOMES, a[i].tolist(), strict=True)),
                float(expected[i]),
                (),
                {"day": f"d{first + i}"},
                outcome=None if Y is None else tuple(Y.iloc[i]),
            )
            for i in range(len(X))
        ]

    return decided


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def postgres():
    """The address of a database on a server that runs during the tests of a file."""
    pytest.importorskip("psycopg")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found or not shutil.which("runuser"):
        pytest.skip("no PostgreSQL server is installed")
    programs = found[-1]
    home = Path(tempfile.mkdtemp(prefix="pg"))
    # the server refuses to run as root
    user = "postgres" if os.geteuid() == 0 else None

    def run(*words):
        first = ["runuser", "-u", user, "--"] if user else []
        subprocess.run([*first, *map(str, words)], check=True, capture_output=True, cwd=home)

    if user:
        shutil.chown(home, user)
    data, port = home / "data", _free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {home}"
    try:
        run(programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
        start = ["-D", data, "-l", home / "log", "-o", options, "-w"]
        run(programs / "pg_ctl", "start", *start)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            run(programs / "pg_ctl", "stop", "-D", data, "-m", "immediate")
    finally:
        shutil.rmtree(home)
