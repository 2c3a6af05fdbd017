"""Advice of a table, in the words of a project file."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import costscape.table
from costscape.project.toml_words import PLAIN, in_toml_words


def errors():
    """The text of every error of the tables, with {} in place of values."""
    for path in Path(costscape.table.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
                yield "".join(parts)
            elif isinstance(node, ast.Constant) and "needs" in str(node.value):
                yield str(node.value)


def test_every_phrase_is_one_of_the_tables():
    files = Path(costscape.table.__file__).parent.glob("*.py")
    # an error is written as several strings
    texts = re.sub(r'"\s+f?"', "", " ".join(path.read_text() for path in files))
    for python, _ in PLAIN:
        assert python in texts


def test_no_advice_of_a_file_names_a_python_class():
    for text in errors():
        if "such as" not in text:  # of wrong arguments, which a project file cannot have
            words = in_toml_words(text)
            for name in ("InsertDates(", "FillForward(", "FillValue(", "CsvFormat(", "OneHot("):
                assert name not in words, text


@pytest.mark.parametrize(
    ("python", "value"),
    [
        ("gaps=InsertDates(outcome=0.0)", {"gaps": {"outcome": 0.0}}),
        ("csv=CsvFormat(separator=';', decimal=',')", {"csv": {"separator": ";", "decimal": ","}}),
        ("dates=DateFormat(day_first=True)", {"dates": {"day_first": True}}),
        ("DateFormat(pattern='%d %b %Y')", {"dates": {"pattern": "%d %b %Y"}}),
        ("missing=FillForward()", {"missing": "forward"}),
        ("missing=FillValue(0.0)", {"missing": 0.0}),
    ],
)
def test_the_words_are_toml(python, value):
    assert tomllib.loads(in_toml_words(python)) == value
