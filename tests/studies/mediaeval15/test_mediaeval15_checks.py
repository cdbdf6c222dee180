"""A folder of runs is held to the rules of the task, and every breach is said."""

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
    return [(one["severity"], one["about"]) for one in check_runs(folder, clips).document["findings"]]


def test_a_valid_folder_has_no_findings(runs):
    folder, _ = runs
    checked = check_runs(folder, CLIPS)
    assert (checked.code, checked.document["findings"]) == (0, [])
    (run,) = checked.document["runs"]
    assert list(run.values()) == ["violence", "a", False, 1.0, 0.0]


def test_five_runs_are_allowed_and_six_are_not(runs):
    folder, add = runs
    for name in "bcde":
        add(name)
    assert problems(folder) == []
    add("f")
    assert problems(folder) == [("problem", "violence")]


def test_one_run_of_each_subtask_must_do_without_external_data(runs):
    folder, add = runs
    rows = "".join(f"{clip},neutral,calm\n" for clip in RUN)
    add("x", f"clip,valence,arousal\n{rows}", '{"external_data": true}', "affect", ".csv")
    assert problems(folder) == [("problem", "affect")]


@pytest.mark.parametrize(
    "record",
    [
        None,
        "{}",
        '{"external_data": "no"}',
        "nonsense",
        '{"external_data": false, "dev_movies": ["m0", "m2"]}',
        '{"external_data": false, "pretrained": true}',
        '{"external_data": false, "pretrained": null}',
    ],
)
def test_what_is_wrong_with_a_record_is_a_problem(runs, record):
    folder, add = runs
    add("b", record=record)
    assert problems(folder) == [("problem", "violence-b.trec")]


@pytest.mark.parametrize(
    ("text", "severity", "measured"),
    [
        (trec_lines({**RUN, "c0": 0.5}, "b"), "problem", (1.0, 0.0)),
        (trec_lines(dict(list(RUN.items())[1:]), "b"), "warning", (15 / 16, 0.0)),
        (trec_lines(dict.fromkeys(RUN, 1.0), "b"), "warning", (1.0, 1.0)),
        ("violence Q0 c4 1 0.5 b\nviolence Q0 c4 2 0.4 b\n", "problem", (None, None)),
        ("violence Q0 c4 1 nan b\n", "problem", (None, None)),
        ("other Q0 c4 1 0.5 b\n", "problem", (None, None)),
    ],
)
def test_strange_and_missing_clips_ties_and_what_can_not_be_read_are_told(runs, text, severity, measured):
    folder, add = runs
    add("b", text)
    assert problems(folder) == [(severity, "violence-b.trec")]
    runs = check_runs(folder, CLIPS).document["runs"]
    assert [(run["coverage"], run["ties"]) for run in runs] == [(1.0, 0.0), measured]


def test_a_movie_in_dev_and_test_is_a_problem(runs):
    folder, _ = runs
    leak = (*CLIPS, Annotated("new", "m5", "dev", {}, None))
    assert problems(folder, leak) == [("problem", "split")]


def test_a_folder_without_runs_or_a_truth_without_split_can_not_be_checked(tmp_path, runs):
    with pytest.raises(TaskError, match="nowhere"):
        check_runs(tmp_path / "nowhere", CLIPS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="empty"):
        check_runs(tmp_path / "empty", CLIPS)
    with pytest.raises(TaskError, match="split"):
        check_runs(runs[0], CLIPS[:4])
