"""The part [table] of a project file as a table."""

from collections.abc import Callable, Mapping
from typing import Any

from costscape.project.project_file import Project
from costscape.table import (
    Calendar,
    CsvFormat,
    DateFormat,
    FillForward,
    FillValue,
    InsertDates,
    OneHot,
    Table,
)
from costscape.table.settings import Settings, checked

FORWARD = "forward"


def _filled(value: Any) -> FillForward | FillValue:
    if value == FORWARD:
        return FillForward()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f'missing needs "{FORWARD}" or a number, but got {value!r}')
    return FillValue(float(value))


def _calendar(value: Any) -> Calendar | None:
    return Calendar(**value) if value else None


def _lags(value: Any) -> Any:
    lists = value.values() if isinstance(value, dict) else [value]
    for lags in lists:
        if not isinstance(lags, list) or any(type(lag) is not int for lag in lags):
            raise ValueError(
                f"lags needs a list of whole numbers such as [1, 7], or such a list by column, "
                f"but got {value!r}"
            )
    return value


MADE: Mapping[str, Callable[[Any], Any]] = {
    "calendar": _calendar,
    "lags": _lags,
    "missing": _filled,
    "gaps": lambda value: InsertDates(**value),
    "csv": lambda value: CsvFormat(**value),
    "dates": lambda value: DateFormat(**value),
    "encode": lambda value: OneHot(**value),
}
PLAIN = ("date", "group", "outcome", "known", "horizon", "gap", "freq", "category")


def table_arguments(project: Project) -> dict[str, Any]:
    """The arguments of ``Table``, apart from its source."""
    project.check_keys("table", (*PLAIN, *MADE))
    made = dict(project.table)
    for key, make in MADE.items():
        if key in made:
            try:
                made[key] = make(made[key])
            except (TypeError, ValueError) as error:
                raise ValueError(f"{project.place('table', key)}: {_brief(error)}.") from error
    return made


def table_settings(project: Project) -> Settings:
    """The settings as ``Table`` keeps them, checked without reading the data."""
    given = {k: v for k, v in table_arguments(project).items() if k not in ("csv", "dates")}
    defaults: dict[str, Any] = {
        "group": None, "known": None, "lags": (), "category": None, "calendar": Calendar(),
        "gap": 0, "horizon": 1, "freq": None, "encode": OneHot(), "missing": None, "gaps": None,
    }  # fmt: skip
    for key in ("date", "outcome"):
        if not given.get(key):
            raise ValueError(f"{project.place('table')} needs the column {key!r}, but has none.")
    try:
        return checked(**{**defaults, **given})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{project.place('table')}: {_brief(error)}.") from error


def read_table(project: Project) -> Table:
    """Read the project's data."""
    table_settings(project)
    if not project.data.is_file():
        raise FileNotFoundError(
            f"{project.file} needs data to be a file, but there is none at {project.data}. "
            f"Correct the path, which starts at the folder of the project."
        )
    return Table(project.data, **table_arguments(project))


def _brief(error: Exception) -> str:
    return str(error).removesuffix(".")
