"""Decisions are kept before they are answered; outcomes find them; gauges tell of both."""

import asyncio
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import costscape.serve.log_gauges as gauges
from costscape.cli import app
from costscape.monitor import open_store
from costscape.serve import Limits, Settings, create_app, parse_sources
from costscape.serve.decision_log import DecisionLog


@pytest.fixture
def place(folder, model):
    return folder / "decisions.sqlite"


@pytest.fixture
def logging(place):
    return Settings(log=str(place), gauge_seconds=0.02)


@pytest.fixture
def kept(place):
    """kept(): the records of the store."""

    def kept(name="bakery"):
        with open_store(place, create=False) as store:
            return store.read(name, 10**6)

    return kept


def objects(frame):
    return frame.to_dict("records")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_what_is_answered_is_kept(ask, model, rows, logging, kept):
    days = [{"day": f"2026-01-0{i + 1}", "shelf": i} for i in range(8)]
    body = {"rows": objects(rows), "keys": days, "quantiles": [0.1, 0.9]}

    async def talk(client):
        plain = await client.post("/decide", json=body, headers={"x-request-id": "r-1"})
        bent = await client.post(
            "/decide",
            json={"rows": objects(rows[:1]), "risk": {"cvar": 0.5}, "feasible": {"upper": 1}},
        )
        table = await client.post(
            "/decide", content=rows.to_csv(index=False), headers={"content-type": "text/csv"}
        )
        return plain.json(), bent.json(), table.json()

    plain, bent, table = ask(talk, logging)
    records = kept()
    assert [r.id for r in records] == plain["ids"] + bent["ids"] + table["ids"]
    x = rows.to_numpy()
    a = model.decide(x)
    levels = np.asarray(model.cost_quantiles(x, a, [0.1, 0.9]))
    assert np.allclose(plain["quantiles"], levels)
    for i, record in enumerate(records[:8]):
        assert record.x == objects(rows)[i]
        assert list(record.decision.items()) == list(
            zip(["bread", "soup"], plain["decisions"][i], strict=True)
        )
        assert record.expected_cost == plain["expected_cost"][i]
        assert record.keys == days[i]
        assert (record.request_id, record.version) == ("r-1", plain["version"])
        assert list(record.quantiles) == ["0.1", "0.9"]
        assert np.allclose(list(record.quantiles.values()), levels[i])
        assert (record.flags, record.question) == ((), None)
    assert records[8].question == {"feasible": {"upper": 1.0}, "risk": {"cvar": 0.5}}


def test_a_trial_is_answered_and_not_kept(ask, rows, logging, kept):
    async def talk(client):
        body = {"rows": objects(rows[:2])}
        return [await client.post(f"/decide?trial={trial}", json=body) for trial in (1, 0)]

    trial, real = ask(talk, logging)
    assert trial.json()["decisions"] == real.json()["decisions"]
    assert "ids" not in trial.json()
    assert [record.id for record in kept()] == real.json()["ids"]


def test_requests_that_share_a_call_share_a_commit(ask, rows, place, kept, monkeypatch):
    commits = []
    keep = DecisionLog.__call__
    monkeypatch.setattr(
        DecisionLog, "__call__", lambda self, jobs: commits.append(len(jobs)) or keep(self, jobs)
    )

    async def talk(client):
        asked = (client.post("/decide", json={"rows": objects(rows[:2])}) for _ in range(6))
        return [answer.json()["ids"] for answer in await asyncio.gather(*asked)]

    ids = ask(talk, Settings(log=str(place), limits=Limits(wait_ms=200.0)))
    assert commits == [6]
    assert [r.id for r in kept()] == [id for some in ids for id in some]
    assert len({id for some in ids for id in some}) == 12


def test_without_a_log_there_are_no_ids_and_outcomes_are_refused(post, rows):
    assert "ids" not in post("/decide", json={"rows": objects(rows)}).json()
    found = post("/outcomes", json={"rows": [{"id": "1", "bread": 1, "soup": 1}]})
    assert found.status_code == 409
    assert "--log" in found.json()["error"]


