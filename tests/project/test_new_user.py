"""A new user in an empty folder: every command of a project, in order, on the sample table."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import costscape as cs
from costscape.cli import app
from costscape.monitor import open_store
from costscape.project import first_answer as answers
from costscape.project import paired_files
from costscape.project.task_choice import order_level

GROUPS = {"item": ["1", "2"]}


def costscape_(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def worked(*words):
    done = costscape_(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words):
    """The one sentence of a command that fails."""
    done = costscape_(*words)
    assert done.exit_code == 1, done.output
    assert "Traceback" not in done.output
    (line,) = done.stderr.splitlines()
    return line


def change(path, *pairs):
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A project on 200 days of two items, with a method that is fitted at once."""
    folder = tmp_path_factory.mktemp("user") / "shop"
    worked("init", folder)
    sales = pd.read_csv(folder / "sales.csv")
    sales = sales[sales["item"] <= 2]
    days = sorted(sales["date"].unique())
    sales[sales["date"] < days[200]].to_csv(folder / "sales.csv", index=False)
    sales[sales["date"].isin(days[200:207])].to_csv(folder / "week.csv", index=False)
    change(
        folder / "costscape.toml",
        ('name = "DF2.quick"', 'name = "NearestNeighbours"'),
        ('["DF2.quick", "RandomForest", "NearestNeighbours"', '["NearestNeighbours"'),
    )
    worked("fit", folder)
    return folder


def own_copy(shop, tmp_path):
    return shutil.copytree(shop, tmp_path / "own")


# ---- the way through


def test_init_writes_three_files_and_never_over_others(tmp_path):
    said = worked("init", tmp_path / "new")
    assert [line.rsplit("/")[-1] for line in said.splitlines()] == [
        "costscape.toml",
        "cost.py",
        "sales.csv",
    ]
    (tmp_path / "new" / "cost.py").write_text("mine")
    assert "needs a folder without costscape.toml" in refused("init", tmp_path / "new")
    assert (tmp_path / "new" / "cost.py").read_text() == "mine"
    worked("init", tmp_path / "new", "--force")
    assert "cs.SeparableTask" in (tmp_path / "new" / "cost.py").read_text()


def test_check_counts_rows_groups_and_dates_and_needs_no_change_of_the_starter(tmp_path):
    worked("init", tmp_path)
    said = worked("check", tmp_path)
    assert "3,585 rows with all lags in 5 groups by item, from 2016-01-15 to 2017-12-31" in said
    assert "sold_lag1, sold_lag2, sold_lag7, sold_lag14, weekday_Mon" in said
    assert "Method: DF2.quick" in said


def test_decisions_are_those_of_the_library(shop, tmp_path):
    out = tmp_path / "new" / "orders.csv"
    assert "2 decisions written" in worked("decide", shop, "-o", out)
    found = pd.read_csv(out, dtype={"item": str})
    table = cs.Table(
        shop / "sales.csv", date="date", group="item", outcome="sold", lags=[1, 2, 7, 14]
    )
    task = cs.newsvendor(under=4.0, over=1.0, upper=200.0)
    model = cs.NearestNeighbours(task).fit(table.X, table.Y)
    X = table.next()
    a = model.decide(X)
    assert found["date"].tolist() == ["2016-07-19"] * 2
    assert found["item"].tolist() == GROUPS["item"]
    assert np.allclose(found["decision_sold"], a["sold"], rtol=1e-5)
    assert np.allclose(found["expected_cost"], model.expected_cost(X, a), rtol=1e-5)
    quantiles = found[["cost_10", "cost_50", "cost_90"]].to_numpy()
    assert np.allclose(quantiles, model.cost_quantiles(X, a), rtol=1e-5, atol=1e-3)
    assert found["out_of_range"].isna().all()
    assert not list(out.parent.glob("*.part"))
    # a second run writes nothing, unless it is asked for
    before = out.read_text()
    assert "exists" in refused("decide", shop, "-o", out)
    assert out.read_text() == before
    worked("decide", shop, "-o", out, "--force")


