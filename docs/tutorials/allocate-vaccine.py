# %% [markdown]
# # Allocate vaccine
#
# A health office sends five million doses to 47 prefectures. It must decide before it knows how
# people will travel next week. The cost is the number of people who are infected, computed by a
# simulation of the epidemic with travel between prefectures.
#
# This problem differs from the others in three ways: the outcome is a matrix, the cost is a
# simulation, and the feasible set is a budget.
#
# ## Data
#
# The public travel data is not part of the package (`costscape fetch mobility` downloads it). This
# page uses generated travel.

# %%
import torch

import costscape as cs

trips = cs.problems.generated_mobility()
train, test = trips.splits.train, trips.splits.test
print(trips.source)
print("x", tuple(train.x.shape), "y", tuple(train.y.shape))

# %% [markdown]
# ## The task
#
# The state of the epidemic comes from the case numbers. `vaccine_wave` counts the infections of
# a wave: three weeks here, to keep this page fast, and eight by default. No prefecture gets
# doses for more than a tenth of its people.

# %%
state = cs.problems.epidemic_state(
    trips.cases.numpy(), trips.case_dates, trips.population.numpy(), "2021-01-08", beta=0.3
)
task = cs.problems.vaccine_wave(state, weeks=3)
budget = task.feasible
print(
    type(budget).__name__, "of", float(budget.total), "million doses,", budget.dim, "prefectures"
)

# %% [markdown]
# ## Decide for similar weeks
#
# `NearestNeighbours` takes the travel of the 3 most similar past weeks as scenarios. `FrankWolfe`
# minimises the mean number of infections over these scenarios: it needs a smooth cost, moves to a
# corner of the budget in each step, and bounds its own error.

# %%
solver = cs.FrankWolfe(steps=6)
planner = cs.NearestNeighbours(task, k=3, solver=solver)
planner.fit(train.x[-60:], train.y[-60:])
x, y = test.x[::24], test.y[::24]
plan = planner.decide(x)
print("doses sent in the first test week:", round(float(plan[0].sum()), 3), "million")

# %% [markdown]
# ## Compare with rules of thumb

# %%
by_people = cs.problems.proportional(task).expand(len(y), -1)
best = solver.hindsight(task)(y)
with torch.no_grad():
    infections = {
        "no vaccine": task.cost(y, torch.zeros_like(plan)),
        "by population": task.cost(y, by_people),
        "nearest neighbours": task.cost(y, plan),
        "best in hindsight": task.cost(y, best),
    }
for name, count in infections.items():
    print(f"{name:20} {float(count.mean()):14,.0f} infections on average over {len(y)} weeks")

# %% [markdown]
# The plan averts clearly more infections than doses by population. The exact travel of the week
# matters little here: the plan for similar weeks is nearly as good as the best plan in hindsight.
#
# ## Where the doses go

# %%
with torch.no_grad():
    nobody = task.f.by_region(y[:1], torch.zeros(1, budget.dim))[0]
    averted = nobody - task.f.by_region(y[:1], plan[:1])[0]
cs.problems.doses_plot(
    plan[0] * 1e6, averted, title="Doses and infections averted", path="doses_by_prefecture.png"
)

# %% [markdown]
# ## DF2 on this problem
#
# DF2 learns outcomes that are travel matrices. One training step simulates an epidemic for each
# pair of an outcome and a sampled action, so use a GPU for full size:
#
# ```sh
# costscape run vaccine-wave --method df2 --store out/runs
# ```
#
# The [performance page](../performance.md) has the seconds of a step, and the
# [results page](../results.md) the regret of each method with the public travel data.
#
# Next: [your own cost](your-own-cost.md).