def test_a_store_that_fails_is_a_503_and_nothing_is_answered(ask, rows, logging, place):
    async def talk(client):
        first = await client.post("/decide", json={"rows": objects(rows)})
        with sqlite3.connect(place) as other:
            other.execute("DROP TABLE costscape_outcomes")
            other.execute("DROP TABLE costscape_decisions")
        second = await client.post("/decide", json={"rows": objects(rows)})
        third = await client.post("/outcomes", json={"rows": [{"id": "1", "bread": 1, "soup": 1}]})
        return first, second, third

    first, second, third = ask(talk, logging)
    assert (first.status_code, second.status_code, third.status_code) == (200, 503, 503)
    assert "could not be logged, so they are not given" in second.json()["error"]
    assert second.headers["retry-after"] == "5"
    assert "decisions" not in second.json()


def test_a_store_that_cannot_be_opened_refuses_the_start(folder, model, tmp_path):
    wrong = Settings(log=str(tmp_path / "none" / "d.sqlite"))
    with pytest.raises(OSError, match="cannot be opened for writing"):
        create_app(parse_sources([str(folder)]), wrong)
    done = run("serve", folder, "--log", tmp_path / "none" / "d.sqlite")
    assert (done.exit_code, "cannot be opened for writing" in done.output) == (1, True)


def test_refused_rows_are_not_kept(ask, rows, place, kept):
    far = rows + 100

    async def talk(client):
        return [
            (await client.post("/decide", json={"rows": objects(some)})).status_code
            for some in (far, rows)
        ]

    assert ask(talk, Settings(log=str(place), strict=True)) == [422, 200]
    assert len(kept()) == len(rows)


@pytest.mark.parametrize("keys", [[{}], {}, [1, 2], [{"a": None}] * 2, [{"a": "x" * 201}] * 2])
def test_wrong_keys_are_refused(post, rows, keys):
    found = post("/decide", json={"rows": objects(rows[:2]), "keys": keys})
    assert found.status_code == 422
    assert "keys needs a list of 2 objects" in found.json()["error"]


@pytest.mark.parametrize("levels", [[], [0.0], [0.5, 0.5], "0.5", ["a"], [0.1] * 30])
def test_wrong_levels_are_refused(post, rows, levels):
    found = post("/decide", json={"rows": objects(rows[:2]), "quantiles": levels})
    assert found.status_code == 422
    assert found.json()["error"].startswith("quantiles needs")


def test_outcomes_are_attached_over_http_and_wrong_ones_refused(ask, rows, logging, kept):
    async def talk(client):
        keys = [{"day": str(i)} for i in range(8)]
        made = (await client.post("/decide", json={"rows": objects(rows), "keys": keys})).json()
        good = [{"id": made["ids"][i], "bread": i, "soup": 1.5} for i in range(3)]
        table = "day,soup,bread\n3,1.0,2.0\n4,3.0,4.0\n99,0,0\n"
        csv = {"content-type": "text/csv"}
        return [
            await client.post("/outcomes", json={"rows": good}),
            await client.post("/outcomes", content=table, headers=csv),
            await client.post("/outcomes", json={"rows": [{"id": "no", "bread": 1, "soup": 1}]}),
            await client.post("/outcomes", json=[1]),
            await client.post("/outcomes", content="{", headers={}),
            await client.post("/outcomes", content="a,a\n1,1\n", headers=csv),
            await client.post("/outcomes", content="x", headers={"content-type": "image/png"}),
        ]

    by_id, by_day, *wrong = ask(talk, logging)
    assert by_id.json()["decisions"] == 3
    assert (by_day.json()["decisions"], by_day.json()["unmatched"]) == (2, 1)
    assert [r.outcome for r in kept()[:5]] == [
        *((float(i), 1.5) for i in range(3)), (2.0, 1.0), (4.0, 3.0)
    ]  # fmt: skip
    assert [found.status_code for found in wrong] == [422, 422, 422, 422, 415]
    assert "no logged decision, first 'no'" in wrong[0].json()["error"]
    assert all(found.json()["error"].endswith(".") for found in wrong)


