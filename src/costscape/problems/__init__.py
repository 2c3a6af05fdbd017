"""The problems of the paper: tasks, data and pictures. Each has a folder of its own."""

from costscape.problems.files.csv_columns import Table, read_table
from costscape.problems.files.fetch import fetch
from costscape.problems.inventory.orders_plot import orders_plot, service_level
from costscape.problems.inventory.sales import PooledSales, Sales, pooled_sales, sales
from costscape.problems.inventory.stock import inventory
from costscape.problems.inventory.store_stock import by_item, store_inventory
from costscape.problems.problem import Problem
from costscape.problems.synthetic.synthetic_costs import (
    MixtureTruth,
    synthetic_convex,
    synthetic_nonconvex,
)
from costscape.problems.synthetic.three_gaussians import ThreeGaussians, three_gaussians
from costscape.problems.vaccine.allocation import proportional, vaccine, vaccine_wave
from costscape.problems.vaccine.dcrnn import DCRNN, DCRNNForecaster
from costscape.problems.vaccine.doses_plot import doses_plot
from costscape.problems.vaccine.epidemic import Epidemic, epidemic_state, fit_beta
from costscape.problems.vaccine.graph_convolution import edges_of
from costscape.problems.vaccine.mobility import (
    Mobility,
    generated_mobility,
    last_week,
    mobility,
    trip_weeks,
)
from costscape.problems.wind.bidding import profit, wind_bidding, wind_bidding_with_reserve
from costscape.problems.wind.bids_plot import bids_plot
from costscape.problems.wind.wind_power import Wind, bidding_windows, wind, wind_farm

__all__ = [
    "DCRNN",
    "DCRNNForecaster",
    "Epidemic",
    "MixtureTruth",
    "Mobility",
    "PooledSales",
    "Problem",
    "Sales",
    "Table",
    "ThreeGaussians",
    "Wind",
    "bidding_windows",
    "bids_plot",
    "by_item",
    "doses_plot",
    "edges_of",
    "epidemic_state",
    "fetch",
    "fit_beta",
    "generated_mobility",
    "inventory",
    "last_week",
    "mobility",
    "orders_plot",
    "pooled_sales",
    "profit",
    "proportional",
    "read_table",
    "sales",
    "service_level",
    "store_inventory",
    "synthetic_convex",
    "synthetic_nonconvex",
    "three_gaussians",
    "trip_weeks",
    "vaccine",
    "vaccine_wave",
    "wind",
    "wind_bidding",
    "wind_bidding_with_reserve",
    "wind_farm",
]
