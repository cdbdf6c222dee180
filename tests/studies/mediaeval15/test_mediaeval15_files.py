"""Tables and run files are read and written strictly: what is wrong is named with its line."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from obygaze_features.errors import ObygazeError
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15 import read_annotations
from obygaze_studies.mediaeval15.annotations import make_labels, scored_clips
from obygaze_studies.mediaeval15.run_files import RunFile, affect_lines, read_affect, read_trec, trec_lines
from tests.files import written

TABLE_OF_SCORES_OF_CLIP_A = "clip,movie,valence,arousal\na,m,-0.3,0.15\nb,m,,\nc,n,,\nd,n,,\n"
"""Clip a has scores on both axes, valence and arousal; the clips b, c and d have none."""


class Votes(NamedTuple):
    """What three judges say of a clip's place on an axis, in their order: 1 is yes, 0 no."""

    clip: str
    axis: str
    above_low_pivot: Sequence[int]
    above_high_pivot: Sequence[int]


def write_judgements(folder, *votes, more=""):
    """Write what judges say of clips; `more` are further lines."""
    lines = ["clip,axis,pivot,above"]
    for of_clip in votes:
        lines += [f"{of_clip.clip},{of_clip.axis},low,{answer}" for answer in of_clip.above_low_pivot]
        lines += [f"{of_clip.clip},{of_clip.axis},high,{answer}" for answer in of_clip.above_high_pivot]
    return written(folder / "pivots.csv", "\n".join([*lines, ""]) + more)


def classes_by_clip(rows):
    """Return the classes of valence and arousal in the rows of labelled clips: clip -> both classes."""
    return {row["clip"]: (row["valence"], row["arousal"]) for row in rows}


def test_a_clip_has_the_classes_of_its_scores_or_of_its_judgements(tmp_path):
    """Clip a has scores: valence -.3 is below -.15, so negative; arousal .15 is not above .15, so neutral.

    Clip b has none, but three judges said whether it is above a low pivot, a clip at the border of the lowest
    class, and above a high pivot, at that of the highest. The majority counts: of b's valence two of three
    say that it is above the high pivot, so positive; of its arousal two say above the low pivot, and only one
    above the high one, so neutral. The clips c and d have neither scores nor judges, and so no class.
    """
    scores = written(tmp_path / "scores.csv", TABLE_OF_SCORES_OF_CLIP_A)
    judgements = write_judgements(
        tmp_path,
        Votes("b", "valence", above_low_pivot=[1, 1, 1], above_high_pivot=[1, 0, 1]),
        Votes("b", "arousal", above_low_pivot=[1, 1, 0], above_high_pivot=[0, 1, 0]),
    )

    rows, rejected = make_labels(scores, judgements)

    assert classes_by_clip(rows) == {
        "a": ("negative", "neutral"),
        "b": ("positive", "neutral"),
        "c": ("", ""),
        "d": ("", ""),
    }
    assert rejected == {}


def test_a_clip_of_contradictory_judgements_has_no_row_and_its_axis_is_returned(tmp_path):
    """Most judges say that the valence of clip c is above the high pivot, and not above the low one.

    (A pivot is a clip at the border of the lowest class, or of the highest.) No class fits that, so c is no
    row. The other clips of the table of scores are: a has scores, and b and d neither scores nor judges, and
    so no class.
    """
    scores = written(tmp_path / "scores.csv", TABLE_OF_SCORES_OF_CLIP_A)
    judgements = write_judgements(
        tmp_path,
        Votes("c", "valence", above_low_pivot=[0, 0, 1], above_high_pivot=[1, 1, 0]),
        Votes("c", "arousal", above_low_pivot=[0, 0, 0], above_high_pivot=[0, 0, 0]),
    )

    rows, rejected = make_labels(scores, judgements)

    assert classes_by_clip(rows) == {"a": ("negative", "neutral"), "b": ("", ""), "d": ("", "")}
    assert rejected == {"c": "valence"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,m,-3,0.15\n", "clip 'a'"),
        ("a,m,sad,0.15\n", "clip 'a'"),
        ("a,m,-0.3,0.15\na,m,,\n", "clip a"),
    ],
    ids=["a score out of range", "a word for a score", "a clip twice"],
)
def test_unusable_scores_are_refused_by_clip(tmp_path, rows, message):
    """The table has scores of the valence and arousal of clips, from -1 to 1, or empty cells."""
    scores = written(tmp_path / "scores.csv", f"clip,movie,valence,arousal\n{rows}")

    with pytest.raises(ObygazeError, match=message):
        make_labels(scores, pivots=None)


@pytest.mark.parametrize(
    ("clip", "votes_on_low_pivot"),
    [("b", [1, 1]), ("a", [1, 1, 1]), ("z", [1, 1, 1])],
    ids=[
        "only two judges of clip b",
        "clip a, which has scores already",
        "clip z, which is not in the table of scores",
    ],
)
def test_judgements_that_give_a_clip_no_class_are_refused_with_its_id(tmp_path, clip, votes_on_low_pivot):
    """Clips without scores get their class of three judges.

    These say whether the valence of a clip is above a low pivot, a clip at the border of the lowest class,
    and above a high one. In the table of scores, a has some, and b, c and d have none.
    """
    scores = written(tmp_path / "scores.csv", TABLE_OF_SCORES_OF_CLIP_A)
    votes = Votes(clip, "valence", above_low_pivot=votes_on_low_pivot, above_high_pivot=[0, 0, 0])
    judgements = write_judgements(tmp_path, votes)

    with pytest.raises(ObygazeError, match=f"clip '{clip}'"):
        make_labels(scores, judgements)


