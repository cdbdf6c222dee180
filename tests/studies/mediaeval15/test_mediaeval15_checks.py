"""A folder of runs is held to the rules of the task, and every breach is said."""

import pytest

from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15 import Annotated, check_runs
from obygaze_studies.mediaeval15.annotations import leaking_movies
from obygaze_studies.mediaeval15.run_files import trec_lines

# Four dev and sixteen test clips, two of each movie; every other one is violent.
TRUTH = tuple(
    Annotated(f"c{row}", f"m{row // 2}", "dev" if row < 4 else "test", {}, row % 2 == 0) for row in range(20)
)
SCORES_OF_TEST_CLIPS = {
    clip.clip_id: 1.0 / (row + 1) for row, clip in enumerate(TRUTH) if clip.split == "test"
}


@pytest.fixture
def folder_and_add(tmp_path):
    """A folder with the valid violence run `a`, and a function that adds a run to it."""

    def add(name="a", text=None, record='{"external_data": false}', subtask="violence", suffix=".trec"):
        path = tmp_path / f"{subtask}-{name}{suffix}"
        path.write_text(trec_lines(SCORES_OF_TEST_CLIPS, name) if text is None else text, encoding="utf-8")
        if record is not None:
            path.with_name(f"{path.name}.json").write_text(record, encoding="utf-8")

    add()
    return tmp_path, add


def findings_of(folder, clips=TRUTH):
    """Check the runs of a folder; list severity and subject of what is found."""
    return [(one["severity"], one["about"]) for one in check_runs(folder, clips).document["findings"]]


def test_a_valid_folder_has_no_findings(folder_and_add):
    folder, _ = folder_and_add
    checked = check_runs(folder, TRUTH)
    assert (checked.code, checked.document["findings"]) == (0, [])
    (run,) = checked.document["runs"]
    assert (run["coverage"], run["ties"]) == (1.0, 0.0)


def test_five_runs_are_allowed_and_six_are_not(folder_and_add):
    """The task allows five runs for a subtask. The folder has the run "a" already."""
    folder, add = folder_and_add
    for name in "bcde":
        add(name)
    assert findings_of(folder) == []
    add("f")
    assert findings_of(folder) == [("problem", "violence")]


def test_one_run_of_each_subtask_must_do_without_external_data(folder_and_add):
    """The only run of the subtask "affect" used external data."""
    folder, add = folder_and_add
    rows = "".join(f"{clip},neutral,calm\n" for clip in SCORES_OF_TEST_CLIPS)
    add(
        "x",
        text=f"clip,valence,arousal\n{rows}",
        record='{"external_data": true}',
        subtask="affect",
        suffix=".csv",
    )

    assert findings_of(folder) == [("problem", "affect")]


@pytest.mark.parametrize(
    "record",
    [
        None,
        "{}",
        '{"external_data": "no"}',
        "nonsense",
        '{"external_data": false, "dev_movies": ["m0", "m2"]}',
        '{"external_data": false, "dev_movies": ["m0", "M2"]}',
        '{"external_data": false, "pretrained": true}',
        '{"external_data": false, "pretrained": null}',
    ],
    ids=[
        "no record",
        "a field is missing",
        "a word for a truth value",
        "not JSON",
        "a test movie trained on",
        "a test movie trained on in another spelling",
        "a truth value for a name",
        "nothing for a name",
    ],
)
def test_a_record_that_is_missing_or_wrong_is_a_problem(folder_and_add, record):
    folder, add = folder_and_add
    add("b", record=record)
    assert findings_of(folder) == [("problem", "violence-b.trec")]


WITH_A_DEV_CLIP = {**SCORES_OF_TEST_CLIPS, "c0": 0.5}
WITHOUT_THE_FIRST_CLIP = dict(list(SCORES_OF_TEST_CLIPS.items())[1:])
OF_EQUAL_SCORES = dict.fromkeys(SCORES_OF_TEST_CLIPS, 1.0)


@pytest.mark.parametrize(
    ("text", "severity", "coverage", "ties"),
    [
        (trec_lines(WITH_A_DEV_CLIP, "b"), "problem", 1.0, 0.0),
        (trec_lines(WITHOUT_THE_FIRST_CLIP, "b"), "warning", 15 / 16, 0.0),
        (trec_lines(OF_EQUAL_SCORES, "b"), "warning", 1.0, 1.0),
    ],
    ids=["a clip outside the test set", "one of 16 test clips is missing", "equal scores"],
)
def test_a_run_has_the_share_of_test_clips_that_it_scores_and_that_of_ties(
    folder_and_add, text, severity, coverage, ties
):
    """The folder has a valid run `a`. A run `b` is added, which is found fault with.

    The coverage is the share of the 16 test clips that have a score, whatever else is in the run; ties are
    the share of scores that another clip has too.
    """
    folder, add = folder_and_add
    add("b", text)

    assert findings_of(folder) == [(severity, "violence-b.trec")]
    _valid_run, run = check_runs(folder, TRUTH).document["runs"]
    assert run["name"] == "b"
    assert run["coverage"] == coverage
    assert run["ties"] == ties


@pytest.mark.parametrize(
    "text",
    [
        "violence Q0 c4 1 0.5 b\nviolence Q0 c4 2 0.4 b\n",
        "violence Q0 c4 1 nan b\n",
        "other Q0 c4 1 0.5 b\n",
    ],
    ids=["a clip twice", "a score that is not finite", "another topic"],
)
def test_a_run_that_cannot_be_scored_is_a_problem_and_has_no_shares(folder_and_add, text):
    """The folder has a valid run `a`. A run `b` is added, whose lines are: topic, Q0, clip, rank, score, run.

    Its topic should be violence, and each clip once in it.
    """
    folder, add = folder_and_add
    add("b", text)

    assert findings_of(folder) == [("problem", "violence-b.trec")]
    _valid_run, run = check_runs(folder, TRUTH).document["runs"]
    assert run["name"] == "b"
    assert run["coverage"] is None
    assert run["ties"] is None


@pytest.mark.parametrize("movie", ["m5", "M5"])  # in dev; TRUTH has m5 in test
def test_a_movie_in_dev_and_test_is_a_problem_in_any_spelling(folder_and_add, movie):
    folder, _ = folder_and_add
    leak = (*TRUTH, Annotated("new", movie, "dev", {}, violent=None))
    assert findings_of(folder, leak) == [("problem", "split")]


def test_a_folder_without_runs_and_a_truth_without_test_clips_are_refused(tmp_path, folder_and_add):
    folder, _ = folder_and_add
    with pytest.raises(TaskError, match="nowhere"):
        check_runs(tmp_path / "nowhere", TRUTH)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="empty"):
        check_runs(tmp_path / "empty", TRUTH)
    dev_clips = TRUTH[:4]
    with pytest.raises(TaskError, match="split"):
        check_runs(folder, dev_clips)


@pytest.mark.parametrize("between", [(), ("La Citta",)])
def test_a_movie_in_dev_and_in_test_is_found_however_it_is_spelt(between):
    """A third spelling, which is one with either, is in dev too."""
    dev_movies = ("La Città", *between)
    dev_clips = [Annotated(f"dev{row}", movie, "dev", {}, False) for row, movie in enumerate(dev_movies)]
    test_clip = Annotated("test0", "Citta, La", "test", {}, False)

    assert leaking_movies([*dev_clips, test_clip]) == ("La Città",)
