"""Figure 1 of the paper from its rows: a picture of three panels, and tables of their numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costscape.bench.report.cost_curve import DECIDED, LEARNED, OBSERVED
from costscape.bench.report.result_tables import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]


def figure1_text(rows: Rows) -> str:
    """The gaps, the variances, and the largest error of the local model."""
    gaps = [{"law or method": _name(r), "gap": f"{r['gap']:.4f}"} for r in _of(rows, "mismatch")]
    variances: dict[int, dict[str, str]] = {}
    for r in _of(rows, "sampling"):
        line = variances.setdefault(r["draws"], {"draws": f"{r['draws']:,}"})
        line[f"variance, k = {r['components']}"] = f"{r['variance']:.3g}"
    (one,) = _of(rows, "local")
    errors = [abs(a - b) for a, b in zip(one["argmin"], one["model_argmin"], strict=True)]
    worst = errors.index(max(errors))
    lines = f"""
local model at {one["point"]:.3f}, which moves at the rate {one["rate"]:.3f}
largest error of its minimum: {errors[worst]:.2f}, where outcomes move by {one["t"][worst]:.2f}"""
    return "\n".join([text_table(gaps), "", text_table(list(variances.values())), lines])


def figure1_picture(path: Path | str, rows: Rows) -> None:
    """Write the three panels; the folder of ``path`` is made."""
    from matplotlib.figure import Figure  # the object interface: no global state, no display

    figure = Figure(figsize=(13, 3.8), layout="constrained")
    panels = figure.subplots(1, 3)
    _draw_gaps(panels[0], _of(rows, "mismatch"))
    _draw_variances(panels[1], _of(rows, "sampling"))
    _draw_local(panels[2], _of(rows, "local")[0])
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw_gaps(axes: "Axes", rows: Rows) -> None:
    shown = [r for r in rows if r["gap"] > 1e-5]  # a logarithm of 0 cannot be drawn
    names = [_name(r) for r in shown]
    colours = [
        OBSERVED if "law" in r else DECIDED if "df2" in names[i] else LEARNED
        for i, r in enumerate(shown)
    ]
    axes.barh(names, [r["gap"] for r in shown], color=colours)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="gap", title="Model mismatch")


def _draw_variances(axes: "Axes", rows: Rows) -> None:
    for k, colour in zip(
        sorted({r["components"] for r in rows}), (LEARNED, DECIDED), strict=False
    ):
        of = [r for r in rows if r["components"] == k]
        draws, values = [r["draws"] for r in of], [r["variance"] for r in of]
        axes.plot(draws, values, "o-", color=colour, label=f"mixture of {k}")
        line = [values[0] * draws[0] / m for m in draws]
        axes.plot(draws, line, ":", color=colour, label="1 / draws")
    axes.set(xscale="log", yscale="log", xlabel="draws", ylabel="variance of the gradient")
    axes.set_title("Sample averages")
    axes.legend(frameon=False)


def _draw_local(axes: "Axes", row: Mapping[str, Any]) -> None:
    axes.plot(row["t"], row["argmin"], color=LEARNED, linewidth=2, label="minimum of g")
    axes.plot(row["t"], row["model_argmin"], "--", color=DECIDED, label="of the local quadratic")
    axes.plot(0, row["point"], "o", color=DECIDED)
    axes.set(xlabel="move of all outcomes", ylabel="first action", title="Local quadratic model")
    axes.legend(frameon=False)


def _of(rows: Rows, panel: str) -> list[Mapping[str, Any]]:
    return [r for r in rows if r["panel"] == panel]


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['law']}, infinite data" if "law" in row else str(row["method"])
