"""The code of benchmarks/gpu.py runs, with tiny networks on a CPU; what it measures needs a card."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TOLD = {
    "0": ("part", "card"),
    "2": ("check", "3, 4, 5, 9"),
    "3": ("part", "model"),
    "4": ("part", "compile"),
    "5": ("part", "runner"),
    "6": ("part", "end to end"),
    "7": ("check", "6 two shards, killed and resumed"),
}
"""Part of the benchmark -> a field of one of its rows."""


@pytest.mark.long  # the only test that the benchmark, which needs a card, still runs at all
def test_every_part_prints_and_keeps_its_rows(tmp_path):
    command = [sys.executable, "gpu.py", "--tiny", "--device", "cpu", "--out", tmp_path / "rows"]
    command += ["--only", ",".join(TOLD)]
    paths = os.pathsep.join([str(BENCHMARKS.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "TORCHDYNAMO_DISABLE": "1"}  # a compiler takes minutes
    done = subprocess.run(
        command, cwd=BENCHMARKS, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text(encoding="utf-8").splitlines()]
    assert set(TOLD.values()) <= {(field, row.get(field)) for row in rows for field in ("part", "check")}
    assert not [row for row in rows if row.get("verdict") == "FAILED"]
