"""The order of the tests: what takes minutes in one piece begins first.

Otherwise the site is built last, for more than a minute, while the other core has nothing to do.
pytest drops an argument that lies within another one, so the order of arguments cannot say this.
"""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (item.path.name != "test_site.py", "bench" not in item.path.parts))
