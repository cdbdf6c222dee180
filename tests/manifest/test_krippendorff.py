"""Krippendorff's alpha: equal to published values, to another package's, and to counting pairs."""

from itertools import pairwise, permutations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    METRICS,
    Clip,
    Manifest,
    Segment,
    builtin_codebook,
    krippendorff_alpha,
    level_alphas,
    unitised_alpha,
    unitised_alphas,
)
from obygaze_features.manifest.krippendorff import GAP, LevelAlphas, without_overlaps
from obygaze_models.commands.annotation_tables import alphas_of_levels


def table_of_labels(*rows):
    """Labels of annotators, one row each; * is none."""
    return [[np.nan if cell == "*" else float(cell) for cell in row.split()] for row in rows]


LABELS_OF_THREE = table_of_labels(
    "* * * * * 3 4 1 2 1 1 3 3 * 3", "1 * 2 1 3 3 4 3 * * * * * * *", "* * 2 1 3 4 4 * 2 1 1 3 3 * 4"
)
LABELS_OF_FOUR = table_of_labels(
    "1 2 3 3 2 1 4 1 2 * * *", "1 2 3 3 2 2 4 1 2 5 * 3", "* 3 3 3 2 3 4 2 2 5 1 *", "1 2 3 3 2 4 4 1 2 5 1 *"
)


@pytest.mark.parametrize(
    ("labels", "nominal", "ordinal", "interval"),
    [
        (LABELS_OF_THREE, 0.691358024691358, 0.8067214199413153, 0.8108448928121059),
        (LABELS_OF_FOUR, 0.743421052631579, 0.8153875037548814, 0.8491071428571428),
    ],
    ids=["three annotators", "four annotators"],
)
def test_alpha_equals_that_of_the_package_krippendorff(labels, nominal, ordinal, interval):
    """The numbers are of the package krippendorff, 0.9.0, by the metric that compares labels.

    The labels of four annotators are the example of Krippendorff 2011, section C, with .743, .815 and .849.
    """
    assert krippendorff_alpha(labels, "nominal") == pytest.approx(nominal, abs=1e-12)
    assert krippendorff_alpha(labels, "ordinal") == pytest.approx(ordinal, abs=1e-12)
    assert krippendorff_alpha(labels, "interval") == pytest.approx(interval, abs=1e-12)


LABELS_OF_FOUR_OF_NINE_CLIPS = st.integers(0, 10**6).map(
    lambda seed: np.random.default_rng(seed).choice([1.0, 2.0, 3.0, 5.0, np.nan], (4, 9))
)
"""Labels of four annotators of nine clips, [annotators, clips]; NaN is none."""


def distance_of_values(a, b, metric, labels_of_all_clips):
    """Return the distance of two labels squared, as Krippendorff 2011 defines it by metric."""
    if metric == "nominal":
        return float(a != b)
    if metric == "interval":
        return (a - b) ** 2
    # Ordinal: how many labels lie from a to b, of those at the ends half.
    low = min(a, b)
    high = max(a, b)
    n_from_low_to_high = sum(low <= label <= high for label in labels_of_all_clips)
    n_at_ends = sum(labels_of_all_clips == low) + sum(labels_of_all_clips == high)
    return (n_from_low_to_high - n_at_ends / 2) ** 2


def alpha_by_pairs(table, metric):
    """Compute alpha as 1 - (disagreement in clips) / (disagreement of any two labels), pair by pair.

    `table` is [annotators, clips], with NaN for no label. Clips of less than two labels do not count.
    """
    clips = []
    for column in table.T:
        labels_of_clip = column[~np.isnan(column)]
        if len(labels_of_clip) > 1:
            clips.append(labels_of_clip)
    labels_of_all_clips = np.concatenate(clips)

    def distances_of_pairs(values):
        return [distance_of_values(a, b, metric, labels_of_all_clips) for a, b in permutations(values, 2)]

    total = sum(sum(distances_of_pairs(clip)) / (len(clip) - 1) for clip in clips)
    observed = total / len(labels_of_all_clips)
    expected = np.mean(distances_of_pairs(labels_of_all_clips))
    return 1 - observed / expected


