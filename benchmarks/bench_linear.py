"""How long does an epoch of DF2 take beside one of SPO+ on a linear cost, f(y, a) = y . a?

SPO+ (Elmachtoub and Grigas 2022) is PyEPO's, with a linear forecast of the costs and HiGHS as
its solver, kept warm: one linear program for each pair. DF2 has its own defaults. 1,000 pairs of
5 features, batches of 32, costs a noisy power of a linear map as in the SPO+ paper. Two sets:

    path    the cheapest way through a 5 x 5 grid, 40 edges: a Polytope, whose actions DF2 draws by
            hit and run
    items   10 of 40 items, a knapsack of equal weights: a Budget, whose actions are drawn at once

Both are relaxed to linear programs whose corners are whole numbers. Processor seconds of one
thread. No goal was set for this one.

python benchmarks/bench_linear.py
"""

import highspy
import numpy as np
import torch
from common import least, reported, show
from pyepo.func import SPOPlus
from pyepo.model.opt import optModel
from scipy.sparse import csc_matrix

from costscape import DF2, Absolute, Budget, Polytope, Task, Training

ROWS, FEATURES, BATCH, SIDE, ITEMS, CHOSEN = 1000, 5, 32, 5, 40, 10


def path_rows():
    """Out less in is 1 at the first node, -1 at the last."""
    nodes = np.arange(SIDE**2).reshape(SIDE, SIDE)
    right = np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], 1)
    down = np.stack([nodes[:-1].ravel(), nodes[1:].ravel()], 1)
    edges = np.concatenate([right, down])
    A = np.zeros((SIDE**2, len(edges)))
    A[edges[:, 0], np.arange(len(edges))] = 1
    A[edges[:, 1], np.arange(len(edges))] = -1
    b = np.zeros(SIDE**2)
    b[0], b[-1] = 1, -1
    return A, b, b


def item_rows():
    return np.ones((1, ITEMS)), np.zeros(1), np.full(1, float(CHOSEN))


class Program(optModel):
    """min c . a over low <= A a <= high, 0 <= a <= 1, by HiGHS from the last solution's basis."""

    def __init__(self, A, low, high):
        self.rows = A, low, high
        super().__init__()

    def _getModel(self):
        A, low, high = self.rows
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = A.shape
        lp.col_cost_, lp.col_lower_ = np.zeros(A.shape[1]), np.zeros(A.shape[1])
        lp.col_upper_ = np.ones(A.shape[1])
        lp.row_lower_, lp.row_upper_ = low, high
        sparse = csc_matrix(A)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = sparse.indptr, sparse.indices
        lp.a_matrix_.value_ = sparse.data
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.passModel(lp)
        return highs, list(range(A.shape[1]))

    def setObj(self, c):
        self._model.changeColsCost(len(self.x), np.array(self.x, dtype=np.int32), np.float64(c))

    def solve(self):
        self._model.run()
        a = np.array(self._model.getSolution().col_value)
        return a, self._model.getInfo().objective_function_value


def pairs(dim, sign):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, FEATURES, generator=rng)
    B = torch.bernoulli(torch.full((FEATURES, dim), 0.5), generator=rng)
    noise = 0.5 + torch.rand(ROWS, dim, generator=rng)
    return x, sign * ((x @ B / FEATURES**0.5 + 3) ** 5 / 3.5**5 + 1) * noise


def spo_epoch(program, x, y):
    solved = []
    for c in y.numpy():
        program.setObj(c)
        solved.append(program.solve())
    w = torch.tensor(np.array([a for a, _ in solved]), dtype=torch.float32)
    z = torch.tensor([[cost] for _, cost in solved])
    torch.manual_seed(0)
    model = torch.nn.Linear(FEATURES, y.shape[1])
    adam = torch.optim.Adam(model.parameters())
    loss = SPOPlus(program, processes=1)

    def epoch():
        for i in torch.randperm(len(x)).split(BATCH):
            adam.zero_grad()
            loss(model(x[i]), y[i], w[i], z[i]).backward()
            adam.step()

    return epoch


def df2_epoch(feasible, x, y):
    """Seconds by a fit of three less a fit of one: what is done once does not count."""
    task = Task(lambda y, a: (y * a).sum(-1), feasible, convex=True)

    def fit(epochs):
        training = Training(epochs=epochs, batch_size=BATCH, progress=False, device="cpu")
        settings = {"outcomes": Absolute(), "folds": 1, "choose_epoch": False}
        return DF2(task, training=training, **settings).fit(x, y, val=(x[:8], y[:8]))

    return (least(lambda: fit(3), 1) - least(lambda: fit(1), 2)) / 2


def results():
    torch.set_num_threads(1)
    A, low, high = path_rows()
    dim = A.shape[1]
    box = np.concatenate([np.eye(dim), -np.eye(dim)])
    path = Polytope(A=A, b=low, G=box, h=np.repeat([1.0, 0.0], dim))
    items = Budget(total=float(CHOSEN), dim=ITEMS, upper=1.0)
    found = []
    for name, rows, feasible, sign in (
        ("path through a grid", (A, low, high), path, 1),
        ("choice of 10 of 40 items", item_rows(), items, -1),
    ):
        x, y = pairs(feasible.dim, sign)
        theirs = least(spo_epoch(Program(*rows), x, y), 2)
        ours = df2_epoch(feasible, x, y)
        note = f"{theirs:.2f} and {ours:.2f} s"
        found.append(
            reported(f"epoch on a {name}, PyEPO's SPO+ over DF2", theirs / ours, note=note)
        )
    return found


if __name__ == "__main__":
    print(show(results()))
