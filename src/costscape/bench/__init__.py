"""Named problems and methods, and running them: problem x method x seed -> one row each."""

from costscape.bench.catalog import FAMILIES, METHODS, method_of
from costscape.bench.engines import Engine, Here, Processes, Ray
from costscape.bench.execute import Outcome, execute
from costscape.bench.landscape import landscape, write_landscape
from costscape.bench.problem_names import PROBLEMS
from costscape.bench.row_store import Rows
from costscape.bench.runs import Run, prepare
from costscape.bench.sweep import Swept, sweep

__all__ = [
    "FAMILIES",
    "METHODS",
    "PROBLEMS",
    "Engine",
    "Here",
    "Outcome",
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
