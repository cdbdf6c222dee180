"""Figure 4 of 000: the merge is the highest of the projections; drawn of MObyGaze's real segments.

Two annotators marked segments of a film. Projected onto windows of 46 s, they are labels of an annotator for
each window; the merge has one label for each window.
"""

from dataclasses import replace

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import windows
from obygaze_studies.obygaze12 import paper
from obygaze_studies.obygaze12.figure4 import _spans_in_minutes

JUNO = "tt0467406"


@pytest.fixture(scope="module")
def two_films(segments):
    """Two annotators' free segments of Juno and Pulp Fiction, from MObyGaze."""
    return segments.with_clips(clip for clip in segments if clip.movie in {JUNO, "tt0110912"})


@pytest.fixture(scope="module")
def report(two_films):
    """Figure 4 of Juno, from minute 10 to 25: two annotators' segments, their projections and the merge."""
    return paper.figure4(two_films, windows(two_films, seconds=46), JUNO, span=(600, 1500))


def timelines_of(report):
    """Return the data of each timeline of Figure 4 by its name, with the start of a span as index."""
    return {name: spans.set_index("start_s") for name, spans in report.data.groupby("timeline")}


def test_each_annotator_has_segments_and_a_projection_and_there_is_one_merge(report):
    """Annotations are an annotator's segments, projections the labels that they give to windows of 46 s.

    The merge is of both annotators, and so of no annotator by name.
    """
    spans = report.data
    names = ["Annotation 1", "Annotation 2", "Projection 1", "Projection 2", "Merged"]
    assert list(spans["timeline"].unique()) == names

    n_annotators_of_timeline = spans.groupby("timeline")["annotator"].nunique()
    assert n_annotators_of_timeline.eq(1).all()
    assert set(spans.loc[spans["timeline"] == "Merged", "annotator"]) == {""}


def concepts_in(row):
    return set(filter(None, row["concepts"].split(";")))


def test_the_merge_has_the_highest_level_of_the_projections_and_its_concepts(report):
    """A projection has the level and concepts that one annotator's segments give to a window of 46 s.

    Where one projection is EN and the other HN, the merge is HN, and has the concepts of the latter. Where
    both have the same level, it has the concepts of both.
    """
    rank_of_level = {"EN": 0, "HN": 1, "NS": 2, "S": 3}
    timelines = timelines_of(report)
    for start, merged in timelines["Merged"].iterrows():
        projections = [timelines["Projection 1"].loc[start], timelines["Projection 2"].loc[start]]
        levels = [projection["level"] for projection in projections]
        concepts_at_level = set()
        for projection in projections:
            if projection["level"] == merged["level"]:
                concepts_at_level |= concepts_in(projection)

        assert merged["level"] == max(levels, key=rank_of_level.__getitem__)
        assert concepts_in(merged) == concepts_at_level


def test_the_last_row_of_the_table_counts_the_windows_of_each_level_in_the_merge(report):
    """From minute 10 to 25 there are 20 windows: 2 are EN, 7 HN, 7 NS and 4 S."""
    last_row = report.blocks[0].rows[-1]

    assert last_row == ("Merged", "20", "2", "7", "7", "4")


def test_a_film_without_annotations_is_refused_by_its_id(two_films):
    """The annotations are of Juno and Pulp Fiction."""
    with pytest.raises(ManifestError, match="'tt1'"):
        paper.figure4(two_films, windows(two_films, seconds=46), "tt1")


def test_a_span_in_which_the_film_has_nothing_is_refused_by_its_times(two_films):
    """The span begins after 25 hours, and Juno is over long before."""
    with pytest.raises(ManifestError, match="90000 s and 90001 s"):
        paper.figure4(two_films, windows(two_films, seconds=46), JUNO, span=(90_000, 90_001))


def test_where_an_annotator_marked_nothing_the_merge_has_the_levels_of_the_other_annotator(two_films):
    """Annotators mark EN segments too, so a window without any was not looked at, and has no level.

    Annotator 2 stopped after ten minutes. Of more than 100 windows after that, Projection 2 has no level, and
    the merge has that of Projection 1.
    """
    segments = two_films.with_clips(
        clip for clip in two_films if clip.annotator == "annotator1" or clip.end_s <= 600
    )

    timelines = timelines_of(paper.figure4(segments, windows(two_films, seconds=46), JUNO))

    starts_of_windows = timelines["Merged"].index
    late = starts_of_windows[starts_of_windows > 600]
    assert len(late) > 100
    levels_of_merge = timelines["Merged"].loc[late, "level"]
    levels_of_annotator_1 = timelines["Projection 1"].loc[late, "level"]
    levels_of_annotator_2 = timelines["Projection 2"].loc[late, "level"]
    assert levels_of_annotator_2.isna().all()
    assert (levels_of_merge == levels_of_annotator_1).all()


def test_timelines_are_drawn_in_minutes(two_films):
    """A span from 120 to 180 s is drawn from minute 2 to 3."""
    (first, *_) = two_films
    one_span = two_films.with_clips([replace(first, start_s=120.0, end_s=180.0, level="S")])
    drawn = _spans_in_minutes({"Merged": tuple(one_span)})
    assert drawn == {"Merged": [(2.0, 3.0, "S")]}
