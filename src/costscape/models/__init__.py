"""x -> scenarios."""

from costscape.models.attention import Attention
from costscape.models.dcrnn import DCRNN, DCRNNForecaster
from costscape.models.diffusion import edges_of
from costscape.models.encoders import LSTM, MLP, Builder, by_shape, wide_by_shape
from costscape.models.forecasts import (
    Forecast,
    Mixture,
    MixtureForecast,
    Point,
    PointForecast,
)
from costscape.models.inputs import Standardise, Units
from costscape.models.location_scale import LocationScaleNetwork
from costscape.models.members import Members
from costscape.models.outcomes import (
    Absolute,
    Anchored,
    AnchoredValues,
    Changes,
    LocationScale,
    Outcomes,
    Plain,
    Refined,
    Values,
    WindowLevels,
)
from costscape.models.relative import Base, ByLevel, Damped, Level, mean_level

__all__ = [
    "DCRNN",
    "LSTM",
    "MLP",
    "Absolute",
    "Anchored",
    "AnchoredValues",
    "Attention",
    "Base",
    "Builder",
    "ByLevel",
    "Changes",
    "DCRNNForecaster",
    "Damped",
    "Forecast",
    "Level",
    "LocationScale",
    "LocationScaleNetwork",
    "Members",
    "Mixture",
    "MixtureForecast",
    "Outcomes",
    "Plain",
    "Point",
    "PointForecast",
    "Refined",
    "Standardise",
    "Units",
    "Values",
    "WindowLevels",
    "by_shape",
    "edges_of",
    "mean_level",
    "wide_by_shape",
]
