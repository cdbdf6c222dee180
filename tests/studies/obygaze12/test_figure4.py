"""Figure 4 of 000: the merge is the highest of the projections; drawn of MObyGaze's real segments."""

from dataclasses import replace

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import windows
from obygaze_studies.obygaze12 import paper
from obygaze_studies.obygaze12.figure4 import _spans_in_minutes

JUNO = "tt0467406"


@pytest.fixture(scope="module")
def two_films(segments):
    return segments.with_clips(clip for clip in segments if clip.movie in {JUNO, "tt0110912"})


@pytest.fixture(scope="module")
def report(two_films):
    return paper.figure4(two_films, windows(two_films, seconds=46), JUNO, span=(600, 1500))


def test_each_annotator_has_segments_and_a_projection_and_there_is_one_merge(report):
    rows = report.data
    names = ["Annotation 1", "Annotation 2", "Projection 1", "Projection 2", "Merged"]
    assert list(rows["timeline"].unique()) == names
    assert rows.groupby("timeline")["annotator"].nunique().eq(1).all()
    assert set(rows.loc[rows["timeline"] == "Merged", "annotator"]) == {""}


def concepts_in(row):
    return set(filter(None, row["concepts"].split(";")))


def test_the_merge_has_the_highest_level_of_the_projections_and_the_concepts_given_at_it(report):
    """Example of the paper: where projections are EN and HN, the merge is HN.

    The 20 windows are 2 of EN, 7 of HN, 7 of NS and 4 of S.
    """
    rank = {"EN": 0, "HN": 1, "NS": 2, "S": 3}
    timelines = {name: part.set_index("start_s") for name, part in report.data.groupby("timeline")}
    for start, merged in timelines["Merged"].iterrows():
        projections = [timelines["Projection 1"].loc[start], timelines["Projection 2"].loc[start]]
        assert merged["level"] == max((row["level"] for row in projections), key=rank.__getitem__)
        concepts = [concepts_in(row) for row in projections if row["level"] == merged["level"]]
        assert concepts_in(merged) == set().union(*concepts)
    *_, of_merge = report.blocks[0].rows
    assert of_merge == ("Merged", "20", "2", "7", "7", "4")


def test_a_film_that_is_not_there_and_an_empty_span_are_named(two_films):
    clips = windows(two_films, seconds=46)
    with pytest.raises(ManifestError, match="'tt1'"):
        paper.figure4(two_films, clips, "tt1")
    with pytest.raises(ManifestError, match="90000 s and 90001 s"):
        paper.figure4(two_films, clips, JUNO, span=(90_000, 90_001))


def test_clips_that_an_annotator_did_not_answer_for_have_no_level(two_films):
    """Annotator 2, who marks EN too, stopped after ten minutes: annotator 1 alone labels later windows."""
    segments = two_films.with_clips(
        clip for clip in two_films if clip.annotator == "annotator1" or clip.end_s <= 600
    )
    report = paper.figure4(segments, windows(two_films, seconds=46), JUNO)
    timelines = {name: part.set_index("start_s") for name, part in report.data.groupby("timeline")}
    late = timelines["Merged"].index[timelines["Merged"].index > 600]
    assert len(late) > 100
    assert timelines["Projection 2"].loc[late, "level"].isna().all()
    assert (timelines["Merged"].loc[late, "level"] == timelines["Projection 1"].loc[late, "level"]).all()


def test_timelines_are_drawn_in_minutes(two_films):
    """A span from 120 to 180 s is drawn from minute 2 to 3."""
    (first, *_) = two_films
    one_span = two_films.with_clips([replace(first, start_s=120.0, end_s=180.0, level="S")])
    drawn = _spans_in_minutes({"Merged": tuple(one_span)})
    assert drawn == {"Merged": [(2.0, 3.0, "S")]}
