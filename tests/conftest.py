"""The order of the tests: what takes minutes in one piece begins first.

Otherwise the site is built last, for more than a minute, while the other core has nothing to do.
Next are the files beside this one, such as the examples, which take longer than those in folders,
and the folder ``bench``. pytest drops an argument that lies within another one, so the order of
arguments cannot say this.
"""

from pathlib import Path

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    items.sort(
        key=lambda item: (
            item.path.name != "test_site.py",
            item.path.parent != HERE,
            "bench" not in item.path.parts,
        )
    )
