"""A small model in a folder, and a service on it that runs in the test's own process."""

import asyncio

import httpx
import numpy as np
import pandas as pd
import pytest

import costscape as cs
from costscape.serve import Settings, create_app, parse_sources

TASK = """
import costscape as cs

units = {"price": "EUR", "bread": "loaves"}

def task():
    terms = lambda y, a: 4 * (y - a).relu() + (a - y).relu()
    return cs.SeparableTask(terms, cs.Box(0.0, 3.0, dim=2), convex=True)
"""
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.random((60, 3)), columns=["temp", "wind", "price"])
Y = pd.DataFrame(
    np.stack([X.temp + X.wind, X.price], 1) + RNG.random((60, 2)), columns=["bread", "soup"]
)


@pytest.fixture
def rows():
    """Rows of X as the tests send them; the first ones of the fit."""
    return X[:8].round(6)


@pytest.fixture(scope="session")
def write_model():
    """write_model(folder, k): fit and save; the model as a service loads it."""

    def write_model(folder, k=5):
        folder.mkdir(exist_ok=True)
        (folder / "task.py").write_text(TASK)
        names = {}
        exec(TASK, names)
        cs.NearestNeighbours(names["task"](), k=k).fit(X, Y).save(folder / "model.costscape")
        return cs.load(folder / "model.costscape", names["task"]())

    return write_model


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "bakery"


@pytest.fixture
def model(folder, write_model):
    return write_model(folder)


@pytest.fixture
def ask(folder, model):
    """ask(talk, settings, **headers): what ``await talk(client)`` returns.

    The service runs on the folder of the model, or on ``folders``, from its begin to its end.
    """

    def ask(talk, settings=None, folders=(folder,), **headers):
        async def main():
            app = create_app(parse_sources([str(f) for f in folders]), settings or Settings())
            client = httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://here", headers=headers
            )
            async with app.router.lifespan_context(app), client:
                return await talk(client)

        return asyncio.run(main())

    return ask


@pytest.fixture
def post(ask):
    """post(path, json=..., settings=...): the answer to one request."""

    def post(path, settings=None, folders=None, **request):
        def talk(client):
            return client.post(path, **request)

        return ask(talk, settings, **({"folders": folders} if folders else {}))

    return post
