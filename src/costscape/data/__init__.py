"""Where the pairs (x, y) come from."""

from costscape.data.dataset import Dataset, Splits, split
from costscape.data.fetch import fetch
from costscape.data.mobility import (
    Mobility,
    generated_mobility,
    last_week,
    mobility,
    trip_weeks,
)
from costscape.data.sales import PooledSales, Sales, pooled_sales, sales
from costscape.data.synthetic import ThreeGaussians, three_gaussians
from costscape.data.table import Table, read_table
from costscape.data.wind import Wind, bidding_windows, wind, wind_farm
from costscape.data.windows import windows

__all__ = [
    "Dataset",
    "Mobility",
    "PooledSales",
    "Sales",
    "Splits",
    "Table",
    "ThreeGaussians",
    "Wind",
    "bidding_windows",
    "fetch",
    "generated_mobility",
    "last_week",
    "mobility",
    "pooled_sales",
    "read_table",
    "sales",
    "split",
    "three_gaussians",
    "trip_weeks",
    "wind",
    "wind_farm",
    "windows",
]
