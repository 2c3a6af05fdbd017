"""Pairs (x, y), their parts in time order, and windows of a series."""

from costscape.data.dataset import Dataset, Splits, split
from costscape.data.windows import windows

__all__ = ["Dataset", "Splits", "split", "windows"]
