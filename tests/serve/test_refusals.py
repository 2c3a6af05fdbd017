"""What is not answered: a status, one sentence, and nothing of it in the log."""

import asyncio
import json
import logging
import threading

import pytest

from costscape.serve import Limits, Settings
from costscape.serve import served_model as versions

GOOD = {"temp": 0.5, "wind": 0.5, "price": 0.5}
SECRET = 0.123456789


def raw(text):
    return {"content": text, "headers": {"content-type": "application/json"}}


BAD = {
    "nan": (raw('{"rows": [{"temp": NaN, "wind": 1.0, "price": 1.0}]}'), "'temp' of row 0"),
    "missing value": ({"json": {"rows": [GOOD, {**GOOD, "wind": None}]}}, "'wind' of row 1"),
    "text": ({"json": {"rows": [{**GOOD, "price": "0.5"}]}}, "'price' of row 0"),
    "truth": ({"json": {"rows": [{**GOOD, "price": True}]}}, "'price' of row 0"),
    "huge": ({"json": {"rows": [{**GOOD, "price": 10**400}]}}, "'price' of row 0"),
    "lacks": ({"json": {"rows": [{"temp": 1.0, "wind": 1.0}]}}, "lacks 'price'"),
    "more": ({"json": {"rows": [{**GOOD, "rain": 1.0}]}}, "has 'rain', which fit did not"),
    "renamed": (
        {"json": {"rows": [{"temp": 1.0, "wind": 1.0, "cost": 1.0}]}},
        "lacks 'price' and has 'cost'",
    ),
    "width": ({"json": {"rows": [[1.0, 2.0]]}}, "needs 3 values, 'temp', 'wind', 'price'"),
    "mixed": ({"json": {"rows": [[1.0, 2.0, 3.0], GOOD]}}, "Row 1 needs 3 values"),
    "empty": ({"json": {"rows": []}}, "at least one row"),
    "no rows": ({"json": {"x": [[1.0]]}}, '{"rows": [...]}'),
    "no json": (raw("{rows"), "needs JSON"),
    "deep": (raw("[" * 100_000), "needs JSON"),
    "csv value": (
        {"content": "temp,wind,price\n1,2,x\n", "headers": {"content-type": "text/csv"}},
        "'price' of row 0",
    ),
    "csv columns": (
        {"content": "temp,wind\n1,2\n", "headers": {"content-type": "text/csv"}},
        "lacks 'price'",
    ),
    "csv short": (
        {"content": "temp,wind,price\n1,2\n", "headers": {"content-type": "text/csv"}},
        "Row 0 needs 3 values",
    ),
    "no parquet": ({"files": {"file": ("x.parquet", b"PAR1")}}, "no Parquet file"),
    "other file": ({"files": {"file": ("x.xlsx", b"PK")}}, ".csv or .parquet"),
    "risk": ({"json": {"rows": [GOOD], "risk": {"cvar": 2}}}, "CVaR needs level"),
    "no risk": ({"json": {"rows": [GOOD], "risk": {"var": 0.9}}}, "mean_deviation"),
    "set": ({"json": {"rows": [GOOD], "feasible": {"upper": -1}}}, "lower <= upper"),
    "set width": ({"json": {"rows": [GOOD], "feasible": {"upper": [1, 2, 3]}}}, "upper"),
    "float32": ({"json": {"rows": [{**GOOD, "price": 1e300}]}}, "finite in float32"),
}


def test_bad_requests_get_a_sentence_that_names_the_place(ask):
    async def talk(client):
        return {
            case: await client.post("/decide", **request) for case, (request, _) in BAD.items()
        }

    for case, answer in ask(talk).items():
        assert answer.status_code == 422, case
        assert BAD[case][1] in answer.json()["error"], case
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_one_bad_request_leaves_the_others_of_its_call_unharmed(ask):
    rows = [GOOD, {**GOOD, "price": 1e300}, GOOD]

    async def talk(client):
        return await asyncio.gather(
            *(client.post("/decide", json={"rows": [row]}) for row in rows)
        )

    answers = ask(talk, Settings(limits=Limits(wait_ms=100.0)))
    assert [answer.status_code for answer in answers] == [200, 422, 200]


def test_large_requests_are_refused(post):
    few = Settings(limits=Limits(rows=2, body_bytes=1000))
    many = post("/decide", few, json={"rows": [GOOD] * 3})
    assert many.status_code == 413
    assert "may have 2 rows, but this one has 3" in many.json()["error"]
    assert post("/decide", few, json={"rows": [GOOD] * 100}).status_code == 413

    async def parts():
        for _ in range(100):
            yield b"0" * 100

    unknown = post("/decide", few, content=parts())  # without Content-Length
    assert unknown.status_code == 413
    assert "1,000 bytes" in unknown.json()["error"]


def test_a_body_that_does_not_arrive_is_given_up(post):
    async def parts():
        yield b"{"
        await asyncio.sleep(5)

    late = post("/decide", Settings(limits=Limits(seconds=0.05)), content=parts())
    assert late.status_code == 408


