import math
import xml.etree.ElementTree as ET

import pytest

from costscape.bench.report.charts import bars, curves_of, scatter, settings, training
from costscape.bench.report.heatmap import COLOURS, heatmaps, minimum
from costscape.bench.report.series import series
from costscape.bench.report.summary import summarise
from costscape.bench.report.svg import WIDTH, Scale, cut, log_ticks, ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg):
    """The picture as a tree, which also proves it well formed."""
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text
    return root


def of_class(root, *names):
    return [one for one in root.iter() if set(names) <= set((one.get("class") or "").split())]


def words(root):
    return [one.text for one in root.iter(f"{SVG}text")]


def wind(rows):
    return [cell for cell in summarise(rows) if cell.problem == "wind"]


def test_bars_are_as_long_as_their_means(run):
    rows = [run(method="df2", regret=20.0), run(method="cme", regret=40.0)]
    short, long = of_class(drawn(bars(summarise(rows), "wind")), "bar")
    assert float(long.get("width")) == pytest.approx(2 * float(short.get("width")), abs=0.2)
    assert "ours" in short.get("class")
    assert "best" in long.get("class")


def test_bars_show_a_number_a_name_and_whiskers_for_every_cell(store):
    cells = wind(store)
    root = drawn(bars(cells, "wind"))
    known = [cell for cell in cells if cell.score]
    assert len(of_class(root, "bar")) == len(known)
    assert {cell.label for cell in known} <= set(words(root))
    assert "60.00 (0.10)" in words(root)
    assert of_class(root, "whisker")


def test_an_enormous_bar_is_torn_and_leaves_the_others_their_room(store):
    root = drawn(bars(wind(store), "wind"))  # 480 beside 60 to 69
    assert len(of_class(root, "torn")) == 2
    widths = [float(bar.get("width")) for bar in of_class(root, "bar")]
    assert min(widths) > 0.6 * WIDTH
    assert max(widths) <= WIDTH


def test_negative_means_are_drawn_to_the_left_of_nought(run):
    rows = [run(method="a", regret=-20.0), run(method="b", regret=10.0)]
    left, right = of_class(drawn(bars(summarise(rows), "p")), "bar")
    meet = float(left.get("x")) + float(left.get("width"))
    assert meet == pytest.approx(float(right.get("x")), abs=0.2)


def test_the_scatter_puts_the_faster_left_and_the_better_low(run):
    rows = [
        run(method="df2", regret=10.0, fit_seconds=1.0),
        run(method="cme", regret=20.0, fit_seconds=100.0),
        run(method="egl", regret=15.0, fit_seconds=10.0),
    ]
    root = drawn(scatter(summarise(rows), "wind"))
    a, b, c = (
        (float(dot.get("cx")), float(dot.get("cy")))
        for name in ("df2", "egl", "cme")
        for dot in of_class(root, "dot")
        if dot[0].text.startswith(name)
    )
    assert a[0] < b[0] < c[0]
    assert a[1] > b[1] > c[1]
    assert b[0] - a[0] == pytest.approx(c[0] - b[0], abs=0.2)  # a log axis
    assert {"df2", "egl", "cme"} <= set(words(root))


def test_names_in_a_crowd_do_not_meet(run):
    rows = [
        run(method=f"method-{i}", regret=10 + 0.1 * (i % 6), fit_seconds=5 + 0.2 * i)
        for i in range(30)
    ]
    root = drawn(scatter(summarise(rows), "wind"))
    spots = [(float(t.get("x")), float(t.get("y")), t.text) for t in of_class(root, "spot")]
    assert len(of_class(root, "dot")) == 30
    assert 1 <= len(spots) < 30
    for i, (x, y, name) in enumerate(spots):
        for u, v, other in spots[i + 1 :]:
            beside = x + 6 * len(name) <= u or u + 6 * len(other) <= x
            assert beside or abs(y - v) >= 11


def test_a_point_beyond_the_picture_is_a_triangle_at_its_edge(store):
    root = drawn(scatter(wind(store), "wind"))
    (edge,) = [one for one in of_class(root, "dot") if one.tag == f"{SVG}path"]
    assert edge[0].text.startswith("policy-net: 480")


