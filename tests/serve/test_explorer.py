"""The explorer's paths: its files, past days, the backtest, and what-if explanations."""

import gzip
import json

import numpy as np
import pytest

import costscape as cs
from costscape.comparison import CostHistory
from costscape.serve import Settings
from costscape.serve.explorer.static_files import STYLES, page, stamp, static_file
from costscape.serve.question import Question, what_if_fields
from costscape.serve.refused import Refused

FILES = f"/explorer/{stamp()}"


def gets(ask, *paths, settings=None, **headers):
    """The answers to some GET requests."""

    async def talk(client):
        return [await client.get(path) for path in paths]

    return ask(talk, settings, **headers)


def test_the_page_and_its_files_need_no_token_and_the_data_do(ask):
    answers = gets(
        ask, "/", f"{FILES}/main.js", f"{FILES}/plotly.min.js", "/past", "/backtest", "/models",
        settings=Settings(token="secret"),
    )  # fmt: skip
    assert [answer.status_code for answer in answers] == [200, 200, 200, 401, 401, 401]
    for answer in answers[:3]:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
    html, script, plotly = answers[:3]
    assert html.headers["cache-control"] == "no-cache"
    for answer in (script, plotly):
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith("text/javascript")
    assert "plotly.js v" in plotly.text[:60]
    assert len(plotly.text) > 10**6


def test_the_page_has_no_inline_code_and_each_file_that_it_names(ask):
    text = page().decode()
    assert "$" not in text
    assert "style=" not in text
    assert " on" + "click" not in text
    for part in text.split("<script")[1:]:
        assert part.split(">")[1].startswith("</script")  # no code of its own
    for name in ("page.css", "theme.js", "main.js"):
        assert f'"explorer/{stamp()}/{name}"' in text
        assert gzip.decompress(static_file(stamp(), name).content)
    ids = STYLES.findall(gzip.decompress(static_file(stamp(), "plotly.min.js").content).decode())
    assert ids
    assert all(f'id="{name}"' in text for name in ids)


@pytest.mark.parametrize(
    "path", ["/explorer/older/main.js", f"{FILES}/page.html", f"{FILES}/..%2f__init__.py"]
)
def test_other_files_are_not_served(ask, path):
    (answer,) = gets(ask, path)
    assert answer.status_code == 404


def test_past_days_are_the_kept_rows_as_requests_take_them(ask, model):
    labels, day, *bad = gets(
        ask, "/past", "/past?day=3", "/past?day=60", "/past?day=-1", "/past?day=²", "/past?day=x"
    )
    kept = model.rows_
    assert labels.json()["labels"] == [str(i) for i in range(60)]
    found = day.json()
    row = np.array([list(found["row"].values())], dtype=np.float32)
    assert list(found["row"]) == ["temp", "wind", "price"]
    assert np.array_equal(row[0], kept.x[3].numpy())
    assert np.array_equal(np.float32(found["outcome"]), kept.y[3].numpy())
    assert found["outcome_names"] == ["bread", "soup"]
    assert {answer.status_code for answer in bad} == {422}
    assert "from 0 to 59" in bad[0].json()["error"]


def test_past_days_of_a_file_without_rows_are_refused_in_a_sentence(ask, folder, model):
    model.save(folder / "model.costscape", rows=False)
    (answer,) = gets(ask, "/past")
    assert answer.status_code == 422
    assert "the model file has none" in answer.json()["error"]


def test_the_backtest_is_the_file_beside_the_model(ask, folder):
    (answer,) = gets(ask, "/backtest")
    assert answer.status_code == 404
    assert "There is no comparison of bakery" in answer.json()["error"]
    costs = CostHistory(("a", "b"), {"DF2": (1.0, 2.0), "rule": (3.0, 3.0)}, "DF2", "rule", "Use.")
    costs.write(folder / "comparison.json")
    (answer,) = gets(ask, "/backtest")
    assert answer.json()["costs"] == {"DF2": [1, 2], "rule": [3, 3]}
    assert answer.json()["reference"] == "rule"
    (folder / "comparison.json").write_text(json.dumps({"labels": []}))
    (answer,) = gets(ask, "/backtest")
    assert answer.status_code == 409
    assert "is no comparison" in answer.json()["error"]


def test_explain_takes_the_set_the_risk_and_the_level_of_decide(post, folder, model, rows):
    path = folder / "task.py"
    path.write_text(path.read_text() + "\nchance = cs.Chance(lambda y, a: y - a, 0.9)\n")
    first = rows[:1]
    body = {"rows": first.to_dict("records"), "feasible": {"upper": 1.0}, "risk": {"cvar": 0.5}}
    decided, why = (post(path, json=body).json() for path in ("/decide", "/explain"))
    assert np.allclose(why["decision"], decided["decisions"][0])
    assert why["expected_cost"] == pytest.approx(decided["risk"][0])
    assert max(why["curves"][0]["actions"]) == 1.0
    body = {"rows": first.to_dict("records"), "service_level": 0.6}
    decided, why = (post(path, json=body).json() for path in ("/decide", "/explain"))
    level = cs.Chance(lambda y, a: y - a, 0.6)
    assert np.allclose(decided["decisions"], model.decide(first.to_numpy(), chance=level))
    assert np.allclose(why["decision"], decided["decisions"][0])
    scenarios = model.scenarios(first.to_numpy())
    assert np.allclose(why["outcomes"]["weights"], scenarios.weights[0])
    assert np.allclose(why["outcomes"]["values"], scenarios.values[0])
    quantiles = model.cost_quantiles(first.to_numpy(), np.array([why["decision"]]))
    assert np.allclose(list(why["cost_quantiles"].values()), quantiles[0])


def test_a_service_level_needs_a_chance_and_a_probability(post, rows):
    body = {"rows": rows[:1].to_dict("records"), "service_level": 0.6}
    answer = post("/decide", json=body)
    assert answer.status_code == 422
    assert "the task file has none" in answer.json()["error"]
    with pytest.raises(Refused, match="between 0 and 1"):
        Question(service_level=2.0).chance(cs.Chance(lambda y, a: y - a))
    with pytest.raises(Refused, match="finite numbers"):
        Question.from_json(None, None, service_level="high")


SETS = {
    "box": (cs.Box(0.0, [1.0, 2.0]), {"total": None, "lower": [0, 0], "upper": [1, 2]}),
    "box above 0": (cs.Box(1.0, 2.0, dim=1), {"lower": [1], "upper": [2]}),
    "budget": (cs.Budget(total=3.0, dim=1), {"total": 3, "upper": [3]}),
    "simplex": (cs.Simplex(total=4.0, dim=2), {"total": 4}),
    "whole": (cs.Box(1, 9, dim=1, step=2), {"lower": [1], "upper": [9]}),
    "finite": (cs.Finite([[0.0], [1.0]]), {}),
}


@pytest.mark.parametrize("case", SETS)
def test_the_model_names_what_a_request_may_change_and_takes_it(case):
    C, wanted = SETS[case]
    task = cs.Task(lambda y, a: (y - a).abs().sum(-1), C)
    assert what_if_fields(task) == wanted
    for name, value in wanted.items():
        given = 1.5 if value is None else value
        assert Question.from_json({name: given}, None).feasible(task) is not None
