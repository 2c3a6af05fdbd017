"""Answers are those of the model: for every form of rows, for what-if sets and risks."""

import asyncio
import io
import json

import numpy as np
import pytest

import costscape as cs
from costscape.serve import Limits, Settings


def objects(frame):
    return frame.to_dict("records")


def parquet(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


FORMS = {
    "objects": lambda x: {"json": {"rows": objects(x)}},
    "columns in another order": lambda x: {"json": {"rows": objects(x[x.columns[::-1]])}},
    "lists": lambda x: {"json": {"rows": x.to_numpy().tolist()}},
    "csv": lambda x: {
        "content": x[x.columns[::-1]].to_csv(index=False),
        "headers": {"content-type": "text/csv"},
    },
    "parquet": lambda x: {
        "content": parquet(x),
        "headers": {"content-type": "application/vnd.apache.parquet"},
    },
    "csv file": lambda x: {"files": {"file": ("x.csv", x.to_csv(index=False))}},
    "parquet file": lambda x: {"files": {"file": ("x.parquet", parquet(x))}},
}


def test_the_answer_is_that_of_the_model(ask, model, rows):
    async def talk(client):
        return {form: await client.post("/decide", **make(rows)) for form, make in FORMS.items()}

    decisions = model.decide(rows.to_numpy())
    expected = model.expected_cost(rows.to_numpy(), decisions)
    for form, found in ask(talk).items():
        assert found.status_code == 200, (form, found.text)
        answer = found.json()
        assert np.array_equal(answer["decisions"], decisions), form
        assert np.array_equal(answer["expected_cost"], expected), form
        assert answer["names"] == ["bread", "soup"]
        assert (answer["flags"], answer["notes"]) == ([], [])
        assert answer["model"] == "bakery"
        assert len(answer["version"]) == 12


def test_requests_that_arrive_together_are_one_call_and_equal_the_model(
    ask, model, rows, monkeypatch
):
    calls = []
    decide = cs.NearestNeighbours.decide

    def counted(self, X, *args, **kwargs):
        calls.append(len(X))
        return decide(self, X, *args, **kwargs)

    monkeypatch.setattr(cs.NearestNeighbours, "decide", counted)
    parts = [rows[i : i + 1 + i % 3] for i in range(6)]

    async def talk(client):
        calls.clear()
        return await asyncio.gather(
            *(client.post("/decide", json={"rows": objects(part)}) for part in parts)
        )

    answers = ask(talk, Settings(limits=Limits(wait_ms=200.0)))
    assert calls == [sum(map(len, parts))]
    for part, answer in zip(parts, answers, strict=True):
        assert np.allclose(answer.json()["decisions"], decide(model, part), atol=1e-6)


def test_other_questions_are_not_mixed_into_one_call(ask, model, rows):
    x = rows.to_numpy()
    questions = [{}, {"feasible": {"upper": [0.5, 1.0]}}, {"risk": {"cvar": 0.8}}]

    async def talk(client):
        return await asyncio.gather(
            *(client.post("/decide", json={"rows": x.tolist(), **q}) for q in questions)
        )

    plain, capped, careful = (answer.json() for answer in ask(talk))
    assert np.allclose(plain["decisions"], model.decide(x))
    box = cs.Box(0.0, [0.5, 1.0])
    assert np.allclose(capped["decisions"], model.decide(x, box))
    a = model.decide(x, risk=cs.CVaR(0.8))
    assert np.allclose(careful["decisions"], a)
    assert np.allclose(careful["risk"], model.expected_cost(x, a, risk=cs.CVaR(0.8)))
    assert np.allclose(careful["expected_cost"], model.expected_cost(x, a))


def test_a_total_makes_a_budget_of_a_box(post, model, rows):
    x = rows.to_numpy()
    body = {"file": ("x.csv", rows.to_csv(index=False))}
    answer = post("/decide", files=body, data={"feasible": json.dumps({"total": 1.0})}).json()
    budget = cs.Budget(total=1.0, dim=2, upper=3.0)
    assert np.allclose(answer["decisions"], model.decide(x, budget), atol=1e-4)
    assert np.max(np.sum(answer["decisions"], 1)) <= 1 + 1e-5


def test_a_wider_what_if_set_gets_a_note(post, rows):
    body = {"rows": objects(rows), "feasible": {"upper": 9.0}}
    (note,) = post("/decide", json=body).json()["notes"]
    assert "wider than the set of the fit" in note


def test_rows_far_out_of_range_are_flagged_or_refused(post, ask, rows):
    far = rows.copy()
    far.loc[3, "price"] = 1e6
    body = {"rows": objects(far)}
    answer = post("/decide", json=body)
    assert answer.json()["flags"] == [{"row": 3, "columns": ["price"]}]
    strict = post("/decide", Settings(strict=True), json=body)
    assert strict.status_code == 422
    assert "1 of 8 rows are far outside" in strict.json()["error"]
    assert "row 3 in price" in strict.json()["error"]


def test_explain_has_the_tables_of_the_explanation(post, model, rows):
    answer = post("/explain", json={"rows": objects(rows[:1])}).json()
    why = model.explain(rows[:1].to_numpy())
    assert np.allclose(answer["decision"], why.decision)
    assert answer["expected_cost"] == pytest.approx(why.expected_cost)
    assert [row["weight"] for row in answer["past_rows"]] == pytest.approx([0.2] * 5)
    assert {entry["name"] for entry in answer["inputs"]} == {"temp", "wind", "price"}
    assert len(answer["curves"]) == 2
    several = post("/explain", json={"rows": objects(rows)})
    assert several.status_code == 413


def test_models_and_the_document_have_the_columns_with_ranges_and_units(ask, model):
    async def talk(client):
        return (await client.get("/models")).json(), (await client.get("/openapi.json")).json()

    models, document = ask(talk)
    (facts,) = models["models"]
    assert facts["fit_rows"] == 60
    assert facts["fit_date"] == model.record_.date
    assert [c["name"] for c in facts["columns"]] == ["temp", "wind", "price"]
    assert facts["columns"][2]["unit"] == "EUR"
    assert facts["columns"][2]["high"] == model.record_.x_high[2]
    assert facts["decisions"][0] == {"name": "bread", "low": 0.0, "high": 3.0, "unit": "loaves"}
    row = document["components"]["schemas"]["Row-bakery"]
    assert row["required"] == ["temp", "wind", "price"]
    assert "in training, in EUR" in row["properties"]["price"]["description"]
    assert "/decide" in document["paths"]


def test_several_models_are_chosen_by_name(post, write_model, folder, tmp_path, rows):
    other = write_model(tmp_path / "kiosk", k=40)
    folders, body = [folder, tmp_path / "kiosk"], {"rows": objects(rows)}
    answer = post("/decide?model=kiosk", folders=folders, json=body).json()
    assert np.array_equal(answer["decisions"], other.decide(rows))
    unnamed = post("/decide", folders=folders, json=body)
    assert unnamed.status_code == 422
    assert "bakery, kiosk" in unnamed.json()["error"]
    assert post("/decide?model=bank", folders=folders, json=body).status_code == 404
