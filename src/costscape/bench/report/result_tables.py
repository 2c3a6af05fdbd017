"""Rows -> tables: plain text, and a store's as Markdown, LaTeX and CSV."""

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from csv import writer

from costscape.bench.report.problem_tables import Line, interval_kind, sheets
from costscape.bench.report.published import published
from costscape.bench.report.read_rows import Row
from costscape.bench.report.summary import Stat, summarise

COLUMNS = (
    *("problem", "method", "seeds", "regret_mean", "regret_sd", "gap_mean", "cost_mean"),
    *("fit_seconds", "decide_seconds", "refused", "changes", "difference", "low", "high"),
    *("verdict", "failed", "paper_regret", "device", "paper_sd", "gap_sd", "cost_sd"),
    *("measure", "opponent", "interval", "quick"),
)
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


def markdown(rows: Sequence[Row]) -> str:
    """A heading and a table for each problem."""
    parts = []
    for sheet in sheets(rows):
        parts += [f"## {sheet.title}", _markdown(sheet.header, sheet.lines)]
        if sheet.changed:
            parts += [f"### {sheet.title}: settings", _markdown(sheet.header, sheet.changed)]
        parts.append(" ".join(sheet.captions))
    return "\n\n".join(parts) + "\n"


def latex(rows: Sequence[Row]) -> str:
    """A floating table for each problem; needs the package booktabs."""
    parts = []
    for sheet in sheets(rows):
        caption = f"{_tex(sheet.title)}. {_tex(' '.join(sheet.captions))}"
        parts.append(_latex(sheet.header, sheet.lines, caption, f"tab:{sheet.anchor}"))
        if sheet.changed:
            caption = f"{_tex(sheet.title)}: settings."
            name = f"tab:{sheet.anchor}-settings"
            parts.append(_latex(sheet.header, sheet.changed, caption, name))
    return "\n\n".join(parts) + "\n"


def csv(rows: Sequence[Row]) -> str:
    """A line for each problem and method, numbers in full precision, empty where not known."""
    out = io.StringIO()
    lines = writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    for cell in summarise(rows):
        d = cell.difference
        known = None if cell.changes else published(cell.problem, cell.method)
        values = {
            "problem": cell.problem,
            "method": cell.label,
            "seeds": len(cell.seeds),
            **_parts("regret", cell.regret),
            **_parts("gap", cell.gap),
            **_parts("cost", cell.cost),
            "fit_seconds": cell.fit_seconds,
            "decide_seconds": cell.decide_seconds,
            "refused": cell.refused,
            "changes": json.dumps(cell.changes, sort_keys=True),
            "difference": d.mean if d else None,
            "low": d.low if d else None,
            "high": d.high if d else None,
            "verdict": "best opponent" if cell.is_best_opponent else d.verdict if d else None,
            "failed": cell.failed,
            "paper_regret": known[0] if known else None,
            "paper_sd": known[1] if known else None,
            "device": "; ".join(cell.devices),
            "measure": cell.measure,
            "opponent": d.opponent if d else None,
            "interval": interval_kind(d),
            "quick": cell.quick,
        }
        lines.writerow([values[name] for name in COLUMNS])
    return out.getvalue()


FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    "md": markdown,
    "latex": latex,
    "csv": csv,
}


def table(rows: Sequence[Row], format: str = "md") -> str:
    """The rows' table in a named format, for callers that hold the name as text."""
    if format not in FORMATS:
        raise ValueError(
            f"A table needs a format of {', '.join(FORMATS)}, but got {format!r}. Name one of "
            f"those."
        )
    return FORMATS[format](rows)


def _parts(name: str, stat: Stat | None) -> dict[str, float | None]:
    return {
        f"{name}_mean": stat.mean if stat else None,
        f"{name}_sd": stat.sd if stat else None,
    }


def _markdown(header: Sequence[str], lines: Sequence[Line]) -> str:
    width = len(header)
    rule = ["---", *["---:"] * (width - 1)]
    out = [header, rule]
    for line in lines:
        if line.sentence is None:
            out.append([text.replace("|", r"\|") for text in line.texts])
        else:
            words = " ".join(line.sentence.split()).replace("|", r"\|")
            out.append([line.texts[0], words, *[""] * (width - 2)])
    return "\n".join(f"| {' | '.join(texts)} |" for texts in out)


def _latex(header: Sequence[str], lines: Sequence[Line], caption: str, name: str) -> str:
    width = len(header)
    body = []
    for line in lines:
        if line.sentence is None:
            texts = [_tex(text) for text in line.texts]
        else:
            words = _tex(" ".join(line.sentence.split()))
            span = rf"\multicolumn{{{width - 1}}}{{p{{0.6\linewidth}}}}{{\emph{{{words}}}}}"
            texts = [_tex(line.texts[0]), span]
        body.append(f"{' & '.join(texts)} \\\\")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{caption}}}",
            rf"\label{{{name}}}",
            rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
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