def test_gauges_tell_of_records_flags_costs_and_drift(ask, model, rows, logging, monkeypatch):
    threads = []
    real = gauges.set_gauges

    def watched(*args):
        import threading

        threads.append(threading.current_thread() is threading.main_thread())
        return real(*args)

    monkeypatch.setattr(gauges, "set_gauges", watched)
    many = pd.concat([rows] * 5, ignore_index=True)
    moved = many.assign(temp=many["temp"] + 0.9)
    cost = model.task.cost
    x = moved.to_numpy()

    async def talk(client):
        made = (await client.post("/decide", json={"rows": objects(moved)})).json()
        y = [{"id": id, "bread": 2.0, "soup": 1.0} for id in made["ids"]]
        await client.post("/outcomes", json={"rows": y})
        for _ in range(400):
            text = (await client.get("/metrics")).text
            if 'costscape_cost_ratio{model="bakery"}' in text:
                break
            await asyncio.sleep(0.02)
        return made, dict(
            line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")
        )

    made, found = ask(talk, logging)
    import torch

    a = torch.tensor(made["decisions"])
    realised = float(cost(torch.tensor([2.0, 1.0]), a).mean())
    ratio = realised / float(np.mean(model.expected_cost(x, a.numpy())))
    assert float(found['costscape_logged_rows_total{model="bakery"}']) == 40
    assert float(found['costscape_outcomes_total{model="bakery"}']) == 40
    assert float(found['costscape_cost_ratio{model="bakery"}']) == pytest.approx(ratio, rel=1e-4)
    assert float(found['costscape_flagged_share{model="bakery"}']) == pytest.approx(
        len(made["flags"]) / 40
    )
    assert float(found['costscape_drift_alerts{model="bakery"}']) >= 1
    assert threads
    assert not any(threads)


def test_the_commands_attach_outcomes_and_write_a_page(ask, folder, rows, logging, tmp_path):
    many = pd.concat([rows] * 5, ignore_index=True)

    async def talk(client):
        return (await client.post("/decide", json={"rows": objects(many)})).json()["ids"]

    ids = ask(talk, logging)
    file = tmp_path / "outcomes.csv"
    pd.DataFrame({"id": ids, "bread": 1.0, "soup": 0.5}).to_csv(file, index=False)
    done = run("outcomes", folder, "--data", file)
    assert done.stdout.startswith("40 rows: 40 decisions have an outcome now, 0 of which")
    page = tmp_path / "page" / "monitor.html"
    done = run("monitor", folder, "-o", page)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("bakery: 40 decisions from ")
    assert "Cost of the last 40 outcomes: realised" in done.stdout
    assert "<h1>bakery</h1>" in page.read_text()
    alone = run("monitor", folder / "decisions.sqlite")
    assert "need the model" in alone.stdout
    # wrong words
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    sentences = {
        ("outcomes", folder, "--data", tmp_path / "none.csv"): "there is none at",
        (
            "outcomes",
            copy,
            "--data",
            file,
        ): "is of the model bakery, but the outcomes are for copy",
        ("monitor", copy): "decisions of bakery (40 rows), but there is no 'copy'",
        ("monitor", folder, "--log", tmp_path / "no.sqlite"): "There is no store of decisions at",
        ("monitor", tmp_path / "nothing"): "needs the task it was fitted for",
        ("monitor", folder, "--psi", "0"): "psi must be positive",
        ("monitor", "mysql://x"): "needs a path or a postgresql:// address",
    }
    for words, sentence in sentences.items():
        done = run(*words)
        assert done.exit_code == 1, words
        assert sentence in " ".join(done.output.split()), (words, done.output)
