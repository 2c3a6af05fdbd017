"""Which method to use on one's own data, and by how much."""

from costscape.block_bootstrap import Difference
from costscape.comparison.advice import Standing
from costscape.comparison.backtest import compare
from costscape.comparison.candidates import default_methods
from costscape.comparison.result import Comparison

__all__ = ["Comparison", "Difference", "Standing", "compare", "default_methods"]
