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

MAX_FOR_TWICE_THE_WORK = 3.0
"""Twice the work takes 2 times as long if time is linear in it, and 4 times as long if it is quadratic."""


@pytest.mark.parametrize("kind", FILES)
def test_time_is_linear_in_the_number_of_records(tmp_path, kind):
    """A file of 2000 records takes about twice as long as one of 1000 if time is linear in their number.

    It would take 4 times as long if each record were compared with all others, so the ratio must be below 3.
    """
    shorter = tmp_path / "shorter.txt"
    longer = tmp_path / "longer.txt"
    shorter.write_text(file_of(kind, 1000), encoding="utf-8")
    longer.write_text(file_of(kind, 2000), encoding="utf-8")

    ratio = ratio_of_times(
        longer_work=lambda: import_or_refuse(longer), shorter_work=lambda: import_or_refuse(shorter)
    )

    assert ratio < 3


def test_time_is_linear_in_spans_that_all_overlap():
    """All spans end at 1000 s, so each is on a tier of its own.

    10,000 of them take less than 3 times as long as 5000. They would take 4, if time were quadratic.
    """
    spans = [Subtitle(start_s=0.001 * n, end_s=1000.0, text=f"word {n}") for n in range(10_000)]
    half_of_the_spans = spans[:5000]

    ratio = ratio_of_times(
        lambda: write_textgrid({"words": spans}, end_s=1000.0),
        lambda: write_textgrid({"words": half_of_the_spans}, end_s=1000.0),
    )

    assert ratio < 3


def import_or_refuse(path):
    """Import a file at 25 frames a second; that it may be refused does not matter."""
    with suppress(ManifestError):
        import_spans([path], path.parent, rate=Fraction(25))


def ratio_of_times(longer_work, shorter_work):
    """Return the CPU time of some work, divided by that of shorter work."""
    ratio = min_cpu_s(longer_work, n_runs=1) / min_cpu_s(shorter_work, n_runs=1)
    if ratio >= MAX_FOR_TWICE_THE_WORK:  # the machine may be busy: look closer
        ratio = min_cpu_s(longer_work, n_runs=4) / min_cpu_s(shorter_work, n_runs=4)
    return ratio


def min_cpu_s(work, n_runs):
    """Return the least CPU time of some runs of some work, in seconds."""
    took = []
    for _ in range(n_runs):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)