def test_new_rows_move_the_date_and_rows_out_of_range_are_flagged(shop, tmp_path):
    week = shop / "week.csv"
    assert worked("decide", shop, "--data", week).count("2016-07-26") == 2
    strange = tmp_path / "strange.csv"
    strange.write_text("date,item,sold\n2016-07-19,1,20\n2016-07-19,2,9000\n")
    done = costscape_("decide", shop, "--data", strange)
    assert "1 of 2 rows are far outside" in done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "sold_lag1" in line]
    assert line.split()[:2] == ["2016-07-20", "2"]
    # the whole file, with rows that the table knows, counts as its last rows
    whole = tmp_path / "whole.csv"
    whole.write_text((shop / "sales.csv").read_text() + week.read_text().split("\n", 1)[1])
    assert worked("decide", shop, "--data", whole) == worked("decide", shop, "--data", week)


def test_update_keeps_the_rows_and_skips_them_the_next_time(shop, tmp_path):
    own = own_copy(shop, tmp_path)
    said = worked("update", own, "--data", own / "week.csv")
    assert said.startswith("14 new rows, 0 known already.")
    assert "sales.csv is unchanged" in said
    assert worked("decide", own).count("2016-07-26") == 2
    assert "has none (14 are known already)" in refused("update", own, "--data", own / "week.csv")
    # what was learned is what the library learns
    table = cs.Table.load(shop / "models" / "project.table").append(own / "week.csv")
    task = cs.newsvendor(under=4.0, over=1.0, upper=200.0)
    model = cs.load(shop / "models" / "project.model", task)
    assert model.update(table.X, table.Y).updated is ("The model is updated" in said)
    again = cs.load(own / "models" / "project.model", task)
    assert np.array_equal(again.decide(table.next()), model.decide(table.next()))


@pytest.mark.parametrize("moved", [0, 1])
def test_an_update_that_breaks_between_its_two_files_is_whole_afterwards(
    shop, tmp_path, monkeypatch, moved
):
    own, whole = own_copy(shop, tmp_path), shutil.copytree(shop, tmp_path / "whole")
    worked("update", whole, "--data", whole / "week.csv")
    real, calls = type(own).replace, []

    def replace(path, target):
        if path.parent.name == paired_files.STEP:
            if len(calls) == moved:
                raise KeyboardInterrupt
            calls.append(path)
        return real(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(own), "replace", replace)
        assert costscape_("update", own, "--data", own / "week.csv").exit_code == 130
    assert worked("decide", own) == worked("decide", whole)
    assert sorted(p.name for p in (own / "models").iterdir()) == ["project.model", "project.table"]


