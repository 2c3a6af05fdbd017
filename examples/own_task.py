"""Bring your own problem: order ice cream for tomorrow, knowing how warm it will be.

python examples/own_task.py

Demand is uniform between 4 and 8 times the warmth. A tub costs 1 and sells for 4, so the best
order is the 3/4 quantile of demand, 7 times the warmth. The model knows neither of these facts.
"""

import torch

import costscape as cs


def cost(y, a):
    """Minus the profit of a day: a tub costs 1 and sells for 4, and what is left melts."""
    return 1.0 * a - 4.0 * torch.minimum(y, a)


def days(n, seed):
    rng = torch.Generator().manual_seed(seed)
    warmth = torch.rand(n, 1, generator=rng)
    return warmth, 4 * warmth * (1 + torch.rand(n, 1, generator=rng))


def main():
    # one number to choose: its cost is a sum of one summand, so a SeparableTask
    task = cs.SeparableTask(cost, cs.Box(0.0, 10.0, dim=1), convex=True)
    model = cs.DF2(
        task,
        points=100,
        outcomes=cs.Anchored(),
        folds=1,
        training=cs.Training(epochs=10, lr=0.01, progress=False),
    )
    model.fit(*days(2000, seed=0))

    warmth = torch.tensor([[0.2], [0.5], [0.9]])
    print("warmth  order  best")
    for w, a in zip(warmth[:, 0].tolist(), model.decide(warmth)[:, 0].tolist(), strict=True):
        print(f"{w:6.1f}  {a:5.2f}  {7 * w:4.2f}")

    warmth, demand = days(20_000, seed=1)
    earned = -cs.evaluate(model, warmth, demand).cost
    best = -float(task.cost(demand, 7 * warmth).mean())
    print(f"mean profit {earned:.3f}, with the closed form {best:.3f}")


if __name__ == "__main__":
    main()