@given(labels=LABELS_OF_FOUR_OF_NINE_CLIPS, metric=st.sampled_from(METRICS))
def test_alpha_compares_pairs_within_clips_with_all_pairs(labels, metric):
    """Four annotators labelled nine clips, but not all of them. The metric says how far labels are apart.

    Alpha is 1 - (disagreement of labels of one clip) / (disagreement of any two labels), here computed so,
    pair by pair; it is None where all labels are the same, or no clip has two.
    """
    alpha = krippendorff_alpha(labels, metric)
    if alpha is not None:
        assert alpha == pytest.approx(alpha_by_pairs(labels, metric), abs=1e-9)


def test_alpha_is_undefined_where_all_labels_are_the_same():
    """Chance has no disagreement then. The second annotator did not label the third clip."""
    assert krippendorff_alpha([[1, 1, 1], [1, 1, np.nan]]) is None


def test_alpha_is_undefined_where_no_clip_has_two_labels():
    """Of three clips, one annotator labelled the first two, and another one the third (nan is no label).

    Alpha compares labels of one clip, and there are no two.
    """
    assert krippendorff_alpha([[1, 2, np.nan], [np.nan, np.nan, 3]]) is None


def test_alpha_is_1_where_annotators_agree_although_labels_differ():
    """Both annotators give the first clip the label 1 and the second clip the label 2."""
    labels_of_first = [1, 2]
    labels_of_second = [1, 2]
    assert krippendorff_alpha([labels_of_first, labels_of_second]) == 1


# --- segments
# ---------------------------------------------------------------------------
EXAMPLE = (
    [(0, 7, 1), (7, 13, 2), (30, 32, 5), (32, 37, 6), (37, 44, 6), (44, 60, 7)],
    [(0, 7, 1), (7, 13, 3), (13, 21, 5), (32, 44, 6)],
    [(0, 7, 1), (7, 13, 4), (13, 21, 5), (32, 37, 6), (37, 41, 6), (41, 44, 6)],
)
"""Segments that Alex, Paul and Suzan marked in a continuum of 60: the example of Krippendorff et al. 2016.

As read from its figure: where value 6 is cut into segments is not legible to a unit."""


def test_unitised_alpha_gives_the_values_of_the_published_example():
    """Three annotators marked segments in a continuum of 60: the example that Krippendorff published in 2016.

    It prints .510 of all segments, .413 of what is marked, .724 of values where two marked, on 46 %. Its
    figure does not show exactly where value 6 is cut into segments, so two numbers may differ a little.
    """
    annotations = [[Segment(*segment) for segment in segments] for segments in EXAMPLE]

    alphas = unitised_alpha(annotations, start=0, end=60)

    assert round(alphas.segments, 3) == 0.510
    assert alphas.marked == pytest.approx(0.413, abs=0.001)
    assert alphas.values == pytest.approx(0.724, abs=0.002)
    assert round(alphas.coverage, 2) == 0.46


class Piece(NamedTuple):
    """A unit of time of an annotator: its value, which is GAP outside segments, and its segment or gap."""

    annotator: int
    position: int
    value: int
    segment: int | str


def pieces_of(annotations, length):
    """Cut the segments of annotators, and the gaps between them, into pieces of length 1."""
    pieces = []
    for annotator, segments in enumerate(annotations):
        for position in range(length):
            # Each unit of a gap counts as a gap of its own.
            piece = Piece(annotator, position, GAP, f"gap at {position}")
            for number, (start, end, value) in enumerate(segments):
                if start <= position < end:
                    piece = Piece(annotator, position, value, number)
            pieces.append(piece)
    return pieces


def alpha_of_pieces(pieces, differ):
    """Return 1 - observed / expected disagreement, or None where none is expected.

    Observed are pairs of pieces of two annotators at one position, expected all pairs that are not of one
    segment.
    """
    observed = []
    expected = []
    for one, other in product(pieces, pieces):
        if one.annotator != other.annotator and one.position == other.position:
            observed.append(differ(one.value, other.value))
        if (one.annotator, one.segment) != (other.annotator, other.segment):
            expected.append(differ(one.value, other.value))
    if np.mean(expected) == 0:
        return None
    return 1 - np.mean(observed) / np.mean(expected)


def is_another_value(a, b):
    return a != b


