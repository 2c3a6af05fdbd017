# %% [markdown]
# # From a CSV to orders
#
# You have a file with what was sold on each day. Each evening you order for the next day. A
# missing piece costs 4, a spare piece costs 1. How many pieces of each item should you order
# tomorrow?
#
# The file of this page comes with the package: daily sales of five items in two years. Replace
# `cs.sample_csv()` by the path of your own file.

# %%
import pandas as pd

import costscape as cs

path = cs.sample_csv()
print("".join(path.read_text().splitlines(keepends=True)[:4]))

# %% [markdown]
# ## From the file to X and Y
#
# `cs.Table` needs the names of the columns. Here each item is a group with a series of its own.
# The features of a day are the sales 1, 2, 7 and 14 days before, the weekday, the season and the
# item.

# %%
table = cs.Table(path, date="date", group="item", outcome="sold", lags=[1, 2, 7, 14])
print(table)
print(pd.concat([table.X[["sold_lag1", "sold_lag7", "weekday_Fri"]], table.Y], axis=1).head(3))

# %% [markdown]
# A row is dated by the day that is ordered for. All its features were known the evening before. If
# your file has a column that is known in advance, such as a price or a promotion, name it in
# `known=`. [Read a table](../how-to/table.md) has all settings: more days at once, missing values,
# files of other programs, databases.
#
# ## The task
#
# `cs.newsvendor` is the cost of missing and spare pieces. Orders are between 0 and 200 pieces.

# %%
task = cs.newsvendor(under=4.0, over=1.0, upper=200.0)

# %% [markdown]
# ## Learn from the past, test on later days
#
# `split` cuts by date: the first 64 % of the days to learn from, then 16 % to choose when to stop,
# then 20 % to test. A simple rule to compare with is "order what was sold a week ago".

# %%
train, val, test = table.split()
model = cs.DF2.quick(task).fit(*train, val=val)
constant = cs.Constant(task).fit(*train, val=val)
for name, method in (("DF2.quick", model), ("constant", constant)):
    result = cs.evaluate(method, *test, block=7 * table.block)
    print(f"{name:14} cost {result.cost:5.2f} (standard error {result.standard_error:.2f})")
last_week = test.X[["sold_lag7"]].to_numpy()
sold = test.Y.to_numpy()
cost = 4 * (sold - last_week).clip(0) + (last_week - sold).clip(0)
print(f"as a week ago  cost {cost.mean():5.2f}")

# %% [markdown]
# Which method is best for *your* file? `cs.compare(task, table.X, table.Y, gap=table.block)` tests
# several and recommends one: [choose a method](../how-to/methods.md).
#
# ## Tomorrow's orders
#
# `table.next()` makes the features of the day after the last one in the file, a row for each item.

# %%
orders = model.decide(table.next())
print(orders.round(1))
table.plot(orders, "orders.png", past=model.decide(test.X))

# %% [markdown]
# Orders in packs of six, at most 120 pieces in all? Then the action is the vector of all five
# items, and each item is a column of the file. `pivot` makes such a file:

# %%
wide = pd.read_csv(path).pivot(index="date", columns="item", values="sold").add_prefix("item")
items = list(wide)
shop = cs.Table(wide.reset_index(), date="date", outcome=items, lags=[1, 7])
packs = cs.newsvendor(under=4.0, over=1.0, capacity=120, pack=6, dim=5)
train, val, _ = shop.split()
neighbours = cs.NearestNeighbours(packs).fit(*train, val=val)
print(neighbours.decide(shop.next()))

# %% [markdown]
# ## Every evening
#
# Save the model and the table. The next evening, load both, append the day's rows, and decide.

# %%
model.save("orders.model")
table.save("orders.table")

model = cs.load("orders.model", task)
table = cs.Table.load("orders.table")
today = pd.DataFrame({"date": "2018-01-01", "item": range(1, 6), "sold": [12, 38, 21, 11, 9]})
table = table.append(today)
print(model.decide(table.next()).round(1))

# %% [markdown]
# Next: [ready-made tasks](../how-to/tasks.md), [your own cost](your-own-cost.md), or
# [production](../how-to/production.md).
