# %% [markdown]
# # What does a service level cost?
#
# A shop orders one product for each day of a week. It wants stock for all customers on 95 % of the
# days. What does this service level cost, compared with the cheapest orders?
#
# The data comes with the package: five years of real sales of one product in one store. Sales are
# divided by their mean, so 1.0 is an average day.

# %%
from dataclasses import replace

import costscape as cs

found = cs.problems.sales(item=1)
train, val, test = found.splits.train, found.splits.val[::2], found.splits.test[::4]
X, Y = train.x.flatten(1), train.y
X_val, Y_val = val.x.flatten(1), val.y
X_test, Y_test = test.x.flatten(1), test.y
print("training rows", len(X), "held-out rows", len(X_val), "test rows", len(X_test))

# %% [markdown]
# Neighbouring rows share six of seven days. So every second held-out row and every fourth test row
# carry nearly all information, and this page is built faster.


# %%
def terms(y, a):
    return 3 * (y - a).relu() + 5 * (a - y).relu()


task = cs.SeparableTask(terms, cs.Box(0.0, 3.0, dim=7), convex=True)
model = cs.NearestNeighbours(task).fit(X, Y)

# %% [markdown]
# A missing piece costs 3 and a spare piece 5, so the cheapest orders are low: on most days, the
# shop sells out.
#
# ## The level
#
# `Chance` holds a function h and a level. The service is given where h(y, a) <= 0. Here h has one
# number for each day, so each day keeps the level by itself.


# %%
def short(y, a):
    return y - a


chance = cs.Chance(short, level=0.95)
orders = model.decide(X_test, chance=chance)
print("stated 95 %, served:", f"{(Y_test <= orders).double().mean():.1%} of the test days")

# %% [markdown]
# ## Recalibrate
#
# The scenarios of a model are made for the expected cost, and not for its tails. `calibrate`
# compares them with held-out rows: it finds the level of the scenarios that occurred in 95 % of
# the held-out rows. Pass the latest rows from which the model has not learned.

# %%
model.calibrate(X_val, Y_val, chance=chance)
orders = model.decide(X_test, chance=chance)
print("recalibrated, served:", f"{(Y_test <= orders).double().mean():.1%} of the test days")

# %% [markdown]
# ## The price of each level
#
# The same calibration serves all levels of the same h.

# %%
lowest = model.decide(X_test)
cheapest = task.cost(Y_test, lowest).mean()
served = (Y_test <= lowest).double().mean()
print(f"{'level':>8} {'served':>8} {'cost of a week':>15} {'above the cheapest':>19}")
print(f"{'none':>8} {served:>8.1%} {cheapest:>15.2f}")
prices = []
for level in (0.5, 0.8, 0.9, 0.95, 0.98):
    a = model.decide(X_test, chance=replace(chance, level=level))
    cost = task.cost(Y_test, a).mean()
    served = (Y_test <= a).double().mean()
    print(f"{level:>8.0%} {served:>8.1%} {cost:>15.2f} {cost / cheapest - 1:>19.0%}")
    prices.append((100 * level, float(cost)))

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot(*zip(*prices, strict=True), marker="o", label="within the level")
axes.axhline(float(cheapest), color="grey", linestyle="--", label="cheapest orders")
axes.set(xlabel="service level (%)", ylabel="cost of a week", ylim=(0, None))
axes.legend()
figure.savefig("price_of_a_service_level.png", dpi=120)

# %% [markdown]
# The rows are in time order, and the test rows are later than the held-out rows. Where sales
# drift, calibrate again when new outcomes are known.
#
# ## A level that cannot be kept
#
# If the shelf is too small, the error names the level that can be kept.

# %%
small = cs.NearestNeighbours(cs.SeparableTask(terms, cs.Box(0.0, 1.2, dim=7), convex=True))
try:
    small.fit(X, Y).decide(X_test[:10], chance=chance)
except ValueError as error:
    print(error)

# %% [markdown]
# Next: [risk and service levels](../how-to/risk.md).
