"""The one list of public names: type checkers read it, and so does ``__init__.py``."""

from costscape import bench as bench
from costscape import checks as checks
from costscape import data as data
from costscape import models as models
from costscape import problems as problems
from costscape import sets as sets
from costscape import solvers as solvers
from costscape.comparison import Comparison as Comparison
from costscape.comparison import compare as compare
from costscape.comparison import default_methods as default_methods
from costscape.evaluation import Evaluation as Evaluation
from costscape.evaluation import evaluate as evaluate
from costscape.methods import *  # noqa: F403
from costscape.models import LSTM as LSTM
from costscape.models import MLP as MLP
from costscape.models import Absolute as Absolute
from costscape.models import Anchored as Anchored
from costscape.models import Flat as Flat
from costscape.models import Flow as Flow
from costscape.models import LocationScale as LocationScale
from costscape.models import Mixture as Mixture
from costscape.models import Point as Point
from costscape.models import Quantiles as Quantiles
from costscape.models import WindowLevels as WindowLevels
from costscape.scenarios import ExpectedCost as ExpectedCost
from costscape.scenarios import Scenarios as Scenarios
from costscape.sets import BallWalk as BallWalk
from costscape.sets import Box as Box
from costscape.sets import Budget as Budget
from costscape.sets import ConstraintSet as ConstraintSet
from costscape.sets import Finite as Finite
from costscape.sets import HitAndRun as HitAndRun
from costscape.sets import OuterBox as OuterBox
from costscape.sets import Polytope as Polytope
from costscape.sets import Simplex as Simplex
from costscape.solvers import Auto as Auto
from costscape.solvers import BoxRelaxation as BoxRelaxation
from costscape.solvers import Convex as Convex
from costscape.solvers import CvxpyLayer as CvxpyLayer
from costscape.solvers import Exhaustive as Exhaustive
from costscape.solvers import FrankWolfe as FrankWolfe
from costscape.solvers import Implicit as Implicit
from costscape.solvers import Layer as Layer
from costscape.solvers import MirrorDescent as MirrorDescent
from costscape.solvers import ProjectedAdam as ProjectedAdam
from costscape.solvers import RampLimits as RampLimits
from costscape.solvers import Separable as Separable
from costscape.solvers import SharedCapacity as SharedCapacity
from costscape.solvers import Solver as Solver
from costscape.task import Refusal as Refusal
from costscape.task import SeparableTask as SeparableTask
from costscape.task import Task as Task
from costscape.training import Training as Training

__version__: str
