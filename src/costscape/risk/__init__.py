"""Risk of the cost over weighted scenarios, its quantiles, and their recalibration."""

from costscape.risk.calibration import Calibration as Calibration
from costscape.risk.calibration import Levels as Levels
from costscape.risk.measures import CVaR as CVaR
from costscape.risk.measures import Entropic as Entropic
from costscape.risk.measures import MeanDeviation as MeanDeviation
from costscape.risk.measures import Risk as Risk
from costscape.risk.measures import WorstCase as WorstCase
from costscape.risk.surfaces import RiskCost as RiskCost
from costscape.risk.surfaces import ServiceLimit as ServiceLimit
