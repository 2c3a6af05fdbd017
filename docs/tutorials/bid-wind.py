# %% [markdown]
# # Bid wind energy
#
# A wind farm sells its energy half a day ahead, hour by hour. If it bids too much, it buys the
# missing energy and is fined. If it bids too little, it sells the rest at a discount. The bids
# depend on the energy of the last 24 hours.
#
# The data comes with the package: every hour of 2014 and 2015 of the French wind farm La Haute
# Borne (ENGIE, Etalab Open Licence 2.0).

# %%
import costscape as cs

farm = cs.problems.wind_farm()
train, val, test = (part[::6] for part in (farm.train, farm.val, farm.test))
X, Y = train.x.flatten(1), train.y
X_val, Y_val = val.x.flatten(1), val.y
X_test, Y_test = test.x.flatten(1), test.y
print("training windows", len(X), "test windows", len(X_test))

# %% [markdown]
# We use every sixth window, to keep this page fast. One unit of energy is 2.05 MWh; at full power
# the farm makes four units an hour.
#
# ## The task
#
# `cs.problems.wind_bidding` is a ready-made task with the prices of the paper. The cost jumps
# where the reserve runs out, so it is neither convex nor continuous. DF2 needs no gradient of
# the cost in the action, and the solver searches a grid, so the jump does no harm.

# %%
task = cs.problems.wind_bidding()
print(type(task).__name__, "on a", type(task.feasible).__name__, "with", task.feasible.dim, "bids")

# %% [markdown]
# ## Fit
#
# We train one network for 8 epochs. It reads the 24 hours as one row. For `farm.train.x` as it is,
# hour by hour, DF2 would take an LSTM, which is slow on a CPU. `Absolute` outcomes are the fastest
# form: all rows share the same outcomes, and only their weights depend on `x`.

# %%
model = cs.DF2(
    task,
    outcomes=cs.Absolute(),
    folds=1,
    training=cs.Training(epochs=8, device="cpu", progress=False),
)
model.fit(X, Y, val=(X_val, Y_val))
print("best epoch:", model.history_[0].best_epoch + 1)

# %% [markdown]
# ## Profit and regret

# %%
rules = {
    "constant": cs.Constant(task).fit(X, Y, val=(X_val, Y_val)),
    "nearest neighbours": cs.NearestNeighbours(task).fit(X, Y, val=(X_val, Y_val)),
    "DF2, one network": model,
}
for name, rule in rules.items():
    result = cs.evaluate(rule, X_test, Y_test, block=8)
    money = cs.problems.profit(task, Y_test, rule.decide(X_test)).mean()
    print(f"{name:20} profit {money:6.1f}  regret {result.regret:6.1f}")

# %% [markdown]
# The last 24 hours carry little information about the wind half a day later, so all methods are
# close together. A weather forecast in `x` would carry more.
#
# ## A day of bids

# %%
from costscape.problems import bids_plot

windy = int(X_test.mean(1).argmax())
x, y = X_test[windy : windy + 1], Y_test[windy]
scenarios = model.scenarios(x)
bids = model.decide(x)[0]
bids_plot(
    bids,
    scenarios.values[0],
    scenarios.weights[0],
    y,
    unit="units of 2.05 MWh",
    title="Bids for twelve hours",
    path="bids_for_twelve_hours.png",
)
print("bids    ", [round(a, 2) for a in bids.tolist()])
print("produced", [round(v, 2) for v in y.tolist()])

# %% [markdown]
# The band shows the scenarios. The bids are low, since a unit that is bid and not produced costs
# more than five times as much as a unit that is produced and not bid.
#
# Next: [allocate vaccine](allocate-vaccine.md). The [results page](../results.md) has this
# problem at full size, `wind-farm`, with all methods.
