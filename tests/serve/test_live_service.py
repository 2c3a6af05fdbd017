"""The command itself: a process, many clients, malformed requests, a swap, and its end."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from costscape.cli import app

CLIENTS, EACH = 20, 8  # 5 % of the requests are malformed
BEARER = {"authorization": "Bearer secret"}
MALFORMED = b'{"rows": [{"temp": NaN}]}'


@pytest.fixture
def address(folder, model, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "token").write_text("secret\n")
    words = ("serve", str(folder), "--port", str(port), "--token-file", str(tmp_path / "token"))
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "costscape", *words, "--watch", "0.05"], stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                if httpx.get(f"{address}/ready").status_code == 200:
                    break
            except httpx.TransportError:
                if process.poll() is not None:
                    raise
            time.sleep(0.1)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"


def test_twenty_clients_and_a_swap_get_answers_only(address, folder, model, rows, write_model):
    x = rows.to_numpy()
    expected = [model.decide(x).tolist()]
    swapped = asyncio.Event()

    async def client(number, http):
        found = []
        for i in range(EACH):
            if (number + i) % 20 == 0:
                bad = await http.post("/decide", content=MALFORMED, headers=BEARER)
                assert bad.status_code == 422
                continue
            answer = await http.post("/decide", json={"rows": x.tolist()})
            found.append((answer.status_code, answer.json()))
            if i == EACH // 2 and number == 0:
                new = await asyncio.to_thread(write_model, folder, 30)
                expected.append(new.decide(x).tolist())
                swapped.set()
            if i == EACH - 3:
                await swapped.wait()
        return found

    async def main():
        async with httpx.AsyncClient(base_url=address, headers=BEARER, timeout=None) as http:
            before = (await http.post("/decide", json={"rows": x.tolist()})).json()["version"]
            found = await asyncio.gather(*(client(n, http) for n in range(CLIENTS)))
            while (last := (await http.post("/decide", json={"rows": x.tolist()})).json())[
                "version"
            ] == before:
                await asyncio.sleep(0.05)
            return before, [answer for some in found for answer in some], last

    before, answers, last = asyncio.run(main())
    assert len(answers) == CLIENTS * EACH - EACH
    assert {status for status, _ in answers} == {200}
    old, new = expected
    for _, answer in answers:
        wanted = old if answer["version"] == before else new
        assert np.allclose(answer["decisions"], wanted, atol=1e-5)
    assert last["version"] != before
    assert np.allclose(last["decisions"], new, atol=1e-5)


def test_the_command_writes_references_and_names_what_is_missing(folder, model):
    done = CliRunner().invoke(app, ["serve", str(folder), "--make-reference"])
    assert done.exit_code == 0
    assert (folder / "reference.json").exists()
    done = CliRunner().invoke(app, ["serve", str(folder), "--host", "0.0.0.0"])
    assert done.exit_code == 1
    assert "needs a token" in done.output
    (folder / "task.py").unlink()
    done = CliRunner().invoke(app, ["serve", str(folder)])
    assert done.exit_code == 1
    assert "There is no file" in done.output
