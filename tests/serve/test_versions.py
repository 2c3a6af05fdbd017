"""New versions take over without a dropped request; those that fail leave the old one serving."""

import asyncio
import json
import shutil
import time

import numpy as np
import pytest

from costscape.serve import (
    Settings,
    Source,
    create_app,
    make_reference,
    parse_sources,
    write_references,
)
from costscape.serve.model_source import version_of
from costscape.serve.task_file import load_task

TOKEN = Settings(token="secret", watch_seconds=0.0)
BEARER = {"authorization": "Bearer secret"}


def source(folder):
    return Source.parse(str(folder))


async def version(client):
    return (await client.get("/models")).json()["models"][0]["version"]


def reload_after(change):
    """Version before, the answer to reload after ``change()``, version then, and metrics."""

    async def talk(client):
        before = await version(client)
        change()
        answer = await client.post("/models/bakery/reload")
        metrics = (await client.get("/metrics")).text
        return before, answer, await version(client), metrics

    return talk


def test_reload_swaps_to_the_new_version(ask, folder, write_model):
    before, answer, after, metrics = ask(
        reload_after(lambda: write_model(folder, k=30)), TOKEN, **BEARER
    )
    assert answer.status_code == 200
    assert answer.json() == {"model": "bakery", "version": after}
    assert after != before
    assert f'version="{after}"' in metrics
    assert f'version="{before}"' not in metrics
    assert 'costscape_reloads_total{model="bakery",result="loaded"} 1.0' in metrics


def cut_off(folder, write_model):
    path = folder / "model.costscape"
    path.write_bytes(path.read_bytes()[:-100])


def other_decisions(folder, write_model):
    write_model(folder, k=30)  # and the reference stays that of the old version


def other_cost(folder, write_model):
    path = folder / "task.py"
    path.write_text(path.read_text().replace("4 * ", "9 * "))


def broken_task(folder, write_model):
    (folder / "task.py").write_text("1 / 0")


BAD = {
    cut_off: "not a whole costscape model file",
    other_decisions: "reference rows are decided otherwise",
    other_cost: "cost",
    broken_task: "ZeroDivisionError",
}


@pytest.mark.parametrize("spoil", BAD, ids=lambda f: f.__name__)
def test_a_version_that_fails_is_refused_and_the_old_one_stays(ask, folder, write_model, spoil):
    write_references([source(folder)])
    before, answer, after, metrics = ask(
        reload_after(lambda: spoil(folder, write_model)), TOKEN, **BEARER
    )
    assert answer.status_code == 409
    assert BAD[spoil] in answer.json()["error"]
    assert after == before
    assert 'costscape_reloads_total{model="bakery",result="refused"} 1.0' in metrics


def test_a_version_that_fails_cannot_begin_to_serve(folder, model, write_model):
    write_references([source(folder)])
    create_app([source(folder)])
    write_model(folder, k=30)
    with pytest.raises(ValueError, match="decided otherwise, by up to"):
        create_app([source(folder)])


def test_files_that_change_are_loaded_and_bad_ones_are_not(ask, folder, write_model, rows):
    body = {"rows": rows.to_dict("records")}

    async def talk(client):
        seen = [await version(client)]
        good = (folder / "model.costscape").read_bytes()
        for content in (good[:-50], b"x"):
            (folder / "model.costscape").write_bytes(content)
            await asyncio.sleep(0.15)
            assert await version(client) == seen[0]
        new = write_model(folder, k=30)
        until = time.monotonic() + 5
        while await version(client) == seen[0] and time.monotonic() < until:
            await asyncio.sleep(0.02)
        answer = await client.post("/decide", json=body)
        return seen[0], answer.json(), new.decide(rows)

    before, answer, decisions = ask(talk, Settings(watch_seconds=0.03))
    assert answer["version"] != before
    assert np.array_equal(answer["decisions"], decisions)


def test_a_request_finishes_with_the_version_it_began_with(ask, folder, model, write_model, rows):
    body = {"rows": rows.to_dict("records")}
    slow = Settings(token="secret", watch_seconds=0.0)

    async def talk(client):
        answers = []
        for _ in range(3):
            first = asyncio.create_task(client.post("/decide", json=body))
            swap = asyncio.create_task(client.post("/models/bakery/reload"))
            answers += [await first, await swap]
            write_model(folder, k=30)
        return answers

    answers = ask(talk, slow, **BEARER)
    assert {answer.status_code for answer in answers} == {200}
    assert answers[0].json()["version"] != answers[-2].json()["version"]


def test_reload_needs_a_service_with_a_token(post):
    answer = post("/models/bakery/reload")
    assert answer.status_code == 403


def test_what_is_in_the_queue_is_finished_at_the_end(folder, model, rows):
    import httpx

    body = {"rows": rows.to_dict("records")}

    async def main():
        app = create_app([source(folder)])
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")
        async with client:
            async with app.router.lifespan_context(app):
                asked = [asyncio.create_task(client.post("/decide", json=body)) for _ in range(5)]
                await asyncio.sleep(0)
                while not any(task.done() for task in asked):
                    await asyncio.sleep(0)
                late = asyncio.create_task(client.get("/ready"))
                await late
            return [await task for task in asked], await client.get("/ready")

    answers, ready = asyncio.run(main())
    assert {answer.status_code for answer in answers} == {200}
    assert ready.status_code == 503


# ---- references and sources


def test_a_reference_keeps_rows_and_decisions(folder, model):
    (path,) = write_references([source(folder)])
    kept = json.loads(path.read_text())
    assert len(kept["rows"]) == 20
    assert np.array_equal(kept["decisions"], model.decide(np.array(kept["rows"])))
    made = make_reference(model, np.array(kept["rows"])[:3])
    made.check(model)
    made.decisions[0, 0] += 0.01  # of a width of 3
    with pytest.raises(ValueError, match=r"1 of 3 .* by up to 0.0033 of the width"):
        made.check(model)


def test_a_model_file_has_its_reference_beside_it(folder, model, tmp_path):
    shutil.copy(folder / "model.costscape", tmp_path / "orders.costscape")
    found = Source.parse(f"o={tmp_path / 'orders.costscape'}", f"{folder / 'task.py'}:task")
    assert found.name == "o"
    assert found.reference.name == "orders.costscape.reference.json"
    assert version_of(found) == version_of(source(folder))


def test_sources_need_a_task_and_different_names(folder, model):
    with pytest.raises(ValueError, match="needs the task it was fitted for"):
        Source.parse("orders.costscape")
    with pytest.raises(ValueError, match="bakery is there twice"):
        parse_sources([str(folder), f"bakery={folder}"])


def test_a_task_file_may_have_a_variable_and_no_other_things(tmp_path):
    path = tmp_path / "cost.py"
    path.write_text(
        "import costscape as cs\nmine = cs.problems.inventory()\nthree = 3\nunits = {'a': 'kg'}\n"
    )
    assert load_task(path, "mine").task.feasible.dim == 7
    assert load_task(path, "mine").units == {"a": "kg"}
    with pytest.raises(ValueError, match=r"needs a Task named 'three'.* but has int"):
        load_task(path, "three")
