"""Outcomes find their decisions by id or by keys, and wrong ones are refused in a sentence."""

from dataclasses import replace

import numpy as np
import pytest

from costscape.monitor import attach_outcomes

NAMES = ["bread", "soup"]


@pytest.fixture
def store(opened, tmp_path, decided, law):
    """Six decisions of the shop, the last two for the same day, and one of another model."""
    X, _ = law(np.random.default_rng(1), 6)
    records = decided(X)
    records[5] = replace(records[5], keys=records[4].keys)
    store = opened(tmp_path / "d.sqlite")
    store.append([*records, replace(records[0], id="x", model="other")])
    return store


def outcomes(store):
    return {r.id: r.outcome for r in store.read("shop", 99) if r.outcome}


def test_by_id_and_again(store):
    rows = [{"id": "2", "soup": 4.0, "bread": "3"}, {"id": "0", "bread": 1, "soup": 2}]
    found = attach_outcomes(store, "shop", NAMES, rows)
    assert (found.rows, found.decisions, found.replaced, found.unmatched) == (2, 2, 0, 0)
    assert attach_outcomes(store, "shop", NAMES, rows[:1]).replaced == 1
    assert outcomes(store) == {"2": (3.0, 4.0), "0": (1.0, 2.0)}


def test_by_keys_of_the_client_and_by_columns_of_x(store):
    rows = [{"day": day, "bread": 1.0, "soup": 2.0} for day in ("d0", "d4", "d77")]
    found = attach_outcomes(store, "shop", NAMES, rows)
    assert (found.decisions, found.unmatched) == (3, 1)  # a day that was decided twice has both
    assert set(outcomes(store)) == {"0", "4", "5"}
    x = store.read("shop", 99)[1].x
    row = {"temp": repr(x["temp"]), "price": x["price"], "bread": 7, "soup": 8}
    assert attach_outcomes(store, "shop", NAMES, [row]).decisions == 1
    assert outcomes(store)["1"] == (7.0, 8.0)


Y = {"bread": 1.0, "soup": 2.0}
WRONG = {
    "at least one row": [],
    "ids are of no logged decision, first 'nope'": [{"id": "0", **Y}, {"id": "nope", **Y}],
    "ids are of no logged decision, first 'a.x00'": [{"id": "a\0", **Y}],
    "1 of 1 ids are of no logged decision": [{"id": "\ud800", **Y}],
    "is of the model other, but the outcomes are for shop": [{"id": "x", **Y}],
    "have an id twice": [{"id": "0", **Y}, {"id": "0", **Y}],
    "lack 'soup'": [{"id": "0", "bread": 1.0}],
    "need no others, but have 'day'": [{"id": "0", "day": "d0", **Y}],
    "needs the columns of row 0": [{"id": "0", **Y}, {"day": "d1", **Y}],
    "the column 'id' of the answers, or key columns": [Y],
    "'soup' of row 1 of the outcomes needs a finite": [
        {"id": "0", **Y},
        {"id": "1", "bread": 1.0, "soup": "nan"},
    ],
    "'bread' of row 0": [{"id": "0", "bread": True, "soup": 1.0}],
    "no decision of shop has 'week'": [{"week": 3, **Y}],
    "has the 'day' of any of the 1 rows": [{"day": "d99", **Y}],
}


@pytest.mark.parametrize("sentence", WRONG)
def test_wrong_outcomes_are_refused_and_none_is_kept(store, sentence):
    with pytest.raises(ValueError, match=sentence):
        attach_outcomes(store, "shop", NAMES, WRONG[sentence])
    assert outcomes(store) == {}
