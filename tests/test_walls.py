"""The walls of the house hold, and a breach would be seen."""

import ast
import importlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")
OUTSIDE = ("obygaze_film", "obygaze_studies")
SUPPORT = {
    *(
        f"obygaze_features.{name}"
        for name in (
            "door",
            "errors",
            "io",
            "lines",
            "locks",
            "options",
            "plugins",
            "screen",
            "text",
            "workers",
        )
    ),
    *(f"obygaze_models.{name}" for name in ("blas", "errors")),
}
"""Modules of the core for our own packages; what they offer is in their `__all__`."""


BREACHES = """
obygaze_models/dataset/dataset.py import obygaze_features.video
obygaze_features/store/format.py import obygaze_models
obygaze_models/dataset/dataset.py import obygaze.cli
obygaze_features/store/format.py import obygaze_features.manifest
obygaze_features/video/sampling.py import obygaze_features.extraction
obygaze_features/io.py import obygaze_features.store
obygaze_features/store/format.py import obygaze_features.store.group
obygaze_features/store/sealing.py import obygaze_features.store.verification
obygaze_features/exchange/import_items.py import obygaze_features.manifest
obygaze_features/exchange/publish.py import obygaze_features.exchange.merge
obygaze_features/store/attic.py
obygaze_models/dataset/dataset.py import obygaze_models.models.spec
obygaze_features/store/format.py import obygaze_film
obygaze_film/schema.py import obygaze_studies.caption_words
obygaze_film/timeline.py import torch
obygaze_features/manifest/clip.py import pandas
obygaze_models/dataset/dataset.py import torch
obygaze/cli.py import obygaze_features.store
"""
"""A file and the line that breaches a wall there; a file without a line is on no floor."""


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = "import sys; from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def copied(folder: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_walls_hold(tmp_path):
    done = lint(copied(tmp_path))
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def breached(tmp_path_factory):
    """The report on a copy that is breached in every way at once: one run in place of twenty."""
    folder = copied(tmp_path_factory.mktemp("breached"))
    for breach in BREACHES.strip().splitlines():
        file, _, line = breach.partition(" ")
        path = folder / file
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{line}\n{before}", encoding="utf-8")
    done = lint(folder)
    assert done.returncode == 1, done.stdout
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("breach", BREACHES.strip().splitlines())
def test_a_breach_is_caught(breached, breach):
    file, _, line = breach.partition(" ")
    module = file.removesuffix(".py").replace("/", ".")
    expected = f"{module} -> {line.removeprefix('import ')} (l." if line else module
    assert expected in breached.partition("BROKEN")[2]


def imports_of(path):
    """Yield (module, name) of every import of a file; name is None where the module itself is imported."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 or path.suffix == ".pyi", path
            yield from ((node.module, alias.name) for alias in node.names if node.level == 0)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def is_offered(module, name):
    """Return whether films and studies may import a name of the core from a module."""
    package = importlib.util.find_spec(module).submodule_search_locations is not None
    if module in SUPPORT:
        assert not package
    elif not package or module.count(".") > 1:
        return False
    return name is None or name in importlib.import_module(module).__all__


def test_films_and_studies_take_of_the_core_what_it_offers():
    imported = {
        (str(path.relative_to(ROOT)), module, name)
        for package in OUTSIDE
        for path in (ROOT / package).rglob("*.py")
        for module, name in imports_of(path)
        if module.partition(".")[0] in {"obygaze_features", "obygaze_models"}
    }
    assert len(imported) > 200
    assert [one for one in sorted(imported, key=str) if not is_offered(*one[1:])] == []


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("obygaze_features.store.format", "ARRAYS"),  # a room's inside
        ("obygaze_features.store", "ARRAYS"),  # not listed
        ("obygaze_features.io", "contextmanager"),  # not its own
        ("obygaze_features.schema", "check"),  # no support module
    ],
)
def test_what_is_not_offered_is_refused(module, name):
    assert not is_offered(module, name)


def test_collecting_the_tests_imports_nothing_heavy(request):
    """Each process of a run collects them all: `tests.later` imports at first use."""
    assert request.config.heavy == set()
