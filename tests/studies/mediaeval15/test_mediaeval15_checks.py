"""A folder of runs is held to the rules of the task, and every breach is said."""

import pytest

from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15 import Annotated, check_runs
from obygaze_studies.mediaeval15.annotations import leaking_movies
from obygaze_studies.mediaeval15.run_files import trec_lines


def annotated(clip_id, *, movie, split, violent=False):
    """Make a clip of the task; its classes of valence and arousal are not known."""
    return Annotated(clip_id, movie, split, classes={}, violent=violent)


TRUTH = tuple(
    annotated(f"c{row}", movie=f"m{row // 2}", split="dev" if row < 4 else "test", violent=row % 2 == 0)
    for row in range(20)
)
"""Four dev and sixteen test clips, two of each movie; every other one is violent."""

SCORES_OF_TEST_CLIPS = {
    clip.clip_id: 1.0 / (row + 1) for row, clip in enumerate(TRUTH) if clip.split == "test"
}
"""A different score of each test clip."""


class FolderOfRuns:
    """A folder to which a test adds runs: what a team hands in for a subtask, each with a record."""

    def __init__(self, folder):
        self.folder = folder

    def add(self, name, text=None, record='{"external_data": false}', subtask="violence", suffix=".trec"):
        """Write the file of a run, and its record: a JSON object that says what it was trained on.

        Without `text` the run is a valid one, of all test clips. With `record` None it has no record.
        """
        path = self.folder / f"{subtask}-{name}{suffix}"
        path.write_text(trec_lines(SCORES_OF_TEST_CLIPS, name) if text is None else text, encoding="utf-8")
        if record is not None:
            path.with_name(f"{path.name}.json").write_text(record, encoding="utf-8")


@pytest.fixture
def runs(tmp_path):
    """A folder with the valid violence run `a`."""
    runs = FolderOfRuns(tmp_path)
    runs.add("a")
    return runs


def findings_of(folder, clips=TRUTH):
    """Check the runs of a folder; list severity and subject of what is found."""
    findings = check_runs(folder, clips).document["findings"]
    return [(finding["severity"], finding["about"]) for finding in findings]


def test_nothing_is_found_in_a_folder_with_a_valid_run(runs):
    """The run scores all 16 test clips (coverage 1), with 16 different scores (no ties)."""
    checked = check_runs(runs.folder, TRUTH)

    exit_code_of_command = checked.code
    assert exit_code_of_command == 0
    assert checked.document["findings"] == []
    (run,) = checked.document["runs"]
    assert run["coverage"] == 1.0
    assert run["ties"] == 0.0


def test_five_runs_are_allowed_and_six_are_not(runs):
    """The task allows five runs for a subtask. The folder has the run "a" already."""
    for name in "bcde":
        runs.add(name)
    assert findings_of(runs.folder) == []
    runs.add("f")
    assert findings_of(runs.folder) == [("problem", "violence")]


def test_one_run_of_each_subtask_must_do_without_external_data(runs):
    """The only run of the subtask "affect" used external data."""
    rows = "".join(f"{clip},neutral,calm\n" for clip in SCORES_OF_TEST_CLIPS)
    runs.add(
        "x",
        text=f"clip,valence,arousal\n{rows}",
        record='{"external_data": true}',
        subtask="affect",
        suffix=".csv",
    )

    assert findings_of(runs.folder) == [("problem", "affect")]


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
def test_a_run_whose_record_is_missing_or_wrong_is_a_problem(runs, record):
    """A record is a JSON object that says whether a run used external data, and on what it was trained.

    The folder has a valid run `a`, and a run `b` with a bad record. Test movies are m2 to m9; `pretrained` is
    the name of a network.
    """
    runs.add("b", record=record)

    assert findings_of(runs.folder) == [("problem", "violence-b.trec")]


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
    runs, text, severity, coverage, ties
):
    """The folder has a valid run `a`. A run `b` is added, which is found fault with.

    The coverage is the share of the 16 test clips that have a score, whatever else is in the run; ties are
    the share of scores that another clip has too.
    """
    runs.add("b", text)

    assert findings_of(runs.folder) == [(severity, "violence-b.trec")]
    _valid_run, run = check_runs(runs.folder, TRUTH).document["runs"]
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
def test_a_run_that_cannot_be_scored_is_a_problem_and_has_neither_coverage_nor_ties(runs, text):
    """The folder has a valid run `a`. A run `b` is added, whose lines are: topic, Q0, clip, rank, score, run.

    Its topic should be violence, and each clip once in it. As `b` can't be read, it is not known which share
    of the test clips it scores, nor which share of its scores are tied.
    """
    runs.add("b", text)

    assert findings_of(runs.folder) == [("problem", "violence-b.trec")]
    _valid_run, run = check_runs(runs.folder, TRUTH).document["runs"]
    assert run["name"] == "b"
    assert run["coverage"] is None
    assert run["ties"] is None


@pytest.mark.parametrize("spelling", ["m5", "M5"])
def test_a_movie_with_clips_in_dev_and_in_test_is_a_problem_of_the_split(runs, spelling):
    """In the truth, all clips of movie m5 are in test. A further clip of it is in dev.

    A model would be tested on a film that it was trained on.
    """
    leaking_clip = annotated("new", movie=spelling, split="dev")

    assert findings_of(runs.folder, (*TRUTH, leaking_clip)) == [("problem", "split")]


def test_a_folder_that_does_not_exist_or_has_no_run_is_refused_by_its_name(tmp_path):
    with pytest.raises(TaskError, match="nowhere"):
        check_runs(tmp_path / "nowhere", TRUTH)

    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="empty"):
        check_runs(tmp_path / "empty", TRUTH)


def test_runs_cannot_be_checked_by_a_truth_without_test_clips(runs):
    """The truth has four clips, all in dev; the refusal names the column split."""
    dev_clips = [clip for clip in TRUTH if clip.split == "dev"]
    assert len(dev_clips) == 4

    with pytest.raises(TaskError, match="split"):
        check_runs(runs.folder, dev_clips)


@pytest.mark.parametrize(
    "spellings_in_dev",
    [("La Città",), ("La Città", "La Citta")],
    ids=["one spelling in dev", "two spellings in dev"],
)
def test_a_movie_with_clips_in_dev_and_in_test_is_found_in_any_spelling(spellings_in_dev):
    """Its test clip is of "Citta, La": spellings with and without an accent, or the article, are one movie.

    It is listed by the first spelling.
    """
    dev_clips = [
        annotated(f"dev{row}", movie=spelling, split="dev") for row, spelling in enumerate(spellings_in_dev)
    ]
    test_clip = annotated("test0", movie="Citta, La", split="test")

    assert leaking_movies([*dev_clips, test_clip]) == ("La Città",)
