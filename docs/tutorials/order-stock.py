# %% [markdown]
# # Order stock
#
# A shop orders one product for each day of a week. The order is placed a week ahead. At that
# time the shop knows the sales of the last 14 days. A missing piece costs 20, a spare piece
# costs 5, and large errors cost a little more. How many pieces should the shop order?
#
# The data comes with the package: five years of real sales of one product in one store.

# %%
from pathlib import Path

import torch

import costscape as cs

found = cs.problems.sales(item=1)
train, val, test = found.splits.train, found.splits.val, found.splits.test
X, Y = train.x.flatten(1), train.y
X_val, Y_val = val.x.flatten(1), val.y
X_test, Y_test = test.x.flatten(1), test.y
print(found.source)
print("X", tuple(X.shape), "Y", tuple(Y.shape), "test rows", len(X_test))

# %% [markdown]
# Each row of `X` holds the sales of 14 days. Each row of `Y` holds the sales of the seven days to
# order for. Sales are divided by their mean, so 1.0 is an average day. The rows are in time order,
# and the test rows are the last fifth.
#
# ## The cost
#
# The cost is a sum over days. `SeparableTask` takes the summands, one for each day. The feasible
# set is a box: between 0 and 3 average days' sales.


# %%
def terms(y, a):
    return 20 * (y - a).relu() + 5 * (a - y).relu() + (y - a) ** 2


task = cs.SeparableTask(terms, cs.Box(0.0, 3.0, dim=7), convex=True)

# %% [markdown]
# ## Fit and decide
#
# `DF2.quick` trains one network: a first try in seconds. Here it has 20 epochs, a third of the
# default, to keep this page fast. `cs.DF2(task)` trains several networks for each of four folds
# and blends them, which takes minutes and usually decides a little better.

# %%
model = cs.DF2.quick(task, training=cs.Training(epochs=20, progress=False))
model.fit(X, Y, val=(X_val, Y_val))
orders = model.decide(X_test)
print("orders of the first test row:", [round(a, 2) for a in orders[0].tolist()])
print("what was sold:               ", [round(y, 2) for y in Y_test[0].tolist()])

# %% [markdown]
# ## The learned cost of one order
#
# The model does not return a forecast but the expected cost of every action. The picture shows the
# expected cost of the order for the first day. The minimum is to the right of the average outcome,
# since a missing piece costs four times as much as a spare one.

# %%
from costscape.bench.report import CostCurve, cost_curve

amounts = torch.linspace(0, 3, 301)
actions = orders[:1].expand(1, len(amounts), 7).clone()
actions[0, :, 0] = amounts
curve = CostCurve(
    actions=amounts.tolist(),
    costs=model.surface(X_test[:1]).terms(actions)[0, :, 0].tolist(),
    decision=float(orders[0, 0]),
    outcome=float(Y_test[0, 0]),
    action_label="order for the first day (average days' sales)",
    cost_label="expected cost",
    title="The learned cost of every order",
)
cost_curve(Path("cost_of_one_order.png"), curve)

# %% [markdown]
# ## Compare with simple rules
#
# The constant rule orders the same amount every day. Nearest neighbours order for the most similar
# past windows. The best order in hindsight costs 0 here, so the cost is also the regret.

# %%
rules = {
    "constant": cs.Constant(task),
    "nearest neighbours": cs.NearestNeighbours(task),
}
for rule in rules.values():
    rule.fit(X, Y, val=(X_val, Y_val))
for name, rule in {**rules, "DF2.quick": model}.items():
    result = cs.evaluate(rule, X_test, Y_test, block=28)
    print(f"{name:20} cost {result.cost:5.2f} (standard error {result.standard_error:.2f})")

# %% [markdown]
# `block=28`: 28 neighbouring rows share days, so the standard error resamples blocks of 28 rows.
#
# ## Four weeks of orders

# %%
from costscape.problems import orders_plot

orders_plot(
    orders[::7].flatten()[:28],
    Y_test[::7].flatten()[:28],
    unit="average days' sales",
    title="Orders for four weeks",
    path="four_weeks_of_orders.png",
)

# %% [markdown]
# ## Save the model

# %%
model.save("orders.model")
again = cs.load("orders.model", task)
print("same decisions:", torch.equal(again.decide(X_test), orders))

# %% [markdown]
# Next: [bid wind energy](bid-wind.md), [use your own cost](your-own-cost.md), or find out [which
# method suits your data](../how-to/methods.md).
