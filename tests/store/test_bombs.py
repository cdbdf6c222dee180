"""A few bytes that ask for gigabytes are refused by every reader in little memory, measured from outside."""

import json
import subprocess
import sys

import pytest

from .hostile_stores import STRING_BOMBS, compress_otherwise, resealed
from .toy_stores import sealed

MOST_MB = 200
CPU_S = 300
"""Ends a reader that takes the bomb; on an idle machine each needs less than a tenth of a second."""

READERS = """
import json, resource, sys, time
from pathlib import Path
from obygaze.cli import main
from obygaze_features.store import open_store

path, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

def peak_mb():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    # Not ru_maxrss, in which Linux counts the process that started this one.
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line) / 1024

uses = {
    "open": lambda: open_store(path)["toy"].pooled(),
    "verify": lambda: main(["store", "verify", "--full", path]),
    "inspect": lambda: main(["store", "inspect", path]),
    "pull": lambda: main(["store", "pull", path, path + "-copy"]),
}
found = {}
for name, use in uses.items():
    begin, said = time.process_time(), ""
    try:
        use()
        code = 0
    except SystemExit as left:
        code = left.code
    except ValueError as error:
        code, said = 1, str(error)
    found[name] = {"code": code, "cpu_s": time.process_time() - begin, "mb": peak_mb(), "said": said}
print(json.dumps(found))
"""

BOMBS = [*STRING_BOMBS, "a gzip stream of 1 GB"]


@pytest.mark.parametrize("bomb", BOMBS)
def test_every_reader_refuses_a_bomb_in_little_memory(tmp_path, bomb):
    store = sealed(tmp_path)
    if bomb in STRING_BOMBS:
        (store / "data/features.zarr/toy/clip/c/0").write_bytes(STRING_BOMBS[bomb])
    else:
        compress_otherwise(store, 1_000_000_000)
    resealed(store)
    done = subprocess.run(
        [sys.executable, "-c", READERS, str(store), str(CPU_S)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: use["code"] for name, use in found.items()} == {
        "open": 1,
        "verify": 3,
        "inspect": 1,
        "pull": 1,
    }
    what = "clip/c/0: this chunk" if bomb in STRING_BOMBS else "codecs: not as the format demands"
    assert what in found["open"]["said"]
    assert what.removeprefix("clip/c/0: ") in done.stdout
    assert done.stderr.count(what) == 2
    assert max(use["mb"] for use in found.values()) < MOST_MB
    assert not (tmp_path / f"{store.name}-copy").exists()
