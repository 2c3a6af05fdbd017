import numpy as np
import pytest

from costscape.problems import schedule_plot

SCHEDULE = [1.0, 1.4, 1.5]
VALUES = np.arange(1.0, 21.0)[:, None] + np.array([0.0, 10.0, 20.0])  # 20 scenarios, 3 hours


def lines(figure):
    return {line.get_label(): line.get_xydata() for line in figure.axes[0].get_lines()}


def test_lines_are_the_schedule_the_load_and_the_changes_at_the_limit():
    drawn = lines(schedule_plot(SCHEDULE, VALUES, None, [0.5, 0.6, 0.7]))
    assert drawn["generation"][:, 1].tolist() == SCHEDULE
    assert drawn["load"][:, 1].tolist() == [0.5, 0.6, 0.7]
    assert drawn["change at the limit"].tolist() == [[0, 1.0], [1, 1.4]]
    assert "change at the limit" not in lines(schedule_plot(SCHEDULE, VALUES, ramp=None))
    assert "change at the limit" not in lines(schedule_plot(SCHEDULE, VALUES, ramp=0.5))


def test_bands_hold_the_shares_they_name():
    figure = schedule_plot(SCHEDULE, VALUES)
    wide, narrow = figure.axes[0].collections
    assert (wide.get_label(), narrow.get_label()) == (
        "5-95 % of scenarios",
        "25-75 % of scenarios",
    )
    at = wide.get_paths()[0].vertices
    assert (at[at[:, 0] == 1, 1].min(), at[at[:, 0] == 1, 1].max()) == (11, 29)


def test_weights_count(tmp_path):
    weights = np.r_[np.zeros(19), 1.0]
    figure = schedule_plot(SCHEDULE, VALUES, weights, path=tmp_path / "a" / "day.png")
    at = figure.axes[0].collections[0].get_paths()[0].vertices
    assert at[at[:, 0] == 0, 1].tolist()[0] == 20
    assert (tmp_path / "a" / "day.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], VALUES), "schedule to be one number an hour"),
        ((SCHEDULE, VALUES[:, :2]), "values to be scenarios by hours"),
        ((SCHEDULE, VALUES, -np.ones(20)), "weights that are not negative"),
    ],
)
def test_bad_arrays_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        schedule_plot(*arguments)
