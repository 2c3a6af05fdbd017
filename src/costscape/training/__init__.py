"""Fit networks: settings, what is fitted, and the one training loop."""

from costscape.training.fit_state import Diverged, Fit, History
from costscape.training.loop import fit_all
from costscape.training.settings import Training

__all__ = ["Diverged", "Fit", "History", "Training", "fit_all"]
