"""`python cli.py` runs the command from a checkout, and is not installed."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_launcher_is_the_command(tmp_path):
    command = [sys.executable, str(ROOT / "cli.py"), "codebook", "show"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "obygaze12" in done.stdout


def test_the_launcher_is_in_the_source_distribution_and_in_no_wheel():
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    assert targets["wheel"] == {
        "packages": ["obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies"]
    }
    assert not any("cli" in pattern for pattern in targets["sdist"]["exclude"])
