import pytest

from costscape.bench.report import text_table


def test_the_first_column_is_left_the_others_are_right():
    rows = [
        {"method": "a", "cost": "1", "note": "x"},
        {"method": "long name", "cost": "123.5", "note": ""},
    ]
    assert text_table(rows).splitlines() == [
        "method      cost  note",
        "a              1     x",
        "long name  123.5",
    ]


def test_the_first_row_names_the_columns_whatever_the_order_of_the_others():
    table = text_table([{"a": "1", "b": "2"}, {"b": "4", "a": "3"}])
    assert table == "a  b\n1  2\n3  4"


def test_a_row_without_a_column_is_an_error():
    with pytest.raises(KeyError, match="b"):
        text_table([{"a": "1", "b": "2"}, {"a": "3"}])
