"""Where the pairs (x, y) come from."""

from costscape.data.dataset import Dataset, Splits, split
from costscape.data.synthetic import ThreeGaussians, three_gaussians
from costscape.data.table import Table, read_table
from costscape.data.wind import bidding_windows, wind_farm
from costscape.data.windows import windows

__all__ = [
    "Dataset",
    "Splits",
    "Table",
    "ThreeGaussians",
    "bidding_windows",
    "read_table",
    "split",
    "three_gaussians",
    "wind_farm",
    "windows",
]
