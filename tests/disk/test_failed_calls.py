"""Whatever call of the system fails, work ends with one line, nothing torn, and can be done again.

`benchmarks/calls.py` tries every call; here a fixed part of them is tried.
"""

import pytest

from .failed_calls import Trials
from .harness import RAGGED, WORKS

STRIDES = {
    **dict.fromkeys(("stage", "retry", "join", "merge"), 293),
    **dict.fromkeys(("seal", "import", "anndata"), 89),
    "film-run": 15013,
    **dict.fromkeys(("grow", "evaluate"), 2003),
    **dict.fromkeys(("cut", "unpack", "pull", "pull-more", "hdf5"), 37),
}
"""Of the works with hundreds of calls every so many-th is tried, of the others every fifth."""

EACH_TIME = {"join", "manifest", "pack", "seal"}
"""Works whose calls fail in every run of the long tests; those of all works fail each week."""


@pytest.mark.long
@pytest.mark.parametrize("name", ["seal", "pack", "manifest"])
def test_the_first_or_last_call_of_a_kind_may_fail(name, runner, inputs, tmp_path):
    """A kind of call is write, fsync, rename and so on.

    `Trials.problems` lists what is torn, lost or left behind.
    """
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)
    ends = [case for case in trials.cases() if case.n in (1, trials.truth.counts[case.kind])]
    assert [problem for case in ends for problem in trials.problems(case)] == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["stage", "seal"])
def test_work_resumes_after_a_used_up_quota_is_raised(name, runner, inputs, tmp_path):
    """From some call on, all writing fails, as when a user's quota is used up.

    The next run, with a larger quota, must end as if nothing had happened.
    """
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)
    cases = list(trials.cases(1, ("EDQUOT",)))

    chosen = [cases[len(cases) // 5], cases[len(cases) // 2], cases[-1]]
    assert [problem for case in chosen for problem in trials.problems(case)] == []


@pytest.mark.long
@pytest.mark.usefixtures("films_too")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name not in EACH_TIME)) for name in WORKS]
)
def test_work_survives_failed_calls(name, runner, inputs, tmp_path):
    """Only here do calls in the middle of every kind of work fail, and disks fill for good."""
    trials = Trials(runner, WORKS[name], inputs, tmp_path.resolve() / name)
    stride = STRIDES.get(name.removesuffix(RAGGED), 5)
    problems = [problem for case in trials.cases(stride) for problem in trials.problems(case)]

    rarer = [*trials.cases(4 * stride, ("ENOSPC",)), *trials.cases(12 * stride, ("KILL",))]
    problems += [problem for case in rarer for problem in trials.problems(case)]
    assert problems == []