def test_compare_adds_the_costs_of_simple_rules(shop, tmp_path):
    own = own_copy(shop, tmp_path)
    sales = pd.read_csv(own / "sales.csv")
    sales["ordered"] = 1000.0  # far above the set: the nearest feasible order is 200
    sales.to_csv(own / "sales.csv", index=False)
    change(own / "costscape.toml", ('# today = "ordered"', 'today = "ordered"'))
    said = worked("compare", own)
    rows = int(re.search(r"the last (\d+) to test on", said)[1])
    table = cs.Table(sales, date="date", group="item", outcome="sold", lags=[1, 2, 7, 14])
    y = table.Y["sold"].to_numpy()[-rows:]
    costs = dict(
        re.findall(
            r"^(today's decisions|as a week ago|mean \+ safety stock) +([\d.]+)", said, re.M
        )
    )
    assert float(costs["today's decisions"]) == pytest.approx((200 - y).mean(), rel=1e-3)
    week = table.X["sold_lag7"].to_numpy()[-rows:]
    wanted = np.where(y > week, 4 * (y - week), week - y).mean()
    assert float(costs["as a week ago"]) == pytest.approx(wanted, rel=1e-3)
    stock = []
    for date, item in table.X.index[-rows:]:
        past = sales[(sales["item"] == int(item)) & (sales["date"] < str(date)[:10])]["sold"]
        stock.append(past[-28:].mean() + 0.8416212 * past[-28:].std())
    wanted = np.where(y > stock, 4 * (y - stock), stock - y).mean()
    assert float(costs["mean + safety stock"]) == pytest.approx(wanted, rel=1e-3)
    # a service reads the same costs beside the model
    kept = json.loads((own / "models" / "project.model.comparison.json").read_text())
    assert kept["reference"] == "today's decisions"
    assert np.mean(kept["costs"]["today's decisions"]) == pytest.approx((200 - y).mean(), rel=1e-6)
    assert kept["labels"][-1] == f"{sales['date'].max()}, {sales['item'].max()}"
    # the page shows what was compared
    page = tmp_path / "page.html"
    worked("report", own, "-o", page)
    text = page.read_text()
    assert "today&#x27;s decisions" in text
    assert "2016-07-19" in text
    assert text.count("data:image/png;base64,") == 2
    assert "http" not in text.replace("http-equiv", "")


def test_compare_takes_a_budget_and_a_preference(shop, tmp_path):
    own = own_copy(shop, tmp_path)
    sales = pd.read_csv(own / "sales.csv")
    sales["ordered"] = sales["sold"]  # nobody is better than hindsight
    sales.to_csv(own / "sales.csv", index=False)
    toml = own / "costscape.toml"
    change(toml, ('# today = "ordered"', 'today = "ordered"'), ("# prefer =", "prefer ="))
    change(toml, ('methods = ["NearestNeighbours"', 'methods = ["DF2.quick"'))
    said = worked("compare", own, "--budget", "0.000001 s")
    assert "Use today's decisions" in said
    assert "DF2.quick left out: not started, since the budget was spent" in said
    change(toml, ('# budget = "10 min"', 'budget = "soon"'))
    said = refused("compare", own)
    assert str(toml) in said
    assert "needs a budget in seconds or with a unit" in said
    assert "seconds or with a unit" in refused("compare", own, "--budget", "-3")
    change(toml, ('budget = "soon"', ""), ('prefer = "simple"', 'prefer = "cheap"'))
    assert "needs prefer to be None" in refused("compare", own)
    change(toml, ('prefer = "cheap"', ""), ('today = "ordered"', 'today = ["ordered", "sold"]'))
    assert "today needs one column for each number" in refused("compare", own)


def test_a_cost_in_python_is_the_users_and_its_errors_name_the_line(shop, tmp_path):
    own = own_copy(shop, tmp_path)
    change(
        own / "costscape.toml",
        ("newsvendor = {under = 4.0, over = 1.0, upper = 200.0} #", "#"),
        ('# python = "cost.py" #', 'python = "cost.py" #'),
    )
    assert "Task: python, 1 number" in worked("check", own)
    assert "other" in refused("decide", own)  # the model was fitted for another cost
    worked("fit", own)
    worked("decide", own)
    change(own / "cost.py", ("return 4.0 * short", "return 4.0 / 0 * short"))
    line = (own / "cost.py").read_text().split("4.0 / 0")[0].count("\n") + 1
    assert refused("check", own).startswith(f"{own / 'cost.py'}, line {line}: float division")
    change(own / "cost.py", ("import costscape as cs", "import costscape as cs\nx = = 1"))
    assert f"{own / 'cost.py'}, line 5: invalid syntax" in refused("check", own)
    (own / "cost.py").write_text("cost = 1\n")
    assert "needs a task with the name `task`, but has none" in refused("fit", own)
    (own / "cost.py").unlink()
    assert "there is none at" in refused("check", own)


# ---- known columns, and days to come


