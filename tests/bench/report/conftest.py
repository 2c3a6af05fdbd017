from copy import deepcopy

import pytest

NEUTRAL = {
    "standard_error": None,
    "refused": None,
    "error": None,
    "decide_seconds": 0.5,
    "rows": 100,
    "epochs": None,
    "chosen_epoch": None,
    "curve": [],
    "peak_memory": None,
    "device": "cpu: x86_64, 2 cores",
    "versions": {"costscape": "0.1.0", "torch": "2.11.0"},
    "source": "made up",
    "recipe": "0123456789abcdef",
    "commit": "c0ffee",
    "made": "2026-01-02T03:04:05+00:00",
    "quick": False,
    "block": None,
    "test_rows": None,
    "chosen": {},
    "network": {"encoder": "MLP 2 x 128", "rate": 0.01},
    "by_test_row": {},
}


@pytest.fixture(scope="session")
def run():
    """A row as a run writes it: a number, or None for a run without one."""

    def make(problem="wind", method="df2", seed=0, regret=1.0, changes=None, gap=None, **other):
        found = {
            "problem": problem,
            "method": method,
            "seed": seed,
            "changes": changes or {},
            "regret": regret,
            "cost": None if regret is None else regret + 1,
            "gap": gap,
            "fit_seconds": None if regret is None else 2.0,
        }
        return {**NEUTRAL, **found, **other}

    return make


@pytest.fixture(scope="session")
def kept(run):
    """Two problems, a refusal, a failure, settings, curves: a little of everything."""
    curve = [[epoch, 3 / epoch, 2 / epoch + 0.01 * epoch] for epoch in range(1, 20)]
    rows = []
    for seed in range(3):
        wave = 0.1 * (seed - 1)
        fit = {"seed": seed, "curve": curve, "chosen_epoch": 14}
        rows += [
            run(method="df2", regret=60 + wave, fit_seconds=20.0, **fit),
            run(method="df2-paper", regret=62 - wave, fit_seconds=21.0, **fit),
            run(method="two-stage-gmm3", regret=69 + wave, fit_seconds=30.0, **fit),
            run(method="dfl-gmm3", regret=66 - 2 * wave, fit_seconds=900.0, **fit),
            run(method="policy-net", regret=480 + wave, seed=seed),
            run(method="egl", seed=seed, regret=None, refused="EGL needs a point & a <loss>."),
            run("synthetic-convex", "df2", seed, 4.5 + wave, gap=0.01 + wave / 100),
            run("synthetic-convex", "cme", seed, 4.6 + wave, gap=0.02 - wave / 100),
        ]
        for points in (50, 200, 1000):
            rows.append(run(seed=seed, regret=60 + 50 / points + wave, changes={"points": points}))
    rows.append(run(method="two-stage-gmm3", seed=3, regret=69.5))
    rows.append(
        run(
            method="dfl-gmm3",
            seed=3,
            regret=None,
            error="Traceback\n  x\nValueError: no <step>.\n",
        )
    )
    return rows


@pytest.fixture
def store(kept):
    """The rows of ``kept``, for this test alone."""
    return deepcopy(kept)


@pytest.fixture(scope="session")
def kept_landscape():
    a = [-1.0, 0.0, 1.0, 2.0]
    surfaces = {
        name: [[(u - shift) ** 2 + (v + shift) ** 2 for v in a] for u in a]
        for name, shift in (("initial", -1.0), ("learned", 1.0), ("true", 1.0))
    }
    one = {"problem": "synthetic-convex", "x": [0.1, 0.2], "a1": a, "a2": a, "seed": 0}
    return {**one, "surfaces": surfaces, "method": "df2"}


@pytest.fixture
def landscape(kept_landscape):
    """The landscape, for this test alone."""
    return deepcopy(kept_landscape)
