"""Generated requests, valid and not: the service answers as its OpenAPI document says."""

import hypothesis
import pytest
import schemathesis
from hypothesis.strategies import one_of
from schemathesis import checks

from costscape.serve import Settings, create_app, parse_sources
from costscape.serve.served_model import Answer

EXAMPLES = 15
PATHS = {
    "/decide": {200, 422},
    "/explain": {200, 422},
    "/outcomes": {409},
    "/past": {200},
    "/backtest": {404},
    "/models": {200},
    "/models/{name}/reload": {403},
    "/health": {200},
    "/ready": {200},
    "/metrics": {200},
}
# not the checks that valid requests succeed: no schema says that lower <= upper
HELD = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
LOOSE = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def bakery(tmp_path_factory, write_model):
    folder = tmp_path_factory.mktemp("fuzz") / "bakery"
    write_model(folder)
    return folder


@pytest.fixture
def operations(bakery):
    """The operations of the document by path; an app that has ended does not begin again."""
    app = create_app(parse_sources([str(bakery)]), Settings())
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    return {found.ok().path: found.ok() for found in schema.get_all_operations()}


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_a_documented_status_and_form(operations, path):
    bodies = path in ("/decide", "/explain", "/outcomes")  # elsewhere nothing can be wrong
    kinds = [
        operations[path].as_strategy(generation_mode=mode)
        for mode in (LOOSE if bodies else LOOSE[:1])
    ]
    seen = set()

    @hypothesis.given(case=one_of(kinds))
    @hypothesis.settings(
        max_examples=EXAMPLES if bodies else 3,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    def ask(case):
        answer = case.call()
        case.validate_response(answer, checks=HELD)
        seen.add(answer.status_code)

    ask()
    assert seen >= PATHS[path]  # both kinds of answers were looked at


def test_a_number_too_large_for_the_model_is_refused_with_its_place(post):
    row = {"temp": 1e191, "wind": 0.2, "price": 0.3}
    for path in ("/decide", "/explain"):
        answer = post(path, json={"rows": [row]})
        assert answer.status_code == 422
        assert "row 0, column 0 holds 1e+191" in answer.json()["error"]


def test_an_answer_that_is_not_finite_is_no_json(post, monkeypatch):
    row = {"temp": 0.1, "wind": 0.2, "price": 0.3}
    monkeypatch.setattr(Answer, "to_json", lambda answer: {"decisions": [[float("nan")]]})
    answer = post("/decide", json={"rows": [row]})
    assert answer.status_code == 422
    assert "no finite answer" in answer.json()["error"]


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=b"])
def test_a_form_that_is_none_is_refused(post, kind):
    answer = post("/decide", content=b"x", headers={"content-type": kind})
    assert answer.status_code == 422
    assert "The form cannot be read" in answer.json()["error"]
