"""The runtime by itself: input, checks, files from strangers, no torch."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx import TensorProto, helper

from costscape import runtime
from costscape.runtime.onnx_file import KEY, digest


def test_the_runtime_decides_without_torch(exported):
    _, X, made, loaded = exported("bids")
    code = (
        "import sys, numpy as np, costscape.runtime as r\n"
        f"a = r.load({str(made.path)!r}).decide(np.array({X.to_numpy()[:2].tolist()}))\n"
        "import costscape.serve.runtime_service\n"
        "print([name in sys.modules for name in ('torch', 'onnx', 'fastapi')], a.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    flags, _, decisions = done.stdout.partition("] ")
    assert flags == "[False, False, False"
    np.testing.assert_allclose(json.loads(decisions), loaded.decide(X[:2]), atol=1e-6)


def test_columns_are_found_by_name(exported):
    _, X, _, loaded = exported("bids")
    expected = loaded.decide(X)
    assert list(expected.columns) == ["h1", "h2"]
    pd.testing.assert_frame_equal(loaded.decide(X[["price", "temp", "wind"]]), expected)
    np.testing.assert_array_equal(loaded.decide(X.to_numpy()), expected.to_numpy())
    assert loaded.facts.units == {"price": "EUR"}
    with pytest.raises(ValueError, match=r"lacks 'wind' and has 'gust', which fit did not have"):
        loaded.decide(X.rename(columns={"wind": "gust"}))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([[0.5, 0.5]], r"needs rows of shape \(3,\), as in fit, but has shape \(1, 2\)"),
        ([0.5, 0.5, 0.5], r"needs rows of shape \(3,\)"),
        ([[0.5, float("nan"), 0.5]], "row 0, column 'wind' is NaN or infinite"),
        ([[0.5, "cold", 0.5]], "needs an array of real numbers"),
        ([[0.5, 0.5, 0.5], [0.5]], "rows of equal length"),
    ],
)
def test_bad_input_gets_a_sentence(exported, bad, words):
    with pytest.raises((ValueError, TypeError), match=words):
        exported("bids")[3].decide(bad)


def test_rows_far_outside_are_flagged_as_by_torch(exported):
    model, X, _, loaded = exported("bids")
    rows = X[:4].copy()
    rows.iloc[2, 1] = 50.0
    assert loaded.check(rows) == {2: ["wind"]}
    assert model.check(rows).outside.tolist() == [False, False, True, False]
    with pytest.warns(runtime.OutsideTraining, match="1 of 4 rows"):
        loaded.decide(rows)


def changed(path, edit, tmp_path, sign=True):
    """The file after ``edit(model, facts)``, with a fitting checksum."""
    model = onnx.load(path)
    facts = json.loads(next(p.value for p in model.metadata_props if p.key == KEY))
    edit(model, facts)
    del model.metadata_props[:]
    if sign:
        facts["digest"] = digest(model.SerializeToString(deterministic=True))
    helper.set_model_props(model, {KEY: json.dumps(facts)})
    new = tmp_path / "changed.onnx"
    new.write_bytes(model.SerializeToString(deterministic=True))
    return new


def external(model, facts):
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def custom(model, facts):
    model.graph.node[0].domain = "com.stranger"


def domain(model, facts):
    model.opset_import.add(domain="com.stranger", version=1)


def branch(model, facts):
    model.graph.node[0].attribute.add(name="then_branch", g=helper.make_graph([], "g", [], []))


def functions(model, facts):
    model.functions.add(name="f")


def other_numbers(model, facts):
    facts["reference"]["decisions"][0][0] += 0.5


def wrong_type(model, facts):
    facts["fit_rows"] = "many"


def wrong_shape(model, facts):
    facts["x_low"] = [0.0]


def no_set(model, facts):
    facts["feasible"]["upper"] = [float("inf"), 1.0]


def other_format(model, facts):
    facts["format"] = 7


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (external, "refers to data in other files"),
        (custom, "operators of 'com.stranger'"),
        (domain, "operators of 'com.stranger'"),
        (branch, "branches or loops"),
        (functions, "functions of its own"),
        (wrong_type, "its fit_rows is no int"),
        (wrong_shape, r"not of the shape \(3,\)"),
        (no_set, "not finite"),
        (other_format, "its format is not 1"),
    ],
)
def test_files_from_strangers_are_refused(exported, tmp_path, edit, words):
    path = changed(exported("bids")[2].path, edit, tmp_path)
    with pytest.raises(ValueError, match=words):
        runtime.load(path)


def test_a_file_that_decides_otherwise_is_refused(exported, tmp_path):
    # a cost that differs, too: another decision of the same cost would be as good
    def edit(model, facts):
        other_numbers(model, facts)
        facts["reference"]["costs"][0] += 1.0

    path = changed(exported("bids")[2].path, edit, tmp_path)
    with pytest.raises(ValueError, match=r"1 of .* reference rows are decided otherwise"):
        runtime.load(path)


def test_changed_cut_off_large_and_missing_files_are_refused(exported, tmp_path, monkeypatch):
    path = exported("bids")[2].path
    content = bytearray(path.read_bytes())

    def nudge(model, facts):
        raw = bytearray(model.graph.initializer[0].raw_data)
        raw[0] ^= 1
        model.graph.initializer[0].raw_data = bytes(raw)

    with pytest.raises(ValueError, match="does not match its checksum"):
        runtime.load(changed(path, nudge, tmp_path, sign=False))
    new = tmp_path / "new.onnx"
    for part in (content[: len(content) // 2], content[:-3], b"", b"PK\x03\x04 no model"):
        new.write_bytes(part)
        with pytest.raises(ValueError, match="no model that can be run"):
            runtime.load(new)
    monkeypatch.setattr("costscape.runtime.onnx_file.LARGEST", 1000)
    with pytest.raises(ValueError, match="larger than 1,000 bytes"):
        runtime.load(path)
    with pytest.raises(FileNotFoundError, match=r"Write one with model\.export"):
        runtime.load(tmp_path / "absent.onnx")
