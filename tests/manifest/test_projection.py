"""Free annotations projected onto clips: the paper's rules in small, and what holds for any."""

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    Codebook,
    Level,
    Manifest,
    Scale,
    builtin_codebook,
    merge,
    merge_annotators,
    project,
    windows,
)

OBYGAZE12 = builtin_codebook("obygaze12")


def annotation(start_s, end_s, level, *concepts, annotator="ann", movie="m"):
    """Make an annotation of a span of film m, as annotators delimit them freely."""
    return Clip(
        f"{annotator}-{start_s}-{end_s}-{level}", movie, "", start_s, end_s, level, concepts, annotator
    )


def manifest_of(*clips):
    return Manifest(clips, Path())


THREE_CLIPS = manifest_of(
    Clip("c1", "m", "", start_s=0, end_s=10),
    Clip("c2", "m", "", start_s=10, end_s=20),
    Clip("c3", "m", "", start_s=20, end_s=30),
)
"""Three clips of film m without labels: c1 from 0 to 10 s, c2 from 10 to 20 s, and c3 from 20 to 30 s."""


def labels_of(projection):
    """Return level and concepts of each clip."""
    return [(clip.level, clip.concepts) for clip in projection.manifest]


def test_an_annotation_counts_from_a_fifth_of_the_clip_on():
    """A film has three clips of 10 s. An annotation counts for a clip if it covers at least 20 % of it.

    From 8 to 11.9 s it covers 2.0 of the 10 s of c1 (20 %), and 1.9 of the 10 s of c2 (19 %), so that c2 and
    c3 are EN, the lowest level.
    """
    clips = manifest_of(
        Clip("c1", "m", "", start_s=0, end_s=10),
        Clip("c2", "m", "", start_s=10, end_s=20),
        Clip("c3", "m", "", start_s=20, end_s=30),
    )

    from_8_to_11_9_s = annotation(8.0, 11.9, "S", "Body")

    projection = project(manifest_of(from_8_to_11_9_s), clips)

    assert labels_of(projection) == [("S", ("Body",)), ("EN", ()), ("EN", ())]


def test_a_share_of_exactly_a_fifth_counts_despite_rounding():
    """From 126.2 to 128.2 s is 2 s, 20% of the clip of 10 s; as floats the difference is a little less."""
    assert 128.2 - 126.2 < 2.0
    clip = Clip("c", "m", "", start_s=120, end_s=130)

    projection = project(manifest_of(annotation(start_s=126.2, end_s=128.2, level="HN")), manifest_of(clip))

    assert labels_of(projection) == [("HN", ())]


def test_the_highest_level_wins_with_its_own_concepts():
    """A clip gets the highest level of its annotations, and the concepts of those annotations alone.

    In parts of this clip of 10 s, one annotator says HN with Look and S with Body, and another says S with
    Posture. Look was given at HN, so it does not count.
    """
    lower = annotation(0, 5, "HN", "Look")
    higher = annotation(2, 6, "S", "Body")
    higher_by_another = annotation(5, 10, "S", "Posture", annotator="other")
    clip = Clip("c", "m", start_s=0, end_s=10)

    projection = project(manifest_of(lower, higher, higher_by_another), manifest_of(clip))

    assert labels_of(projection) == [("S", ("Body", "Posture"))]


def test_a_movie_that_nobody_annotated_gets_no_level_and_is_named():
    """The clips are of film m, and the only annotation is of another film.

    Nobody may have watched m. The level EN would claim that somebody did, and saw nothing.
    """
    annotations = manifest_of(annotation(start_s=0, end_s=10, level="S", movie="elsewhere"))
    three_clips_of_m = THREE_CLIPS

    projection = project(annotations, three_clips_of_m)

    assert [clip.level for clip in projection.manifest] == [None, None, None]
    assert projection.unwatched == ("m",)
    assert projection.elsewhere == ("elsewhere",)


@pytest.mark.parametrize(
    ("movie_of_annotation", "movie_of_clip"),
    [
        ("54215", "tt0054215"),
        ("M", "m"),
        ("f/m.mp4", "m"),
        ("Amelie", "Am\u00e9lie"),
        ("f/Amelie.mp4", "Am\u00e9lie"),
        ("Psych\u043e", "Psycho"),
    ],
    ids=["number", "capital", "path", "without accent", "path without accent", "Cyrillic o"],
)
def test_a_movie_may_be_spelled_differently_in_annotations(movie_of_annotation, movie_of_clip):
    """The annotation of S spells the film otherwise than the clip does: 54215 is the IMDb id tt0054215.

    Other capitals, a path of the video, a name without accents, or a letter that looks alike mean the same
    film too. So the clip gets the level, and no annotation is of a film elsewhere.
    """
    annotations = manifest_of(annotation(start_s=0, end_s=10, level="S", movie=movie_of_annotation))
    clips = manifest_of(Clip("c1", movie_of_clip, "", start_s=0, end_s=10))

    projection = project(annotations, clips)

    assert labels_of(projection) == [("S", ())]
    assert projection.elsewhere == ()


