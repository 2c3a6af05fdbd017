# The public names of costscape.problems, which lazy_names imports when they are first used.
from costscape.problems.files.csv_columns import CsvColumns as CsvColumns
from costscape.problems.files.csv_columns import read_table as read_table
from costscape.problems.files.fetch import fetch as fetch
from costscape.problems.files.samples import sample_csv as sample_csv
from costscape.problems.generator_schedule.pjm_load import PJM as PJM
from costscape.problems.generator_schedule.pjm_load import pjm as pjm
from costscape.problems.generator_schedule.schedule_plot import schedule_plot as schedule_plot
from costscape.problems.generator_schedule.scheduling import (
    generator_scheduling as generator_scheduling,
)
from costscape.problems.grid_paths.edge_costs import EdgeCosts as EdgeCosts
from costscape.problems.grid_paths.edge_costs import edge_costs as edge_costs
from costscape.problems.grid_paths.shortest_path import grid_edges as grid_edges
from costscape.problems.grid_paths.shortest_path import shortest_path as shortest_path
from costscape.problems.one_resource.cubic_values import cubic_values as cubic_values
from costscape.problems.one_resource.top_one import top_one as top_one
from costscape.problems.problem import Problem as Problem
from costscape.problems.stock_orders.orders_plot import orders_plot as orders_plot
from costscape.problems.stock_orders.orders_plot import service_level as service_level
from costscape.problems.stock_orders.sales import PooledSales as PooledSales
from costscape.problems.stock_orders.sales import Sales as Sales
from costscape.problems.stock_orders.sales import pooled_sales as pooled_sales
from costscape.problems.stock_orders.sales import sales as sales
from costscape.problems.stock_orders.shelf_sales import bakery_sales as bakery_sales
from costscape.problems.stock_orders.shelf_sales import restaurant_sales as restaurant_sales
from costscape.problems.stock_orders.stock import inventory as inventory
from costscape.problems.stock_orders.store_stock import by_item as by_item
from costscape.problems.stock_orders.store_stock import store_inventory as store_inventory
from costscape.problems.synthetic.synthetic_costs import MixtureTruth as MixtureTruth
from costscape.problems.synthetic.synthetic_costs import synthetic_convex as synthetic_convex
from costscape.problems.synthetic.synthetic_costs import synthetic_nonconvex as synthetic_nonconvex
from costscape.problems.synthetic.three_gaussians import ThreeGaussians as ThreeGaussians
from costscape.problems.synthetic.three_gaussians import three_gaussians as three_gaussians
from costscape.problems.vaccine_doses.allocation import proportional as proportional
from costscape.problems.vaccine_doses.allocation import vaccine as vaccine
from costscape.problems.vaccine_doses.allocation import vaccine_wave as vaccine_wave
from costscape.problems.vaccine_doses.dcrnn import DCRNN as DCRNN
from costscape.problems.vaccine_doses.doses_plot import doses_plot as doses_plot
from costscape.problems.vaccine_doses.epidemic import Epidemic as Epidemic
from costscape.problems.vaccine_doses.epidemic import epidemic_state as epidemic_state
from costscape.problems.vaccine_doses.epidemic import fit_beta as fit_beta
from costscape.problems.vaccine_doses.graph_convolution import edges_of as edges_of
from costscape.problems.vaccine_doses.japan_calendar import calendar_flags as calendar_flags
from costscape.problems.vaccine_doses.mobility import Mobility as Mobility
from costscape.problems.vaccine_doses.mobility import calendar_weeks as calendar_weeks
from costscape.problems.vaccine_doses.mobility import generated_mobility as generated_mobility
from costscape.problems.vaccine_doses.mobility import mobility as mobility
from costscape.problems.vaccine_doses.mobility import trip_weeks as trip_weeks
from costscape.problems.wind_bids.bidding import profit as profit
from costscape.problems.wind_bids.bidding import wind_bidding as wind_bidding
from costscape.problems.wind_bids.bidding import (
    wind_bidding_with_reserve as wind_bidding_with_reserve,
)
from costscape.problems.wind_bids.bids_plot import bids_plot as bids_plot
from costscape.problems.wind_bids.wind_power import Wind as Wind
from costscape.problems.wind_bids.wind_power import bidding_windows as bidding_windows
from costscape.problems.wind_bids.wind_power import wind as wind
from costscape.problems.wind_bids.wind_power import wind_farm as wind_farm
