"""The walls of the house hold, and a breach would be seen."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze", "obygaze_features", "obygaze_models")

BREACHES = {
    "1. the zoo reads videos": ("obygaze_models/dataset.py", "import obygaze_features.video"),
    "1. the zoo extracts": ("obygaze_models/dataset.py", "import obygaze_features.extract"),
    "2. the store knows the zoo": ("obygaze_features/store/layout.py", "import obygaze_models"),
    "2. somebody imports the command line": ("obygaze_models/dataset.py", "import obygaze.cli"),
    "3. the store knows the manifest": (
        "obygaze_features/store/layout.py",
        "import obygaze_features.manifest",
    ),
    "3. a backbone reads videos": (
        "obygaze_features/backbones/descriptors.py",
        "import obygaze_features.video",
    ),
    "3. a room knows the engine": ("obygaze_features/video/sampling.py", "import obygaze_features.extract"),
    "3. training knows the extraction": (
        "obygaze_features/train/step.py",
        "import obygaze_features.extract",
    ),
    "3b. the format knows how stores are read": (
        "obygaze_features/store/layout.py",
        "import obygaze_features.store.reading",
    ),
    "3b. sealing reads a store": (
        "obygaze_features/store/staging/seal.py",
        "import obygaze_features.store.reading.store",
    ),
    "3b. reading shares": (
        "obygaze_features/store/reading/store.py",
        "import obygaze_features.store.sharing.pack",
    ),
    "3b. sharing exchanges": (
        "obygaze_features/store/sharing/push.py",
        "import obygaze_features.store.exchange.merge",
    ),
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


@pytest.fixture
def copy(tmp_path):
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_walls_hold(copy):
    done = lint(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_caught(copy, breach):
    file, line = BREACHES[breach]
    path = copy / file
    path.write_text(f"{line}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    done = lint(copy)
    assert done.returncode == 1, done.stdout
    assert "BROKEN" in done.stdout
