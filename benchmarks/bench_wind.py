"""How much faster is an epoch of DF2 on wind than one of DFL through cvxpylayers?

The paper's size: LSTM 2 x 256, S = 500 points, J = 100 actions, batches of 64, and for DFL a
Gaussian with 100 draws whose best bids are found by a cone program for each window (Clarabel) and
differentiated by diffcp. The cone program leaves out the fine, with which the cost is not convex.
Data are windows of the embedded farm. Few steps of each are timed, and both are scaled to the
6,021 training windows of the paper's file. Processor seconds of one
thread, the least of several.

python benchmarks/bench_wind.py
"""

from functools import partial

import torch
from common import at_least, least, show

from costscape import DF2, LSTM, CvxpyLayer, SeparableTask
from costscape.data import Dataset
from costscape.methods.df2.slopes import Objective
from costscape.models import MixtureForecast, Units
from costscape.problems import wind_bidding, wind_farm
from costscape.scenarios import ExpectedCost, Scenarios

WINDOWS, BATCH, DRAWS, FEW = 6021, 64, 100, 2


def without_fine():
    """The bidding task without the jump, also for cvxpy."""
    task = wind_bidding(fine=0.0)

    def cvxpy(y, a):
        import cvxpy as cp

        over = cp.pos(a - 0.15 - y)
        terms = 110 * cp.pos(a - y) + 20 * cp.pos(y - a) + 90 * over + 100 * cp.square(over)
        return cp.sum(terms, axis=1)

    return SeparableTask(task.f_terms, task.feasible, convex=True, cvxpy=cvxpy)


def df2_step(train):
    task = wind_bidding()
    method = DF2.as_in_paper(task, points=500, actions=100, encoder=partial(LSTM, hidden=256))
    torch.manual_seed(0)
    model = method._network(train, method.outcomes)
    objectives = [Objective(task, torch.tensor(1.0))]
    adam = torch.optim.Adam(model.parameters(), fused=True)
    rng = torch.Generator().manual_seed(0)
    batch = Dataset(train.x[:BATCH], train.y[:BATCH])

    def step():
        adam.zero_grad()
        method.loss(objectives, model, batch, rng).backward()
        adam.step()

    return step


def dfl_step(train):
    """On FEW windows: a cone program for each takes nearly all the time."""
    task, layer = without_fine(), CvxpyLayer()
    torch.manual_seed(0)
    units = Units(train.x, train.y)
    model = MixtureForecast(LSTM(hidden=256), units, units.standard(train.x, train.y)[:1], DRAWS)
    rng = torch.Generator().manual_seed(0)
    x, y = train.x[:FEW], train.y[:FEW]

    def step():
        draws = model.samples(x, DRAWS, rng)
        g = ExpectedCost(task, Scenarios(torch.full((FEW, DRAWS), 1 / DRAWS), draws))
        task.cost(y, layer(g)).mean().backward()

    return step


def results():
    torch.set_num_threads(1)
    train = wind_farm().train
    ours = least(df2_step(train), 5) * WINDOWS / BATCH
    theirs = least(dfl_step(train), 1) * WINDOWS / FEW
    note = f"{theirs:,.0f} s, from {FEW} windows, and {ours:.1f} s, from one batch"
    name = "wind epoch, against DFL with 100 draws through cvxpylayers"
    return [at_least(name, theirs / ours, 1000, note=note)]


if __name__ == "__main__":
    print(show(results()))
