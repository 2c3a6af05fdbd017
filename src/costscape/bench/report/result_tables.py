"""Rows -> tables: plain text, and those of a store as Markdown, LaTeX and CSV."""

import io
import json
import re
from collections.abc import Mapping, Sequence
from csv import DictWriter
from typing import Any

from costscape.bench.report.problem_tables import (
    Line,
    interval_kind,
    problem_tables,
    shared_legend,
)
from costscape.bench.report.published import published
from costscape.bench.report.read_rows import Row
from costscape.bench.report.summary import Cell, summarise

COLUMNS = (
    *("problem", "method", "seeds", "regret_mean", "regret_sd", "gap_mean", "cost_mean"),
    *("fit_seconds", "decide_seconds", "refused", "changes", "difference", "low", "high"),
    *("verdict", "failed", "paper_regret", "device", "paper_sd", "gap_sd", "cost_sd"),
    *("measure", "opponent", "interval", "quick", "kind"),
)
FORMULA = ("=", "+", "-", "@")  # with which a cell of a spreadsheet computes
ESCAPES = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def text_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Columns as wide as they need to be: the first to the left, the others to the right.

    >>> print(text_table([{"method": "a", "cost": "9.5"}, {"method": "bb", "cost": "10.0"}]))
    method  cost
    a        9.5
    bb      10.0
    """
    names = list(rows[0])
    lines = [names, *([row[name] for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(rows: Sequence[Row], ours: Sequence[str] = ()) -> str:
    """A legend, then a heading and a table for each problem; arguments as for ``summarise``."""
    tables = problem_tables(rows, ours)
    parts = [shared_legend(tables)]
    for table in tables:
        parts += [f"## {table.title}", _markdown(table.header, table.lines)]
        if table.changed:
            parts += [f"### {table.title}: settings", _markdown(table.header, table.changed)]
        parts += [" ".join(table.captions)] if table.captions else []
    return "\n\n".join(parts) + "\n"


def latex(rows: Sequence[Row], ours: Sequence[str] = ()) -> str:
    """A floating table for each problem; needs the package booktabs."""
    parts = []
    for table in problem_tables(rows, ours):
        words = f"{_tex(table.title)}. {_tex(' '.join([*table.legend, *table.captions]))}"
        parts.append(_latex(table.header, table.lines, words, f"tab:{table.anchor}"))
        if table.changed:
            words, name = f"{_tex(table.title)}: settings.", f"tab:{table.anchor}-settings"
            parts.append(_latex(table.header, table.changed, words, name))
    return "\n\n".join(parts) + "\n"


def csv(rows: Sequence[Row], ours: Sequence[str] = ()) -> str:
    """A line for each problem and method, numbers in full precision, empty where not known."""
    out = io.StringIO()
    lines = DictWriter(out, COLUMNS, lineterminator="\n")
    lines.writeheader()
    for cell in summarise(rows, ours):
        lines.writerow({name: _no_formula(value) for name, value in _csv_line(cell).items()})
    return out.getvalue()


def _no_formula(value: Any) -> Any:
    """A text that a spreadsheet would compute gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value[:1] in FORMULA else value


def _csv_line(cell: Cell) -> dict[str, Any]:
    d = cell.difference
    known = None if cell.changes else published(cell.problem, cell.method)
    stats = {name: getattr(cell, name) for name in ("regret", "gap", "cost")}
    return {
        **{f"{name}_mean": stat and stat.mean for name, stat in stats.items()},
        **{f"{name}_sd": stat and stat.sd for name, stat in stats.items()},
        **{
            name: getattr(cell, name)
            for name in ("problem", "kind", "fit_seconds", "decide_seconds", "refused", "failed")
        },
        "method": cell.label,
        "seeds": len(cell.seeds),
        "changes": json.dumps(cell.changes, sort_keys=True),
        "difference": d and d.mean,
        "low": d and d.low,
        "high": d and d.high,
        "verdict": "best opponent" if cell.is_best_opponent else d and d.verdict,
        "paper_regret": known and known[0],
        "paper_sd": known and known[1],
        "device": "; ".join(cell.devices),
        "measure": cell.measure,
        "opponent": d and d.opponent,
        "interval": interval_kind(d),
        "quick": cell.quick,
    }


def _markdown(header: Sequence[str], lines: Sequence[Line]) -> str:
    out: list[Sequence[str]] = [header, ["---", *["---:"] * (len(header) - 1)]]
    for line in lines:
        texts = [*line.texts, *([] if line.sentence is None else [line.sentence])]
        texts += [""] * (len(header) - len(texts))
        out.append([" ".join(text.split()).replace("|", r"\|") for text in texts])
    return "\n".join(f"| {' | '.join(texts)} |" for texts in out)


def _latex(header: Sequence[str], lines: Sequence[Line], caption: str, name: str) -> str:
    body = []
    for line in lines:
        texts = [_tex(text) for text in line.texts]
        if line.sentence is not None:
            words = _tex(" ".join(line.sentence.split()))
            span = rf"\multicolumn{{{len(header) - 1}}}{{p{{0.6\linewidth}}}}"
            texts.append(rf"{span}{{\emph{{{words}}}}}")
        body.append(f"{' & '.join(texts)} \\\\")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{caption}}}",
            rf"\label{{{name}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            f"{' & '.join(_tex(text) for text in header)} \\\\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _tex(text: str) -> str:
    """Escaped; quotes are paired, a sign before a number is a mathematical one, no hyphen."""
    escaped = "".join(ESCAPES.get(mark, mark) for mark in text)
    quoted = re.sub(r'"([^"]*)"', r"``\1''", escaped)
    return re.sub(r"(?<![\w.-])([+-])(?=\d)", r"$\1$", quoted)
