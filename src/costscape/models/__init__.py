"""x -> scenarios."""

from costscape.models.attention import Attention
from costscape.models.encoders import LSTM, MLP, Builder, by_shape
from costscape.models.forecasts import (
    Forecast,
    Mixture,
    MixtureForecast,
    Point,
    PointForecast,
)
from costscape.models.inputs import ByLevel, Standardise, Units, mean_level
from costscape.models.outcomes import (
    Absolute,
    Anchored,
    AnchoredValues,
    Outcomes,
    Values,
    WindowLevels,
)

__all__ = [
    "LSTM",
    "MLP",
    "Absolute",
    "Anchored",
    "AnchoredValues",
    "Attention",
    "Builder",
    "ByLevel",
    "Forecast",
    "Mixture",
    "MixtureForecast",
    "Outcomes",
    "Point",
    "PointForecast",
    "Standardise",
    "Units",
    "Values",
    "WindowLevels",
    "by_shape",
    "mean_level",
]
