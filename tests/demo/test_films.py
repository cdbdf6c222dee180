"""Films are real, and the same frames give the same bytes."""

import numpy as np
import pytest

from obygaze.demo_corpus import write_video


def frames(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    still = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
    return [np.roll(still, 3 * t, axis=1) for t in range(n)]


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_the_same_frames_give_the_same_bytes(tmp_path, suffix):
    written = set()
    for i in range(6):
        clutter = [bytes(1000 * i + 17) for _ in range(50)]  # what memory held before must not matter
        path = tmp_path / f"film-{i}{suffix}"
        write_video(path, frames(60), 24)
        written.add(path.read_bytes())
        del clutter
    assert len(written) == 1
