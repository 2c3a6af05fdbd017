"""Figures: what is drawn, and in colours of the page."""

import re
import xml.etree.ElementTree as ET
from functools import partial

import pytest

from costscape.bench import report
from costscape.bench.report import figures
from costscape.bench.report.problem_tables import series_of

SVG = "{http://www.w3.org/2000/svg}"
summarise = partial(report.summarise, ours=("df2", "blend"))


def drawn(figure):
    """The picture as a tree, which also proves it well formed."""
    root = ET.fromstring(figure.svg)
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text
    assert figure.caption
    return root


def words(root):
    return {one.text for one in root.iter(f"{SVG}text")}


def colours(figure):
    return set(re.findall(r"var\(--(\w+)\)", figure.svg))


def wind(rows):
    return [cell for cell in summarise(rows) if cell.problem == "wind"]


def test_bars_name_every_method_in_the_colour_of_its_role(store):
    cells = wind(store)
    figure = figures.bars(cells, "wind")
    assert {cell.label for cell in cells if cell.score} <= words(drawn(figure))
    assert colours(figure) == {"main", "ours", "best", "other", "line"}
    assert [key for key, _ in figure.legend] == ["main", "ours", "best", "other"]
    assert "go on beyond" in figure.caption  # 480 beside 60 to 69
    assert "go on beyond" not in figures.bars(cells[:2], "wind").caption


def test_negative_and_lone_means_are_drawn(run):
    rows = [run(method="a", regret=-20.0), run(method="b", regret=0.0)]
    assert {"a", "b"} <= words(drawn(figures.bars(summarise(rows), "p")))
    assert drawn(figures.bars(summarise(rows[1:]), "p"))


def test_the_scatter_names_few_points_and_marks_those_beyond(store):
    figure = figures.scatter(wind(store), "wind")
    assert {"df2", "dfl-gmm3", "policy-net"} <= words(drawn(figure))
    assert "triangle" in figure.caption


def test_a_crowded_scatter_names_ours_and_the_best_opponent_only(run):
    rows = [run(method=f"method-{i}", regret=10 + 0.1 * i) for i in range(30)]
    found = words(drawn(figures.scatter(summarise([run(), *rows]), "wind")))
    assert {"df2", "method-0"} <= found
    assert "method-7" not in found


def test_one_point_makes_no_scatter_and_no_number_no_bars(run):
    assert figures.scatter(summarise([run()]), "wind") is None
    assert figures.bars(summarise([run(regret=None, refused="no.")]), "wind") is None


def test_settings_show_the_measure_and_the_seconds(store):
    cells = wind(store)
    best = next(cell for cell in cells if cell.is_best_opponent)
    figure = figures.settings(series_of(cells), best, "wind")
    assert {"points", "seconds to fit", "regret, mean and sd"} <= words(drawn(figure))
    assert "Dashed: dfl-gmm3" in figure.caption


def test_a_landscape_shows_three_surfaces_and_tells_their_least(landscape):
    figure = figures.landscape(landscape)
    root = drawn(figure)
    assert {"initial", "learned", "true"} <= words(root)
    assert len(list(root.iter(f"{SVG}image"))) >= 3
    assert "learned at (1, -1) with 0, true at (1, -1) with 0" in figure.caption


def test_a_surface_of_another_shape_is_an_error(landscape):
    landscape["surfaces"]["learned"] = [[1.0, 2.0]]
    with pytest.raises(ValueError, match=r"shape \(4, 4\).*'learned' has shape \(1, 2\)"):
        figures.landscape(landscape)


def test_names_are_escaped(run):
    cells = summarise([run(method="<b>&"), run(method="cme")])
    assert "<b>&" in words(drawn(figures.bars(cells, "a<b")))


def test_ids_differ_between_the_figures_of_a_page(store):
    texts = [figures.bars(wind(store), name).svg for name in ("wind", "wind-farm")]
    one, two = (set(re.findall(r'id="([^"]*)"', text)) for text in texts)
    assert one
    assert not one & two
