"""Public names of a package, each imported when it is first used, since torch takes seconds.

The list is the package's ``__init__.pyi``, which type checkers and editors read too: one line
``from package.module import Name as Name`` for each name, or ``from package import module as
module``. A line ``from package.part import *`` stands for the names that ``part/__init__.py``
imports in that way.
"""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for the package's ``__init__.py``.

    Args:
        package: the package's ``__name__``.
        file: the package's ``__file__``, beside which ``__init__.pyi`` lies.

    No name may be that of a submodule with other content: importing the submodule would set the
    attribute.
    """
    module_of = _read_stub(Path(file).with_suffix(".pyi"))

    def __getattr__(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module_of[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module_of[name]), name)
        setattr(import_module(package), name, value)  # the next access finds it at once
        return value

    names = sorted(module_of)
    return __getattr__, lambda: names, names


def _read_stub(path: Path) -> dict[str, str]:
    """Each imported name of a stub file, and the module it comes from."""
    module_of: dict[str, str] = {}
    for statement in _imports(path):
        assert statement.module
        for alias in statement.names:
            if alias.name == "*":
                below = path.parents[0].joinpath(*statement.module.split(".")[1:], "__init__.py")
                names = [a.asname for line in _imports(below) for a in line.names if a.asname]
                module_of |= dict.fromkeys(names, statement.module)
            elif alias.asname:
                module_of[alias.asname] = statement.module
    return module_of


def _imports(path: Path) -> list[ast.ImportFrom]:
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    return [s for s in statements if isinstance(s, ast.ImportFrom) and s.module]
