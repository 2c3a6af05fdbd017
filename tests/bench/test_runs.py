"""A run has a name and a recipe: which rows are of the same thing."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.bench import METHODS, PROBLEMS, Run, prepare, runs
from costscape.bench.store_files import merged_paths, read_lines
from costscape.data import Dataset, Splits
from costscape.methods import method
from costscape.methods.df2 import df2
from costscape.models import MLP, Absolute
from costscape.task import Task
from costscape.training import Training

RESULTS = Path(__file__).parents[2] / "results"
NAMES = [
    *(name for name in METHODS if name != "proportional"),
    "two-stage-gmm2",
    "dfl-gmm2",
    "so-ebm-gmm2",
    "lodl-gmm2",
]


@pytest.fixture
def forget():
    """Problems are made anew, before and after."""

    def clear():
        runs.problem_of.cache_clear()
        runs._facts.cache_clear()

    clear()
    yield clear
    clear()


def recipe(method="df2", problem="synthetic-convex", seed=0, quick=True, **changes):
    return prepare(Run(problem, method, seed, changes, quick)).recipe


def test_a_row_is_named_after_problem_method_changes_and_seed():
    assert Run("wind", "df2").name == "wind--df2--0"
    changed = Run("wind", "two-stage-gmm3", 4, {"share": 0.5, "draws": 1000})
    assert changed.name == "wind--two-stage-gmm3-draws1000-share0.5--4"


def test_a_change_cannot_lead_out_of_the_store():
    name = Run("wind", "df2", 0, {"cache": "../../etc/x y", "rates": [0.1, 2]}).name
    assert "/" not in name
    assert " " not in name


def test_a_quick_run_has_a_name_of_its_own():
    assert Run("wind", "df2", 3, {"draws": 5}, quick=True).name == "wind--df2-draws5--3.quick"


ALIKE = [
    *({"k": "1/2"}, {"k": "1_2"}, {"k": "1 2"}),
    *({"k": 1}, {"k": "1"}, {"k": 1.0}, {"k": True}, {"k": "True"}, {"k1": ""}),
    *({"a": 1, "b": 2}, {"a": "1-b2"}, {"ab": 1}, {"a": "b1"}),
    *({"k": 12}, {"k1": 2}, {"k": None}, {"k": "None"}, {"k": [1, 2]}, {"k": "[1, 2]"}, {}),
    *({"k": "x" * 300}, {"k": "x" * 301}, {"k": 1e-5}, {"k": "1e-05"}, {"K": 1}),
]


def test_different_changes_never_share_a_name():
    names = [Run("wind", "df2", 0, changes).name for changes in ALIKE]
    assert len(set(names)) == len(ALIKE)
    assert max(map(len, names)) < 120
    assert all(re.fullmatch(r"[\w.+=-]+", name) for name in names)


@settings(max_examples=300)
@given(
    *[
        st.dictionaries(
            st.text("ab1_", min_size=1, max_size=3),
            st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text("1-ab/_."),
            max_size=3,
        )
    ]
    * 2
)
def test_names_differ_where_the_changes_do(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    names = {Run("wind", "df2", 0, changes).name for changes in (one, other)}
    assert (len(names) == 1) is same


def test_kept_rows_are_those_of_their_runs():
    paths = merged_paths(RESULTS)
    assert len(paths) > 10
    for path in paths:
        for key, row in read_lines(path).items():
            run = Run(*(row[key] for key in ("problem", "method", "seed", "changes", "quick")))
            assert (run.name, path.stem) == (key.name, row["problem"].split("@")[0])


def test_a_recipe_is_sixteen_hexadecimal_digits_and_stays_the_same(forget):
    first = recipe()
    assert len(first) == 16
    int(first, 16)
    forget()
    assert recipe() == first


def test_another_process_finds_the_same_recipe():
    code = (
        "from costscape.bench import Run, prepare; "
        "print(prepare(Run('wind-farm', 'df2', 1, {'points': 9}, True)).recipe)"
    )
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == recipe(problem="wind-farm", seed=1, points=9)


def test_the_recipe_does_not_hang_on_the_device(monkeypatch):
    here = prepare(Run("synthetic-convex", "df2", quick=True)).recipe
    made = prepare(Run("synthetic-convex", "df2", quick=True), device="cuda:7")
    assert made.recipe == here
    assert made.method.training.device == "cuda:7"
    assert not made.method.training.progress


def test_problem_seed_method_and_quick_are_in_the_recipe():
    known = {
        recipe(),
        recipe(seed=1),
        recipe(quick=False),
        recipe("df2-paper"),
        recipe(problem="synthetic-nonconvex"),
        recipe("two-stage-gmm2"),
        recipe("two-stage-gmm3"),
        recipe(epochs=2),
        recipe(epochs=3),  # said, though it is what quick takes anyway
        recipe(share=0.5),
    }
    assert len(known) == 10


@pytest.mark.parametrize("method", NAMES)
def test_every_number_among_the_settings_is_in_the_recipe(method):
    made = prepare(Run("synthetic-convex", method, quick=True)).method
    known, plain = {recipe(method)}, 0
    for f in fields(made):
        value = getattr(made, f.name)
        if f.name == "seed" or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        other = value / 2 if isinstance(value, float) else value + 1
        changed = prepare(Run("synthetic-convex", method, 0, {f.name: other}, True))
        assert getattr(changed.method, f.name) == other
        known.add(changed.recipe)
        plain += 1
    assert len(known) == plain + 1


def test_a_setting_of_the_named_method_is_in_the_recipe_without_being_changed(monkeypatch):
    before = recipe("df2")
    make = METHODS["df2"]
    monkeypatch.setitem(METHODS, "df2", lambda p, seed: replace(make(p, seed), points=7))
    assert recipe("df2") != before


def test_what_settings_of_none_stand_for_is_in_the_recipe(monkeypatch):
    before, paper = recipe(), recipe("df2-paper")
    monkeypatch.setattr(df2, "suitable", lambda x, y: [Absolute()])
    other = recipe()
    monkeypatch.setattr(df2, "by_shape", lambda shape: partial(MLP, 2, hidden=7))
    assert len({before, other, recipe()}) == 3
    assert recipe("df2-paper") == paper  # which says both itself


@pytest.mark.parametrize("name", ["two-stage-gmm3", "policy-net", "lodl-pe", "egl+crossfit"])
def test_the_encoder_and_the_rate_that_all_networks_share_are_in_the_recipe(monkeypatch, name):
    before, tuned = recipe(name), recipe(name, lr=0.02)
    monkeypatch.setattr(method, "RATE", 0.02)
    faster = recipe(name)
    assert recipe(name, lr=0.02) == tuned
    monkeypatch.setattr(method, "by_shape", lambda shape: partial(MLP, 2, hidden=7))
    assert len({before, faster, recipe(name)}) == 3
    assert recipe(name, lr=0.02) != tuned


def test_training_is_in_the_recipe_but_not_how_it_is_shown(monkeypatch):
    before, make = recipe("df2"), METHODS["df2"]

    def with_training(**settings):
        def made(p, seed):
            method = make(p, seed)
            return replace(method, training=replace(method.training, **settings))

        monkeypatch.setitem(METHODS, "df2", made)
        return recipe("df2")

    how = {"progress": False, "checkpoint": "here.pt", "compile": True, "record": False}
    assert with_training(**how) == before
    assert with_training(batch_size=65) != before
    assert with_training(weight_decay=1e-9) != before


def reversed_(data):
    return Dataset(data.x.flip(0), data.y.flip(0))


def moved(part, i, which):
    values = {"x": part.x.clone(), "y": part.y.clone()}
    values[which][i] += 0.5
    return Dataset(**values)


DATA = {
    "one x of the training part": lambda d: Splits(moved(d.train, 3, "x"), d.val, d.test),
    "one y of the training part": lambda d: Splits(moved(d.train, 3, "y"), d.val, d.test),
    "one y of the validation part": lambda d: Splits(d.train, moved(d.val, 3, "y"), d.test),
    "one x of the test part": lambda d: Splits(d.train, d.val, moved(d.test, 3, "x")),
    "the order of the rows": lambda d: Splits(reversed_(d.train), d.val, d.test),
    "the sign of y": lambda d: Splits(Dataset(d.train.x, -d.train.y), d.val, d.test),
    "a row less": lambda d: Splits(d.train[1:], d.val, d.test),
}


@pytest.mark.parametrize("what", DATA)
def test_the_data_are_in_the_recipe(monkeypatch, forget, what):
    before, make = recipe(quick=False), PROBLEMS["synthetic-convex"]

    def other(seed):
        p = make(seed)
        return replace(p, data=DATA[what](p.data))

    monkeypatch.setitem(PROBLEMS, "synthetic-convex", other)
    forget()
    assert recipe(quick=False) != before


def test_the_cost_is_in_the_recipe(monkeypatch, forget):
    before, make = recipe("constant"), PROBLEMS["synthetic-convex"]

    def other(seed):
        p = make(seed)
        task = Task(lambda y, a: 1.01 * p.task.cost(y, a), p.task.feasible)
        return replace(p, task=task)

    monkeypatch.setitem(PROBLEMS, "synthetic-convex", other)
    forget()
    assert recipe("constant") != before


def test_rounding_of_another_machine_is_not_in_the_recipe(monkeypatch, forget):
    before, make = recipe(), PROBLEMS["synthetic-convex"]

    def other(seed):
        p = make(seed)
        parts = (p.data.train, p.data.val, p.data.test)
        with_error = [
            Dataset(v.x * (1 + 1e-7 * torch.randn_like(v.x)), v.y * (1 + 1e-7)) for v in parts
        ]
        return replace(p, data=Splits(*with_error))

    monkeypatch.setitem(PROBLEMS, "synthetic-convex", other)
    forget()
    assert recipe() == before


def test_a_share_keeps_the_latest_training_rows():
    whole = prepare(Run("wind-farm", "df2", quick=True)).problem.data
    half = prepare(Run("wind-farm", "df2", 0, {"share": 0.5}, True)).problem.data
    n = len(whole.train)
    assert torch.equal(half.train.x, whole.train.x[n - n // 2 :])
    assert torch.equal(half.val.x, whole.val.x)
    assert torch.equal(half.test.y, whole.test.y)
    one = prepare(Run("wind-farm", "df2", 0, {"share": 1e-9}, True)).problem.data
    assert len(one.train) == 1


@pytest.mark.parametrize("share", [0, -0.5, 1.5, "half", None])
def test_a_share_that_is_none_is_refused(share):
    if share is None:  # nothing changed
        assert prepare(Run("synthetic-convex", "df2", 0, {"share": None}, True))
        return
    with pytest.raises(ValueError, match=r"share is a part of the training rows, in \(0, 1\]"):
        recipe(share=share)


def test_epochs_reach_every_network_and_are_ignored_where_there_is_none():
    for name in NAMES:
        method = prepare(Run("synthetic-convex", name, 0, {"epochs": 2}, True)).method
        training = getattr(method, "training", None)
        assert training is None or training.epochs == 2
    assert isinstance(prepare(Run("wind-farm", "df2", 0, {"lr": 0.5})).method.training, Training)


def test_changes_win_over_quick():
    method = prepare(Run("synthetic-convex", "df2", 0, {"points": 333, "epochs": 9}, True)).method
    assert (method.points, method.training.epochs) == (333, 9)


@pytest.mark.parametrize("name", ["fly", "task", "seed", "device", "progress", "training"])
def test_an_unknown_setting_is_told_which_there_are(name):
    with pytest.raises(ValueError, match=rf"constant has no setting named {name}. It has .*epoch"):
        prepare(Run("synthetic-convex", "constant", 0, {name: 1}, True))


def test_a_list_stands_for_a_tuple():
    made = prepare(Run("synthetic-convex", "dfl-pe", 0, {"rates": [1.0, 0.1]}, quick=True)).method
    assert made.rates == (1.0, 0.1)
    found = {recipe("dfl-pe", rates=rates) for rates in ([1.0, 0.1], [1.0], [0.3, 0.03])}
    assert len(found) == 3


@pytest.mark.parametrize(
    "changes", [{"epochs": "many"}, {"rounds": "x"}, {"lr": [1, 2]}], ids=json.dumps
)
def test_a_setting_of_another_kind_is_a_sentence(changes):
    with pytest.raises(ValueError, match="lancer cannot take"):
        recipe("lancer", **changes)


def test_an_unknown_problem_is_told_which_there_are():
    with pytest.raises(
        ValueError, match=r"no problem named 'moon'. There are cubic-top1, .*inventory, .*wind"
    ):
        recipe(problem="moon")