def test_judgements_of_an_unknown_axis_are_refused_by_the_column(tmp_path):
    """The axes are valence and arousal, and a judgement is of the mood of clip b."""
    scores = written(tmp_path / "scores.csv", TABLE_OF_SCORES_OF_CLIP_A)
    judgements = write_judgements(tmp_path, more="b,mood,low,1\n")

    with pytest.raises(ObygazeError, match="column axis"):
        make_labels(scores, judgements)


def test_a_truth_may_hold_scores_or_classes(tmp_path):
    """A score becomes a class: below -0.15 is negative, above 0.15 positive, and between is neutral."""
    path = written(
        tmp_path / "clips.csv",
        "clip,split,valence,arousal,violence\na,dev,0.2,calm,1\nb,test,-0.15,,\nc,test,neutral,0.1500001,0\n",
    )
    a, b, c = read_annotations(path)

    assert a.classes == {"valence": "positive", "arousal": "calm"}
    assert b.classes == {"valence": "neutral"}
    assert c.classes == {"valence": "neutral", "arousal": "active"}
    assert a.violent is True
    assert b.violent is None
    assert c.violent is False


def test_runs_are_scored_on_test_clips_or_on_all_clips_where_none_is_a_test_clip(tmp_path):
    """Of two labelled clips, one is in dev and one in test. Without the latter, the dev clip is scored."""
    path = written(tmp_path / "clips.csv", "clip,split,violence\na,dev,1\nb,test,0\n")
    dev_clip, test_clip = read_annotations(path)
    assert scored_clips((dev_clip, test_clip)) == (test_clip,)
    assert scored_clips((dev_clip,)) == (dev_clip,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clip,violence\na,2\n", "clip 'a': violence"),
        ("clip,violence\na,1\na,1\n", "clip a"),
        ("clip,split,violence\na,train,1\n", "clip 'a': split"),
        ("clip,valence\na,nan\n", "clip 'a': valence"),
        ("name,violence\na,1\n", "column clip"),
        ("clip,movie\na,m\n", "violence"),
    ],
    ids=[
        "a label of violence that is not 0 or 1",
        "a clip twice",
        "a split that is not dev or test",
        "a score that is no number",
        "no column of clips",
        "no column of labels",
    ],
)
def test_a_table_of_labels_that_cannot_be_read_is_refused_with_its_name_and_the_fault(
    tmp_path, text, message
):
    """The table has a clip a row, with its split (dev or test) and its labels of violence or of an axis."""
    path = written(tmp_path / "clips.csv", text)

    with pytest.raises(ObygazeError, match=rf"clips\.csv[\s\S]*{message}"):
        read_annotations(path)


def test_a_run_of_violence_is_read_back_as_it_was_written(tmp_path):
    """The clips a and b have the same score, and b comes first, as trec_eval ranks it; c's is below 0.

    A line has six fields: topic, Q0, which is always there, clip, rank, score and the name of the run.
    """
    score_of_clip = {"b": 0.1, "a": 0.1, "c": -1e-7}

    text = trec_lines(score_of_clip, "mine")

    assert text.splitlines()[0] == "violence Q0 b 1 0.1 mine"
    assert read_trec(written(tmp_path / "run.trec", text)) == {"violence": score_of_clip}


def test_a_run_of_affect_is_read_back_as_it_was_written(tmp_path):
    """It has the classes of valence and of arousal that are called for two clips."""
    calls = {"valence": {"a": "negative", "b": "neutral"}, "arousal": {"a": "active", "b": "calm"}}

    text = affect_lines(calls)

    assert read_affect(written(tmp_path / "run.csv", text)) == calls


@pytest.mark.parametrize("name", ["", "two words", "../up", ".hidden"])
def test_a_run_whose_name_does_not_fit_into_its_file_name_is_refused(tmp_path, name):
    """The name of a run is a part of its file's name, and a field between blanks in its lines."""
    with pytest.raises(TaskError, match=re.escape(repr(name))):
        RunFile(tmp_path, "violence", name)


def test_a_run_of_a_clip_with_a_blank_in_its_id_is_not_written():
    """Fields of a run's lines are divided by blanks, so that the clip "a b" would be two of them."""
    with pytest.raises(TaskError, match="'a b'"):
        trec_lines({"a b": 1.0}, "mine")


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_trec, "v Q0 a 1 0.5 x\nv Q0 a 2 0.4 x\n", "line 2"),
        (read_trec, "v Q0 a 1 nan x\n", "line 1"),
        (read_trec, "v Q0 a 1 0.5\n", "line 1"),
        (read_trec, "\n", ""),
        (read_affect, "clip,valence,arousal\na,calm,calm\n", "column valence"),
        (read_affect, "clip,valence,arousal\na,neutral,calm\na,neutral,calm\n", "clip a"),
    ],
    ids=[
        "violence: a clip twice",
        "violence: a score that is no number",
        "violence: five fields",
        "violence: no line",
        "affect: a class of the other axis",
        "affect: a clip twice",
    ],
)
def test_a_run_that_can_not_be_read_is_named(tmp_path, read, text, message):
    """A line of a run of violence has six fields: topic, Q0, clip, rank, score and the name of the run.

    A run of affect is a table of classes; "calm" is one of arousal and none of valence.
    """
    path = written(tmp_path / "run", text)

    with pytest.raises(ObygazeError, match=rf"run[\s\S]*{message}"):
        read(path)
