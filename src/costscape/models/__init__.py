"""x -> scenarios."""

from costscape.models.encoders import (
    LSTM,
    MLP,
    Builder,
    Flat,
    by_shape,
    deep_by_shape,
    encoder_for,
)
from costscape.models.flow_forecast import Flow, FlowForecast
from costscape.models.forecast_contract import Forecast, ForecastNetwork
from costscape.models.forecasts import Mixture, MixtureForecast, Point, PointForecast
from costscape.models.outcome_network import OutcomeNetwork, has_line
from costscape.models.outcomes import (
    Absolute,
    Anchored,
    LocationScale,
    Outcomes,
    Plain,
    WindowLevels,
)
from costscape.models.quantile_forecast import QuantileForecast, Quantiles
from costscape.models.relative_outcomes import ByLevel, Level, mean_level
from costscape.models.scaling import Standardise, Units

__all__ = [
    "LSTM",
    "MLP",
    "Absolute",
    "Anchored",
    "Builder",
    "ByLevel",
    "Flat",
    "Flow",
    "FlowForecast",
    "Forecast",
    "ForecastNetwork",
    "Level",
    "LocationScale",
    "Mixture",
    "MixtureForecast",
    "OutcomeNetwork",
    "Outcomes",
    "Plain",
    "Point",
    "PointForecast",
    "QuantileForecast",
    "Quantiles",
    "Standardise",
    "Units",
    "WindowLevels",
    "by_shape",
    "deep_by_shape",
    "encoder_for",
    "has_line",
    "mean_level",
]