def test_known_columns_of_tomorrow_come_from_a_file_with_or_without_outcomes(tmp_path):
    worked("init", tmp_path)
    days = pd.date_range("2024-01-01", periods=80)
    past = pd.DataFrame({"date": days, "sold": range(80), "price": [1.0, 2.0] * 40})
    past.to_csv(tmp_path / "sales.csv", index=False)
    change(
        tmp_path / "costscape.toml",
        ('"item" ', "[] "),
        ("known = []", 'known = ["price"]'),
        ('name = "DF2.quick"', 'name = "NearestNeighbours"'),
    )
    worked("fit", tmp_path)
    assert "needs the columns known in advance" in refused("decide", tmp_path)
    new = tmp_path / "new.csv"
    new.write_text("date,price\n2024-03-21,1.5\n")
    assert "2024-03-21" in worked("decide", tmp_path, "--data", new)
    new.write_text("date,price,sold\n2024-03-21,2,70\n2024-03-22,1.5,\n")
    assert "2024-03-22" in worked("decide", tmp_path, "--data", new)
    new.write_text("date,price,sold\n2024-03-21,2,\n2024-03-22,1.5,7\n")
    assert "column 'sold' is empty in line 2" in refused("decide", tmp_path, "--data", new)
    new.write_text("date,price\n2024-03-29,1.5\n")
    assert "needs rows for 2024-03-21" in refused("decide", tmp_path, "--data", new)


# ---- files of other programs


def german(text):
    return text.replace(",", ";").replace(".", ",")


DAYS = [str(day)[:10] for day in pd.date_range("2024-01-01", periods=60)]
PLAIN = "date,item,sold\n" + "".join(f"{d},Öl,{i % 7 + 0.5}\n" for i, d in enumerate(DAYS))


@pytest.mark.parametrize(
    "raw",
    [german(PLAIN).encode("cp1252"), german(PLAIN).encode("utf-16"), PLAIN.encode("utf-8-sig")],
    ids=["semicolons, decimal commas, Latin-1", "UTF-16", "UTF-8 with a mark"],
)
def test_foreign_files_that_are_clear_are_read(tmp_path, raw):
    worked("init", tmp_path)
    (tmp_path / "sales.csv").write_bytes(raw)
    change(tmp_path / "costscape.toml", ('name = "DF2.quick"', 'name = "NearestNeighbours"'))
    said = worked("check", tmp_path)
    assert "Outcomes: sold from 0.5 to 6.5" in said
    worked("fit", tmp_path)
    assert "Öl" in worked("decide", tmp_path)


