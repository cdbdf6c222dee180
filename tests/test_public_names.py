"""What `import obygaze_features` offers: names that resolve, nothing heavy loaded, errors of one base."""

import ast
import builtins
import importlib
from pathlib import Path

import pytest

from obygaze_features import errors
from obygaze_features.errors import ObygazeError
from tests.process import python

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")
LAZY = [
    importlib.import_module(".".join(stub.relative_to(ROOT).parent.parts))
    for package in PACKAGES
    for stub in sorted((ROOT / package).rglob("__init__.pyi"))
]
HEAVY = {"av", "h5py", "matplotlib", "msgspec", "numpy", "pandas", "scipy", "sklearn", "torch", "zarr"}


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_every_public_name_resolves(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert sorted(dir(package)) == sorted(set(package.__all__))
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_type_checkers_are_told_where_every_name_comes_from(package):
    """lazy_loader reads the stub that type checkers read: what is left to hold is that no name is another."""
    tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            assert alias.asname == alias.name  # a stub's way to offer an import
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
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*sys.modules)"
    result = python("-c", code, cwd=ROOT)
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert not loaded & HEAVY
    assert "obygaze_features" not in loaded or module != "obygaze.cli"


@pytest.mark.long
def test_every_error_for_users_has_the_one_base():
    n_errors = 0
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ClassDef) or not node.name.endswith("Error"):
                    continue
                n_errors += 1
                bases = {ast.unparse(base) for base in node.bases}
                assert all(base.endswith("Error") for base in bases), (path, node.name)
                assert not any(hasattr(builtins, base) for base in bases) or node.name == "ObygazeError", (
                    path,
                    node.name,
                )
    assert n_errors > 10


def test_the_errors_of_the_feature_store_are_in_one_module():
    own = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, ObygazeError) and kind.__module__ == errors.__name__ for kind in own)
