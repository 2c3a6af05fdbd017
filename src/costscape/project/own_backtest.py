"""The part [compare] of a project file: methods and simple rules on the project's later rows."""

from typing import Any

from costscape.project.method_choice import make_method, method_named
from costscape.project.past_decisions import past_decisions
from costscape.project.project_file import Project
from costscape.project.rule_backtest import TESTED, Backtest, backtest, rows_to_test, with_rules
from costscape.project.simple_rules import simple_rules
from costscape.project.table_settings import read_table, table_arguments
from costscape.project.task_choice import make_task, quantile_of
from costscape.table.settings import names

OPTIONS = ("seeds", "test", "origins", "budget", "prefer")  # those of ``compare``
USUAL = ("DF2.quick", "RandomForest", "NearestNeighbours", "Constant")


def compare_project(project: Project, budget: float | str | None = None) -> Backtest:
    """Fit the methods of [compare] on the earlier rows, test them and the rules on the last ones.

    Args:
        project: the project.
        budget: seconds or a text such as "2 min"; None for that of [compare], if it has one.

    The method of [method] keeps its settings; the others have their defaults.
    """
    project.check_keys("compare", ("methods", "today", *OPTIONS))
    table, task = read_table(project), make_task(project)
    own, place = project.method.get("name", "DF2.quick"), project.place("compare", "methods")
    wanted = project.compare.get("methods", USUAL)
    methods = {
        name: make_method(project, task) if name == own else method_named(name, task, place)
        for name in (wanted if isinstance(wanted, list | tuple) else [wanted])
    }
    options: dict[str, Any] = {k: project.compare[k] for k in OPTIONS if k in project.compare}
    if budget is not None:
        options["budget"] = budget
    arguments = table_arguments(project)
    columns = names(project.compare.get("today"))
    tested = rows_to_test(table, options.get("test", TESTED))
    try:
        # before the fits, which take minutes: a wrong column is found at once
        today = past_decisions(project.data, arguments, table, task, columns, tested)
        found = backtest(task, table, methods, today=today, **options)
    except (TypeError, ValueError) as error:
        words = str(error).removesuffix(".")
        raise ValueError(f"{project.place('compare')}: {words}.") from error
    actions = simple_rules(
        project.data, arguments, table, rows=found.test_rows, level=quantile_of(project)
    )
    return with_rules(found, task, table, actions)
