"""x -> scenarios."""

from costscape.models.blended import Blended
from costscape.models.dcrnn import DCRNN, DCRNNForecaster
from costscape.models.diffusion import edges_of
from costscape.models.encoders import LSTM, MLP, Builder, by_shape, deep_by_shape
from costscape.models.forecasts import (
    Forecast,
    Mixture,
    MixtureForecast,
    Point,
    PointForecast,
)
from costscape.models.inputs import Standardise, Units
from costscape.models.outcome_network import OutcomeNetwork, has_line
from costscape.models.outcomes import (
    Absolute,
    Anchored,
    LocationScale,
    Outcomes,
    Plain,
    WindowLevels,
)
from costscape.models.relative import ByLevel, Level, mean_level

__all__ = [
    "DCRNN",
    "LSTM",
    "MLP",
    "Absolute",
    "Anchored",
    "Blended",
    "Builder",
    "ByLevel",
    "DCRNNForecaster",
    "Forecast",
    "Level",
    "LocationScale",
    "Mixture",
    "MixtureForecast",
    "OutcomeNetwork",
    "Outcomes",
    "Plain",
    "Point",
    "PointForecast",
    "Standardise",
    "Units",
    "WindowLevels",
    "by_shape",
    "deep_by_shape",
    "edges_of",
    "has_line",
    "mean_level",
]