def test_a_clip_without_times_gets_no_labels_by_projection():
    """The clip "whole" is a whole file, so that nothing tells which annotations it has."""
    annotations = manifest_of(annotation(start_s=0, end_s=1, level="S"))
    clips = manifest_of(Clip("whole", "m"))
    with pytest.raises(ManifestError, match="'whole'"):
        project(annotations, clips, threshold=0.2)


def test_an_annotation_without_a_level_cannot_be_projected():
    """The annotation "mute", from 0 to 1 s, has no level."""
    annotations = manifest_of(Clip("mute", "m", "", start_s=0, end_s=1, level=None))
    clips = manifest_of(Clip("c1", "m", "", start_s=0, end_s=10))
    with pytest.raises(ManifestError, match="'mute'"):
        project(annotations, clips, threshold=0.2)


@pytest.mark.parametrize(
    ("how", "merged_rank"),
    [
        pytest.param("highest", "high", id="highest: the highest rank"),
        pytest.param("any", "high", id="any: the highest rank"),
        pytest.param("both", "low", id="both: the rank that everybody reaches"),
    ],
)
@pytest.mark.parametrize("level", ["S", None], ids=["beside a level", "on the scale alone"])
def test_ranks_of_a_clip_on_a_scale_are_merged_like_its_levels_in_any_order_of_annotators(
    how, merged_rank, level
):
    """Of one clip, Ada gives low on the scale valence, Bo high, and Cy no rank.

    All three give the level S, or no level. Whoever stands first in the manifest, the merged clip is the
    same; who gives no rank doesn't count.
    """
    scale = Scale("valence", (Level("low"), Level("middle"), Level("high")))
    codebook = Codebook("moods", "1", (Level("EN"), Level("S")), scales=(scale,))
    clips = [
        Clip("c", "m", level=level, annotator=annotator, extras={"valence": rank})
        for annotator, rank in (("Ada", "low"), ("Bo", "high"), ("Cy", ""))
    ]

    for clips_in_an_order in permutations(clips):
        (merged,) = merge_annotators(Manifest(clips_in_an_order, Path(), codebook), how)

        assert merged.extras["valence"] == merged_rank
        assert merged.level == level


def test_the_labels_of_one_annotator_are_found_by_a_name_in_any_form_of_accents():
    """Zoé says S of a clip, and Ann EN; the labels of Zoé alone are wanted.

    Clips have the é of her name as one letter. A keyboard may write it as an e and an accent.
    """
    labels = manifest_of(
        annotation(start_s=0, end_s=5, level="S", annotator="Zo\u00e9"),
        annotation(start_s=0, end_s=5, level="EN", annotator="Ann"),
    )

    (clip,) = merge_annotators(labels, how="expert", expert="Zoe\u0301")

    assert clip.level == "S"


def test_a_threshold_above_the_whole_clip_is_refused():
    """The threshold is the share of a clip that an annotation must cover, so 1.5 can't be reached."""
    annotations = manifest_of(annotation(start_s=0, end_s=1, level="S"))
    clips = manifest_of(Clip("c1", "m", "", start_s=0, end_s=10))
    with pytest.raises(ManifestError):
        project(annotations, clips, threshold=1.5)


def test_windows_cover_the_film_and_the_last_ends_with_it():
    """The film is as long as its annotations: 61.5 s. In windows of 20 s, a fourth one lasts 1.5 s."""
    annotations = manifest_of(
        annotation(start_s=0, end_s=25, level="EN"),
        annotation(start_s=25, end_s=61.5, level="S", annotator="other"),
    )

    windows_of_film = windows(annotations, seconds=20)

    assert [(window.clip_id, window.start_s, window.end_s) for window in windows_of_film] == [
        ("m-0001", 0, 20),
        ("m-0002", 20, 40),
        ("m-0003", 40, 60),
        ("m-0004", 60, 61.5),
    ]


def test_a_film_of_whole_windows_has_no_window_more():
    """The film is as long as its annotation, 60 s: three windows of 20 s, and not a fourth of no length."""
    annotations = manifest_of(annotation(start_s=0, end_s=60, level="EN"))
    assert len(windows(annotations, seconds=20)) == 3


@pytest.mark.long
def test_names_of_more_than_9999_windows_sort_in_the_order_of_time():
    """A film of 10,001 s has 10,001 windows of 1 s, whose numbers have five digits; of fewer, four do."""
    annotations = manifest_of(annotation(start_s=0, end_s=10_001, level="EN"))

    names = [window.clip_id for window in windows(annotations, seconds=1)]

    assert names[0] == "m-00001"
    assert sorted(names) == names


def test_windows_of_no_length_are_refused():
    """The windows shall be 0 s long."""
    with pytest.raises(ManifestError, match="positive"):
        windows(THREE_CLIPS, seconds=0)


