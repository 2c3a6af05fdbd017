"""x -> scenarios."""

from costscape.models.encoders import LSTM as LSTM
from costscape.models.encoders import MLP as MLP
from costscape.models.encoders import Builder as Builder
from costscape.models.encoders import by_shape as by_shape
from costscape.models.encoders import deep_by_shape as deep_by_shape
from costscape.models.forecasts import Forecast as Forecast
from costscape.models.forecasts import Mixture as Mixture
from costscape.models.forecasts import MixtureForecast as MixtureForecast
from costscape.models.forecasts import Point as Point
from costscape.models.forecasts import PointForecast as PointForecast
from costscape.models.outcome_network import OutcomeNetwork as OutcomeNetwork
from costscape.models.outcome_network import has_line as has_line
from costscape.models.outcomes import Absolute as Absolute
from costscape.models.outcomes import Anchored as Anchored
from costscape.models.outcomes import LocationScale as LocationScale
from costscape.models.outcomes import Outcomes as Outcomes
from costscape.models.outcomes import Plain as Plain
from costscape.models.outcomes import WindowLevels as WindowLevels
from costscape.models.relative_outcomes import ByLevel as ByLevel
from costscape.models.relative_outcomes import Level as Level
from costscape.models.relative_outcomes import mean_level as mean_level
from costscape.models.scaling import Standardise as Standardise
from costscape.models.scaling import Units as Units
