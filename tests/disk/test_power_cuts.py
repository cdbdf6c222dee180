"""Whenever the power is cut, what was said to be done is there, and nothing is ever half there.

The log of what a work writes, renames and forces is replayed: the disk is rebuilt as a power cut after every
moment may leave it (`replay.py`).
"""

import random

import pytest

from .harness import WORKS
from .power_cuts import Cuts


@pytest.fixture(scope="module")
def cuts_of(runner, inputs, tmp_path_factory):
    """A function of a work's name: it does the work once, logs it, and gives the `Cuts` of the log."""
    known = {}

    def cuts(name):
        if name not in known:
            known[name] = Cuts(runner, WORKS[name], inputs, tmp_path_factory.mktemp(name).resolve())
        return known[name]

    return cuts


EACH_TIME = {"join", "merge", "score"}
"""Works that are cut so in every run of the long tests; all works are at night."""

CUT = [name for name, work in WORKS.items() if not work.grows]


def at_night_if_costly(name):
    marks = [] if name in EACH_TIME else [pytest.mark.nightly]
    return pytest.param(name, marks=marks)


@pytest.mark.long
@pytest.mark.parametrize("name", ["stage", "seal", "pack", "pull", "manifest"])
def test_a_power_cut_leaves_the_result_absent_old_or_whole(name, cuts_of):
    """The power is cut after each write, rename and fsync of a work; a cut may leave one of several disks.

    On none of them is the result torn. On two of them (six for `stage`) the work is run again, and must end
    as it does without a cut.
    """
    cuts = cuts_of(name)
    all_cuts = list(cuts.cuts())

    complaints = set()
    for cut in all_cuts:
        torn = cuts.torn(cut)
        if torn:
            complaints.add(f"{cut.moment}, {cut.which}: {torn}")
    assert complaints == set()

    n_next_runs = 6 if name == "stage" else 2
    for cut in random.Random(name).sample(all_cuts, n_next_runs):
        difference = cuts.unlike(cut)
        assert difference == "", (cut.moment, cut.which)


@pytest.mark.long
@pytest.mark.usefixtures("films_too")
@pytest.mark.parametrize("name", [at_night_if_costly(name) for name in CUT])
def test_after_a_power_cut_the_next_run_ends_in_the_same_bytes(name, cuts_of):
    """The power is cut after each write, rename and fsync of a work; what reached the disk is of chance.

    On none of the disks that are left is the result torn. On 15 of them the work is run again, and must end
    as it does without a cut.
    """
    cuts = cuts_of(name)
    all_cuts = list(cuts.cuts(seed=1))
    moments_with_torn_results = [cut.moment for cut in all_cuts if cuts.torn(cut)]
    assert moments_with_torn_results == []

    n_next_runs = min(15, len(all_cuts))
    for cut in random.Random(name).sample(all_cuts, n_next_runs):
        difference = cuts.unlike(cut)
        assert difference == "", (cut.moment, cut.which)
