"""Tables and pictures, from rows and arrays alone: nothing here knows torch."""

from costscape.bench.report.best_opponent import best_of
from costscape.bench.report.cost_curve import cost_curve
from costscape.bench.report.differences import PairedDifference
from costscape.bench.report.overview import overview
from costscape.bench.report.page import write_page
from costscape.bench.report.published import published
from costscape.bench.report.ratios import ratios
from costscape.bench.report.read_rows import read_landscapes, read_rows
from costscape.bench.report.result_tables import csv, latex, markdown, table, text_table
from costscape.bench.report.summary import Cell, Stat, summarise
from costscape.problems.stock_orders.orders_plot import orders_plot, service_level
from costscape.problems.vaccine_doses.doses_plot import doses_plot
from costscape.problems.wind_bids.bids_plot import bids_plot

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
