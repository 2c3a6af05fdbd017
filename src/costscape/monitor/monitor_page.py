"""Findings of the monitor as one HTML page: everything inline, nothing loaded, no script."""

from importlib.resources import files
from math import isfinite
from typing import Any

import numpy as np

from costscape.comparison.page import svg
from costscape.monitor.findings import Findings
from costscape.monitor.monitor_pictures import draw_calibration, draw_costs, draw_drift
from costscape.monitor.thresholds import Thresholds


def render_findings(found: Findings, thresholds: Thresholds | None = None) -> str:
    """The page's text; words and looks come from ``monitor_page.html`` beside this file.

    Args:
        found: what ``watch`` returned.
        thresholds: those that ``watch`` was given; None for ``Thresholds()``.
    """
    from jinja2 import Environment, StrictUndefined

    at = thresholds or Thresholds()
    source = files("costscape.monitor").joinpath("monitor_page.html").read_text(encoding="utf-8")
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(source)
    costs = [part for part in found.stretches if part.outcomes]
    drifts = {"inputs": found.inputs, "outcomes": found.outcome_drift}
    pictures = {
        name: svg(draw_drift(columns, at.psi), f"PSI of the {name}")
        for name, columns in drifts.items()
        if columns
    }
    if costs:
        pictures["costs"] = svg(
            draw_costs(found.stretches), "Realised and expected cost over time"
        )
    if found.groups:
        pictures["groups"] = svg(draw_calibration(found.groups), "Realised against expected cost")
    return page.render(
        found=found,
        at=at,
        drifts=drifts,
        pictures=pictures,
        number=_number,
        percent=_percent,
    )


def _number(value: Any) -> str:
    """Four digits; n/a for what is not known."""
    return (
        f"{value:.4g}"
        if isinstance(value, int | float | np.floating) and isfinite(value)
        else "n/a"
    )


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %" if isfinite(value) else "n/a"
