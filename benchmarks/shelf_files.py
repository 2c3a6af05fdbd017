"""Make the two files of the shelf from the data of the PyPI package ddop2 (Apache-2.0).

    bakery_sales.npz      sold (35, 3, 1215) by store, product and day; stores, products, start
    restaurant_sales.npz  sold (7, 765) by dish and day; dishes, start

Every store, product, dish and day of the source is in them, in its order; the columns on weather
and holidays are not.

pip download --no-deps ddop2==0.0.22; unzip ddop2-0.0.22-py3-none-any.whl
python benchmarks/shelf_files.py ddop2/datasets/data src/costscape/problems/embedded
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd


def main(source, target):
    of = pd.read_csv(source / "bakery_data.csv", parse_dates=["date"])
    of["sold"] = pd.read_csv(source / "bakery_target.csv")["demand"]
    table = of.pivot(index=["store", "product"], columns="date", values="sold")
    stores, products = (table.index.unique(level) for level in ("store", "product"))
    _write(
        target / "bakery_sales.npz",
        table.columns,
        sold=table.to_numpy(np.float32).reshape(len(stores), len(products), -1),
        stores=stores.to_numpy(np.int64),
        products=products.to_numpy(np.int64),
    )
    dishes = pd.read_csv(source / "yaz_target.csv")
    days = pd.read_csv(source / "yaz_data.csv", parse_dates=["date"])["date"]
    _write(
        target / "restaurant_sales.npz",
        pd.DatetimeIndex(days),
        sold=dishes.to_numpy(np.float32).T,
        dishes=np.array(list(dishes)),
    )


def _write(path, days, **arrays):
    if np.isnan(arrays["sold"]).any() or (np.diff(days) != np.timedelta64(1, "D")).any():
        raise ValueError(f"{path.name} needs a number for each day, but the source has gaps.")
    np.savez_compressed(path, start=np.array(str(days[0].date())), **arrays)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
