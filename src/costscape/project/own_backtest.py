"""The part [compare] of a project file: methods and simple rules on the project's later rows."""

from typing import Any

from costscape.project.method_choice import make_method, method_named
from costscape.project.project_file import Project
from costscape.project.rule_backtest import Backtest, backtest, with_rules
from costscape.project.simple_rules import TODAY, simple_rules
from costscape.project.table_settings import read_table, table_arguments
from costscape.project.task_choice import make_task, quantile_of
from costscape.table.settings import names

NUMBERS = ("seeds", "test", "origins")
USUAL = ("DF2.quick", "RandomForest", "NearestNeighbours", "Constant")


def compare_project(project: Project) -> Backtest:
    """Fit the methods of [compare] on the earlier rows, test them and the rules on the last ones.

    The method of [method] keeps its settings; the others have their defaults.
    """
    project.check_keys("compare", ("methods", "today", *NUMBERS))
    table, task = read_table(project), make_task(project)
    own, place = project.method.get("name", "DF2.quick"), project.place("compare", "methods")
    wanted = project.compare.get("methods", USUAL)
    methods = {
        name: make_method(project, task) if name == own else method_named(name, task, place)
        for name in (wanted if isinstance(wanted, list | tuple) else [wanted])
    }
    numbers: dict[str, Any] = {k: project.compare[k] for k in NUMBERS if k in project.compare}
    try:
        found = backtest(task, table, methods, **numbers)
    except (TypeError, ValueError) as error:
        words = str(error).removesuffix(".")
        raise ValueError(f"{project.place('compare')}: {words}.") from error
    today = names(project.compare.get("today"))
    actions = simple_rules(
        project.data, table_arguments(project), table, rows=found.test_rows, today=today,
        level=quantile_of(project),
    )  # fmt: skip
    made = with_rules(found, task, table, actions)
    if today and TODAY not in made.rules:
        raise ValueError(
            f"{project.place('compare', 'today')} needs one column for each number that is "
            f"decided, with a value in every test row, but got {', '.join(today)}. Correct it."
        )
    return made
