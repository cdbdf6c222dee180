"""A folder of runs is held to the rules of the task, and every breach is said."""

import json

import pytest

from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15 import Annotated, check_runs
from obygaze_studies.mediaeval15.run_files import trec_lines

CLIPS = tuple(
    Annotated(f"c{row}", f"m{row // 2}", "dev" if row < 4 else "test", {}, row % 2 == 0) for row in range(20)
)
RUN = {clip.clip_id: 1.0 / (row + 1) for row, clip in enumerate(CLIPS) if clip.split == "test"}


@pytest.fixture
def runs(tmp_path):
    """A folder with a valid violence run, and how to add others."""

    def add(name="a", text=None, record='{"external_data": false}', subtask="violence", suffix=".trec"):
        path = tmp_path / f"{subtask}-{name}{suffix}"
        path.write_text(trec_lines(RUN, name) if text is None else text, encoding="utf-8")
        if record is not None:
            path.with_name(f"{path.name}.json").write_text(record, encoding="utf-8")

    add()
    return tmp_path, add


def problems(folder, clips=CLIPS):
    return [(finding.severity, finding.about, finding.what) for finding in check_runs(folder, clips).findings]


def test_a_valid_folder_has_no_findings(runs):
    folder, _ = runs
    checked = check_runs(folder, CLIPS)
    assert (checked.ok, checked.findings) == (True, ())
    (run,) = checked.runs
    assert (run.subtask, run.name, run.external_data, run.coverage, run.ties) == (
        "violence",
        "a",
        False,
        1.0,
        0.0,
    )


def test_five_runs_are_allowed_and_six_are_not(runs):
    folder, add = runs
    for name in "bcde":
        add(name)
    assert problems(folder) == []
    add("f")
    assert problems(folder) == [("problem", "violence", "6 runs; at most 5 may be submitted")]


def test_one_run_of_each_subtask_must_do_without_external_data(runs):
    folder, add = runs
    rows = "".join(f"{clip},neutral,calm\n" for clip in RUN)
    add("x", f"clip,valence,arousal\n{rows}", '{"external_data": true}', "affect", ".csv")
    what = "no run without external data; at least one is required"
    assert problems(folder) == [("problem", "affect", what)]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "whether external data was used must be said"),
        ("{}", "external_data must be true or false, found None"),
        ('{"external_data": "no"}', "external_data must be true or false, found 'no'"),
        ("[]", "expected an object"),
        ("nonsense", "no JSON document"),
        (json.dumps({"external_data": False, "dev_movies": ["m0", "m2"]}), "trained on movie 'm2', which is"),
        (
            json.dumps({"external_data": False, "pretrained": True}),
            "its features are of a pretrained backbone",
        ),
        (json.dumps({"external_data": False, "pretrained": None}), "its features are of an unknown origin"),
    ],
)
def test_what_is_wrong_with_a_record_is_a_problem(runs, record, message):
    folder, add = runs
    add("b", record=record)
    ((severity, about, what),) = problems(folder)
    assert (severity, about) == ("problem", "violence-b.trec")
    assert message in what


@pytest.mark.parametrize(
    ("run", "severity", "message"),
    [
        ({**RUN, "c0": 0.5}, "problem", "1 clips that are no test clips; the first is 'c0'"),
        (dict(list(RUN.items())[1:]), "warning", "1 of 16 test clips are missing; the first is 'c4'"),
        (dict.fromkeys(RUN, 1.0), "warning", "100% of the clips tie with another"),
    ],
)
def test_coverage_and_ties_are_told(runs, run, severity, message):
    folder, add = runs
    add("b", trec_lines(run, "b"))
    ((found, _, what),) = problems(folder)
    assert found == severity
    assert message in what


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("violence Q0 c4 1 0.5 b\nviolence Q0 c4 2 0.4 b\n", "clip 'c4' of topic violence is there twice"),
        ("violence Q0 c4 1 nan b\n", "score 'nan' is not a finite number"),
        ("other Q0 c4 1 0.5 b\n", "its topics are other; expected violence alone"),
    ],
)
def test_a_run_that_can_not_be_read_is_a_problem(runs, text, message):
    folder, add = runs
    add("b", text)
    ((severity, _, what),) = problems(folder)
    assert severity == "problem"
    assert message in what
    assert [(run.coverage, run.ties) for run in check_runs(folder, CLIPS).runs] == [(1.0, 0.0), (None, None)]


def test_a_movie_in_dev_and_test_is_a_problem(runs):
    folder, _ = runs
    leak = (*CLIPS, Annotated("new", "m5", "dev", {}, None))
    assert problems(folder, leak) == [("problem", "split", "movie 'm5' has clips in dev and in test")]


def test_a_folder_without_runs_or_a_truth_without_split_can_not_be_checked(tmp_path, runs):
    with pytest.raises(TaskError, match="no such folder of runs"):
        check_runs(tmp_path / "nowhere", CLIPS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="no run here"):
        check_runs(tmp_path / "empty", CLIPS)
    with pytest.raises(TaskError, match="no clip of the truth has the split test"):
        check_runs(runs[0], CLIPS[:4])
