"""What `import obygaze_features` offers: names that resolve, nothing heavy loaded, errors of one base."""

import ast
import builtins
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import obygaze_features
import obygaze_features.store
import obygaze_models
from obygaze_features import errors
from obygaze_features.errors import ObygazeError

ROOT = Path(__file__).parents[1]
LAZY = (obygaze_features, obygaze_features.store, obygaze_models)
HEAVY = {"av", "h5py", "matplotlib", "msgspec", "numpy", "pandas", "scipy", "sklearn", "torch", "zarr"}


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_every_public_name_resolves(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert sorted(dir(package)) == sorted(set(package.__all__))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_type_checkers_are_told_where_every_name_comes_from(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    told = {
        alias.name: getattr(importlib.import_module(node.module), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told.keys() == package._HOMES.keys() == {*package.__all__} - {"__version__"}
    assert all(getattr(package, name) is value for name, value in told.items())


@pytest.mark.parametrize(
    "module",
    [
        "obygaze_features",
        "obygaze_models",
        "obygaze_features.store.format",
        "obygaze_features.errors",
        "obygaze.cli",
    ],
)
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & HEAVY
    assert "obygaze_features" not in loaded or module != "obygaze.cli"


def test_every_error_for_users_has_the_one_base():
    found = 0
    for package in ("obygaze_features", "obygaze_models"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ClassDef) or not node.name.endswith("Error"):
                    continue
                found += 1
                bases = {ast.unparse(base) for base in node.bases}
                assert all(base.endswith("Error") for base in bases), (path, node.name)
                assert not any(hasattr(builtins, base) for base in bases) or node.name == "ObygazeError", (
                    path,
                    node.name,
                )
    assert found > 10


def test_the_errors_of_the_feature_store_are_in_one_module():
    own = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, ObygazeError) and kind.__module__ == errors.__name__ for kind in own)
