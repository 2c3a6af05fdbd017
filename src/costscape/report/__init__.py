"""Tables and pictures, from rows and arrays alone: nothing here knows torch."""

from costscape.report.bids import bids_plot
from costscape.report.doses import doses_plot
from costscape.report.orders import orders_plot, service_level
from costscape.report.plots import cost_curve
from costscape.report.tables import text_table

__all__ = [
    "bids_plot",
    "cost_curve",
    "doses_plot",
    "orders_plot",
    "service_level",
    "text_table",
]