LINES = PLAIN.splitlines()
BAD = {
    "a gap in dates": (
        [*LINES[:9], *LINES[10:]],
        "2024-01-10 (line 10) follows 2024-01-08 (1 such gaps). Add the rows, or pass gaps = "
        "{outcome = 0.0}.",
    ),
    "a text": (
        [*LINES[:4], "2024-01-04,Öl,many", *LINES[5:]],
        "column 'sold', but line 5 has 'many'",
    ),
    "a double": ([*LINES, LINES[3]], "is in line 4 and in line 62 (1 such)"),
    "a missing value": (
        [*LINES[:4], "2024-01-04,Öl,", *LINES[5:]],
        "column 'sold' is empty in line 5",
    ),
    "a missing group": ([*LINES[:4], "2024-01-04,,3", *LINES[5:]], "'item' is empty in line 5"),
    "no date": ([*LINES[:4], "soon,Öl,3", *LINES[5:]], "line 5 has 'soon'"),
    "a cut line": ([*LINES[:4], "2024-01-04,Öl", *LINES[5:]], "line 5 has 2"),
    "other columns": (
        ["day,item,sold", *LINES[1:]],
        "needs the column 'date', but line 1 has 'day'",
    ),
    "no rows": (LINES[:1], "needs at least one row, but has none"),
    "too few rows": (LINES[:9], "needs groups of at least 15 rows"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_wrong_is_one_sentence_with_file_line_and_column(tmp_path, bad):
    lines, words = BAD[bad]
    worked("init", tmp_path)
    (tmp_path / "sales.csv").write_text("\n".join(lines) + "\n")
    said = refused("check", tmp_path)
    assert str(tmp_path / "sales.csv") in said
    assert words in said
    assert refused("fit", tmp_path) == said
    assert not (tmp_path / "models").exists()


def test_bytes_of_no_encoding_are_refused_with_the_setting_to_state_it(tmp_path):
    worked("init", tmp_path)
    (tmp_path / "sales.csv").write_bytes(PLAIN.encode("utf-16-le"))
    assert str(tmp_path / "sales.csv") in refused("check", tmp_path)
    (tmp_path / "sales.csv").write_text(PLAIN)
    change(tmp_path / "costscape.toml", ("# csv = {", "csv = {"), ("cp1252", "ascii"))
    said = refused("check", tmp_path)
    assert 'csv = {encoding = "cp1250"}' in said


SETTINGS = {
    "no TOML": ("lags = [1", "lags = 1, [1", "at line 12, column 9"),
    "unknown key": ("horizon = 1", "horizont = 1", "line 13, [table] needs keys among date"),
    "unknown part": (
        "[method]",
        "[methods]",
        "the parts [table], [task], [method], [compare] and [units]",
    ),
    "unknown method": ("DF2.quick", "DF3", "[method] needs a method among DF2.quick, DF2"),
    "unknown setting": ("seed = 0", "seeds = 0", "[method] needs keys among name"),
    "two tasks": ("# bidding", "bidding", "needs exactly one task, but has newsvendor, bidding"),
    "no price": (
        "under = 4.0, ",
        "",
        "[task]: newsvendor needs under, over, and takes",
    ),
    "a price below 0": (
        "under = 4.0",
        "under = -4.0",
        "needs finite prices >= 0, but under has -4",
    ),
    "a lag of the future": ("[1, 2, 7, 14]", "[0, 7]", "[table]: Table needs lags above the gap"),
    "no number": ("[1, 2, 7, 14]", '["x"]', "[table]: lags needs a list of whole numbers"),
    "no file": ('"sales.csv" ', '"sale.csv" ', "needs data to be a file, but there is none at"),
    "a filling": ('# missing = "forward"', 'missing = "back"', 'needs "forward" or a number'),
}


@pytest.mark.parametrize("bad", SETTINGS)
def test_what_is_wrong_in_the_project_file_names_its_place(tmp_path, bad):
    old, new, words = SETTINGS[bad]
    worked("init", tmp_path)
    change(tmp_path / "costscape.toml", (old, new))
    said = refused("check", tmp_path)
    assert str(tmp_path / "costscape.toml") in said
    assert words in said


def test_a_project_that_is_not_there_or_not_fitted_or_changed(shop, tmp_path):
    for command in ("check", "fit", "decide", "compare"):
        assert "has no costscape.toml. Write one with `costscape init" in refused(
            command, tmp_path
        )
    worked("init", tmp_path)
    assert f"Run `costscape fit {tmp_path}` first" in refused("decide", tmp_path)
    own = own_copy(shop, tmp_path)
    change(own / "costscape.toml", ("lags = [1, 2, 7, 14]", "lags = [1, 2, 7]"))
    assert "needs the settings of the last fit" in refused("decide", own)
    assert costscape_("update", own).exit_code == 2


# ---- try


@pytest.fixture
def brief(monkeypatch):
    """`try` with neighbours only."""
    monkeypatch.setattr(answers.DF2, "quick", lambda task: cs.Constant(task))


def test_try_gives_a_saving_orders_and_a_picture(shop, tmp_path, brief):
    words = ["--date", "date", "--group", "item", "--outcome", "sold", "--under", 4, "--over", 1]
    said = worked("try", shop / "sales.csv", *words, "-o", tmp_path / "out")
    assert re.search(r"NearestNeighbours saves -?\d+ % \[.*\] of .* against", said)
    orders = pd.read_csv(tmp_path / "out" / "orders.csv")
    assert orders["date"].tolist() == ["2016-07-19"] * 2
    assert (tmp_path / "out" / "orders.png").read_bytes().startswith(b"\x89PNG")
    assert "exists" in refused("try", shop / "sales.csv", *words, "-o", tmp_path / "out")


def test_try_of_several_outcomes_shares_a_capacity_and_counts_from_todays_rule(tmp_path, brief):
    wide = pd.read_csv(cs.sample_csv()).pivot(index="date", columns="item", values="sold")
    wide = wide[[1, 2]].set_axis(["bread", "soup"], axis=1).iloc[:150].reset_index()
    wide["ordered_bread"], wide["ordered_soup"] = 20, 20
    wide.to_csv(tmp_path / "wide.csv", index=False)
    said = worked(
        "try", tmp_path / "wide.csv", "--date", "date", "--outcome", "bread,soup", "--under",
        "4,3", "--over", "1", "--capacity", 40, "--today", "ordered_bread,ordered_soup",
        "--pack", "2", "-o", tmp_path / "out",
    )  # fmt: skip
    assert "against today's decisions" in said
    orders = pd.read_csv(tmp_path / "out" / "orders.csv")
    chosen = orders[["decision_bread", "decision_soup"]].to_numpy()
    assert chosen.sum() <= 40
    assert np.allclose(chosen % 2, 0)
    rows = int(re.search(r"the last (\d+) to test on", said)[1])
    y = wide[["bread", "soup"]].to_numpy()[-rows:]
    short, spare = np.clip(y - 20, 0, None), np.clip(20 - y, 0, None)
    cost = (short * [4, 3] + spare).sum(1).mean()
    found = re.search(r"^today's decisions +([\d.]+)", said, re.M)[1]
    assert float(found) == pytest.approx(cost, rel=1e-3)


def test_try_refuses_in_words(shop, tmp_path):
    words = [shop / "sales.csv", "--date", "date", "--outcome", "sold", "--over", 1]
    assert costscape_("try", *words).exit_code == 2
    assert costscape_("try", *words, "--under", "four").exit_code == 2
    out = ["-o", tmp_path / "out"]
    assert "--under needs one number, or 1" in refused("try", *words, "--under", "4,3", *out)
    said = refused("try", *words, "--under", 4, *out)
    assert "is in line 2 and in line 3" in said
    assert said.endswith("tells them apart in --group.")
    words = [*words, "--under", 4, "--group", "item", *out]
    assert costscape_("try", *words, "--lags", "1.5").exit_code == 2
    # what is wrong is found before methods are fitted, which takes a minute
    assert "needs the column 'taken'" in refused("try", *words, "--today", "taken")
    assert "is a file" in refused("try", *words, "-o", shop / "sales.csv")


def test_prices_of_0_have_no_level_of_orders():
    assert order_level(3.0, 1.0) == 0.75
    assert order_level(0.0, 0.0) is None


def test_decisions_are_logged_and_watched(shop, tmp_path):
    store = tmp_path / "decisions.sqlite"
    worked("decide", shop, "--log", store)
    done = worked("outcomes", shop, "--data", shop / "week.csv", "--log", store)
    assert done.startswith("14 rows: 2 decisions have an outcome now")
    with open_store(store) as found:
        first, second = found.read("shop", 9)
    sales = pd.read_csv(shop / "week.csv")
    day = sales[sales["date"] == first.keys["date"]].set_index("item")["sold"]
    assert [first.keys["item"], second.keys["item"]] == ["1", "2"]
    assert [first.outcome, second.outcome] == [(day[1],), (day[2],)]
    assert "shop: 2 decisions" in worked("monitor", shop, "--log", store)
    known = refused("outcomes", shop, "--data", shop / "sales.csv", "--log", store)
    assert "Attach outcomes before an update." in known
