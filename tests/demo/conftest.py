"""One run of the demo, as a user would run it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.private import MARK, SECRETS


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def obygaze():
    """Run the command as a user would, and expect its exit code."""

    def run(folder: Path, code: int, *arguments: object) -> None:
        command = [sys.executable, "-m", "obygaze", *map(str, arguments)]
        environment = os.environ | SECRETS
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == code, done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def demo_folder(obygaze, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / MARK
    folder.mkdir()
    obygaze(folder, 0, "demo", "--out", "demo", "--workers", 2)
    return folder / "demo"


@pytest.fixture(scope="session")
def tree():
    def digests(folder: Path) -> dict[str, str]:
        # The staging folder keeps times and is not meant to be kept.
        kept = [p for p in sorted(folder.rglob("*")) if p.is_file() and "store.staging" not in p.parts]
        return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}

    return digests
