"""Decide without torch: a model that ``model.export`` wrote, by numpy and onnxruntime alone.

model = costscape.runtime.load("model.onnx")
a = model.decide(X)
"""

from costscape.runtime.exported_model import ExportedModel as ExportedModel
from costscape.runtime.exported_model import OutsideTraining as OutsideTraining
from costscape.runtime.exported_model import load as load
from costscape.runtime.facts import Facts as Facts
from costscape.runtime.facts import Reference as Reference
from costscape.runtime.feasible import FeasibleSet as FeasibleSet
