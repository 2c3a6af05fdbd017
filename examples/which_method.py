"""Which method for this data? Order six products for tomorrow, which share one truck.

python examples/which_method.py

The data are five years of real sales of a store, which come with the package; prices and truck
are made up. ``compare`` fits the methods on the earlier days, tests them in pairs on the last
fifth, and names what is saved against last week's sales as orders. One seed keeps the example
short: for a real comparison leave ``seeds`` and ``methods`` out, or set ``budget="10 min"``.
"""

import costscape as cs
from costscape.bench.demo_store import StockByProduct, store, store_orders


def main():
    data, task = store(), store_orders()
    usual = cs.default_methods(task)
    names = (
        "constant",
        "nearest neighbours",
        "residual SAA",
        "point forecast",
        "DF2 (one network)",
    )
    methods = {name: usual[name] for name in names}
    methods["safety stock"] = StockByProduct(task)  # by product, then cut to the truck
    # neighbouring days are alike: two weeks are resampled together
    found = cs.compare(
        task, data.x, data.y, methods=methods, today=data.last_week, seeds=1, block=14,
        progress=False,
    )  # fmt: skip
    print(found)
    model = found.fitted[found.recommended]  # found.model is the same, fitted on all rows
    orders = model.decide(data.x[-1:])[0]
    print(f"order {[round(a, 1) for a in orders.tolist()]}, {orders.sum():.1f} pieces in all")


if __name__ == "__main__":
    main()
