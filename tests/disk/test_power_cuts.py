"""Whenever the power is cut, what was said to be done is there, and nothing is ever half there.

The log of what a work writes, renames and forces is replayed: the disk is rebuilt as a power cut after every
moment may leave it (`replay.py`).
"""

import random

import pytest

from .harness import WORKS
from .power_cuts import Cuts

N_NEXT_RUNS = {"stage": 6}
"""Kind of work -> power cuts after which the work is run again; two of others."""
MOST_NEXT_RUNS = 15


@pytest.fixture(scope="module")
def cuts_of(runner, inputs, tmp_path_factory):
    """Log every kind of work once."""
    known = {}

    def cuts(name):
        if name not in known:
            known[name] = Cuts(runner, WORKS[name], inputs, tmp_path_factory.mktemp(name).resolve())
        return known[name]

    return cuts


EACH_TIME = {"join", "merge", "score"}
"""Works that are cut so in every run of the long tests; all works are each week."""

CUT = [name for name, work in WORKS.items() if not work.grows]


@pytest.mark.long
@pytest.mark.parametrize("name", ["stage", "seal", "pack", "pull", "manifest"])
def test_a_power_cut_leaves_nothing_or_all_of_a_result(name, cuts_of):
    """After a cut at any moment, the result is absent, old or whole.

    Work that is then run again ends as it does without a cut.
    """
    cuts = cuts_of(name)
    tried = list(cuts.cuts())
    assert {f"{cut.moment}, {cut.which}: {torn}" for cut in tried if (torn := cuts.torn(cut))} == set()

    for cut in random.Random(name).sample(tried, N_NEXT_RUNS.get(name, 2)):
        assert cuts.unlike(cut) == "", (cut.moment, cut.which)


@pytest.mark.long
@pytest.mark.usefixtures("films_too")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name not in EACH_TIME)) for name in CUT]
)
def test_after_any_power_cut_the_next_run_ends_in_the_same_bytes(name, cuts_of):
    """Other mixtures of what reached the disk than above, more next runs, and every kind of work."""
    cuts = cuts_of(name)
    tried = list(cuts.cuts(seed=1))
    assert [cut.moment for cut in tried if cuts.torn(cut)] == []

    for cut in random.Random(name).sample(tried, min(MOST_NEXT_RUNS, len(tried))):
        assert cuts.unlike(cut) == "", (cut.moment, cut.which)
