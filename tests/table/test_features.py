"""X and Y against a plain loop over dictionaries, and nothing of the future in X."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import costscape as cs

SETTINGS = {
    "date": "day",
    "group": ["store", "item"],
    "outcome": ["sold", "returned"],
    "known": ["promo", "offer"],
    "lags": {"sold": [3, 7], "warm": [3], "sky": [4]},
    "gap": 2,
    "horizon": 2,
    "calendar": cs.Calendar(month=True, season=2, holidays=["2024-01-20"]),
}


def sales(days=30, seed=0):
    """Three groups, of which one begins later; rows in random order."""
    rng = np.random.default_rng(seed)
    parts = []
    for store, item, start in (("b", 1, 0), ("a", 2, 0), ("a", 1, 6)):
        day = pd.date_range("2024-01-01", periods=days)[start:]
        n = len(day)
        parts.append(
            pd.DataFrame(
                {
                    "day": day,
                    "store": store,
                    "item": item,
                    "sold": rng.poisson(20, n),
                    "returned": rng.poisson(2, n),
                    "promo": rng.integers(0, 2, n),
                    "offer": rng.choice(["none", "half", "gift"], n),
                    "warm": rng.normal(15, 5, n),
                    "sky": rng.choice(["clear", "rain"], n),
                }
            )
        )
    return pd.concat(parts).sample(frac=1, random_state=seed).reset_index(drop=True)


def by_hand(frame):
    """Each row of X and Y as a dict, keyed by date, store and item."""
    past = {(r.day, r.store, str(r.item)): r for r in frame.itertuples()}
    day = pd.Timedelta(days=1)
    made = {}
    for t, store, item in past:
        at = lambda k: past.get((t + k * day, store, item))  # noqa: B023, E731
        if at(-7) is None or at(1) is None:
            continue
        x = {"sold_lag3": at(-3).sold, "sold_lag7": at(-7).sold, "warm_lag3": at(-3).warm}
        y = {}
        for step in (0, 1):
            x[f"promo_step{step + 1}"] = at(step).promo
            for offer in ("none", "half", "gift"):
                x[f"offer_step{step + 1}_{offer}"] = at(step).offer == offer
            x[f"holiday_step{step + 1}"] = (t + step * day) == pd.Timestamp("2024-01-20")
            y[f"sold_step{step + 1}"] = at(step).sold
            y[f"returned_step{step + 1}"] = at(step).returned
        for sky in ("clear", "rain"):
            x[f"sky_lag4_{sky}"] = at(-4).sky == sky
        for i, name in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")):
            x[f"weekday_{name}"] = t.weekday() == i
        for m in range(1, 13):
            x[f"month_{m}"] = t.month == m
        for k in (1, 2):
            angle = 2 * np.pi * k * t.day_of_year / 365.2425
            x[f"season_sin{k}"], x[f"season_cos{k}"] = np.sin(angle), np.cos(angle)
        x |= {f"store_{s}": s == store for s in "ab"} | {f"item_{i}": i == item for i in "12"}
        made[t, store, item] = (x, y)
    return made


def test_every_feature_and_outcome_is_that_of_a_plain_loop():
    frame = sales()
    table = cs.Table(frame, **SETTINGS)
    wanted = by_hand(frame)
    assert list(table.X.index) == list(table.Y.index) == sorted(wanted)
    assert len(wanted) == 2 * 22 + 16
    for label, (x, y) in wanted.items():
        assert set(x) == set(table.X)
        got = table.X.loc[[label]].iloc[0]
        assert all(got[name] == pytest.approx(float(v)) for name, v in x.items())
        assert table.Y.loc[[label]].iloc[0].to_dict() == y
    assert list(table.Y) == ["sold_step1", "sold_step2", "returned_step1", "returned_step2"]


def test_without_groups_the_labels_are_dates_and_the_names_are_plain():
    frame = sales().query("store == 'b'")
    table = cs.Table(frame, date="day", outcome="sold", known="promo", lags=[1], calendar=None)
    assert isinstance(table.X.index, pd.DatetimeIndex)
    assert list(table.X) == ["promo", "sold_lag1"]
    ordered = frame.sort_values("day")
    assert table.X["sold_lag1"].tolist() == ordered["sold"].tolist()[:-1]
    assert table.Y["sold"].tolist() == ordered["sold"].tolist()[1:]


@settings(max_examples=12, deadline=None)
@given(
    cut=st.integers(9, 29),
    gap=st.integers(0, 3),
    horizon=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_no_feature_changes_when_later_rows_change(cut, gap, horizon, seed):
    """Rows decided before day ``cut`` ends see nothing from then on, but known columns."""
    told = {**SETTINGS, "gap": gap, "horizon": horizon, "missing": cs.FillForward()}
    told["lags"] = {"sold": [gap + 1, gap + 5], "warm": [gap + 1], "sky": [gap + 2]}
    frame = sales()
    rng = np.random.default_rng(seed)
    frame["warm"] = frame["warm"].mask(rng.random(len(frame)) < 0.1)
    border = pd.Timestamp("2024-01-01") + pd.Timedelta(days=cut)
    later = (frame["day"] >= border).to_numpy()
    changed = frame.copy()
    for column in ("sold", "returned", "warm"):
        noise = pd.Series(rng.normal(0, 100, len(frame)), frame.index)
        changed[column] = changed[column].where(~later, noise)
    changed.loc[later & (rng.random(len(frame)) < 0.5), "sky"] = "rain"
    one = cs.Table(frame, **told)
    other = one.read(changed)  # the columns of X are those of the first file
    # decided on date t - gap - 1, when that day is over
    last = border + pd.Timedelta(days=gap)
    X = one.X[one.X.index.get_level_values(0) <= last]
    assert len(X)
    pd.testing.assert_frame_equal(X, other.X.loc[X.index, X.columns])
    assert not one.Y.equals(other.Y) or not later.any()


@pytest.mark.parametrize(("gap", "horizon"), [(0, 1), (2, 2), (0, 3)])
def test_the_features_of_tomorrow_are_those_that_a_longer_file_gives(gap, horizon, tmp_path):
    frame = sales()
    told = {**SETTINGS, "gap": gap, "horizon": horizon}
    last = frame["day"].max() - pd.Timedelta(days=gap + horizon)
    now = cs.Table(frame[frame["day"] <= last], **told)
    ahead = frame[frame["day"] > last + pd.Timedelta(days=gap)]
    known = ahead[["day", "store", "item", "promo", "offer"]]
    X = now.next(known)
    longer = cs.Table(frame, **told).X
    date = last + pd.Timedelta(days=gap + 1)
    pd.testing.assert_frame_equal(X, longer[longer.index.get_level_values(0) == date])
    now.save(tmp_path / "table")
    again = cs.Table.load(tmp_path / "table")
    pd.testing.assert_frame_equal(again.next(known), X)
    some = again.next(known[known["store"] == "a"])
    pd.testing.assert_frame_equal(some, X.loc[(slice(None), "a"), :])


def test_appended_rows_give_the_pairs_that_the_whole_file_has_more(tmp_path):
    frame = sales()
    frame.loc[frame.sample(frac=0.2, random_state=1).index, "warm"] = np.nan
    told = {**SETTINGS, "missing": cs.FillForward()}
    border = pd.Timestamp("2024-01-24")
    early, late = frame[frame["day"] < border], frame[frame["day"] >= border]
    first = cs.Table(early, **told)
    first.save(tmp_path / "table")
    new = cs.Table.load(tmp_path / "table").append(late)
    whole = first.read(frame)
    more = ~whole.X.index.isin(first.X.index)
    pd.testing.assert_frame_equal(new.X, whole.X[more])
    pd.testing.assert_frame_equal(new.Y, whole.Y[more])
    values = {"promo": [0, 1], "offer": "gift"}
    pd.testing.assert_frame_equal(new.next(**values), whole.next(**values))
    with pytest.raises(ValueError, match=r"is in the rows read before and in row \d+"):
        first.append(frame)


def test_parts_of_a_split_share_no_date_and_know_all_outcomes_before():
    table = cs.Table(sales(60), **SETTINGS)
    train, val, test = table.split(val=0.2, test=0.2)
    days = [part.X.index.get_level_values(0) for part in (train, val, test)]
    assert sum(map(len, days)) < len(table.X)
    for before, after in ((days[0], days[1]), (days[1], days[2])):
        # decided 3 days before its date, when outcomes of 2 dates are known
        assert (after.min() - before.max()).days == table.memory.settings.gap + 2
    assert days[2].max() == table.X.index.get_level_values(0).max()
    assert all(part.X.index.equals(part.Y.index) for part in (train, val, test))
    with pytest.raises(ValueError, match="leave dates to every part"):
        table.split(val=0.5, test=0.5)


def test_rows_that_share_dates_are_counted():
    assert cs.Table(sales(), **SETTINGS).block == 3 * (2 + 2)


def test_a_method_takes_the_frames_and_returns_orders_with_labels():
    told = {"gap": 0, "horizon": 1, "lags": [1, 7], "calendar": cs.Calendar(season=0)}
    table = cs.Table(sales(60), **{**SETTINGS, **told})
    task = cs.newsvendor(under=[4.0, 1.0], over=1.0, upper=100.0)
    train, val, test = table.split()
    model = cs.NearestNeighbours(task).fit(*train, val=val)
    orders = model.decide(table.next(promo=1, offer="half"))
    assert list(orders) == ["sold", "returned"]
    assert orders.index.names == ["day", "store", "item"]
    assert len(orders) == 3
    with pytest.raises(ValueError, match="order of time"):
        model.fit(table.X[::-1], table.Y[::-1])
    with pytest.raises(ValueError, match="columns"):
        model.decide(test.X.drop(columns="promo"))


# ---- settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lags": [1, 2]}, "lags above the gap of 2.*'sold' has the lag 1"),
        ({"known": ["sold"]}, "'sold' is in known, too"),
        ({"known": ["store"]}, "'store' is the date or a group"),
        ({"category": ["sold"]}, "known or lags, but got 'sold'"),
        ({"horizon": 0}, "horizon >= 1"),
        ({"outcome": []}, "at least one outcome"),
        ({"freq": "fortnight"}, "freq= as pandas writes it"),
        ({"lags": {"rain": [3]}}, "needs the column 'rain', but has 'day', 'store'"),
        ({"lags": [40]}, "at least 42 rows.*longest has 30"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        cs.Table(sales(), **{**SETTINGS, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lags": 7}, r"lags= such as \[1, 7\] .*got 7"),
        ({"missing": "impute"}, r"missing= such as FillForward\(\), but got 'impute'"),
        ({"calendar": True}, "calendar= such as"),
        ({"gaps": 0.0}, "gaps= such as"),
        ({"encode": 20}, "encode= such as"),
    ],
)
def test_settings_of_another_kind_are_refused(change, message):
    # where shapes and types are checked, their error comes first
    with pytest.raises(TypeError, match=f"{message}|^Type-check error"):
        cs.Table(sales(), **{**SETTINGS, **change})


def test_a_table_without_features_is_refused():
    with pytest.raises(ValueError, match="at least one feature"):
        cs.Table(sales(), date="day", outcome="sold", calendar=None)


def test_two_features_of_one_name_are_refused():
    frame = sales().assign(sold_lag3=1)
    with pytest.raises(ValueError, match="two are called 'sold_lag3'"):
        cs.Table(frame, **{**SETTINGS, "known": "sold_lag3", "horizon": 1})


# ---- tomorrow


def test_tomorrow_needs_the_known_columns_for_its_dates():
    table = cs.Table(sales(), **SETTINGS)
    refused = {
        "lacks 'offer'": {"promo": 1},
        "got 'price'": {"promo": 1, "offer": "half", "price": 2},
        "one value or 2 for 'promo'": {"promo": [1, 0, 1], "offer": "half"},
        "numbers for 'promo'": {"promo": "yes", "offer": "half"},
        "column 'offer' has 'quarter', and the first file 'gift'": {
            "promo": 1,
            "offer": "quarter",
        },
        "a value for the feature 'promo_step2'": {"promo": [1, None], "offer": "half"},
    }
    for message, values in refused.items():
        with pytest.raises(ValueError, match=message):
            table.next(**values)
    row = {"day": "2024-02-02", "store": "a", "item": 1, "promo": 1, "offer": "half"}
    rows = {
        r"2024-02-02 to 2024-02-03, .*row 0 of the frame has 2024-02-05": {"day": "2024-02-05"},
        r"groups with a row on 2024-01-30": {"store": "c"},
        r"2 a group.* has 1 or one twice": {},
    }
    for message, change in rows.items():
        with pytest.raises(ValueError, match=message):
            table.next(pd.DataFrame([{**row, **change}]))
    with pytest.raises(ValueError, match="got both"):
        table.next(pd.DataFrame([row]), promo=1)


def test_groups_that_ended_before_have_no_tomorrow():
    frame = sales()
    ended = frame[(frame["store"] != "b") | (frame["day"] < "2024-01-25")]
    table = cs.Table(ended, **SETTINGS)
    assert table.next(promo=1, offer="half").index.get_level_values("store").tolist() == ["a", "a"]


def test_rare_and_new_categories_share_a_column():
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=8), "sold": range(8)})
    frame["kind"] = list("aaabbbcd")
    told = {"date": "day", "outcome": "sold", "known": "kind", "calendar": None}
    table = cs.Table(frame, **told, encode=cs.OneHot(most=2))
    assert list(table.X) == ["kind_a", "kind_b", "kind_other"]
    assert table.X["kind_other"].tolist() == [0] * 6 + [1] * 2
    assert table.next(kind="new").iloc[0].tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="at least 1"):
        cs.OneHot(most=0)


def test_codes_are_categories_where_asked():
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=3), "sold": range(3)})
    frame["code"] = [7, 12, 7]
    told = {"date": "day", "outcome": "sold", "known": "code", "calendar": None}
    assert list(cs.Table(frame, **told).X) == ["code"]
    table = cs.Table(frame, **told, category="code")
    assert table.X.to_dict("list") == {"code_12": [0, 1, 0], "code_7": [1, 0, 1]}
    assert table.next(code=12).iloc[0].tolist() == [1, 0]


@pytest.mark.parametrize("freq", ["h", "W-WED", "MS", "B", "15min", "2D"])
def test_steps_of_other_lengths_are_detected(freq):
    days = pd.date_range("2024-01-03 00:00", periods=30, freq=freq)
    frame = pd.DataFrame({"day": days, "sold": np.arange(30.0)})
    told = {"date": "day", "outcome": "sold", "lags": [1], "calendar": cs.Calendar(hour=True)}
    table = cs.Table(frame, **told)
    assert table.X["sold_lag1"].tolist() == list(range(29))
    nxt = pd.date_range(days[-1], periods=2, freq=freq)[1]
    assert table.next().index[0] == nxt
    assert table.next()["hour_sin"].iloc[0] == pytest.approx(
        np.sin(2 * np.pi * (nxt.hour + nxt.minute / 60) / 24)
    )
