"""Advice of a table in the words of the project file: gaps=InsertDates(outcome=0.0) becomes
gaps = {outcome = 0.0}."""

import re

CALL = re.compile(r"(?:(\w+)=)?(InsertDates|CsvFormat|DateFormat|OneHot|FillValue)\(([^()]*)\)")
NAME_OF = {
    "InsertDates": "gaps",
    "CsvFormat": "csv",
    "DateFormat": "dates",
    "OneHot": "encode",
    "FillValue": "missing",
}
PLAIN = (
    ("missing=FillForward()", 'missing = "forward"'),
    ("freq=, for example freq='D' or freq='h'", 'freq = "D" or freq = "h"'),
    ("in group=.", "in group."),
    ("Rows of days to come go into next().", "Rows of days to come go into `decide --data`."),
    (", a frame or a Query", ""),
)


def in_toml_words(text: str) -> str:
    """The text with Python settings of ``Table`` written as in a project file.

    >>> in_toml_words("Pass gaps=InsertDates(outcome=0.0) or missing=FillValue(0.0).")
    'Pass gaps = {outcome = 0.0} or missing = 0.0.'
    """
    for python, toml in PLAIN:
        text = text.replace(python, toml)
    return CALL.sub(_setting, text)


def in_option_words(text: str) -> str:
    """The text for a command without a project file, which has options.

    >>> in_option_words("Name it in group=.")
    'Name it in --group.'
    """
    words = in_toml_words(text.replace("in group=.", "in --group."))
    if " = " in words and " = " not in text:
        words += " Such settings are in the project file that `costscape init` writes."
    return words


def _setting(call: re.Match[str]) -> str:
    values = call[3].replace("'", '"').replace("True", "true")
    name = call[1] or NAME_OF[call[2]]
    if call[2] == "FillValue":
        return f"{name} = {values}"
    spaced = re.sub(r"(\w+)=", r"\1 = ", values)
    return f"{name} = {{{spaced}}}"
