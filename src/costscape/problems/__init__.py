"""The paper's problems, one folder each: the task, its data, a plot, and the recipe of its runs.

- ``stock_orders``: how much to order of one item, or of all items of a store.
- ``wind_bids``: how much wind energy to bid for tomorrow's hours.
- ``vaccine_doses``: how many doses to send to each region of an epidemic.
- ``generator_schedule``: how much electricity to generate in each of tomorrow's hours.
- ``grid_paths``: which path to take through a grid whose edges have unknown costs.
- ``one_resource``: which of many resources to choose.
- ``synthetic``: two toy costs whose expected cost is known in closed form.

Shared: ``problem`` (what a named problem consists of), ``two_sided`` (a cost of shortage and
surplus), ``pictures`` (arguments and labels of plots), ``files`` (public data files) and
``embedded`` (data that come with the package). ``__init__.pyi`` lists the public names.
"""

from costscape.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
