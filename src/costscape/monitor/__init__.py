"""Log decisions and outcomes to a store, and watch costs and drift: ``costscape monitor``."""

from costscape.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
