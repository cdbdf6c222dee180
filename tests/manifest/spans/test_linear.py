"""The time to read a file grows with its records, not their square: also where each is of its own kind."""

import time
from contextlib import suppress
from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from obygaze_features.manifest.spans.subtitles import Subtitle
from obygaze_features.manifest.spans.textgrid import write_textgrid
from tests.manifest.spans.many_records import FILES, file_of

pytestmark = [pytest.mark.long, pytest.mark.nightly]

RECORDS = 500
MOST_RATIO = 3.0
"""Of the time for four times as many records to that for twice as many; 4 is quadratic, 2 is linear."""
REPEATS = 4


@pytest.mark.parametrize("kind", FILES)
def test_time_is_linear_in_the_number_of_records(tmp_path, kind):
    twice = tmp_path / "twice.txt"
    four_times = tmp_path / "four.txt"
    twice.write_text(file_of(kind, 2 * RECORDS), encoding="utf-8")
    four_times.write_text(file_of(kind, 4 * RECORDS), encoding="utf-8")
    assert _ratio(lambda: _read(twice), lambda: _read(four_times)) < MOST_RATIO


def test_time_is_linear_in_spans_that_all_overlap():
    """Each is on a tier of its own."""
    spans = [Subtitle(0.001 * n, 1000.0, f"word {n}") for n in range(20 * RECORDS)]
    half = spans[: len(spans) // 2]
    ratio = _ratio(
        lambda: write_textgrid({"words": half}, 1000.0), lambda: write_textgrid({"words": spans}, 1000.0)
    )
    assert ratio < MOST_RATIO


def _read(path):
    """Read or refuse a file."""
    with suppress(ManifestError):
        import_spans([path], path.parent, rate=Fraction(25))


def _ratio(work, twice_the_work):
    """Return how much more CPU time some work takes than half of it."""
    ratio = _cpu_s(twice_the_work, 1) / _cpu_s(work, 1)
    if ratio >= MOST_RATIO:  # the machine may be busy: look closer
        ratio = _cpu_s(twice_the_work, REPEATS) / _cpu_s(work, REPEATS)
    return ratio


def _cpu_s(work, repeats):
    """Return the least CPU time of some work, of some repeats, in seconds."""
    took = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)
