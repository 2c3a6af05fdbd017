"""Named problems and methods, and running them: problem x method x seed -> one row each.

``__init__.pyi`` lists the public names.
"""

from costscape.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
