"""The walls of the house hold, and a breach would be seen."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze", "obygaze_features", "obygaze_models")

BREACHES = {
    "1. the zoo reads videos": ("obygaze_models/dataset.py", "import obygaze_features.video"),
    "1. the zoo shares": ("obygaze_models/dataset.py", "import obygaze_features.exchange"),
    "1. the zoo extracts": ("obygaze_models/dataset.py", "import obygaze_features.extraction"),
    "2. the store knows the zoo": ("obygaze_features/store/format.py", "import obygaze_models"),
    "2. somebody imports the command line": ("obygaze_models/dataset.py", "import obygaze.cli"),
    "3. the store knows the manifest": (
        "obygaze_features/store/format.py",
        "import obygaze_features.manifest",
    ),
    "3. a backbone reads videos": (
        "obygaze_features/backbones/descriptors.py",
        "import obygaze_features.video",
    ),
    "3. a room knows the engine": (
        "obygaze_features/video/sampling.py",
        "import obygaze_features.extraction",
    ),
    "3. the writing of files knows the store": ("obygaze_features/io.py", "import obygaze_features.store"),
    "3. the errors know a room": ("obygaze_features/errors.py", "import obygaze_features.manifest"),
    "3. training knows the extraction": (
        "obygaze_features/train/step.py",
        "import obygaze_features.extraction",
    ),
    "3b. the format knows how stores are read": (
        "obygaze_features/store/format.py",
        "import obygaze_features.store.group",
    ),
    "3b. sealing reads a store": (
        "obygaze_features/store/sealing.py",
        "import obygaze_features.store.store",
    ),
    "3b. sealing verifies": (
        "obygaze_features/store/sealing.py",
        "import obygaze_features.store.verification",
    ),
    "3. reading shares": ("obygaze_features/store/store.py", "import obygaze_features.exchange.publish"),
    "3. extraction shares": (
        "obygaze_features/extraction/report.py",
        "import obygaze_features.exchange.publish",
    ),
    "3c. an import knows the manifest": (
        "obygaze_features/exchange/import_sources.py",
        "import obygaze_features.manifest",
    ),
    "3d. sharing combines": (
        "obygaze_features/exchange/publish.py",
        "import obygaze_features.exchange.merge",
    ),
    "3b. a module is on no floor": ("obygaze_features/store/attic.py", ""),
    "3e. a dataset knows models": ("obygaze_models/dataset.py", "import obygaze_models.models.spec"),
    "3e. a model is evaluated by itself": (
        "obygaze_models/models/linear.py",
        "import obygaze_models.evaluation.metrics",
    ),
    "3e. a report knows an audit": ("obygaze_models/report/report.py", "import obygaze_models.audits.eat"),
    "3e. a task knows an audit": (
        "obygaze_models/tasks/mediaeval15/score.py",
        "import obygaze_models.audits.eat",
    ),
    "3e. an audit knows a command": ("obygaze_models/audits/eat.py", "import obygaze_models.commands.audit"),
    "4. the manifest needs pandas": ("obygaze_features/manifest/clip.py", "import pandas"),
    "4. the zoo needs torch": ("obygaze_models/dataset.py", "import torch"),
    "5. the contents load numpy": ("obygaze/cli.py", "import numpy"),
    "5. the contents load a room": ("obygaze/cli.py", "import obygaze_features.store"),
}


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
    for file, line in BREACHES.values():
        path = folder / file
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{line}\n{before}", encoding="utf-8")
    done = lint(folder)
    assert done.returncode == 1, done.stdout
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_caught(breached, breach):
    file, line = BREACHES[breach]
    module = file.removesuffix(".py").replace("/", ".")
    expected = f"{module} -> {line.removeprefix('import ')} (l." if line else module
    assert expected in breached.partition("BROKEN")[2]


def test_no_property_has_a_deadline():
    assert settings().deadline is None  # conftest.py sets it for all
    named = re.compile("deadline=" r"(\w+)")
    for path in sorted((ROOT / "tests").rglob("*.py")):
        assert set(named.findall(path.read_text(encoding="utf-8"))) <= {"None"}, path
