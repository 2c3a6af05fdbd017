# %% [markdown]
# # Your own cost
#
# This page starts from a table and a cost of your own and ends with decisions. An ice-cream stand
# sells three flavours. Each evening it orders tubs for the next day. The freezer holds 30 tubs.
#
# ## From a table to X and Y
#
# The table has one row for each day, in time order. `X` holds what is known when the stand orders:
# the weather forecast and the day of the week. `Y` holds what was sold on that day.

# %%
import numpy as np
import pandas as pd
import torch

import costscape as cs

rng = np.random.default_rng(0)
days = pd.date_range("2024-01-01", periods=900)
warmth = 15 + 10 * np.sin(np.arange(900) / 58) + rng.normal(0, 3, 900)
weekend = days.day_of_week >= 5
mean = np.clip(0.55 * warmth, 1, None)[:, None] * np.array([1.0, 0.7, 0.4])
demand = rng.poisson(mean * np.where(weekend, 1.5, 1.0)[:, None])
table = pd.DataFrame({"forecast": warmth + rng.normal(0, 1, 900), "weekend": weekend}, index=days)
X = table.astype(float)
Y = pd.DataFrame(demand, index=days, columns=["vanilla", "chocolate", "lemon"]).astype(float)
print(pd.concat([X.round(1), Y], axis=1).head(3))

# %% [markdown]
# Encode text as numbers and fill missing values before `fit`. You need not scale `X`: the networks
# standardise it.
#
# ## Write the cost
#
# The cost is a torch function of the outcome `y` and the action `a`. The last axis is the vector;
# all other axes broadcast. A profit is a negative cost.
#
# A tub costs 1 and sells for 4. Tubs that are left over melt. In addition, the staff works
# overtime if the orders exceed 20 tubs in total, so the cost is no sum over flavours: a plain
# `Task`.


# %%
def cost(y, a):
    profit = 4 * torch.minimum(y, a).sum(-1) - 1 * a.sum(-1)
    overtime = 0.05 * (a.sum(-1) - 20).relu() ** 2
    return overtime - profit


task = cs.Task(cost, cs.Budget(total=30.0, dim=3, upper=20.0), convex=True)

# %% [markdown]
# `check_task` tests what you claim about the cost: shapes, broadcasting, convexity.

# %%
cs.checks.check_task(task, torch.tensor(Y.values[:50].tolist()))
print("the cost keeps its promises")

# %% [markdown]
# ## Fit and decide
#
# We train one network for 10 epochs, to keep this page fast. `MirrorDescent` is the fast solver
# for smooth or convex costs on a budget.

# %%
past, new = slice(0, 800), slice(800, 900)
model = cs.DF2(
    task,
    outcomes=cs.LocationScale(),
    folds=1,
    solver=cs.MirrorDescent(steps=100),
    training=cs.Training(epochs=10, device="cpu", progress=False),
).fit(X.iloc[past], Y.iloc[past])
orders = model.decide(X.iloc[new])
print(orders.round(1).head(4))

# %% [markdown]
# `decide` returns a frame for a frame, with the index of `X` and the columns of `Y`.
#
# ## Is it worth it?
#
# `cs.compare` fits methods on the earlier rows, tests them in pairs on the last fifth and
# recommends one. Here it compares the network with three cheap rules.

# %%
fast = cs.MirrorDescent(steps=100)
found = cs.compare(
    task,
    X,
    Y,
    methods={
        "DF2, one network": model.changed(seed=1),
        "nearest neighbours": cs.NearestNeighbours(task, solver=fast),
        "random forest": cs.RandomForest(task, solver=fast),
        "constant": cs.Constant(task, solver=fast),
    },
    seeds=1,
    progress=False,
)
print(found)

# %% [markdown]
# ## Orders against demand

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(8, 4), layout="constrained")
axes = figure.subplots()
axes.bar(range(30), Y["vanilla"].iloc[800:830], color="#c4c4c4", label="sold")
axes.step(range(30), orders["vanilla"].iloc[:30], where="mid", color="#1f6f8b", label="ordered")
axes.set(xlabel="day", ylabel="tubs of vanilla", title="Orders for the first 30 new days")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig("orders_against_demand.png", dpi=120)

# %% [markdown]
# Next: [choose a set](../how-to/sets.md), [a solver](../how-to/solvers.md) or [a
# method](../how-to/methods.md), or bring the model into [production](../how-to/production.md).