def is_marked_by_one_alone(a, b):
    return (a == GAP) != (b == GAP)


@st.composite
def free_segments(draw):
    """Draw the segments of two or three annotators, of values 1 to 3, in a continuum of 12.

    The continuum is cut at random, and a value is drawn for each part; parts of value 0 stay gaps.
    """
    annotations = []
    for _ in range(draw(st.integers(2, 3))):
        cuts = sorted(draw(st.sets(st.integers(0, 12), min_size=2, max_size=7)))
        segments = []
        for start, end in pairwise(cuts):
            value = draw(st.integers(0, 3))
            if value != GAP:
                segments.append(Segment(start, end, value))
        annotations.append(segments)
    return annotations


@given(free_segments())
def test_unitised_alpha_is_that_of_all_pairs_of_pieces(annotations):
    """Two or three annotators marked segments in a continuum of 12: alpha says how far they agree.

    It is 1 - observed / expected disagreement, computed here from all pairs of pieces of length 1, as it is
    defined. `segments` compares the values of the pieces, and `marked` whether they lie in a segment at all.
    """
    alphas = unitised_alpha(annotations, start=0, end=12)

    pieces = pieces_of(annotations, length=12)
    assert alphas.segments == approx_or_none(alpha_of_pieces(pieces, is_another_value))
    assert alphas.marked == approx_or_none(alpha_of_pieces(pieces, is_marked_by_one_alone))


def approx_or_none(value):
    return None if value is None else pytest.approx(value, abs=1e-9)


@given(free_segments())
def test_annotators_who_marked_the_same_agree_wholly(annotations):
    """Three annotators have the same segments. Alpha is 1, or undefined where nothing could differ."""
    segments_of_first = annotations[0]

    alphas = unitised_alpha([segments_of_first, segments_of_first, segments_of_first], start=0, end=12)

    for alpha in (alphas.segments, alphas.marked, alphas.values):
        assert alpha in {None, 1.0}


def values_at(position, segments):
    """Return the values of the segments that a position lies in."""
    return [segment.value for segment in segments if segment.start <= position < segment.end]


@st.composite
def segments_between_0_and_15(draw):
    """Draw a segment of the length 1 to 5 and of the value 1, 2 or 3, which begins at 0 to 10."""
    start = draw(st.integers(min_value=0, max_value=10))
    length = draw(st.integers(min_value=1, max_value=5))
    value = draw(st.integers(min_value=1, max_value=3))
    return Segment(start, start + length, value)


@given(segments=st.lists(segments_between_0_and_15(), max_size=6))
def test_where_segments_overlap_the_highest_value_stays(segments):
    """An annotator marked up to six segments between 0 and 15, each with a value, and some may overlap.

    Afterwards each position that had values has the highest of them, once, and the others have none.
    """
    without = without_overlaps(segments)

    for position in range(16):
        values_before = values_at(position, segments)
        values_after = values_at(position, without.segments)
        if values_before:
            assert values_after == [max(values_before)]
        else:
            assert values_after == []


def test_segments_of_one_annotator_that_overlap_are_refused():
    """The first annotator has segments from 0 to 5 and from 3 to 6, and the second none."""
    with pytest.raises(ValueError, match="begins at 3"):
        unitised_alpha(
            [[Segment(start=0, end=5, value=1), Segment(start=3, end=6, value=1)], []], start=0, end=10
        )


# --- of manifests
# ---------------------------------------------------------------------------
OBYGAZE12 = builtin_codebook("obygaze12")


def manifest_of(*labels):
    """Make a manifest of film tt1 from (annotator, start, end, level)."""
    clips = []
    for number, (annotator, start_s, end_s, level) in enumerate(labels):
        clips.append(Clip(f"c{number}", "tt1", "", start_s, end_s, level, (), annotator))
    return Manifest(tuple(clips), Path(), OBYGAZE12)


