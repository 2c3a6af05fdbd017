"""The picture shows the last outcomes, decisions of past days and the next ones."""

import numpy as np
import pandas as pd

import costscape as cs


def test_each_group_has_a_panel_with_its_numbers(tmp_path):
    days = pd.date_range("2024-01-01", periods=80)
    frame = pd.DataFrame(
        {"day": np.repeat(days, 2), "shop": ["a", "b"] * 80, "sold": np.arange(160.0)}
    )
    table = cs.Table(frame, date="day", group="shop", outcome="sold", lags=[1])
    ahead = pd.DataFrame({"sold": [7.0, 8.0]}, index=table.next().index)
    past = table.Y.iloc[-20:] + 1
    figure = table.plot(ahead, tmp_path / "new" / "orders.png", past)
    assert (tmp_path / "new" / "orders.png").read_bytes().startswith(b"\x89PNG")
    assert [axes.get_title() for axes in figure.axes] == ["shop a", "shop b"]
    for axes, first, order in zip(figure.axes, (0, 1), (7.0, 8.0), strict=True):
        outcome, decision, following = axes.lines
        assert outcome.get_ydata().tolist() == np.arange(160.0)[first::2][-56:].tolist()
        assert decision.get_ydata().tolist() == (np.arange(160.0)[first::2][-10:] + 1).tolist()
        assert following.get_ydata().tolist() == [order]
        assert following.get_xdata()[0] == np.datetime64("2024-03-21")


def test_outcomes_without_groups_have_a_panel_each():
    days = pd.date_range("2024-01-01", periods=20)
    frame = pd.DataFrame({"day": days, "bread": range(20), "soup": range(20, 40)})
    table = cs.Table(frame, date="day", outcome=["bread", "soup"], lags=[1])
    ahead = pd.DataFrame({"bread": [3.0], "soup": [4.0]}, index=table.next().index)
    figure = table.plot(ahead)
    assert [axes.get_title() for axes in figure.axes] == ["bread", "soup"]
    assert figure.axes[1].lines[1].get_ydata().tolist() == [4.0]
