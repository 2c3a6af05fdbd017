"""Every public class and function lists all of its arguments and shows an example."""

import dataclasses
import inspect
import re

import pytest

import costscape as cs

SECTION = re.compile(r"^(?:Args|Arguments|Attributes):\n((?:[ ]{4,}.*\n|\n)+)", re.M)
ENTRY = re.compile(r"^ {4}\*{0,2}(\w+):", re.M)
PUBLIC = [
    name
    for name in sorted(cs.__all__)
    if inspect.isclass(getattr(cs, name)) or inspect.isfunction(getattr(cs, name))
]


def arguments(thing):
    """The names that a caller may pass: fields of a dataclass, else parameters."""
    if dataclasses.is_dataclass(thing):
        fields = dataclasses.fields(thing)
        return [f.name for f in fields if f.init and not f.name.startswith("_")]
    if inspect.isfunction(thing):
        return list(inspect.signature(thing).parameters)
    _, *parameters = inspect.signature(thing.__init__).parameters.values()
    # nn.Module and TypeError take *args and **kwargs
    return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def lacks(thing):
    """Arguments without an entry, and "an example" where there is none."""
    text = inspect.cleandoc(thing.__doc__ or "") + "\n"
    listed = {entry for section in SECTION.findall(text) for entry in ENTRY.findall(section)}
    missing = [name for name in arguments(thing) if name not in listed]
    needs_example = not inspect.isabstract(thing) and ">>> " not in text
    return missing + ["an example"] * needs_example


@pytest.mark.parametrize("name", PUBLIC)
def test_the_docstring_lists_every_argument_and_has_an_example(name):
    missing = lacks(getattr(cs, name))
    assert not missing, f"The docstring of costscape.{name} lacks: {', '.join(missing)}."


def test_what_a_docstring_lacks_is_named():
    def scale(factor, offset, unit):
        """Scales.

        Args:
            factor: float.
            offset, unit: two names in one entry count as none.
        """

    assert lacks(scale) == ["offset", "unit", "an example"]
