"""Ready-made tasks for frequent decisions, a few lines each over ``SeparableTask``."""

from costscape.tasks.budget_shares import allocation
from costscape.tasks.energy_bids import bidding
from costscape.tasks.stock import newsvendor

__all__ = ["allocation", "bidding", "newsvendor"]
