"""Tables and pictures, from rows and arrays alone: nothing here knows torch."""

from costscape.report.bids import bids_plot
from costscape.report.differences import PairedDifference
from costscape.report.doses import doses_plot
from costscape.report.orders import orders_plot, service_level
from costscape.report.overview import overview
from costscape.report.page import write_page
from costscape.report.plots import cost_curve
from costscape.report.published import published
from costscape.report.ratios import ratios
from costscape.report.rivals import best_of
from costscape.report.rows import read_landscapes, read_rows
from costscape.report.summary import Cell, Stat, summarise
from costscape.report.tables import csv, latex, markdown, table, text_table

__all__ = [
    "Cell",
    "PairedDifference",
    "Stat",
    "best_of",
    "bids_plot",
    "cost_curve",
    "csv",
    "doses_plot",
    "latex",
    "markdown",
    "orders_plot",
    "overview",
    "published",
    "ratios",
    "read_landscapes",
    "read_rows",
    "service_level",
    "summarise",
    "table",
    "text_table",
    "write_page",
]
