"""The part [units] of a project file: the unit of each column that the table makes of a column."""

from costscape.project.project_file import Project
from costscape.project.table_settings import table_settings


def column_units(project: Project) -> dict[str, str]:
    """The unit by column of X and Y; lags and steps have the unit of their column."""
    settings = table_settings(project)
    project.check_keys("units", settings.values)
    found: dict[str, str] = {}
    for column, unit in project.units.items():
        if not isinstance(unit, str):
            raise ValueError(
                f"{project.place('units', column)} needs a text, but {column} is {unit!r}. Write "
                f'{column} = "pieces".'
            )
        steps = range(settings.horizon) if column in (*settings.outcome, *settings.known) else ()
        names = [settings.step_name(column, step) for step in steps]
        names += [f"{column}_lag{lag}" for lag in dict(settings.lags).get(column, ())]
        found |= dict.fromkeys(names, unit)
    return found
