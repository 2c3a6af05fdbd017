"""Tables and pictures, from rows and arrays alone: nothing here knows torch."""

from costscape.report.plots import cost_curve
from costscape.report.tables import text_table

__all__ = ["cost_curve", "text_table"]
