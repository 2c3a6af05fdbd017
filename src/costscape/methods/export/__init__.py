"""From a fitted method to one ONNX file that ``costscape.runtime`` decides by."""

from costscape.methods.export.export import Exported as Exported
from costscape.methods.export.export import export as export
