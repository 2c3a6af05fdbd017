"""Which method to use on one's own data, and by how much."""

from costscape.block_bootstrap import Difference as Difference
from costscape.comparison.advice import Standing as Standing
from costscape.comparison.backtest import compare as compare
from costscape.comparison.candidates import default_methods as default_methods
from costscape.comparison.cost_history import CostHistory as CostHistory
from costscape.comparison.result import Comparison as Comparison
