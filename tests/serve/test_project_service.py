"""A project folder is served as it is: the decisions of its commands, its units, its updates."""

import asyncio
import shutil
import time

import httpx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import costscape as cs
from costscape.cli import app
from costscape.cli.served_sources import served_sources
from costscape.monitor import open_store
from costscape.project.column_units import column_units
from costscape.project.project_file import read_project
from costscape.serve import Settings, create_app, write_references
from costscape.serve.served_model import ServedModel

STILL = Settings(watch_seconds=0.0)


def costscape_(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def change(path, *pairs):
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """200 days of two items, neighbours, units, and the week after."""
    folder = tmp_path_factory.mktemp("user") / "shop"
    costscape_("init", folder)
    sales = pd.read_csv(folder / "sales.csv")
    sales = sales[sales["item"] <= 2]
    days = sorted(sales["date"].unique())
    sales[sales["date"] < days[200]].to_csv(folder / "sales.csv", index=False)
    sales[sales["date"].isin(days[200:207])].to_csv(folder / "week.csv", index=False)
    change(
        folder / "costscape.toml",
        ('name = "DF2.quick"', 'name = "NearestNeighbours"'),
        ('["DF2.quick", "RandomForest", "NearestNeighbours", "Constant"]', '["Constant"]'),
        ("# [units] #", "[units] #"),
        ('# sold = "pieces"', 'sold = "pieces"'),
    )
    costscape_("fit", folder)
    return folder


@pytest.fixture
def shop(fitted, tmp_path):
    return shutil.copytree(fitted, tmp_path / "shop")


def ask(folder, talk, settings=STILL):
    async def main():
        service = create_app(served_sources([str(folder)]), settings)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://here")
        async with service.router.lifespan_context(service), client:
            return await talk(client)

    return asyncio.run(main())


def next_rows(folder):
    """What `costscape decide` decides for, as a client sends it."""
    X = cs.Table.load(folder / "models" / "project.table").next()
    return X.reset_index(drop=True).to_dict("records")


def decided(folder, out):
    """The answers of `costscape decide` for the same rows."""
    costscape_("decide", folder, "-o", out)
    return pd.read_csv(out)


def test_decisions_are_those_of_the_command(fitted, tmp_path):
    async def talk(client):
        answer = await client.post(
            "/decide", json={"rows": next_rows(fitted), "quantiles": [0.1, 0.9]}
        )
        return answer, (await client.get("/models")).json()["models"], await client.get("/past")

    answer, (facts,), past = ask(fitted, talk)
    assert answer.status_code == 200, answer.text
    found, wanted = answer.json(), decided(fitted, tmp_path / "orders.csv")
    assert found["names"] == ["sold"]
    assert np.allclose(np.ravel(found["decisions"]), wanted["decision_sold"], rtol=1e-5)
    assert np.allclose(found["expected_cost"], wanted["expected_cost"], rtol=1e-5)
    assert np.allclose(found["quantiles"], wanted[["cost_10", "cost_90"]], rtol=1e-5, atol=1e-3)
    assert facts["name"] == "shop"
    units = {one["name"]: one["unit"] for one in facts["columns"]}
    assert units["sold_lag7"] == "pieces"
    assert units["weekday_Mon"] is None
    assert facts["decisions"][0]["unit"] == "pieces"
    assert past.json()["labels"][0].startswith("2016-01-15")


def test_the_document_and_the_page_know_the_columns_of_the_table(shop):
    costscape_("compare", shop)

    async def talk(client):
        paths = ("/openapi.json", "/", "/backtest")
        return [await client.get(path) for path in paths]

    document, page, backtest = ask(shop, talk)
    row = document.json()["components"]["schemas"]["Row-shop"]
    X = cs.Table.load(shop / "models" / "project.table").next()
    assert row["required"] == list(X.columns)
    assert "in pieces" in row["properties"]["sold_lag1"]["description"]
    assert page.status_code == 200
    assert "Constant" in backtest.json()["costs"]


def test_an_update_is_swapped_in_as_one_pair(shop, tmp_path):
    async def talk(client):
        before = (await client.get("/models")).json()["models"][0]["version"]
        await asyncio.to_thread(costscape_, "update", shop, "--data", shop / "week.csv")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            answer = (await client.post("/decide", json={"rows": next_rows(shop)})).json()
            if answer["version"] != before:
                return answer, (await client.get("/metrics")).text
            await asyncio.sleep(0.02)
        raise TimeoutError

    answer, metrics = ask(shop, talk, Settings(watch_seconds=0.02))
    wanted = decided(shop, tmp_path / "orders.csv")["decision_sold"]
    assert np.allclose(np.ravel(answer["decisions"]), wanted, rtol=1e-5)
    assert 'costscape_reloads_total{model="shop",result="loaded"}' in metrics


def test_a_step_that_was_begun_is_finished_before_the_pair_is_read(shop):
    new = shutil.copytree(shop, shop.parent / "new")
    costscape_("update", new, "--data", new / "week.csv")
    (source,) = served_sources([str(shop)])
    before = ServedModel.load(source)
    # as an update leaves it that is killed between its two moves
    (shop / "models" / "step").mkdir()
    shutil.copy(new / "models" / "project.table", shop / "models" / "step")
    shutil.copy(new / "models" / "project.model", shop / "models" / "project.model")
    after, wanted = ServedModel.load(source), ServedModel.load(*served_sources([str(new)]))
    assert after.version == wanted.version != before.version
    assert not (shop / "models" / "step").exists()


def test_other_settings_of_the_table_leave_the_old_version(shop):
    async def talk(client):
        client.headers["authorization"] = "Bearer secret"
        before = (await client.get("/models")).json()["models"][0]["version"]
        change(shop / "costscape.toml", ("lags = [1, 2, 7, 14]", "lags = [1, 2, 7]"))
        return before, await client.post("/models/shop/reload")

    before, answer = ask(shop, talk, Settings(token="secret", watch_seconds=0.0))
    assert answer.status_code == 409
    assert "needs the settings of the last fit" in answer.json()["error"]
    assert f"{before} stays" in answer.json()["error"]


def test_a_cost_in_python_is_watched_and_part_of_the_version(shop):
    (source,) = served_sources([str(shop)])
    first = ServedModel.load(source).version
    change(
        shop / "costscape.toml",
        ("newsvendor = {under = 4.0, over = 1.0, upper = 200.0}", 'python = "cost.py" #'),
    )
    change(shop / "cost.py", (" + 2.0 * (spare - 50.0).relu()", ""))  # the cost of the fit
    assert shop / "cost.py" in source.watched()
    assert ServedModel.load(source).version != first
    change(shop / "cost.py", ("4.0 * short", "5.0 * short"))
    with pytest.raises(ValueError, match="cost"):
        ServedModel.load(source)
    change(shop / "costscape.toml", ('data = "sales.csv"', "data = "))
    assert shop / "cost.py" not in source.watched()  # no error: the next load says what is wrong
    with pytest.raises(ValueError, match="needs to be TOML"):
        ServedModel.load(source)


def test_logged_decisions_and_a_reference_are_those_of_the_project(shop):
    place = shop / "models" / "decisions.sqlite"

    async def talk(client):
        return await client.post(
            "/decide",
            json={"rows": next_rows(shop), "keys": [{"item": "1"}, {"item": "2"}]},
        )

    answer = ask(shop, talk, Settings(watch_seconds=0.0, log=str(place))).json()
    with open_store(str(place), create=False) as store:
        records = store.read("shop", 10)
    assert sorted(record.id for record in records) == sorted(answer["ids"])
    (path,) = write_references(served_sources([str(shop)]))
    assert path == shop / "models" / "project.model.reference.json"
    ask(shop, lambda client: client.get("/ready"))


def test_what_cannot_be_served_is_refused_in_a_sentence(shop):
    def refused(*words):
        done = CliRunner().invoke(app, ["serve", *map(str, words)])
        assert done.exit_code == 1
        assert "Traceback" not in done.output
        (line,) = done.output.strip().splitlines()
        return line

    assert "whose task is in costscape.toml" in refused(shop, "--task", "cost.py:task")
    assert "shop is there twice" in refused(shop, f"shop={shop}")
    change(shop / "costscape.toml", ('models = "models"', 'models = "none"'))
    assert f"costscape fit {shop}" in refused(shop)


def test_units_are_texts_of_columns(shop):
    change(shop / "costscape.toml", ('sold = "pieces"', "sold = 1"))
    with pytest.raises(ValueError, match=r"\[units\] needs a text, but sold is 1"):
        column_units(read_project(shop))
    change(shop / "costscape.toml", ("sold = 1", 'price = "EUR"'))
    with pytest.raises(ValueError, match="but has 'price'"):
        column_units(read_project(shop))
