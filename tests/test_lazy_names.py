import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import costscape.monitor
import costscape.problems
from costscape.lazy_names import lazy_names


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "sample_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from costscape.lazy_names import lazy_names\n"
        "__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)\n"
    )
    (folder / "__init__.pyi").write_text(
        "from sample_package import part as part\n"
        "from sample_package.part import one as one, two as two\n"
    )
    (folder / "part.py").write_text("one, two = object(), 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "sample_package"
    for name in [n for n in sys.modules if n.startswith("sample_package")]:
        del sys.modules[name]


def test_a_name_is_imported_when_it_is_first_used(package):
    module = import_module(package)
    assert f"{package}.part" not in sys.modules
    first = module.one
    assert f"{package}.part" in sys.modules
    assert module.one is first is vars(module)["one"]
    assert module.part.two == 2


def test_names_are_listed(package):
    module = import_module(package)
    assert dir(module) == module.__all__ == ["one", "part", "two"]


def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="module 'sample_package' has no attribute 'three'"):
        import_module(package).three  # noqa: B018


@pytest.mark.parametrize(
    "package", [costscape.problems, costscape.monitor], ids=["problems", "monitor"]
)
def test_every_listed_name_exists_and_none_hides_a_submodule(package):
    find, _, names = lazy_names(package.__name__, package.__file__)
    folder = Path(package.__file__).parent
    for name in names:
        value = find(name)
        submodule = (folder / name).is_dir() or (folder / f"{name}.py").is_file()
        assert not submodule or value.__name__ == f"{package.__name__}.{name}"


def test_importing_the_problems_imports_no_torch():
    code = "import sys, costscape.problems; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
