"""Serve decisions over HTTP: ``costscape serve MODEL``, or ``create_app`` in another server.

``__init__.pyi`` lists the names. Each is imported when it is first used: a service of an exported
model needs no torch.
"""

from costscape.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
