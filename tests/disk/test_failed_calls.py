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


def at_night_if_costly(name):
    marks = [] if name in EACH_TIME else [pytest.mark.nightly]
    return pytest.param(name, marks=marks)


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
    """From some call on, all writing fails with EDQUOT, as when a user's quota is used up.

    `problems` lists what differs if the work is then run again, with a larger quota, from a run that nothing
    disturbed. The quota ends early in the work, in the middle, and at the last call.
    """
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)
    cases = list(trials.cases(errors=("EDQUOT",)))
    early, middle, last = cases[len(cases) // 5], cases[len(cases) // 2], cases[-1]

    problems = []
    for case in (early, middle, last):
        problems += trials.problems(case)

    assert problems == []


@pytest.mark.long
@pytest.mark.usefixtures("films_too")
@pytest.mark.parametrize("name", [at_night_if_costly(name) for name in WORKS])
def test_nothing_is_torn_whichever_call_of_a_work_fails(name, runner, inputs, tmp_path):
    """Of each kind of call, such as write, every `stride`-th call of the work is tried.

    That is every fifth, but fewer in works of hundreds or thousands of calls.

    Mostly the call fails with EIO, an error of the disk. In fewer runs the disk is full from that call on
    (ENOSPC), and in still fewer the process is killed in place of the call. After each run the work is done
    again without a fault; `problems` lists what is torn, lost or left behind.
    """
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)
    stride = STRIDES.get(name.removesuffix(RAGGED), 5)
    cases = [
        *trials.cases(stride, ("EIO",)),
        *trials.cases(4 * stride, ("ENOSPC",)),
        *trials.cases(12 * stride, ("KILL",)),
    ]

    problems = []
    for case in cases:
        problems += trials.problems(case)

    assert problems == []


@pytest.mark.long
@pytest.mark.usefixtures("lab_too")
@pytest.mark.parametrize("name", ["lab-import", "lab-eaf"])
def test_judgements_that_the_disk_does_not_give_are_not_left_out(name, runner, inputs, tmp_path):
    """A film was judged, and one call that reads fails with EIO while its judgements are used.

    A file of judgements that is not read must stop the work. To export as if it were not there would end as
    done, with fewer judgements than people made; an import would take in some a second time.
    """
    trials = Trials(runner, FILM_WORKS[name], inputs, tmp_path.resolve() / name)

    problems = []
    for case in trials.cases(kinds=("read",)):
        problems += trials.problems(case)

    assert problems == []


STRIDES_OF_FILM_WORKS = {"lab-run": 43, "lab-learn": 19, "lab-judge": 5}
"""Of the works with hundreds of calls every so many-th is tried, of the others every second."""


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.usefixtures("lab_too")
@pytest.mark.parametrize("name", FILM_WORKS)
def test_nothing_of_a_film_is_torn_or_lost_whichever_call_fails(name, runner, inputs, tmp_path):
    """Of each kind of call on a film's files, also of reading, linking and locking, every `stride`-th fails.

    Mostly it fails with EIO, an error of the disk; in fewer runs the disk is full or read-only, or has no
    locks, from that call on, or the call is denied or interrupted. The work ends with one line that names the
    file, or rightly; done again without a fault, it gives the bytes of undisturbed work.
    """
    trials = Trials(runner, FILM_WORKS[name], inputs, tmp_path.resolve() / name)
    stride = STRIDES_OF_FILM_WORKS.get(name, 2)
    cases = [
        *trials.cases(stride, ("EIO",), READING_TOO),
        *trials.cases(3 * stride, ("EACCES", "EROFS", "ENOSPC", "EINTR", "ENOLCK")),
    ]

    problems = []
    for case in cases:
        problems += trials.problems(case)

    assert problems == []
