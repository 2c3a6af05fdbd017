"""Learn the expected cost of every action from data, then choose the best feasible one.

    task = Task(cost, Box(0.0, 3.0, dim=7))
    model = DF2(task).fit(X, Y)
    a = model.decide(X_new)

Data flow: data -> task (cost f, set C) -> method.fit -> method.decide -> evaluate.
``__init__.pyi`` lists the public names. Each is imported when it is first used, so that
``costscape --help`` does not wait for torch.
"""

from costscape.lazy_names import lazy_names

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
