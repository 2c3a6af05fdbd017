"""What the monitor finds: costs by hand, drift where there is one, an update where it helps."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.monitor import Record, Thresholds, logged_rows, render_findings, utc_now, watch
from costscape.monitor.realised import realised_costs


def test_calm_rows_have_no_alert_and_costs_are_those_of_evaluate(model, decided, law):
    X, Y = law(np.random.default_rng(1), 200)
    found = watch("shop", decided(X, Y), model)
    result = cs.evaluate(model, X, Y)
    assert found.alerts == ()
    assert found.levels.realised == pytest.approx(result.cost, rel=1e-5)
    assert found.levels.regret == pytest.approx(result.regret, rel=1e-5)
    assert found.levels.expected == pytest.approx(
        float(model.expected_cost(X, model.decide(X)).mean()), rel=1e-5
    )
    assert sum(part.rows for part in found.stretches) == 200
    mean = np.average(
        [part.realised for part in found.stretches],
        weights=[part.rows for part in found.stretches],
    )
    assert mean == pytest.approx(result.cost, rel=1e-5)
    assert sum(group.outcomes for group in found.groups) == 200
    assert [g.expected for g in found.groups] == sorted(g.expected for g in found.groups)
    assert "No alerts." in str(found)
    assert "have not drifted" in found.suggestion


def test_outcomes_that_drift_are_an_alert_and_the_gain_of_an_update_is_measured(
    model, decided, law
):
    rng = np.random.default_rng(2)
    parts = [law(rng, 30, level=1 + k / 3) for k in range(8)]
    records = [r for k, (X, Y) in enumerate(parts) for r in decided(X, Y, 30 * k)]
    before = model.decide(parts[0][0])
    found = watch("shop", records, model)
    assert any(
        alert.startswith("Outcomes have drifted in 2 of 2 columns") for alert in found.alerts
    )
    assert any("Realised costs differ" in alert for alert in found.alerts)
    assert not any(one.is_alert for one in found.inputs)
    assert found.suggestion.startswith("Update the model: on the last 80 outcomes")
    # the same numbers by hand, and the model itself is as before
    rows = logged_rows(records, model)
    late = realised_costs(model, rows, False)[0][160:].mean()
    stated = found.suggestion.partition("the present model costs ")[2].split()[0]
    assert float(stated) == pytest.approx(late, rel=0.01)  # an update decides on a coarse grid
    assert np.array_equal(model.decide(parts[0][0]), before)
    few = watch("shop", records[-60:], model)
    assert few.suggestion == (
        "There are not enough outcomes to judge an update: 60, and 90 are needed."
    )


def test_inputs_that_drift_are_an_alert_by_name(model, decided, law):
    X, _ = law(np.random.default_rng(3), 100, shift=0.4)
    found = watch("shop", decided(X), model)
    (alert,) = found.alerts
    assert alert.startswith("Inputs have drifted in 1 of 3 columns: 'temp' (PSI")
    assert found.inputs[0].name == "temp"
    assert found.drifted == 1
    assert found.levels is None
    assert "not enough outcomes to judge an update: 0" in found.suggestion
    assert watch("shop", decided(X), model, Thresholds(psi=99.0, ks=0.99)).alerts == ()


def test_flagged_rows_and_quantiles_are_counted(model, decided, law):
    X, Y = law(np.random.default_rng(4), 40)
    a = model.decide(X.to_numpy())
    levels = np.asarray(model.cost_quantiles(X.to_numpy(), a, [0.5, 0.9]))
    records = [
        replace(r, flags=("temp",) if i < 4 else (), quantiles={"0.9": q[1], "0.5": q[0]})
        for i, (r, q) in enumerate(zip(decided(X, Y), levels.tolist(), strict=True))
    ]
    found = watch("shop", records, model)
    cost = model.task.cost(torch.tensor(Y.to_numpy()), torch.tensor(a)).numpy()
    assert found.flagged == 0.1
    assert found.alerts == ("10.0 % of the latest rows are far outside the range of the training "
                            "rows, more than 5 %.",)  # fmt: skip
    assert [one.level for one in found.coverage] == ["0.5", "0.9"]
    for one, q in zip(found.coverage, levels.T, strict=True):
        assert (one.share, one.rows) == (pytest.approx((cost <= q).mean()), 40)


def test_what_ifs_count_only_once_they_have_an_outcome(model, decided, law):
    X, Y = law(np.random.default_rng(5), 40)
    asked = {"risk": {"cvar": 0.9}}
    records = decided(X[:30], Y[:30]) + [
        replace(r, question=asked) for r in decided(X[30:], Y[30:], 30)
    ]
    assert watch("shop", records, model).rows == 40
    open_ = [r if r.is_plain else replace(r, outcome=None) for r in records]
    assert watch("shop", open_, model).rows == 30
    # their regret is not known: the set may have been another
    _, regrets = realised_costs(model, logged_rows(records, model), True)
    assert np.isfinite(regrets[:30]).all()
    assert np.isnan(regrets[30:]).all()


def test_without_a_model_earlier_rows_are_the_reference(decided, law):
    rng = np.random.default_rng(6)
    records = decided(law(rng, 100)[0]) + decided(law(rng, 100, shift=0.5)[0], None, 100, "v2")
    found = watch("shop", records, thresholds=Thresholds(recent=100))
    assert found.reference == "earlier logged rows"
    assert found.inputs[0].name == "temp"
    assert found.drifted == 1
    assert [(v.version, v.rows) for v in found.versions] == [("v1", 100), ("v2", 100)]
    assert any("need the model" in note for note in found.notes)


def test_rows_of_windows_and_one_number_are_watched(law):
    """x with two axes, y as one number a row: names are places."""
    rng = np.random.default_rng(7)
    x, y = rng.random((60, 2, 3)), rng.random(60)
    task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=1))
    model = cs.NearestNeighbours(task, k=10).fit(x, y)
    records = [
        Record(str(i), utc_now(), "w", "v", "r", x[i].tolist(), {"0": float(a)}, 0.1, ())
        for i, a in enumerate(model.decide(x))
    ]
    records = [replace(r, outcome=(float(y[i]),)) for i, r in enumerate(records)]
    found = watch("w", records, model)
    assert sorted(one.name for one in found.inputs) == ["0", "1", "2", "3", "4", "5"]
    assert found.levels.realised == pytest.approx(cs.evaluate(model, x, y).cost, rel=1e-5)


def test_bad_input_is_a_sentence(model, decided, law):
    X, Y = law(np.random.default_rng(8), 3)
    with pytest.raises(ValueError, match="needs logged decisions, but there are none"):
        watch("shop", [], model)
    other = [replace(r, x={"other": 1.0}) for r in decided(X)]
    with pytest.raises(ValueError, match="all 3 records have others"):
        watch("shop", other, model)
    some = watch("shop", decided(X, Y) + other, model)
    assert "3 records have other columns and are left out." in some.notes
    assert any("needs 30 rows" in note for note in some.notes)
    with pytest.raises(ValueError, match="psi must be positive"):
        Thresholds(psi=0.0)


def test_the_page_escapes_names_and_loads_nothing(decided, law):
    X, Y = law(np.random.default_rng(9), 80)
    evil = "<script>alert(1)</script>"
    records = [replace(r, x={evil: r.x["temp"]}, version=evil) for r in decided(X, Y)]
    found = watch(evil, records, thresholds=Thresholds(recent=40))
    page = render_findings(found)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 3
    for own in ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink", "url(#"):
        page = page.replace(own, "")
    for word in ("http:", "https:", "src=", "@import", "url("):
        assert word not in page, word
