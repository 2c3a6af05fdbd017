"""The campaign of benchmarks/trust in its short form: no bad input, problem or unit misleads."""

import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

TRUST = Path(__file__).parents[1] / "benchmarks" / "trust"


@pytest.fixture
def script(monkeypatch):
    """Loads a script of the campaign; other folders have files of the same name."""
    monkeypatch.syspath_prepend(str(TRUST))

    def load(name):
        spec = spec_from_file_location(f"trust_{name}", TRUST / f"{name}.py")
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("inputs", {"every": 15, "lines": 0}),
        ("decisions", {"n": 160, "rows": 20, "seed": 3}),
        ("optimality", {"n": 48, "seed": 1}),
        ("data", {"few": 1}),
    ],
)
def test_the_campaign_finds_no_failure(script, name, sizes):
    found = script(name).run(**sizes)
    assert found.count > 40
    assert found.failures == 0, found.examples


@pytest.mark.slow
@pytest.mark.long
def test_a_service_at_saturation_answers_every_good_request(script):
    found = script("soak").run(minutes=0.3)
    assert found.count > 100
    assert found.failures == 0, found.examples


def test_the_soak_notices_errors_and_other_decisions(script):
    soak, campaign = script("soak"), script("campaign")
    found = campaign.Campaign("soak.py", "all good")
    clients = soak.Clients(found, None, np.zeros((2, 1)), [np.zeros((2, 1)), np.ones((2, 1))])
    answer = b'{"decisions": [[%d]], "ids": ["a"], "version": "v"}'
    for status, text in ((200, answer % 0), (200, answer % 1), (429, b""), (503, b"")):
        clients.check(False, 0, status, text)
    clients.check(True, 0, 422, b"")
    assert (found.count, found.failures, clients.other) == (5, 0, [])
    clients.check(False, 1, 200, answer % 7)
    assert clients.other == [(1, [7])]
    clients.check(False, 0, 500, b"")
    for status in (200, 429, 500):
        clients.check(True, 0, status, b"")
    assert found.failures == 4


def test_costs_that_misbehave_are_named(script):
    costs = script("costs")
    for name in ("writes into a", "mean over the batch", "constant 1e8"):
        cost, kind, words = costs.COSTS[name]
        got = costs.outcome(costs.cs.Task(cost, costs.cs.Budget(total=3.0, dim=2)))
        assert isinstance(got, kind), name
        assert words in str(got)


def test_definitions_notice_actions_outside(script):
    problems = script("random_problems")
    rng = np.random.default_rng(0)
    for name in problems.SETS:
        _, definition = problems.SETS[name](rng, 3, 1.0)
        assert definition.broken(np.full((1, len(definition.lower)), 50.0))[0] > 0.1


def test_rows_of_the_table_are_replaced_one_by_one(script):
    run, page = script("run"), script("page")
    line = {"script": "scale", "goal": "g", "count": 12, "failures": 1, "examples": []}

    def put(text, name, own, day):
        row = run.row({**line, "script": name}, own, day)
        return page.with_rows(text, "trust", run.HEAD, {name: row}, run.LONG)

    text = f"a\n<!-- trust: begin -->\n\n{run.HEAD}\n<!-- trust: end -->\nb\n"
    twice = put(put(text, "scale", ["--few", "3"], "2026-01-01"), "inputs", [], "2026-01-02")
    rows = [cells for cells in twice.splitlines() if cells.startswith(("| scale", "| inputs"))]
    assert [cells.split(" | ")[0] for cells in rows] == ["| inputs", "| scale"]
    assert "benchmarks/trust/scale.py --few 3" in rows[1]
    assert put(twice, "scale", ["--few", "3"], "2026-01-01") == twice


def test_the_oldest_versions_are_the_lower_bounds_of_the_metadata():
    project = tomllib.loads((TRUST.parents[1] / "pyproject.toml").read_text())["project"]
    lines = (TRUST / "oldest.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    least = f"{project['requires-python'].removeprefix('>=')}.0"
    bounds = {}
    for need in map(Requirement, project["dependencies"]):
        (bound,) = (spec.version for spec in need.specifier if spec.operator == ">=")
        bounds[need.name] = Version(bound)
    first = {"python_version": least.removesuffix(".0"), "python_full_version": least}
    for pin in pins:
        (spec,) = pin.specifier
        if pin.marker is None or pin.marker.evaluate(first):
            assert Version(spec.version) == bounds[pin.name], pin
        else:  # the first version for a later Python
            assert Version(spec.version) > bounds[pin.name], pin
    assert [pin.name for pin in pins if not pin.marker or pin.marker.evaluate(first)] == [*bounds]


def test_tests_of_versions_need_no_extra(script, tmp_path):
    versions = script("versions")
    files = versions.test_files()
    assert "tests/methods/test_saving.py" in files
    (tmp_path / "a.py").write_text("def f():\n    import duckdb\n")
    assert versions.needs_an_extra(tmp_path / "a.py")
    assert not versions.needs_an_extra(TRUST.parents[1] / files[0])


def test_an_audit_that_looked_nothing_up_is_no_success(script):
    verdict = script("audit").verdict
    skipped = {"name": "p", "skip_reason": "not found"}
    fine = {"name": "q", "version": "1", "vulns": []}
    bad = {"name": "r", "version": "2", "vulns": [{"id": "V-1", "fix_versions": ["3"]}]}
    (words,), status = verdict([skipped])
    assert status == 2
    assert "none of 1 packages" in words
    lines, status = verdict([skipped, fine])
    assert (lines, status) == (["0 known vulnerabilities in 1 packages.", "Not looked up: p."], 0)
    lines, status = verdict([fine, bad])
    assert (lines[0], status) == ("r 2: V-1, repaired in 3", 1)
