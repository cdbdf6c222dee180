"""What `import obygaze_features` offers: names that resolve, nothing heavy loaded, errors of one base."""

import ast
import builtins
import importlib
import re
from pathlib import Path

import pytest

from obygaze_features import errors
from obygaze_features.errors import ObygazeError
from tests.process import python

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")
LAZY_PACKAGES = [
    importlib.import_module(".".join(stub.relative_to(ROOT).parent.parts))
    for package in PACKAGES
    for stub in sorted((ROOT / package).rglob("__init__.pyi"))
]
HEAVY = {"av", "h5py", "matplotlib", "msgspec", "numpy", "pandas", "scipy", "sklearn", "torch", "zarr"}


def libraries_loaded_by(statement):
    """Run a statement in a process of its own; return the names of the libraries that are then loaded."""
    result = python("-c", f"import sys\n{statement}\nprint(*sys.modules)", cwd=ROOT)
    modules = result.stdout.split()
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("package", LAZY_PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_of_a_package_can_be_imported_and_is_listed_by_dir(package):
    """The packages import a name only when it is first asked for: `__all__` could name what is not there."""
    for name in package.__all__:
        assert getattr(package, name) is not None

    assert sorted(dir(package)) == sorted(set(package.__all__))


@pytest.mark.parametrize("package", LAZY_PACKAGES, ids=lambda package: package.__name__)
def test_a_name_that_a_package_does_not_have_is_an_attribute_error_that_names_it(package):
    """The packages import a name only when it is first asked for, and must refuse others as Python does."""
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


@pytest.mark.parametrize("package", LAZY_PACKAGES, ids=lambda package: package.__name__)
def test_the_stub_of_a_package_says_truly_where_each_name_comes_from(package):
    """A line of `__init__.pyi` is `from .store import Store as Store`: a type checker believes it.

    What the package offers must be the same object as that of the module.
    """
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    for node in ast.walk(stub):
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            assert alias.asname == alias.name, "without `as`, a stub's import is private"
            if node.module:
                module = importlib.import_module(f"{package.__name__}.{node.module}")
                assert getattr(package, alias.name) is getattr(module, alias.name)


@pytest.mark.parametrize(
    "module",
    [
        "obygaze_features",
        "obygaze_models",
        "obygaze_film",
        "obygaze_studies",
        "obygaze_features.store.format",
        "obygaze_features.errors",
        "obygaze.cli",
    ],
)
def test_importing_a_module_loads_no_heavy_library(module):
    """Libraries such as numpy and torch (HEAVY), which take long to import, wait until they are needed."""
    libraries = libraries_loaded_by(f"import {module}")

    assert libraries & HEAVY == set()


def test_importing_the_command_line_does_not_load_the_feature_store():
    """`obygaze --help` must be quick: the package of stores is imported when a command needs it."""
    assert "obygaze_features" not in libraries_loaded_by("import obygaze.cli")


@pytest.mark.long
def test_every_class_of_errors_is_made_of_our_own_errors():
    """Only `ObygazeError`, the base of all, is derived from an error of Python's."""
    n_errors = 0
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if not re.search(r"class \w*Error\b", source):
                continue
            for node in ast.walk(ast.parse(source)):
                is_error = isinstance(node, ast.ClassDef) and node.name.endswith("Error")
                if not is_error:
                    continue
                n_errors += 1
                for base in map(ast.unparse, node.bases):
                    is_of_python = hasattr(builtins, base)
                    assert base.endswith("Error"), (path, node.name)
                    assert not is_of_python or node.name == "ObygazeError", (path, node.name)

    assert n_errors > 10, "the classes were not found"


def test_the_module_of_errors_has_errors_of_its_own_with_the_one_base():
    """No error is imported there from another module; each is an `ObygazeError`."""
    for value in vars(errors).values():
        is_error = isinstance(value, type) and issubclass(value, Exception)
        if is_error:
            assert issubclass(value, ObygazeError)
            assert value.__module__ == "obygaze_features.errors"
