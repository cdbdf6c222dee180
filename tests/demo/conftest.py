"""One run of the demo, as a user would run it."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def run_demo(tmp_path_factory):
    def run(name: str, workers: int) -> Path:
        folder = tmp_path_factory.mktemp(name)
        command = [sys.executable, "-m", "obygaze", "demo", "--out", "demo", "--workers", str(workers)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder / "demo"

    return run


@pytest.fixture(scope="session")
def demo_folder(run_demo) -> Path:
    return run_demo("demo", workers=2)


@pytest.fixture(scope="session")
def tree():
    def digests(folder: Path) -> dict[str, str]:
        # The staging folder keeps times and is not meant to be kept.
        kept = [p for p in sorted(folder.rglob("*")) if p.is_file() and "store.staging" not in p.parts]
        return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}

    return digests
