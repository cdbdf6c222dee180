"""Kill the sealing of a stage many times (SIGKILL, at a random step); it must end in the same bytes."""

import signal
import sys
from pathlib import Path

import numpy as np
from survive_processes import Running, Steps

from obygaze_features.io import file_sha256, remove_tree


def kills(folder: Path, times: int) -> dict[str, float]:
    """Kill the sealing of `s.staging` so many times, then let it finish.

    Raises
    ------
    SystemExit
        If the store differs from an undisturbed one's, or anything is left beside it.
    """
    steps = Steps(folder)
    expected = _digests(_sealed(folder, steps))
    remove_tree(folder / "s-1.0.0")
    rng, killed = np.random.default_rng(0), 0
    while killed < times:
        last = Steps(folder, int(rng.integers(1, steps.done.value)))
        if _sealed(folder, last) is None:
            killed += 1
        else:  # threads share the work: its number of steps differs a little
            remove_tree(folder / "s-1.0.0")
    same = _digests(_sealed(folder, Steps(folder))) == expected
    left = sorted(path.name for path in folder.glob("s[.-]*") if path.name not in {"s.staging", "s-1.0.0"})
    if not same or left:
        sys.exit(f"killed {killed} times: same bytes: {same}; left: {left}")
    return {"kills": killed, "steps of one sealing": steps.done.value}


def _sealed(folder: Path, steps: Steps) -> Path | None:
    words: list[object] = ["store", "seal", folder / "s", "--licence", "NOASSERTION"]
    killed = Running(words, folder / "said", steps).finish() == -signal.SIGKILL
    return None if killed else folder / "s-1.0.0"


def _digests(store: Path | None) -> dict[str, str]:
    files = [] if store is None else [path for path in store.rglob("*") if path.is_file()]
    return {str(path.relative_to(str(store))): file_sha256(path) for path in files}