def test_many_large_bodies_at_once_are_too_many(ask):
    body = {"rows": [GOOD] * 40}
    size = len(json.dumps(body))

    async def talk(client):
        return await asyncio.gather(*(client.post("/decide", json=body) for _ in range(12)))

    answers = ask(talk, Settings(limits=Limits(body_bytes=size, wait_ms=300.0)))
    codes = [answer.status_code for answer in answers]
    assert set(codes) == {200, 503}
    assert codes.count(200) >= 8
    assert all(a.headers["retry-after"] == "1" for a in answers if a.status_code == 503)


def test_a_full_queue_and_a_late_answer_say_when_to_try_again(ask, monkeypatch):
    go = threading.Event()
    whole = versions.ServedModel.answer

    def slow(self, rows, question):
        go.wait(10)
        return whole(self, rows, question)

    async def talk(client):
        monkeypatch.setattr(versions.ServedModel, "answer", slow)
        first = asyncio.create_task(client.post("/decide", json={"rows": [GOOD] * 3}))
        await asyncio.sleep(0.05)
        full = await client.post("/decide", json={"rows": [GOOD]})
        late = await first
        go.set()
        for _ in range(100):  # the call that was too late is still done
            again = await client.post("/decide", json={"rows": [GOOD]})
            if again.status_code == 200:
                break
            await asyncio.sleep(0.01)
        return full, late, again

    full, late, again = ask(talk, Settings(limits=Limits(queue_rows=3, seconds=0.3)))
    assert (full.status_code, full.headers["retry-after"]) == (429, "1")
    assert (late.status_code, late.headers["retry-after"]) == (503, "1")
    assert "no answer within 0.3 s" in late.json()["error"]
    assert again.status_code == 200


def test_requests_need_the_token(ask):
    async def talk(client):
        paths = ("/models", "/metrics", "/openapi.json")
        closed = [await client.get(path) for path in paths]
        opened = [await client.get(path) for path in ("/health", "/ready")]
        wrong = await client.get("/models", headers={"authorization": "Bearer secreT"})
        right = await client.get("/models", headers={"authorization": "Bearer secret"})
        return [*closed, wrong], [*opened, right]

    refused, answered = ask(talk, Settings(token="secret"))
    assert {answer.status_code for answer in refused} == {401}
    assert refused[0].headers["www-authenticate"] == "Bearer"
    assert {answer.status_code for answer in answered} == {200}


def test_other_hosts_need_a_token():
    with pytest.raises(ValueError, match="needs a token"):
        Settings(host="0.0.0.0")
    assert "secret" not in repr(Settings(host="0.0.0.0", token="secret"))


def test_request_ids_are_echoed_where_they_are_harmless(ask):
    async def talk(client):
        ids = ("order-7", "a b\tc", "")
        return [await client.get("/health", headers={"X-Request-ID": i}) for i in ids]

    kept, odd, none = (answer.headers["x-request-id"] for answer in ask(talk))
    assert kept == "order-7"
    assert odd != "a b\tc"
    assert len(none) == 32


def test_unknown_paths_and_failures_have_a_sentence_too(ask, monkeypatch, caplog):
    def broken(self, rows, question):
        raise RuntimeError(f"secret {rows}")

    async def talk(client):
        monkeypatch.setattr(versions.ServedModel, "answer", broken)
        return (
            await client.get("/fly"),
            await client.get("/decide"),
            await client.post("/decide", json={"rows": [{**GOOD, "price": SECRET}]}),
        )

    caplog.set_level(logging.INFO, "costscape.serve")
    lost, wrong, failed = ask(talk)
    assert [a.status_code for a in (lost, wrong, failed)] == [404, 405, 500]
    assert "error" in lost.json()
    assert failed.json()["error"].startswith("The service failed")
    facts = [record.facts for record in caplog.records]
    (error,) = [f for f in facts if f.get("error") == "RuntimeError"]
    assert error["request_id"] == failed.json()["request_id"]
    text = json.dumps(facts)
    assert "secret" not in text
    assert str(SECRET) not in text


def test_the_log_has_a_line_for_each_request_without_the_data(post, caplog):
    caplog.set_level(logging.INFO, "costscape.serve")
    far = {**GOOD, "price": 1e6 + SECRET}
    answer = post("/decide", json={"rows": [GOOD, far]}).json()
    (line,) = [r.facts for r in caplog.records if r.getMessage() == "request"]
    assert line.pop("seconds") > 0
    assert line == {
        "method": "POST",
        "path": "/decide",
        "status": 200,
        "request_id": answer["request_id"],
        "model": "bakery",
        "version": answer["version"],
        "rows": 2,
        "flagged": 1,
    }


def test_metrics_count_requests_rows_flags_and_errors(ask):
    async def talk(client):
        await client.post("/decide", json={"rows": [GOOD, {**GOOD, "price": 1e6}]})
        await client.post("/decide", json={"rows": []})
        return (await client.get("/metrics")).text.splitlines()

    lines = ask(talk)
    assert 'costscape_requests_total{path="/decide",status="200"} 1.0' in lines
    assert 'costscape_errors_total{status="422"} 1.0' in lines
    assert 'costscape_rows_total{model="bakery"} 2.0' in lines
    assert 'costscape_flagged_rows_total{model="bakery"} 1.0' in lines
    assert 'costscape_request_seconds_count{path="/decide"} 2.0' in lines
    assert "costscape_queue_rows 0.0" in lines
    assert any(line.startswith('costscape_model_info{fit_date="') for line in lines)
