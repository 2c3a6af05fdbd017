"""Draw a learned expected cost g(x, .) and the true one, for data whose law is known.

python examples/cost_curve.py

The pairs come from a mixture of three Gaussians, the cost is not convex, and its mean is known in
closed form. The picture goes to out/landscape.png.
"""

from pathlib import Path

import torch

import costscape as cs
from costscape.problems import MixtureTruth, synthetic_nonconvex, three_gaussians


def main():
    made, task = three_gaussians(n=3000), synthetic_nonconvex()
    truth = MixtureTruth(task, made.maps)
    model = cs.DF2(
        task,
        points=200,
        outcomes=cs.Absolute(),
        folds=1,
        training=cs.Training(epochs=12, lr=0.01, progress=False),
    )
    train, val, test = made.splits.train, made.splits.val, made.splits.test
    model.fit(train.x, train.y, val=(val.x, val.y))

    x = test.x[:1]
    best, least = truth.best(x)
    # the first coordinate moves along its interval, the second stays at its best
    line = torch.linspace(-2, 2, 201)
    a = best.float().expand(1, len(line), -1).clone()
    a[..., 0] = line
    learned, true = model.expected_cost(x, a)[0], truth.expected_cost(x[:, None], a)[0]
    error = float((learned - true).abs().mean() / (true.max() - true.min()))
    print(f"mean error of the learned curve: {100 * error:.1f} % of the range of the true one")

    a = model.decide(test.x)
    constant = cs.Constant(task).fit(train.x, train.y).decide(test.x)
    gap, worse = (float(truth.gap(test.x, each).mean()) for each in (a, constant))
    print(f"gap of the decisions: {gap:.4f}, of the best constant action: {worse:.4f}")

    point = float(best[0, 0]), float(least)
    draw(Path("out/landscape.png"), line, learned, true, point, float(a[0, 0]))


def draw(path, line, learned, true, best, decision):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(line, true, color="#555555", linestyle="--", label="true expected cost")
    axes.plot(line, learned, color="#1f6f8b", label="learned g(x, a)")
    axes.plot(*best, "o", color="#555555", label=f"best {best[0]:.2f}")
    axes.axvline(decision, color="#c0392b", label=f"decision {decision:.2f}")
    axes.set(xlabel="first coordinate of a", ylabel="cost", title="One x of the test part")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
