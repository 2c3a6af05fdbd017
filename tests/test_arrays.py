import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from costscape.arrays import columns_of, read

finite = st.floats(-100, 100, width=16)
shapes = hnp.array_shapes(min_dims=1, max_dims=4, max_side=4)
kinds = st.sampled_from(
    [np.float16, np.float32, np.float64, ">f4", ">f8", np.int64, np.uint8, bool]
)


def to_tensor(value, name, dtype=None):
    return read(value, name, dtype)[0]


@given(array=kinds.flatmap(lambda k: hnp.arrays(k, shapes)), view=st.booleans())
@settings(deadline=None, max_examples=80)
def test_numpy_goes_in_and_comes_back_with_all_its_digits(array, view):
    array = np.nan_to_num(array, nan=0.0, posinf=1.0, neginf=-1.0)
    array = array[::-1] if view else array
    tensor, form = read(array, "X", torch.float64)
    assert tensor.shape == array.shape
    back = form.give(tensor)
    assert isinstance(back, np.ndarray)
    assert back.dtype == np.float64  # the precision in which it was read
    coarse = form.give(tensor.half() if np.abs(array).max() < 1e4 else tensor.float())
    assert coarse.dtype == np.promote_types(form.dtype, np.float32)
    np.testing.assert_array_equal(back, array)


@given(
    array=hnp.arrays(np.float16, shapes, elements=finite),
    dtype=st.sampled_from(
        [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.bool]
    ),
)
@settings(deadline=None, max_examples=60)
def test_torch_goes_in_and_comes_back_with_all_its_digits(array, dtype):
    value = torch.from_numpy(array).to(dtype)
    tensor, form = read(value, "X", torch.float64)
    back = form.give(tensor)
    assert back.dtype == torch.float64  # the precision in which it was read
    kept = dtype if dtype.is_floating_point else torch.get_default_dtype()
    assert form.give(tensor.to(kept)).dtype == kept
    assert back.device == value.device
    assert torch.equal(back, value.to(back.dtype))


@given(array=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2), elements=finite))
@settings(deadline=None, max_examples=40)
def test_frames_go_in_and_come_back_unchanged(array):
    index = pd.date_range("2020-01-31", periods=len(array), name="day")
    frame = pd.DataFrame(array, index, [f"c{i}" for i in range(array.shape[1])])
    tensor, form = read(frame, "X", torch.float64)
    pd.testing.assert_frame_equal(form.give(tensor, columns_of(frame)), frame, check_freq=False)
    series = frame["c0"]
    tensor, form = read(series, "y", torch.float64)
    assert tensor.shape == (len(array),)
    back = form.give(tensor, columns_of(series))
    pd.testing.assert_series_equal(back, series, check_freq=False)


def test_a_series_asked_for_two_columns_comes_back_as_a_frame():
    _, form = read(pd.Series([1.0, 2.0], index=["p", "q"]), "X")
    frame = form.give(torch.eye(2), ["a", "b"])
    expected = pd.DataFrame(np.eye(2), ["p", "q"], ["a", "b"])
    pd.testing.assert_frame_equal(frame, expected)


def test_a_frame_cannot_hold_three_axes():
    _, form = read(pd.DataFrame({"a": [1.0]}), "X")
    with pytest.raises(ValueError, match=r"two axes, but the result has shape \(1, 2, 3\)"):
        form.give(torch.zeros(1, 2, 3))


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float32", "float32"), "float32"),
        (("float32", "float64"), "float64"),
        (("int64", "bool"), "float64"),
        (("Int64", "Float32"), "float64"),
    ],
)
def test_a_frame_of_mixed_columns_is_read_by_value(dtypes, expected):
    frame = pd.DataFrame({"a": [0, 1], "b": [1, 0]}).astype(dict(zip("ab", dtypes, strict=True)))
    tensor, form = read(frame, "X")
    assert tensor.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert (form.give(tensor).dtypes == expected).all()


def test_frames_with_two_columns_of_one_name_are_read_by_position():
    frame = pd.DataFrame([[1, 2.5]], columns=["a", "a"])
    assert to_tensor(frame, "X").tolist() == [[1.0, 2.5]]


def test_lists_come_back_as_numpy():
    tensor, form = read([[1, 2], [3, 4]], "X")
    assert tensor.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert form.give(tensor).dtype == np.float64


def test_default_precision_and_a_chosen_one():
    assert to_tensor(np.zeros(2), "X").dtype == torch.float32
    assert to_tensor(torch.zeros(2, dtype=torch.float64), "X").dtype == torch.float32
    assert to_tensor([1], "X", torch.float64).dtype == torch.float64


@pytest.mark.parametrize(
    "value", [np.zeros(3), np.zeros(3, "f4"), torch.zeros(3), pd.Series(np.zeros(3))]
)
def test_the_tensor_is_a_copy(value):
    tensor = to_tensor(value, "X")
    value[1] = 7.0
    assert tensor.tolist() == [0.0, 0.0, 0.0]


