"""A project as one HTML page: next decisions, why, the last comparison. Loads nothing."""

import base64
import io
from html import escape
from string import Template
from typing import Any

import pandas as pd

from costscape.comparison.cost_history import FILE, CostHistory
from costscape.project.atomic_file import write_whole
from costscape.project.decisions import range_sentence
from costscape.project.model_files import MODEL, FittedProject
from costscape.project.overview import table_words
from costscape.project.project_file import Project
from costscape.project.rule_backtest import Backtest
from costscape.table import Table

COMPARISON = "comparison.txt"  # what `costscape compare` keeps in the folder of models
PAGE = Template("""\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .25rem .75rem; text-align: right; border-bottom: 1px solid #8886; }
img { max-width: 100%; background: white; }
pre { overflow-x: auto; }
</style></head><body>
<h1>$title</h1>
<p>$about</p>
<h2>Next decisions</h2>
<p>$range</p>
$decisions
<p><img alt="Past outcomes and the next decisions" src="$orders"></p>
<h2>Why: the first row</h2>
<p>The expected cost of other decisions, the past rows with the largest weights, and the inputs
that matter most.</p>
<p><img alt="Cost curve, past rows and inputs of the first decision" src="$reasons"></p>
<h2>Methods compared</h2>
<pre>$comparison</pre>
<h2>Model</h2>
<p>$model</p>
</body></html>
""")


def render_page(
    project: Project, data: Table, fitted: FittedProject, X: pd.DataFrame, decisions: pd.DataFrame
) -> str:
    """The page's text.

    Args:
        project: the project.
        data: its table with X and Y.
        fitted: the model.
        X: the features of the next decisions.
        decisions: as ``decision_table`` makes them.
    """
    kept = project.models / COMPARISON
    compared = f"Not compared yet: run costscape compare {project.folder}"
    record = fitted.model.record_
    facts = "" if record is None else f", fitted on {record.rows:,} rows at {record.date}"
    ahead = decisions.filter(like="decision_")
    return PAGE.substitute(
        title=escape(project.folder.resolve().name),
        about=escape(table_words(project.data.name, data)),
        range=escape(range_sentence(decisions)),
        decisions=_html(decisions),
        orders=_picture(data.plot(ahead)),
        reasons=_picture(fitted.model.explain(X.iloc[[0]]).plot()),
        comparison=escape(kept.read_text(encoding="utf-8") if kept.is_file() else compared),
        model=escape(f"{type(fitted.model).__name__}{facts}."),
    )


def _html(table: pd.DataFrame) -> str:
    text: str = table.reset_index().to_html(
        index=False, border=0, float_format=lambda v: f"{v:.4g}", escape=True
    )
    return text


def _picture(figure: Any) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


def keep_comparison(project: Project, found: Backtest) -> str:
    """Keep a comparison: its text for the page, its costs for a service; returns where it is."""
    path = project.models / COMPARISON
    write_whole(path, f"{found}\n", force=True)
    history = CostHistory.of(found.comparison, found.rules, found.reference)
    history.write(project.models / f"{MODEL}.{FILE}")
    return f"Kept in {path}, for `costscape report {project.folder}`."
