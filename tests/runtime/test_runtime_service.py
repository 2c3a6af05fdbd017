"""The service of exported models: answers, refusals, new versions, and its start."""

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from costscape.serve.runtime_model import RuntimeSource
from costscape.serve.runtime_service import create_runtime_app
from costscape.serve.service_settings import Settings


@pytest.fixture
def file(exported, tmp_path):
    return shutil.copy(exported("bids")[2].path, tmp_path / "bids.onnx")


def ask(file, talk, settings=None):
    async def main():
        app = create_runtime_app([RuntimeSource.parse(str(file))], settings or Settings())
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://here",
            headers={"authorization": "Bearer secret"},
        )
        async with app.router.lifespan_context(app), client:
            return await talk(client)

    return asyncio.run(main())


def test_answers_are_those_of_the_runtime(exported, file):
    _, X, _, loaded = exported("bids")
    rows = X[:5].round(6)

    async def talk(client):
        by_name = client.post("/decide", json={"rows": rows.to_dict("records")})
        lists = client.post("/decide", json={"rows": rows.to_numpy().tolist()})
        table = client.post(
            "/decide", content=rows.to_csv(index=False), headers={"content-type": "text/csv"}
        )
        return [r.json() for r in await asyncio.gather(by_name, lists, table)]

    for answer in ask(file, talk):
        np.testing.assert_allclose(answer["decisions"], loaded.decide(rows), atol=1e-6)
        assert answer["names"] == ["h1", "h2"]
        assert len(answer["expected_cost"]) == 5
        assert answer["flags"] == []


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/explain", {"rows": [[0.5, 0.5, 0.5]]}, 501, "explains nothing"),
        ("/decide", {"rows": [[0.5, 0.5, 0.5]], "feasible": {"upper": 1}}, 501, "Another set"),
        ("/decide", {"rows": [[0.5, 0.5, 0.5]], "risk": {"cvar": 0.9}}, 501, "A risk needs"),
        ("/decide", {"rows": [[0.5, 0.5]]}, 422, "Row 0 needs 3 values"),
        ("/decide", {"rows": [[0.5, 0.5, 90.0]]}, 422, "far outside"),
        ("/decide", {"row": 1}, 422, "needs an object"),
        ("/decide?model=other", {"rows": [[0.5, 0.5, 0.5]]}, 404, "there is no 'other'"),
        ("/absent", {}, 404, "The paths are"),
    ],
)
def test_what_it_cannot_do_gets_a_sentence(file, path, body, status, words):
    answer = ask(file, lambda client: client.post(path, json=body), Settings(strict=True))
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_models_metrics_and_a_new_version(exported, file):
    settings = Settings(token="secret", watch_seconds=0.0)

    async def talk(client):
        (before,) = (await client.get("/models")).json()["models"]
        shutil.copy(exported("synthetic")[2].path, file)
        reloaded = await client.post("/models/bids/reload")
        (after,) = (await client.get("/models")).json()["models"]
        file.write_bytes(b"")
        refused = await client.post("/models/bids/reload")
        return before, reloaded, after, refused, await client.get("/metrics")

    before, reloaded, after, refused, metrics = ask(file, talk, settings)
    assert before["columns"][2]["unit"] == "EUR"
    assert before["runtime"] == "onnx, exact"
    assert reloaded.json()["version"] == after["version"] != before["version"]
    assert refused.status_code == 409
    assert f'version="{after["version"]}"' in metrics.text


def test_the_command_serves_an_exported_file(file):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "costscape", "serve", str(file), "--port", str(port)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}/ready")
                break
            except httpx.ConnectError:
                assert process.poll() is None
                time.sleep(0.1)
        assert answer.status_code == 200
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert "libtorch" not in maps
        assert "onnxruntime" in maps
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)  # uvicorn repeats the signal at its end