@st.composite
def labels(draw):
    """Draw a clip of nobody's with a level and up to three concepts of ObyGaze12."""
    level = draw(st.sampled_from(OBYGAZE12.level_names))
    concepts = draw(st.sets(st.sampled_from(OBYGAZE12.concept_names), max_size=3))
    return annotation(0, 1, level, *OBYGAZE12.in_order(concepts), annotator="")


CLIP_TO_LABEL = annotation(start_s=0, end_s=1, level=None, annotator="")


@given(given_labels=st.lists(labels(), max_size=6), random=st.randoms(use_true_random=False))
def test_merged_labels_do_not_depend_on_order(given_labels, random):
    """Up to six labels of one clip, each a level and concepts of ObyGaze12, are merged into one label.

    It is the same if they are merged in another order, drawn by Hypothesis.
    """
    merged = merge(CLIP_TO_LABEL, given_labels, OBYGAZE12)

    in_another_order = random.sample(given_labels, len(given_labels))
    merged_in_another_order = merge(CLIP_TO_LABEL, in_another_order, OBYGAZE12)

    assert merged_in_another_order == merged


@given(given_labels=st.lists(labels(), max_size=6))
def test_labels_that_are_given_twice_count_once(given_labels):
    """Up to six labels of one clip, each a level and concepts, are merged into one.

    It is the same if each label is given twice, and if the merged label is merged again.
    """
    merged = merge(CLIP_TO_LABEL, given_labels, OBYGAZE12)

    assert merge(CLIP_TO_LABEL, given_labels + given_labels, OBYGAZE12) == merged
    assert merge(CLIP_TO_LABEL, [merged], OBYGAZE12) == merged


@given(given_labels=st.lists(labels(), min_size=2, max_size=6))
def test_merging_two_halves_first_gives_the_same_labels(given_labels):
    """Two to six labels of one clip, each a level and concepts, are merged into one.

    It is the same if the first half and the second half are merged first, and then the two.
    """
    merged = merge(CLIP_TO_LABEL, given_labels, OBYGAZE12)

    middle = len(given_labels) // 2
    first_half = merge(CLIP_TO_LABEL, given_labels[:middle], OBYGAZE12)
    second_half = merge(CLIP_TO_LABEL, given_labels[middle:], OBYGAZE12)

    assert merge(CLIP_TO_LABEL, [first_half, second_half], OBYGAZE12) == merged


@st.composite
def annotations_of_two_people(draw):
    """Draw one to eight annotations of 30 s of film m, by two annotators. Easy negatives have no concepts."""
    clips = []
    for number in range(draw(st.integers(1, 8))):
        start_s = draw(st.floats(0, 29))
        end_s = start_s + draw(st.floats(0.01, 20))
        annotator = draw(st.sampled_from(["one", "two"]))
        label = draw(labels())
        concepts = label.concepts if label.level != "EN" else ()
        clips.append(Clip(f"{number}", "m", "", start_s, end_s, label.level, concepts, annotator))
    return manifest_of(*clips)


@given(
    annotations=annotations_of_two_people(),
    two_thresholds=st.tuples(st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=1)),
)
def test_a_level_never_rises_as_the_threshold_grows(annotations, two_thresholds):
    """Two people annotated 30 s of a film, of which three clips of 10 s get the highest level that counts.

    The threshold is the share of a clip that an annotation must cover to count, so a higher one lets fewer
    count. A clip for which none counts has no level: it has not risen.
    """
    lower_threshold, higher_threshold = sorted(two_thresholds)

    with_lower = project(annotations, THREE_CLIPS, threshold=lower_threshold).manifest
    with_higher = project(annotations, THREE_CLIPS, threshold=higher_threshold).manifest

    for clip_with_lower, clip_with_higher in zip(with_lower, with_higher, strict=True):
        if clip_with_higher.level is not None:
            assert OBYGAZE12.rank(clip_with_higher.level) <= OBYGAZE12.rank(clip_with_lower.level)


@given(annotations=annotations_of_two_people(), threshold=st.floats(0, 1))
def test_projecting_together_equals_projecting_each_annotator_and_merging(annotations, threshold):
    """Two annotators marked 30 s of a film with three clips of 10 s. A clip's label is of both together.

    If each annotator has a row of each clip instead, these rows merge into the same label; a clip that
    nobody answered for has one row without a level.
    """
    projected_together = project(annotations, THREE_CLIPS, threshold).manifest
    rows_of_annotators = project(annotations, THREE_CLIPS, threshold, per_annotator=True).manifest

    for clip in projected_together:
        rows_of_clip = [row for row in rows_of_annotators if row.clip_id == clip.clip_id]
        if clip.level is None:
            assert rows_of_clip == [clip]
        else:
            assert merge(clip, rows_of_clip, OBYGAZE12) == clip
