"""The state of the epidemic on 2021-01-08 and beta by maximum likelihood, as a small file.

beta is fitted on the training days, the first 64 % of 2020-04-01..2021-02-28; the state is that of
the day. Reads acc_infection_num.csv and pref_population_2015.csv in the folder ``mobility`` of the
folder named by COSTSCAPE_DATA; writes out/vaccine_state.json.

python benchmarks/vaccine_state.py
"""

import csv
import json
import os
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import load_npz

from costscape.problems.vaccine_doses.epidemic import epidemic_state, fit_beta

FILE = Path(__file__).parents[1] / "out" / "vaccine_state.json"
DAY, FIRST, DAYS, TRAIN, TEST = "2021-01-08", "2020-04-01", 334, 0.64, 0.20


def folder():
    root = os.environ.get("COSTSCAPE_DATA")
    if root is None or not (Path(root) / "mobility").is_dir():
        raise SystemExit(
            f"The mobility data is needed in the folder mobility of the folder that "
            f"COSTSCAPE_DATA names, but that is {root!r}. Set it, say, to ~/data."
        )
    return Path(root) / "mobility"


def read_cases():
    """Cumulative cases (T, 47) and their dates."""
    with open(folder() / "acc_infection_num.csv", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row][1:]
    dates = ["-".join(part.zfill(2) for part in row[0].split("-")) for row in rows]
    return np.array([[float(v) for v in row[1:]] for row in rows]), dates


def read_population():
    with open(folder() / "pref_population_2015.csv", encoding="utf-8-sig") as file:
        return np.array([float(row[2]) for row in csv.reader(file) if row and row[0] != "gid"])


def read_trips():
    """Trips (334, 47, 47) of the paper's days."""
    od = load_npz(folder() / "od_day20180101_20210228.npz").toarray().reshape(-1, 47, 47)
    return torch.tensor(od[-DAYS:], dtype=torch.float64)


def read_epidemic(dtype=torch.float64):
    """The state, with beta fitted on the training days."""
    cases, dates = read_cases()
    population = read_population()
    start = dates.index(FIRST)
    beta = fit_beta(cases[start : start + int(TRAIN * DAYS)], population)
    return epidemic_state(cases, dates, population, DAY, beta=beta, dtype=dtype)


def main():
    state = read_epidemic()
    beta, people = state.beta, (state.shares * state.population).sum(1)
    FILE.parent.mkdir(exist_ok=True)
    facts = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in vars(state).items()}
    FILE.write_text(json.dumps({"day": DAY, **facts}, indent=1) + "\n")
    print(f"beta from {beta.min():.3f} to {beta.max():.3f}, median {beta.median():.3f}")
    print("S, E, I, R:", ", ".join(f"{n:,.0f}" for n in people), "people")
    print(f"written to {FILE}")


if __name__ == "__main__":
    main()