def test_the_result_carries_no_gradient():
    tensor, form = read(torch.ones(2, requires_grad=True), "X")
    assert not tensor.requires_grad
    grown = torch.ones(2, requires_grad=True) * 2
    assert not form.give(grown).requires_grad
    assert read(np.ones(2), "X")[1].give(grown).tolist() == [2.0, 2.0]


def test_results_of_a_precision_numpy_lacks_are_given_all_the_same():
    result = torch.tensor([0.5, 2.0], dtype=torch.bfloat16)
    assert read(np.ones(2), "X")[1].give(result).tolist() == [0.5, 2.0]


def test_a_read_only_array_is_read_without_a_warning():
    value = np.zeros(3)
    value.flags.writeable = False
    assert to_tensor(value, "X").tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wrap", [np.array, torch.tensor, list])
def test_a_number_that_is_not_finite_is_named_by_row_and_column(wrap, bad):
    value = [[1.0, 2.0], [3.0, bad], [bad, 4.0]]
    with pytest.raises(ValueError, match=f"X needs .* row 1, column 1 holds {bad} \\(2 such\\)"):
        read(wrap(value), "X")


def test_places_in_one_three_and_labelled_axes():
    with pytest.raises(ValueError, match="row 1 holds nan"):
        to_tensor([0.0, np.nan], "y")
    cube = np.zeros((2, 3, 4))
    cube[1, 2, 3] = np.inf
    with pytest.raises(ValueError, match=r"row 1, position \(2, 3\) holds inf"):
        to_tensor(cube, "X")
    frame = pd.DataFrame({"wind": [1.0, np.nan]}, index=["mon", "tue"])
    with pytest.raises(ValueError, match=r"row 1 \(index tue\), column 'wind' holds nan"):
        to_tensor(frame, "X")
    with pytest.raises(ValueError, match=r"row 1 \(index tue\) holds nan"):
        to_tensor(frame["wind"], "X")


def test_missing_values_of_nullable_columns_and_masked_arrays_are_found():
    with pytest.raises(ValueError, match=r"row 1 .*column 'n' holds nan"):
        to_tensor(pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}), "X")
    with pytest.raises(ValueError, match="row 0 holds nan"):
        to_tensor(np.ma.masked_array([1, 2], mask=[True, False]), "X")


def test_a_number_too_large_for_the_precision_is_named():
    with pytest.raises(ValueError, match=r"finite in float32, but row 1 holds 1e\+300"):
        to_tensor([1.0, 1e300], "X")
    assert to_tensor([1e300], "X", torch.float64).item() == 1e300


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, TypeError, "got None"),
        (3.0, ValueError, "the single number 3.0"),
        (torch.tensor(3), ValueError, "the single number 3"),
        ([], ValueError, r"got shape \(0,\)"),
        (np.zeros((0, 4)), ValueError, r"got shape \(0, 4\)"),
        (torch.zeros(4, 0), ValueError, r"got shape \(4, 0\)"),
        (pd.DataFrame(), ValueError, r"got shape \(0, 0\)"),
        (pd.DataFrame({"a": []}, dtype=object), ValueError, r"got shape \(0, 1\)"),
        ("text", TypeError, "got str"),
        ({"a": 1}, TypeError, "got dict"),
        ([[1.0, "two"]], TypeError, "row 0, column 1 holds 'two'"),
        (np.array([[1.0, "two"]], dtype=object), TypeError, "row 0, column 1 holds 'two'"),
        (np.array([1.0, None]), TypeError, "row 1 holds None"),
        (np.array([1.0, 2.0], dtype=object), TypeError, r"dtype object.*astype\(float\)"),
        (np.array([1j]), TypeError, "dtype complex128"),
        (torch.tensor([1j]), TypeError, "dtype torch.complex64"),
        (torch.eye(2).to_sparse(), TypeError, "layout torch.sparse_coo"),
        (np.array(["2020-01-01"], "datetime64[D]"), TypeError, r"dtype datetime64\[D\]"),
        ([[1.0], [1.0, 2.0]], ValueError, "rows of equal length"),
        (pd.DataFrame({"a": [1.0], "city": ["Oslo"]}), TypeError, "column 'city' .*'Oslo'"),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), TypeError, "column 't' has dtype"),
        (pd.Series([1j], name="z"), TypeError, "column 'z' has dtype complex128"),
        (pd.Series(["a"], dtype="category"), TypeError, "column None has dtype category"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(value, error, message):
    with pytest.raises(error, match=f"(?s)X needs.*({message})"):
        read(value, "X")


def test_columns_are_those_of_frames_alone():
    assert columns_of(pd.DataFrame({"a": [1], 2: [3]})) == ["a", 2]
    assert columns_of(pd.Series([1], name="y")) == ["y"]
    assert columns_of(pd.Series([1])) is None
    assert columns_of(np.zeros(2)) is None


def test_a_subclass_of_a_frame_is_a_frame():
    class Mine(pd.DataFrame):
        pass

    assert columns_of(Mine({"a": [1.0]})) == ["a"]


def test_numpy_and_torch_never_import_pandas():
    code = """
import sys, numpy as np, torch
from costscape.arrays import read
for value in (np.zeros((2, 2)), torch.zeros(2, 2), [[1.0]]):
    x, form = read(value, "X")
    form.give(x, ["a", "b"])
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
