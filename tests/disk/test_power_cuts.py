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
    """A function of a work's name: it does the work once, logs it, and gives the power cuts of the log."""
    known = {}

    def cuts(name):
        if name not in known:
            known[name] = Cuts(runner, WORKS[name], inputs, tmp_path_factory.mktemp(name).resolve())
        return known[name]

    return cuts


EACH_TIME = {"join", "merge", "score"}
"""Works that are cut so in every run of the long tests; all works are at night."""

CUT = [name for name, work in WORKS.items() if not work.grows]


def parameter_of_work(name):
    """Make the parameter of a work, by its name; but for the works of `EACH_TIME` it is marked `nightly`."""
    marks = [] if name in EACH_TIME else [pytest.mark.nightly]
    return pytest.param(name, marks=marks)


def complaints_about_results(power_cuts, cuts):
    """Look at the disk after each cut; list where the result is torn, or gone though the work was done."""
    complaints = set()
    for cut in cuts:
        complaint = power_cuts.complaint_about_result(cut)
        if complaint:
            complaints.add(f"moment {cut.moment}, disk {cut.disk_number}: {complaint}")
    return complaints


def differences_after_next_runs(power_cuts, cuts):
    """Do the work again on the disk after each cut; list where it doesn't end as undisturbed work does."""
    differences = []
    for cut in cuts:
        difference = power_cuts.difference_after_next_run(cut)
        if difference:
            differences.append(f"moment {cut.moment}, disk {cut.disk_number}: {difference}")
    return differences


@pytest.mark.long
@pytest.mark.parametrize("name", ["stage", "seal", "pack", "pull", "manifest"])
def test_a_power_cut_leaves_the_result_absent_old_or_whole(name, cuts_of):
    """A work, such as to seal a store, is logged; the power is cut after each write, rename and fsync.

    What was not forced to the disk by then may be there or not, so that a cut may leave one of several disks.
    All are made from the log. On none of them may the result be torn. On two of them (six for `stage`) the
    work is done again, and must end as it does without a cut.
    """
    power_cuts = cuts_of(name)
    every_cut = list(power_cuts.every_cut())

    assert complaints_about_results(power_cuts, every_cut) == set()

    n_next_runs = 6 if name == "stage" else 2
    cuts_before_next_runs = random.Random(name).sample(every_cut, n_next_runs)
    assert differences_after_next_runs(power_cuts, cuts_before_next_runs) == []


@pytest.mark.long
@pytest.mark.usefixtures("films_too")
@pytest.mark.parametrize("name", [parameter_of_work(name) for name in CUT])
def test_after_a_power_cut_the_next_run_ends_in_the_same_bytes(name, cuts_of):
    """A work, such as to score a film, is logged; the power is cut after each write, rename and fsync.

    What was not forced to the disk by then is there or not by chance (`seed`). On none of the disks that are
    left may the result be torn. On 15 of them the work is done again, and must end as it does without a cut.
    """
    power_cuts = cuts_of(name)
    every_cut = list(power_cuts.every_cut(seed=1))

    assert complaints_about_results(power_cuts, every_cut) == set()

    n_next_runs = min(15, len(every_cut))
    cuts_before_next_runs = random.Random(name).sample(every_cut, n_next_runs)
    assert differences_after_next_runs(power_cuts, cuts_before_next_runs) == []