def test_annotators_of_a_manifest_are_compared_despite_missing_labels():
    """Three annotators judged clips of 10 s. Three clips have 3, 2 and 2 labels; that at 30 s has one.

    A clip with one label does not count. The other result leaves out NS (not sure) too, so that the clip at
    20 s has one label, and two clips with 3 + 2 = 5 labels stay.
    """
    labels = [
        ("AB", 0, 10, "EN"), ("CD", 0, 10, "EN"), ("EF", 0, 10, "S"),
        ("AB", 10, 20, "S"), ("CD", 10, 20, "S"),
        ("AB", 20, 30, "NS"), ("EF", 20, 30, "HN"),
        ("EF", 30, 40, "EN"),
    ]  # fmt: skip

    of_all_levels, of_labels_only = level_alphas(manifest_of(*labels))

    assert of_all_levels.annotators == 3
    assert of_all_levels.n_clips == 3
    assert of_all_levels.n_labels == 7
    rank = {"EN": 0, "HN": 1, "NS": 2, "S": 3}
    table = [
        [rank["EN"], rank["S"], rank["NS"]],  # AB
        [rank["EN"], rank["S"], np.nan],  # CD
        [rank["S"], np.nan, rank["HN"]],  # EF
    ]
    assert of_all_levels.nominal == pytest.approx(krippendorff_alpha(table))
    assert of_all_levels.ordinal == pytest.approx(krippendorff_alpha(table, "ordinal"))
    assert of_labels_only.n_clips == 2
    assert of_labels_only.n_labels == 5


SAME_SEGMENTS_OF_THREE = [
    ("AB", 10, 20, "S"), ("AB", 40, 50, "HN"),
    ("CD", 10, 20, "S"), ("CD", 40, 50, "HN"),
    ("EF", 10, 20, "S"), ("EF", 40, 50, "HN"),
]  # fmt: skip
"""Three annotators marked S from 10 to 20 s, and HN from 40 to 50 s."""


def test_a_films_segments_are_compared_above_the_lowest_level():
    """Three annotators marked the same two segments, S and HN, so all alphas are 1.

    AB also gave the lowest level, EN, to the time between: EN says that nothing is there, as leaving it
    unmarked does.
    """
    manifest = manifest_of(*SAME_SEGMENTS_OF_THREE, ("AB", 0, 10, "EN"), ("AB", 50, 90, "EN"))

    (film,) = unitised_alphas(manifest)

    assert film.movie == "tt1"
    assert film.annotators == ("AB", "CD", "EF")
    assert film.n_segments == (2, 2, 2)
    alphas = film.value
    assert alphas.segments == 1
    assert alphas.marked == 1
    assert alphas.values == 1


def test_a_segment_is_cut_where_another_segment_of_its_annotator_has_a_higher_level():
    """AB, CD and EF have S from 10 to 20 s. AB has the lower level HN from 0 to 15 s besides.

    A person has one level at a time: from 10 to 15 s the higher one stays. So AB's segment of HN is cut to
    0 to 10 s, and it is the only one that is cut.
    """
    overlapping_segment_of_ab = ("AB", 0, 15, "HN")
    manifest = manifest_of(*SAME_SEGMENTS_OF_THREE, overlapping_segment_of_ab)

    (film,) = unitised_alphas(manifest)

    assert film.n_cut == 1


def test_segments_without_times_are_refused():
    """AB labelled the whole file x.mp4, so that there is no segment to compare."""
    without_times = Clip("c", "tt1", "x.mp4", level="S", annotator="AB")
    with pytest.raises(ManifestError, match="start_s"):
        unitised_alphas(Manifest((without_times,), Path(), OBYGAZE12))


def test_films_of_one_annotator_are_refused():
    """AB alone marked a segment, from 0 to 10 s."""
    of_ab_alone = manifest_of(("AB", 0, 10, "S"))
    with pytest.raises(ManifestError, match="two annotators"):
        unitised_alphas(of_ab_alone)


def test_an_alpha_is_printed_as_in_other_tables():
    """Alphas have three decimals: a half of the last one goes up, and what rounds to 0 has no minus."""
    alphas = LevelAlphas(
        annotators=2, n_clips=16, n_labels=32, nominal=-0.0003, ordinal=0.0625, interval=None
    )
    no_excluded_levels: list[str] = []  # so that the alphas without them are not printed
    (line,) = alphas_of_levels(all_levels=alphas, labels_only=alphas, excluded_levels=no_excluded_levels)
    assert "nominal 0.000, ordinal 0.063, interval undefined" in line
