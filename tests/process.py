"""Commands and scripts in processes of their own."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def execute(
    *words: object, code: int | None = 0, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, which is to have an exit code; None: any."""
    result = subprocess.run(
        list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=3000
    )
    assert code is None or result.returncode == code, result.stdout + result.stderr
    return result


def python(*words: object, **how: object) -> subprocess.CompletedProcess[str]:
    """Run Python, as these tests run."""
    return execute(sys.executable, *words, **how)
