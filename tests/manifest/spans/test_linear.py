"""The time to read a file grows with its records, not their square: also where each is of its own kind."""

import time
from contextlib import suppress
from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from tests.manifest.spans.many_records import FILES

pytestmark = [pytest.mark.long, pytest.mark.nightly]

RECORDS = 500
MOST_RATIO = 3.0
"""Of the time for four times as many records to that for twice as many; 4 is quadratic, 2 is linear."""
REPEATS = 4


@pytest.mark.parametrize("kind", FILES)
def test_time_is_linear_in_the_number_of_records(tmp_path, kind):
    twice, four_times = tmp_path / "twice.txt", tmp_path / "four.txt"
    twice.write_text(FILES[kind](2 * RECORDS), encoding="utf-8")
    four_times.write_text(FILES[kind](4 * RECORDS), encoding="utf-8")
    ratio = _cpu_s(four_times, 1) / _cpu_s(twice, 1)
    if ratio >= MOST_RATIO:  # the machine may be busy: look closer
        ratio = _cpu_s(four_times, REPEATS) / _cpu_s(twice, REPEATS)
    assert ratio < MOST_RATIO


def _cpu_s(path, repeats):
    """Return the least CPU time in which a file is read or refused, of some repeats, in seconds."""
    took = []
    for _ in range(repeats):
        start = time.process_time()
        with suppress(ManifestError):
            import_spans([path], path.parent, rate=Fraction(25))
        took.append(time.process_time() - start)
    return min(took)