def test_one_point_makes_no_scatter(run):
    assert scatter(summarise([run()]), "wind") is None
    assert bars(summarise([run(regret=None, refused="no.")]), "wind") is None


def test_a_curve_is_of_the_lowest_seed_its_score_or_else_its_loss(run):
    rows = [
        run(seed=1, curve=[[1, 9.0, 1.0], [2, 8.0, 0.5]]),
        run(seed=2, curve=[[1, 7.0, 1.0], [2, 6.0, 0.5]]),
        run(method="egl", seed=0, curve=[[1, 3.0, 2.0], [2, 1.0, None]]),
        run(method="cme", seed=0),
    ]
    found = {curve.cell.label: curve for curve in curves_of(summarise(rows), rows)}
    assert set(found) == {"df2", "egl"}
    assert found["df2"].values == (1.0, 0.5)
    assert found["egl"].values == (3.0, 1.0)


def test_every_curve_has_a_line_that_ends_where_it_is_least(store):
    curves = curves_of(wind(store), store)
    root = drawn(training(curves, "wind"))
    assert len(of_class(root, "curve")) == len(curves) == 4
    assert len(of_class(root, "dot")) == 3  # of DF2, its kin and the best opponent
    assert training([], "wind") is None


def test_settings_have_a_line_a_band_and_seconds(store):
    cells = wind(store)
    best = next(cell for cell in cells if cell.is_best_opponent)
    root = drawn(settings(series(cells), best))
    assert len(of_class(root, "band")) == 1
    assert len(of_class(root, "curve")) == 2
    assert len(of_class(root, "mark")) == 1
    assert {"points", "seconds to fit"} <= set(words(root))
    assert settings([], best) is None


def test_heatmaps_mark_the_least_of_each_surface_in_one_scale(landscape):
    root = drawn(heatmaps(landscape))
    assert len(of_class(root, "least")) == 3
    assert words(root).count("initial") == words(root).count("learned") == 1
    assert minimum(landscape, "learned") == (1.0, -1.0, 0.0)
    fills = {one.get("fill") for one in root.iter(f"{SVG}path") if one.get("fill")}
    assert fills <= set(COLOURS)
    assert {COLOURS[0], COLOURS[-1]} <= fills


def test_every_entry_of_a_surface_is_painted_once(landscape):
    root = drawn(heatmaps(landscape))
    painted = 0
    for one in root.iter(f"{SVG}path"):
        if one.get("fill"):
            painted += sum(
                int(run.split("h")[1].split("v")[0]) for run in one.get("d").split("z") if run
            )
    assert painted == 3 * 16


def test_a_surface_of_another_shape_is_an_error(landscape):
    landscape["surfaces"]["learned"] = [[1.0, 2.0]]
    with pytest.raises(ValueError, match=r"shape \(4, 4\).*'learned' has shape \(1, 2\)"):
        heatmaps(landscape)


def test_names_are_escaped(run):
    cells = summarise([run(method="<b>&"), run(method="cme")])
    assert "<b>&" in words(drawn(bars(cells, "a<b")))


def test_a_scale_maps_ends_to_ends_and_decades_evenly():
    scale = Scale(1.0, 100.0, 0.0, 50.0, log=True)
    assert [scale(v) for v in (1.0, 10.0, 100.0)] == pytest.approx([0, 25, 50])
    assert Scale(2.0, 2.0, 0.0, 10.0)(2.0) == 5.0


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-3.0, 7.0), (0.001, 0.0017), (59.0, 480.0)]
)
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 6
    assert low - 1e-9 <= min(found)
    assert max(found) <= high + 1e-9


def test_log_ticks_are_few_and_inside():
    for low, high in ((0.1, 1e6), (3.0, 40.0), (1e-9, 1e9)):
        found = log_ticks(low, high)
        assert 2 <= len(found) <= 7
        assert all(low <= v <= high for v in found)
        assert all(math.isfinite(v) for v in found)


def test_the_cut_forgets_a_few_enormous_values_only():
    assert cut([1.0, 2.0, 3.0]) == 3.0
    assert cut([1.0, 2.0, 3.0, 500.0]) == 3.0
