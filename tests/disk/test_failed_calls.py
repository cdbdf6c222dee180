"""Whatever call of the system fails, work ends with one line, nothing torn, and can be done again.

`benchmarks/calls.py` tries every call; here a fixed part of them is tried.
"""

import pytest

from .failed_calls import READING_TOO, Trials
from .harness import FILM_WORKS, RAGGED, WORKS

STRIDES = {
    **dict.fromkeys(("stage", "retry", "join", "merge"), 293),
    **dict.fromkeys(("seal", "import", "anndata"), 89),
    "film-run": 15013,
    **dict.fromkeys(("grow", "evaluate"), 2003),
    **dict.fromkeys(("cut", "unpack", "pull", "pull-more", "hdf5"), 37),
}
"""Of the works with hundreds of calls every so many-th is tried, of the others every fifth."""

EACH_TIME = {"join", "manifest", "pack", "seal"}
"""Works whose calls fail in every run of the long tests; those of all works fail at night."""


def parameter_of_work(name):
    """Make the parameter of a work, by its name; but for the works of `EACH_TIME` it is marked `nightly`."""
    marks = [] if name in EACH_TIME else [pytest.mark.nightly]
    return pytest.param(name, marks=marks)


def problems_of(trials, cases):
    """Do a work once for each case, in which a call fails, and then again without a fault.

    Returned is a line for whatever is torn, lost, left behind or, at the end, other than after undisturbed
    work.
    """
    problems = []
    for case in cases:
        problems += trials.problems(case)
    return problems


@pytest.mark.long
@pytest.mark.parametrize("name", ["seal", "pack", "manifest"])
def test_nothing_is_torn_if_the_first_or_last_call_of_a_kind_fails(name, runner, inputs, tmp_path):
    """In the work (such as to seal a store) one call of the system fails with EIO: an error of the disk.

    It is the first, or the last, call of its kind: write, fsync, close, rename, open, unlink. `problems` runs
    the work so, and then again without a fault; it lists what is torn, lost or left behind.
    """
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)

    problems = []
    for case in trials.cases(errors=("EIO",)):
        n_calls_of_kind = trials.truth.counts[case.kind]
        is_first_or_last = case.n in (1, n_calls_of_kind)
        if is_first_or_last:
            problems += trials.problems(case)

    assert problems == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["stage", "seal"])
def test_work_resumes_after_a_used_up_quota_is_raised(name, runner, inputs, tmp_path):
    """A work is done in a process of its own: features are written into a stage, or a stage is sealed.

    Each case is a call that writes or opens a file; from this call on all such calls fail with EDQUOT, as
    when a user's quota of the disk is used up. That is early in the work, in the middle, or at the last call.
    Then the work is done again, with a larger quota, and must give what undisturbed work gives.
    """
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)
    cases = list(trials.cases(errors=("EDQUOT",)))
    early, middle, last = cases[len(cases) // 5], cases[len(cases) // 2], cases[-1]

    assert problems_of(trials, [early, middle, last]) == []


@pytest.mark.long
@pytest.mark.usefixtures("films_too")
@pytest.mark.parametrize("name", [parameter_of_work(name) for name in WORKS])
def test_nothing_is_torn_whichever_call_of_a_work_fails(name, runner, inputs, tmp_path):
    """A work, such as to seal a store, is done once for each case, in which a call of the system fails.

    Of each kind of call (write, fsync, rename, ...) every n-th fails with EIO, an error of the disk. From
    every 4 n-th on the disk is full (ENOSPC), and in place of every 12 n-th the process is killed. n is 5, or
    larger for works of hundreds or thousands of calls. Each time the work is done again without a fault;
    nothing may be torn, lost or left behind.
    """
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)
    n = STRIDES.get(name.removesuffix(RAGGED), 5)  # the same for works on clips with any number of frames
    cases = [
        *trials.cases(stride=n, errors=("EIO",)),
        *trials.cases(stride=4 * n, errors=("ENOSPC",)),
        *trials.cases(stride=12 * n, errors=("KILL",)),
    ]

    assert problems_of(trials, cases) == []


@pytest.mark.long
@pytest.mark.usefixtures("lab_too")
@pytest.mark.parametrize("name", ["lab-import", "lab-eaf"])
def test_work_on_judgements_stops_if_a_file_of_them_cannot_be_read(name, runner, inputs, tmp_path):
    """A scored film has files of judgements. A work exports them for ELAN, or imports judgements from ELAN.

    In each case one call that reads fails with EIO, an error of the disk. If the work went on as if that file
    were not there, an export would have fewer judgements than people made, and an import would add judgements
    once more that the film has already. So it stops with an error; done again without a fault, it gives what
    undisturbed work gives.
    """
    trials = Trials(runner, FILM_WORKS[name], inputs, tmp_path.resolve() / name)

    assert problems_of(trials, trials.cases(kinds=("read",))) == []


STRIDES_OF_FILM_WORKS = {"lab-run": 43, "lab-learn": 19, "lab-judge": 5}
"""Of the works with hundreds of calls every so many-th is tried, of the others every second."""


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.usefixtures("lab_too")
@pytest.mark.parametrize("name", FILM_WORKS)
def test_nothing_of_a_film_is_torn_or_lost_whichever_call_fails(name, runner, inputs, tmp_path):
    """A work on a scored film, such as to judge it, is done once for each case, in which a call fails.

    Of each kind of call (to write, rename, ..., also to read, link and lock) every n-th fails with EIO, an
    error of the disk. Every 3 n-th is denied (EACCES) or interrupted (EINTR), or from it on the disk is
    read-only or full, or has no locks. The work must end with one line that names the file, or as undisturbed
    work ends; done again without a fault, it gives the bytes of undisturbed work. n is 2, or larger for works
    of hundreds of calls.
    """
    trials = Trials(runner, FILM_WORKS[name], inputs, tmp_path.resolve() / name)
    n = STRIDES_OF_FILM_WORKS.get(name, 2)
    cases = [
        *trials.cases(stride=n, errors=("EIO",), kinds=READING_TOO),
        *trials.cases(stride=3 * n, errors=("EACCES", "EROFS", "ENOSPC", "EINTR", "ENOLCK")),
    ]

    assert problems_of(trials, cases) == []
