"""What the documents say is true: code runs, links lead somewhere, commands and names exist."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import typer
from safetensors import safe_open

import costscape as cs
from costscape.bench.zoo import GENERATED, ZOO
from costscape.cli import app
from costscape.methods.df2 import df2
from costscape.methods.df2.slopes import OWN_ACTIONS, SHARED_ACTIONS
from costscape.methods.forecast import forecast_method as forecasting
from costscape.models.outcome_network import usual_points
from costscape.solvers.auto import STRONGEST_FIRST

ROOT = Path(__file__).parents[1]
DOCS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *DOCS]
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
    whole = df2.fit_all

    def brief(fits, data, training):
        short = replace(training, epochs=min(2, training.epochs or 2), progress=False)
        return whole(fits, data, short)

    for module in (df2, forecasting):
        monkeypatch.setattr(module, "fit_all", brief)
    monkeypatch.chdir(tmp_path)
    # the data of the package, as a reader has it; the public file of sales takes seconds to read
    monkeypatch.delenv("COSTSCAPE_DATA", raising=False)
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
    orders = found["orders"]
    assert [item for _, item in orders.index] == ["1", "2", "3", "4", "5"]
    assert str(orders.index[0][0])[:10] == "2018-01-01"  # the day after the last in the file
    assert orders["sold"].between(0, 200).all()
    assert Path("orders.png").read_bytes().startswith(b"\x89PNG")
    assert isinstance(found["model"], cs.DF2)
    assert found["model"].folds == 1


def test_the_first_page_does_what_it_says(execute):
    found = execute("docs/start.md")
    model, new = found["model"], found["X_new"]
    assert found["expected"].shape == (len(new),)
    assert np.allclose(found["scenarios"].weights.sum(1), 1, atol=1e-5)
    assert np.array_equal(model.decide(new), found["orders"])
    # the summands of the last block are the cost of the first
    y, a = model.task.feasible.sample(6).split(3)
    assert found["task"].cost(y, a).allclose(found["cost"](y, a))


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p not in ("README.md", "docs/start.md") and blocks(p)]
)
def test_code_in_the_documents_runs(execute, page):
    execute(page)


def test_the_settings_of_training_are_documented_with_their_defaults(execute):
    assert execute("docs/how-to/train.md")["training"] == cs.Training()
    (code,) = blocks("docs/how-to/train.md")
    assert sorted(re.findall(r"^    (\w+)=", code, re.M)) == sorted(vars(cs.Training()))


# ---- links, files, commands, names


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_files_in_the_root_lead_somewhere(page):
    """Those of the docs are checked on the built site."""
    targets = re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text(page)))
    targets += re.findall(r'<img src="([^"]+)"', text(page))
    for target in targets:
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (ROOT / path).resolve() if path else ROOT / page
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
    targets = re.findall(r"^([a-z-]+):", text("Makefile"), re.M)
    assert set(re.findall(r"\bmake ([a-z-]+)", commands(page))) <= set(targets)


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


def test_the_readme_is_short_and_has_a_small_picture():
    assert len(text("README.md").splitlines()) <= 150
    (picture,) = re.findall(r'<img src="([^"]+)"', text("README.md"))
    assert (ROOT / picture).stat().st_size <= 150_000


def test_every_set_solver_and_method_is_on_its_page():
    pages = {
        cs.ConstraintSet: "docs/how-to/sets.md",
        cs.Solver: "docs/how-to/solvers.md",
        cs.Method: "docs/methods.md",
    }
    abstract = {*pages, cs.ScenarioMethod, cs.SurfaceMethod}
    for name in cs.__all__:
        found = getattr(cs, name)
        for kind, page in pages.items():
            if isinstance(found, type) and issubclass(found, kind) and found not in abstract:
                assert re.search(rf"`(solver=)?cs\.{name}\b", text(page)), (
                    f"{page} lacks cs.{name}"
                )


def test_every_method_has_a_section_with_idea_formula_use_and_cost():
    titles = set()
    for page in (ROOT / "docs" / "methods").glob("*.md"):
        for title, body in re.findall(
            r"^##? (\w+)\n(.*?)(?=^##? |\Z)", page.read_text(), re.M | re.S
        ):
            if "**Idea.**" in body:
                titles.add(title)
                for part in ("Formula", "When to use it", "When not", "Cost"):
                    assert f"**{part}.**" in body, f"{page.name}: {title} lacks {part}"
    methods = {name for name in cs.__all__ if _is_method(getattr(cs, name))}
    assert titles == methods


def _is_method(found):
    abstract = (cs.Method, cs.ScenarioMethod, cs.SurfaceMethod)
    return isinstance(found, type) and issubclass(found, cs.Method) and found not in abstract


def test_every_public_name_is_in_the_reference():
    pages = "".join(text(page) for page in DOCS if page.startswith("docs/api/"))
    listed = set(re.findall(r"^::: costscape\.([\w.]+)$", pages, re.M))
    wanted = {name for name in cs.__all__ if not isinstance(getattr(cs, name), ModuleType)}
    for module in ("checks", "data", "problems"):
        wanted |= {f"{module}.{name}" for name in getattr(cs, module).__all__}
    assert not wanted - listed


def test_the_settings_of_df2_are_documented_with_their_defaults():
    made = cs.DF2(cs.problems.inventory())
    page = text("docs/methods/df2.md")
    slopes = " ".join(text("docs/concepts/slopes.md").split())
    assert made.folds == 4
    assert "each of four folds" in " ".join(page.split())
    assert f"`outcome_share={made.outcome_share}`" in page
    assert f"`outcome_share={made.outcome_share}`" in slopes
    assert f"`most_scenarios={made.most_scenarios}`" in page
    assert f"rate {df2.RATE:.0e}".replace("e-0", "e-") in page
    for form in (cs.Absolute(), cs.Anchored(), cs.LocationScale()):
        actions = SHARED_ACTIONS if form == cs.Absolute() else OWN_ACTIONS
        line = rf"\| `{type(form).__name__}\(\)` \|.*\| {usual_points(form)} \| {actions} \|"
        assert re.search(line, text("docs/concepts/expected-cost.md"))


def test_the_number_of_problems_in_the_zoo_is_documented():
    page = " ".join(text("docs/decision-quality.md").split())
    assert f"The zoo has {len(ZOO)} small problems" in page
    assert f"the {len(GENERATED)} generated problems" in page
    rows = re.findall(r"^\| [\w, ]+ \| (\d+) \|", text("docs/decision-quality.md"), re.M)
    assert sum(map(int, rows)) == len(ZOO)


def test_names_that_are_gone_are_not_documented():
    gone = r"members=|refit=|two standard errors|\b(?:Refined|Damped|Changes|Base)\("
    for page in PAGES:
        if page != "docs/results.md":
            assert not re.search(gone, text(page)), page


def test_the_order_of_the_automatic_choice_is_documented():
    names = ", ".join(f"`{type(solver).__name__}`" for solver in STRONGEST_FIRST)
    assert f"takes the first of {names} that" in " ".join(text("docs/how-to/solvers.md").split())


def test_the_header_of_a_model_file_is_documented(tmp_path):
    path = tmp_path / "m"
    x, y = np.random.default_rng(0).uniform(size=(2, 20, 7))
    cs.Constant(cs.problems.inventory()).fit(x, y).save(path)
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["costscape"])
    rows = re.findall(r"^\| `(\w+)` \|", text("docs/how-to/production.md"), re.M)
    assert sorted(rows) == sorted(header)
    assert f"the version of this layout, {header['format']} |" in text("docs/how-to/production.md")
