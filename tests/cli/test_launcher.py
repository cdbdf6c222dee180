"""`python cli.py` runs the command from a checkout, and is not installed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_launcher_is_the_command(tmp_path):
    command = [sys.executable, str(ROOT / "cli.py"), "codebook", "show"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "obygaze12" in done.stdout
