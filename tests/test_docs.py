"""What the documents say is true: code runs, links lead somewhere, commands and names exist."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from safetensors import safe_open

import costscape as cs
from costscape.bench.zoo import GENERATED, ZOO
from costscape.cli import app
from costscape.methods.df2 import df2
from costscape.methods.df2.forms import usual_points
from costscape.methods.forecast import base as forecasting
from costscape.solvers.auto import STRONGEST_FIRST

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def text(page):
    return (ROOT / page).read_text()


def blocks(page):
    return [code for language, code in FENCE.findall(text(page)) if language == "python"]


def commands(page):
    """Code that is not Python: other fences, indented lines, spans."""
    shell = [code for language, code in FENCE.findall(text(page)) if language != "python"]
    prose = FENCE.sub("", text(page))
    indented = re.findall(r"^ {4}.*$", prose, re.M)
    return "\n".join([*shell, *indented, *re.findall(r"`([^`]+)`", prose)])


@pytest.fixture
def execute(monkeypatch, tmp_path):
    """execute(page): the names its code leaves behind, given small X and Y and short fits."""
    whole = df2.fit_network

    def brief(model, loss, data, training, **settings):
        short = replace(training, epochs=min(2, training.epochs or 2), progress=False)
        return whole(model, loss, data, short, **settings)

    for module in (df2, forecasting):
        monkeypatch.setattr(module, "fit_network", brief)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(120, 14))
    names = {"X": x, "Y": x[:, :7] + rng.uniform(size=(120, 7))}

    def execute(page):
        for code in blocks(page):
            exec(compile(code, page, "exec"), names)
        return names

    return execute


# ---- code


def test_the_ten_lines_of_the_readme_do_what_they_say(execute):
    found = execute("README.md")
    assert found["orders"].shape == (50, 7)
    assert (found["orders"] >= 0).all()
    assert (found["orders"] <= 3).all()
    assert isinstance(found["orders"], np.ndarray)
    assert found["expected"].shape == (50,)
    assert np.allclose(found["scenarios"].weights.sum(1), 1, atol=1e-5)
    assert np.array_equal(found["model"].decide(found["X"][-50:]), found["orders"])
    # DF2's default has a weight for each form, and the fits of all folds decide together
    assert isinstance(found["model"], cs.DF2)
    assert found["model"].folds == 1
    full = found["full"]
    assert set(full.weights_) == {"absolute", "anchored", "location-scale"}
    assert sum(full.weights_.values()) == pytest.approx(1)
    assert len(full.fits_) == 4 * sum(weight > 0 for weight in full.weights_.values())
    # the summands of the second block are the cost of the first
    y, a = found["model"].task.feasible.sample(6).split(3)
    assert found["task"].cost(y, a).allclose(found["cost"](y, a))


@pytest.mark.parametrize("page", [p for p in PAGES if p != "README.md" and blocks(p)])
def test_code_in_the_documents_runs(execute, page):
    execute(page)


def test_the_settings_of_training_are_documented_with_their_defaults(execute):
    assert execute("docs/training.md")["training"] == cs.Training()
    (code,) = blocks("docs/training.md")
    assert sorted(re.findall(r"^    (\w+)=", code, re.M)) == sorted(vars(cs.Training()))


# ---- links, files, commands, names


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    here = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text(page))):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (here / path).resolve() if path else ROOT / page
        assert there.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in headings(there), f"{page} links to {target}"


def headings(path):
    lines = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.M)
    return [re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines]


@pytest.mark.parametrize("page", PAGES)
def test_files_named_exist(page):
    places = r"(?:src|tests|docs|examples|benchmarks)/[\w./-]*"
    for name in re.findall(rf"(?<![\w/]){places}", commands(page)):
        if "NAME" not in name:
            assert (ROOT / name).exists(), f"{page} names {name}"


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_named_exist(page):
    targets = re.findall(r"^([a-z]+):", text("Makefile"), re.M)
    assert set(re.findall(r"\bmake ([a-z]+)", commands(page))) <= set(targets)


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_costscape_commands_named_exist(page):
    known = set(typer.main.get_command(app).commands)
    assert set(re.findall(r"(?<![\w./-])costscape ([a-z][\w-]*)", commands(page))) <= known


@pytest.mark.parametrize("page", PAGES)
def test_public_names_exist(page):
    for name in set(re.findall(r"\bcs\.([A-Za-z_]\w*(?:\.\w+)*)", text(page))):
        found = cs
        for part in name.split("."):
            assert hasattr(found, part), f"{page} speaks of cs.{name}"
            found = getattr(found, part)


# ---- facts


def test_the_first_screen_has_the_two_commands():
    assert FENCE.findall(text("README.md"))[0] == ("sh", "make demo\nmake test\n")


def test_the_readme_lists_every_set_solver_and_method():
    kinds = cs.ConstraintSet, cs.Solver, cs.Method
    abstract = {*kinds, cs.ScenarioMethod, cs.SurfaceMethod}
    for name in cs.__all__:
        found = getattr(cs, name)
        if isinstance(found, type) and issubclass(found, kinds) and found not in abstract:
            assert f"| `cs.{name}` |" in text("README.md")


def test_the_settings_of_df2_are_documented_with_their_defaults():
    made = cs.DF2(cs.problems.inventory())
    page, maths = text("docs/methods.md"), " ".join(text("docs/maths.md").split())
    assert made.folds == 4
    assert "each of four folds" in " ".join(page.split())
    assert f"`outcome_share={made.outcome_share}`" in page
    assert f"`outcome_share={made.outcome_share}`" in maths
    assert f"`most_scenarios={made.most_scenarios}`" in page
    assert f"rate {df2.RATE:.0e}".replace("e-0", "e-") in page
    for form in (cs.Absolute(), cs.Anchored(), cs.LocationScale()):
        actions = df2.SHARED_ACTIONS if form == cs.Absolute() else df2.OWN_ACTIONS
        line = rf"\| `{type(form).__name__}\(\)` \|.*\| {usual_points(form)} \| {actions} \|"
        assert re.search(line, text("docs/maths.md"))


def test_the_number_of_problems_in_the_zoo_is_documented():
    page = " ".join(text("docs/decision-quality.md").split())
    assert f"The zoo has {len(ZOO)} small problems" in page
    assert f"On the {len(GENERATED)} generated problems" in page
    rows = re.findall(r"^\| [\w, ]+ \| (\d+) \|", text("docs/decision-quality.md"), re.M)
    assert sum(map(int, rows)) == len(ZOO)


def test_names_that_are_gone_are_not_documented():
    gone = r"members=|refit=|two standard errors|\b(?:Refined|Damped|Changes|Base)\("
    for page in PAGES:
        if page != "docs/results.md":
            assert not re.search(gone, text(page)), page


def test_the_order_of_the_automatic_choice_is_documented():
    names = ", ".join(f"`{type(solver).__name__}`" for solver in STRONGEST_FIRST)
    assert f"takes the first of {names} that" in " ".join(text("docs/choosing.md").split())


def test_the_header_of_a_model_file_is_documented(tmp_path):
    path = tmp_path / "m"
    x, y = np.random.default_rng(0).uniform(size=(2, 20, 7))
    cs.Constant(cs.problems.inventory()).fit(x, y).save(path)
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["costscape"])
    rows = re.findall(r"^\| `(\w+)` \|", text("docs/files.md"), re.M)
    assert sorted(rows) == sorted(header)
    assert f"the version of this layout, {header['format']} |" in text("docs/files.md")
