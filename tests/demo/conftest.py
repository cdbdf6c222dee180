"""One run of the demo, as a user would run it."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from obygaze import demo
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
        finished = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
        assert finished.returncode == code, finished.stdout + finished.stderr

    return run


@pytest.fixture(scope="session")
def demo_folder(obygaze, tmp_path_factory, worker_id) -> Path:
    """Give each process of the tests a copy of one run."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "one-demo" / MARK
    shared.mkdir(parents=True, exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "demo" / demo.MARK_FILE).is_file():
            obygaze(shared, 0, "demo", "--out", "demo", "--workers", 2)
    own = tmp_path_factory.mktemp("demo") / MARK
    shutil.copytree(shared / "demo", own / "demo", symlinks=True)
    return own / "demo"


@pytest.fixture(scope="session")
def tree():
    def digests(folder: Path) -> dict[str, str]:
        # The staging folder keeps times and is not meant to be kept.
        kept = [p for p in sorted(folder.rglob("*")) if p.is_file() and "store.staging" not in p.parts]
        return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}

    return digests
