"""Tables and figures, from rows and arrays alone: nothing here knows torch."""

from costscape.bench.report.cost_curve import CostCurve, cost_curve
from costscape.bench.report.differences import PairedDifference
from costscape.bench.report.figure1_picture import figure1_picture, figure1_text
from costscape.bench.report.not_run import not_run
from costscape.bench.report.overview import overview
from costscape.bench.report.page import write_page
from costscape.bench.report.published import published
from costscape.bench.report.ratios import ratios
from costscape.bench.report.read_rows import label, read_landscapes, read_rows
from costscape.bench.report.result_tables import csv, latex, markdown, text_table
from costscape.bench.report.summary import Cell, Stat, best_of, summarise

__all__ = [
    "Cell",
    "CostCurve",
    "PairedDifference",
    "Stat",
    "best_of",
    "cost_curve",
    "csv",
    "figure1_picture",
    "figure1_text",
    "label",
    "latex",
    "markdown",
    "not_run",
    "overview",
    "published",
    "ratios",
    "read_landscapes",
    "read_rows",
    "summarise",
    "text_table",
    "write_page",
]
