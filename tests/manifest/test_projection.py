"""Free annotations projected onto clips: the paper's rules in small, and what holds for any."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, merge, project, windows

OBYGAZE12 = builtin_codebook("obygaze12")


def annotate(number, start, end, level, *concepts, by="ann", movie="m"):
    return Clip(f"mark-{number}", movie, "", start, end, level, concepts, by)


def manifest(*clips):
    return Manifest(clips, Path())


TEN = manifest(Clip("c1", "m", "", 0, 10), Clip("c2", "m", "", 10, 20), Clip("c3", "m", "", 20, 30))


def labels(projection):
    return [(clip.level, clip.concepts) for clip in projection.manifest]


def test_an_annotation_counts_from_a_fifth_of_the_clip_on():
    """An annotation counts for a clip if it covers at least 20% of it.

    From 8 to 11.9 s it covers 2.0 of 10 s of c1 (20%) and 1.9 of c2 (19%). Clips without annotation are EN.
    """
    marks = manifest(annotate(1, 8.0, 11.9, "S", "Body"))  # 20 % of c1, 19 % of c2
    assert labels(project(marks, TEN)) == [("S", ("Body",)), ("EN", ()), ("EN", ())]


def test_a_share_of_exactly_a_fifth_counts_despite_rounding():
    """From 126.2 to 128.2 s is 2 s, 20% of the clip; as floats the difference is a little less."""
    clips = manifest(Clip("c", "m", "", 120, 130))
    assert 128.2 - 126.2 < 2.0
    assert labels(project(manifest(annotate(1, 126.2, 128.2, "HN")), clips))[0][0] == "HN"


def test_the_highest_level_wins_with_its_own_concepts():
    """A clip gets the highest level of its annotations, and the concepts of those annotations alone.

    Look was given at HN, so it does not count for S.
    """
    marks = manifest(
        annotate(1, 0, 5, "HN", "Look"),
        annotate(2, 2, 6, "S", "Body"),
        annotate(3, 5, 10, "S", "Posture", by="other"),
    )
    assert labels(project(marks, TEN))[0] == ("S", ("Body", "Posture"))


def test_a_movie_that_nobody_annotated_gets_no_level_and_is_named():
    """Without any annotation of the film, nobody may have watched it.

    EN would claim that there is nothing.
    """
    result = project(manifest(annotate(1, 0, 10, "S", movie="elsewhere")), TEN)
    assert {clip.level for clip in result.manifest} == {None}
    assert result.unwatched == ("m",)
    assert result.elsewhere == ("elsewhere",)


@pytest.mark.parametrize(("written", "movie"), [("54215", "tt0054215"), ("M", "m"), ("f/m.mp4", "m")])
def test_a_movie_may_be_spelled_differently_in_annotations(written, movie):
    """An IMDb number, other capitals and a path of the video mean the same film."""
    result = project(manifest(annotate(1, 0, 10, "S", movie=written)), manifest(Clip("c1", movie, "", 0, 10)))
    assert (labels(result), result.elsewhere) == ([("S", ())], ())


@pytest.mark.parametrize(
    ("marks", "clips", "threshold", "message"),
    [
        (manifest(annotate(1, 0, 1, "S")), manifest(Clip("whole", "m")), 0.2, "'whole'"),
        (manifest(Clip("mute", "m", "", 0, 1)), TEN, 0.2, "'mute'"),
        (manifest(annotate(1, 0, 1, "S")), TEN, 1.5, None),
    ],
)
def test_impossible_projections_are_refused(marks, clips, threshold, message):
    """A clip without times, an annotation without a level, and a threshold above 1 can't be used."""
    with pytest.raises(ManifestError, match=message):
        project(marks, clips, threshold)


@pytest.mark.long
def test_windows_cover_the_film_and_the_last_ends_with_it():
    """A film of 61.5 s in windows of 20 s has a fourth window of 1.5 s.

    Of 10,001 windows the numbers have five digits, so that names sort in the order of time.
    """
    cut = windows(manifest(annotate(1, 0, 25, "EN"), annotate(2, 25, 61.5, "S", by="other")), 20)
    assert [(clip.clip_id, clip.start_s, clip.end_s) for clip in cut] == [
        ("m-0001", 0, 20),
        ("m-0002", 20, 40),
        ("m-0003", 40, 60),
        ("m-0004", 60, 61.5),
    ]
    assert len(windows(manifest(annotate(1, 0, 60, "EN")), 20)) == 3
    long = [clip.clip_id for clip in windows(manifest(annotate(1, 0, 10_001, "EN")), 1)]

    assert (long[0], sorted(long)) == ("m-00001", long)
    with pytest.raises(ManifestError, match="positive"):
        windows(TEN, 0)


some_labels = st.builds(
    lambda level, concepts: annotate(0, 0, 1, level, *OBYGAZE12.in_order(concepts), by=""),
    st.sampled_from(OBYGAZE12.level_names),
    st.sets(st.sampled_from(OBYGAZE12.concept_names), max_size=3),
)


@given(st.lists(some_labels, max_size=6), st.randoms(use_true_random=False))
def test_merging_ignores_order_repeats_and_grouping(given_labels, random):
    """Whatever the order, the repetition and the grouping of labels, the same level and concepts come out."""
    clip = annotate(0, 0, 1, None, by="")
    merged = merge(clip, given_labels, OBYGAZE12)
    shuffled = random.sample(given_labels, len(given_labels))
    assert merge(clip, shuffled, OBYGAZE12) == merged
    assert merge(clip, given_labels + given_labels, OBYGAZE12) == merged
    assert merge(clip, [merged], OBYGAZE12) == merged
    if cut := len(given_labels) // 2:
        halves = [merge(clip, part, OBYGAZE12) for part in (given_labels[:cut], given_labels[cut:])]
        assert merge(clip, halves, OBYGAZE12) == merged


@st.composite
def annotations(draw):
    marks = []
    for number in range(draw(st.integers(1, 8))):
        start = draw(st.floats(0, 29))
        end = start + draw(st.floats(0.01, 20))
        by = draw(st.sampled_from(["one", "two"]))
        label = draw(some_labels)
        concepts = label.concepts if label.level != "EN" else ()
        marks.append(annotate(number, start, end, label.level, *concepts, by=by))
    return manifest(*marks)


thresholds = st.floats(0, 1)


@given(annotations(), thresholds, thresholds)
def test_a_level_never_rises_as_the_threshold_grows(marks, lower, higher):
    """A higher threshold lets fewer annotations count, and a clip has the highest level that counts.

    A clip that nobody answered for, which has no level, is below all others.
    """
    low = project(marks, TEN, min(lower, higher)).manifest
    high = project(marks, TEN, max(lower, higher)).manifest
    for clip_at_low, clip_at_high in zip(low, high, strict=True):
        if clip_at_high.level is not None:
            assert OBYGAZE12.rank(clip_at_low.level) >= OBYGAZE12.rank(clip_at_high.level)


@given(annotations(), thresholds)
def test_projecting_together_equals_projecting_each_and_merging(marks, threshold):
    """The labels of all annotators may be projected at once, or each annotator's alone and merged."""
    together = project(marks, TEN, threshold).manifest
    apart = project(marks, TEN, threshold, per_annotator=True).manifest
    for clip in together:
        own = [row for row in apart if row.clip_id == clip.clip_id]
        if clip.level is None:  # nobody answered for it
            assert own == [clip]
        else:
            assert merge(clip, own, OBYGAZE12) == clip
