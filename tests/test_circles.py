"""No module needs, when its functions run, a module that needs it: also not by imports inside functions."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")

Graph = dict[str, set[str]]
"""Module -> those that it imports."""


def module_name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imports_at_run_time(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield every import of a module but those for types alone."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def offers_of(stub: Path, package: str) -> dict[str, str]:
    """Find where the names that a package offers are defined: lazy_loader reads its `__init__.pyi`."""
    offers = {}
    for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = f"{package}.{node.module}" if node.level else str(node.module)
            for alias in node.names:
                offers[alias.asname or alias.name] = module
    return offers


def import_graph(package: Path) -> Graph:
    """Read which modules of a package import which others of it."""
    root = package.parent
    paths = {module_name(path, root): path for path in package.rglob("*.py")}
    offers = {}
    for stub in package.rglob("__init__.pyi"):
        name = module_name(stub, root)
        offers[name] = offers_of(stub, name)

    def defining(module: str, name: str) -> str:
        """Follow a name that is imported from a package to the module that defines it."""
        if f"{module}.{name}" in paths:
            return f"{module}.{name}"
        while name in offers.get(module, {}):
            module = offers[module][name]
        return module

    graph: Graph = {}
    for module, path in paths.items():
        needs = graph.setdefault(module, set())
        for node in imports_at_run_time(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                needs.update(alias.name for alias in node.names)
            elif node.module is not None:
                needs.update(defining(node.module, alias.name) for alias in node.names)
        needs.intersection_update(paths)
        needs.discard(module)
    return graph


def circle_in(graph: Graph) -> list[str]:
    """Return a circle of imports; none where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


CALLED_LATER = {
    "obygaze_models.evaluation.run": "obygaze_models.prediction.final",  # a run's `save` is `save_models`
}
"""Module -> one that stands on it and that a method of its calls: users look for it there."""


@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_has_a_circle_of_imports(package):
    """No module imports, also inside a function, one that imports it, over whatever others.

    One circle is wanted and left out: `Run.save` calls `save_models`, which stands on runs.
    """
    imports_of_module = import_graph(ROOT / package)
    for module, imported_on_purpose in CALLED_LATER.items():
        if module in imports_of_module:
            imports_of_module[module].remove(imported_on_purpose)

    assert circle_in(imports_of_module) == []


@pytest.mark.parametrize(
    ("source_of_first", "source_of_second", "is_circle"),
    [
        ("from lab.second import there", "", False),
        ("from lab.second import there", "from lab.first import here", True),
        ("def here():\n    from lab.second import there", "import lab.first", True),
        ("def here():\n    from lab import second", "from lab import here", True),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lab.second",
            "import lab.first",
            False,
        ),
    ],
    ids=[
        "one way only",
        "at the top of both modules",
        "inside a function",
        "by a name that the package offers",
        "for types alone",
    ],
)
def test_a_circle_of_two_modules_is_found_wherever_its_imports_stand_but_for_types_alone(
    tmp_path, source_of_first, source_of_second, is_circle
):
    """The package `lab` has the modules `first` and `second`, and offers the function `here` of `first`."""
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "__init__.py").touch()
    (lab / "__init__.pyi").write_text("from .first import here as here\n", encoding="utf-8")
    (lab / "first.py").write_text(source_of_first, encoding="utf-8")
    (lab / "second.py").write_text(source_of_second, encoding="utf-8")

    circle = circle_in(import_graph(lab))

    assert (circle != []) == is_circle
