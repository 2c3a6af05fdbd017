"""The costs and savings printed for generator scheduling, by our names of methods.

Costs are means over the test days of the cost of 24 hours, with a deviation over ten seeds: Kong,
Cui, Zhuang, Feng, Prakash and Zhang, "End-to-End Stochastic Optimization with Energy-Based Model",
NeurIPS 2022, Table 1. Donti, Amos and Kolter, "Task-based End-to-end Model Learning in Stochastic
Optimization", NeurIPS 2017, print savings in the text and their costs in a figure only.

The best schedule in hindsight costs 0 on every test day, so these costs are regrets, too.
"""

PROBLEM = "scheduling"

# Table 1: two-stage, a normal law by likelihood; SO-EBM with the same law
COSTS: dict[str, tuple[float, float]] = {
    "two-stage-gmm1": (4.52, 0.33),
    "so-ebm-gmm1": (3.83, 0.15),
}
# Table 1, variants of SO-EBM that have no name here
VARIANTS: dict[str, tuple[float, float]] = {
    "without likelihood": (4.31, 0.17),
    "without KL divergence": (3.89, 0.18),
    "with Langevin dynamics": (3.85, 0.13),
}
# shares of the cost that one method saves of another's
SAVED_BY_SO_EBM = {"dfl": 0.073}  # Kong et al., section 4.1
SAVED_BY_TASK_NET = {"rmse net": 0.386, "cost-weighted rmse net": 0.086}  # Donti et al., 4.2

CAPTION = (
    'Paper: Kong et al., "End-to-End Stochastic Optimization with Energy-Based Model", NeurIPS '
    "2022, Table 1; cost of a day, mean (deviation), in our units, on our test days and an "
    "incomplete one more. Its x has temperatures, too, which are filler on these days, and its "
    "held-out days are random, not the last ones. Its SO-EBM costs 7.3 % less than DFL. In Donti "
    "et al., NeurIPS 2017, the net trained on the task costs 38.6 % less than one trained on "
    "squared errors, and 8.6 % less than one trained on weighted squared errors."
)
