"""Which method to use on one's own data, and by how much."""

from costscape.block_bootstrap import Difference
from costscape.comparing.advice import Standing
from costscape.comparing.comparison import Comparison
from costscape.comparing.contest import compare
from costscape.comparing.trials import default_methods

__all__ = ["Comparison", "Difference", "Standing", "compare", "default_methods"]
