"""Named problems and methods, and running them: problem x method x seed -> one row each."""

from costscape.experiments.catalog import FAMILIES, METHODS, method_of
from costscape.experiments.engines import Engine, Here, Processes, Ray
from costscape.experiments.execute import Outcome, execute
from costscape.experiments.landscape import landscape, write_landscape
from costscape.experiments.problems import PROBLEMS, Problem
from costscape.experiments.rows import Rows
from costscape.experiments.runs import Run, prepare
from costscape.experiments.sweep import Swept, sweep

__all__ = [
    "FAMILIES",
    "METHODS",
    "PROBLEMS",
    "Engine",
    "Here",
    "Outcome",
    "Problem",
    "Processes",
    "Ray",
    "Rows",
    "Run",
    "Swept",
    "execute",
    "landscape",
    "method_of",
    "prepare",
    "sweep",
    "write_landscape",
]
