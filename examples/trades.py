"""Three pictures for three trades: bids, orders and doses, in out/.

python examples/trades.py
"""

from pathlib import Path

import torch

import costscape as cs
from costscape.problems import (
    bids_plot,
    doses_plot,
    epidemic_state,
    inventory,
    orders_plot,
    service_level,
    vaccine,
    wind_bidding,
)

OUT = Path("out")
OUT.mkdir(exist_ok=True)

# an energy trader: one day's bids against what the wind may do, and what it did
farm = cs.problems.wind_farm()
bidder = cs.NearestNeighbours(wind_bidding(), k=100).fit(farm.train.x, farm.train.y)
windy = int(farm.test.x.flatten(1).mean(1).argmax())
x, y = farm.test.x[windy : windy + 1], farm.test.y[windy]
seen = bidder.scenarios(x)
bids = bidder.decide(x)[0]
bids_plot(bids, seen.values[0], seen.weights[0], y, title="Bids", path=OUT / "bids.png")
print(f"bids of {float(bids.mean()):.2f} on average, {float(y.mean()):.2f} produced")

# a planner: orders of one item, and how much of the demand they served
shop = cs.problems.sales(item=8).splits
planner = cs.NearestNeighbours(inventory(), k=60).fit(shop.train.x, shop.train.y)
orders = planner.decide(shop.test.x[::7]).flatten()[:28]
demand = shop.test.y[::7].flatten()[:28]
orders_plot(orders, demand, unit="mean sales", title="Orders", path=OUT / "orders.png")
print(service_level(orders, demand))

# a health office: doses for 47 prefectures, by a plan for last week's travel
trips = cs.problems.generated_mobility()
state = epidemic_state(
    trips.cases.numpy(), trips.case_dates, trips.population.numpy(), "2021-01-08", beta=0.3
)
task = vaccine(state)
week = trips.splits.test.y[:1]
plan = cs.FrankWolfe().hindsight(task)(week)[0]
nobody = task.f.by_region(week, torch.zeros(1, 47))[0]
averted = nobody - task.f.by_region(week, plan[None])[0]
doses_plot(plan * 1e6, averted, title="Doses", path=OUT / "doses.png")
print(f"{float(plan.sum()):.1f} million doses avert {float(averted.sum()):,.0f} infections")
