"""The files that a project starts from: a commented project file, a cost, a table of sales."""

from pathlib import Path

from costscape.problems import sample_csv
from costscape.project.project_file import NAME

PROJECT = """\
# A problem of one's own. `costscape check` reads this file and says what is wrong with it.
# Paths are relative to the folder of this file.

data = "sales.csv" # CSV or Parquet: a row for each date, and for each group
models = "models"  # folder of the fitted model

[table]
date = "date"         # column of dates or times
group = "item"        # columns that tell series apart, such as ["store", "item"]; [] for none
outcome = "sold"      # what the decision is for; several: ["bread", "soup"]
known = []            # columns known in advance for the day to come, such as ["price", "promo"]
lags = [1, 2, 7, 14]  # outcomes so many days before; or {sold = [1, 7], visitors = [1]}
horizon = 1           # days decided for at once
gap = 0               # days between the last known row and the first day decided for
calendar = {weekday = true, season = 1, month = false, holidays = []}
# missing = "forward"         # missing values: the last one before; or a number such as 0.0
# gaps = {outcome = 0.0}      # missing dates: insert them, with this outcome
# csv = {separator = ";", decimal = ",", encoding = "cp1252"}  # detected where left out
# dates = {day_first = true}  # or {pattern = "%d %b %Y"}
# freq = "D"                  # step from date to date, as pandas writes it
# category = ["code"]         # columns of numbers that are categories
# encode = {most = 20}        # rare categories share a column

# Exactly one of these. A list has a number for each outcome.
[task]
newsvendor = {under = 4.0, over = 1.0, upper = 200.0} # a missing piece, a spare piece, the most
# newsvendor = {under = [4.0, 3.0], over = 1.0, capacity = 150.0, pack = [12, 6]}
# bidding = {price = 50.0, buy = 80.0, sell = 20.0, capacity = 8.2}
# allocation = {unmet = 3.0, budget = 10.0}
# python = "cost.py" # your own cost and set; this file is executed by the commands

[method]
name = "DF2.quick" # or DF2, TwoStage, RandomForest, NearestNeighbours
seed = 0
# training = {epochs = 20} # of networks
# k = 50                   # any other setting of the method; this one is of NearestNeighbours

[compare]
methods = ["DF2.quick", "RandomForest", "NearestNeighbours", "Constant"]
seeds = 1   # fits of each network
test = 0.2  # the last share of the rows
origins = 1 # parts of the test rows, with a new fit before each
# budget = "10 min" # time for all fits; methods that do not end in time are named
# prefer = "simple" # recommend the simplest method that is not clearly worse
# today = "ordered" # column of what was decided until now, to compute what a method saves

# [units] # of columns; `costscape serve` shows them
# sold = "pieces"
"""

COST = '''\
"""The cost of one's own decision. Only the commands of this project execute this file, and only
if [task] of costscape.toml has python = "cost.py"."""

import costscape as cs


def terms(y, a):
    """The cost of each coordinate: y is the outcome, a the decision, both torch tensors (..., d).

    A missing piece costs 4, a spare piece 1; more than 50 spare pieces need a second cold room.
    """
    short, spare = (y - a).relu(), (a - y).relu()
    return 4.0 * short + 1.0 * spare + 2.0 * (spare - 50.0).relu()


# d = 1: one number is decided in each row, between 0 and 200. If the cost is no sum over
# coordinates, write cs.Task(cost, set), with a cost(y, a) that sums over the last axis.
task = cs.SeparableTask(terms, cs.Box(0.0, 200.0, dim=1), convex=True)
'''


def write_starter_files(folder: Path, force: bool) -> list[Path]:
    """Write costscape.toml, cost.py and sales.csv; with ``force`` also over files that exist."""
    texts = {
        NAME: PROJECT.encode(),
        "cost.py": COST.encode(),
        "sales.csv": sample_csv().read_bytes(),
    }
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(
            f"init needs a folder, but {folder} is a file. Take another name."
        )
    paths = [folder / name for name in texts]
    if not force and (there := [path for path in paths if path.exists()]):
        raise FileExistsError(
            f"init needs a folder without {there[0].name}, but {there[0]} exists. Take another "
            f"folder, or write over it with --force."
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_bytes(text)
    return paths
