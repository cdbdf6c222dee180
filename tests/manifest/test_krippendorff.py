"""Krippendorff's alpha: equal to published values, to another package's, and to counting pairs."""

from itertools import pairwise, product
from pathlib import Path

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
from obygaze_features.manifest.krippendorff import GAP, without_overlaps


def labels(*rows):
    """Labels of annotators, one row each; * is none."""
    return [[np.nan if cell == "*" else float(cell) for cell in row.split()] for row in rows]


THREE = labels(
    "* * * * * 3 4 1 2 1 1 3 3 * 3", "1 * 2 1 3 3 4 3 * * * * * * *", "* * 2 1 3 4 4 * 2 1 1 3 3 * 4"
)
FOUR = labels(
    "1 2 3 3 2 1 4 1 2 * * *", "1 2 3 3 2 2 4 1 2 5 * 3", "* 3 3 3 2 3 4 2 2 5 1 *", "1 2 3 3 2 4 4 1 2 5 1 *"
)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (THREE, (0.691358024691358, 0.8067214199413153, 0.8108448928121059)),
        (FOUR, (0.743421052631579, 0.8153875037548814, 0.8491071428571428)),
    ],
    ids=["three annotators", "four annotators"],
)
def test_it_equals_the_package_krippendorff_on_its_own_examples(table, expected):
    """Values of krippendorff 0.9.0. FOUR is the example of Krippendorff 2011, section C: .743, .815, .849."""
    assert [krippendorff_alpha(table, metric) for metric in METRICS] == pytest.approx(expected, abs=1e-12)


TABLES = st.integers(0, 10**6).map(
    lambda seed: np.random.default_rng(seed).choice([1.0, 2.0, 3.0, 5.0, np.nan], (4, 9))
)


def by_pairs(table, metric):
    """Alpha from every pair of labels: in one clip, and in all clips."""
    clips = [column[~np.isnan(column)] for column in table.T]
    clips = [clip for clip in clips if len(clip) > 1]
    every = np.concatenate(clips)

    def apart(a, b):
        if metric == "nominal":
            return float(a != b)
        if metric == "interval":
            return (a - b) ** 2
        low = min(a, b)
        high = max(a, b)
        between = sum(low <= value <= high for value in every)
        return (between - (sum(every == low) + sum(every == high)) / 2) ** 2

    def pairs(values):
        return [apart(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j]

    observed = sum(sum(pairs(clip)) / (len(clip) - 1) for clip in clips) / len(every)
    return 1 - observed / np.mean(pairs(every))


@given(TABLES, st.sampled_from(METRICS))
def test_it_counts_every_pair_of_labels_of_a_clip_against_every_pair_of_all(table, metric):
    alpha = krippendorff_alpha(table, metric)
    if alpha is not None:
        assert alpha == pytest.approx(by_pairs(table, metric), abs=1e-9)


@given(TABLES, st.sampled_from(METRICS), st.permutations(range(4)))
def test_it_does_not_change_with_the_order_of_annotators_or_a_clip_of_one_label(table, metric, order):
    """Rows are annotators, columns clips."""
    alpha = krippendorff_alpha(table, metric)
    with_fifth_annotator = np.vstack([table, np.full(9, np.nan)])
    label_of_fifth_alone = [np.nan, np.nan, np.nan, np.nan, 2.0]
    with_clip_of_one_label = np.column_stack([with_fifth_annotator, label_of_fifth_alone])
    for other in (table[list(order)], with_clip_of_one_label):
        again = krippendorff_alpha(other, metric)
        if alpha is None:
            assert again is None
        else:
            assert again == pytest.approx(alpha)


def test_where_chance_has_no_disagreement_it_is_undefined():
    assert krippendorff_alpha([[1, 1, 1], [1, 1, np.nan]]) is None
    assert krippendorff_alpha([[1, 2, np.nan], [np.nan, np.nan, 3]]) is None
    assert krippendorff_alpha([[1, 2], [1, 2]]) == 1


# --- segments
# ---------------------------------------------------------------------------
EXAMPLE = (
    [(0, 7, 1), (7, 13, 2), (30, 32, 5), (32, 37, 6), (37, 44, 6), (44, 60, 7)],
    [(0, 7, 1), (7, 13, 3), (13, 21, 5), (32, 44, 6)],
    [(0, 7, 1), (7, 13, 4), (13, 21, 5), (32, 37, 6), (37, 41, 6), (41, 44, 6)],
)
"""Segments that Alex, Paul and Suzan marked in a continuum of 60: the example of Krippendorff et al. 2016.

As read from its figure: where value 6 is cut into segments is not legible to a unit."""


def test_it_gives_the_values_of_the_papers_example():
    """Printed: .510 of all segments, .413 of what is marked, .724 of values where two marked, on 46 %."""
    annotations = [[Segment(*segment) for segment in own] for own in EXAMPLE]
    found = unitised_alpha(annotations, 0, 60)
    assert round(found.segments, 3) == 0.510
    assert found.marked == pytest.approx(0.413, abs=0.001)
    assert found.values == pytest.approx(0.724, abs=0.002)
    assert round(found.coverage, 2) == 0.46


def of_pieces(annotations, length):
    """Alpha of segments and of what is marked, by every pair of pieces of length 1 of a continuum."""
    pieces = []  # of each: annotator, position, value, segment
    for annotator, segments in enumerate(annotations):
        for position in range(length):
            inside = [at for at, (a, b, _) in enumerate(segments) if a <= position < b]
            segment = inside[0] if inside else f"gap at {position}"
            pieces.append((annotator, position, segments[inside[0]][2] if inside else GAP, segment))

    def disagreement(apart):
        at_once = []
        by_chance = []
        for one, other in product(pieces, pieces):
            if one[0] != other[0] and one[1] == other[1]:
                at_once.append(apart(one[2], other[2]))
            if (one[0], one[3]) != (other[0], other[3]):
                by_chance.append(apart(one[2], other[2]))
        return np.mean(at_once), np.mean(by_chance)

    alphas = []
    for apart in (lambda a, b: a != b, lambda a, b: (a == GAP) != (b == GAP)):
        observed, expected = disagreement(apart)
        alphas.append(None if expected == 0 else 1 - observed / expected)
    return alphas


@st.composite
def free_segments(draw):
    """Two or three annotators' segments of a continuum of 12, of values 1 to 3."""
    annotations = []
    for _ in range(draw(st.integers(2, 3))):
        cuts = sorted(draw(st.sets(st.integers(0, 12), min_size=2, max_size=7)))
        spans = [(a, b, draw(st.integers(0, 3))) for a, b in pairwise(cuts)]
        annotations.append([Segment(*span) for span in spans if span[2] != GAP])
    return annotations


@given(free_segments())
def test_segments_are_compared_as_all_pairs_of_pieces_that_are_not_of_one_segment(annotations):
    found = unitised_alpha(annotations, 0, 12)
    for value, expected in zip((found.segments, found.marked), of_pieces(annotations, 12), strict=True):
        assert (value is None) == (expected is None)
        assert value is None or value == pytest.approx(expected, abs=1e-9)


@given(free_segments())
def test_annotators_who_marked_the_same_agree_wholly(annotations):
    found = unitised_alpha([annotations[0]] * 3, 0, 12)
    assert {found.segments, found.marked, found.values} <= {None, 1.0}


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(1, 5), st.integers(1, 3)), max_size=6))
def test_of_segments_that_overlap_the_highest_value_is_left(spans):
    segments = [Segment(start, start + length, value) for start, length, value in spans]
    flat = without_overlaps(segments)
    for position in range(16):
        values = [segment.value for segment in segments if segment.start <= position < segment.end]
        left = [segment.value for segment in flat.segments if segment.start <= position < segment.end]
        assert left == ([max(values)] if values else [])


def test_segments_of_one_annotator_that_overlap_are_refused():
    with pytest.raises(ValueError, match="begins at 3"):
        unitised_alpha([[Segment(0, 5, 1), Segment(3, 6, 1)], []], 0, 10)


# --- of manifests
# ---------------------------------------------------------------------------
BOOK = builtin_codebook("obygaze12")


def annotated(*rows):
    """Clips by who, start, end and level, of one film."""
    clips = [
        Clip(f"c{number}", "tt1", "", start, end, level, (), annotator)
        for number, (annotator, start, end, level) in enumerate(rows)
    ]
    return Manifest(tuple(clips), Path(), BOOK)


def test_a_manifests_annotators_are_compared_with_labels_that_are_missing():
    """By hand: three clips with two labels or more, one of one label left out."""
    rows = [("AB", 0, 10, "EN"), ("CD", 0, 10, "EN"), ("EF", 0, 10, "S"), ("AB", 10, 20, "S")]
    rows += [("CD", 10, 20, "S"), ("AB", 20, 30, "NS"), ("EF", 20, 30, "HN"), ("EF", 30, 40, "EN")]
    every, sure = level_alphas(annotated(*rows))
    ranks = {level: BOOK.rank(level) for level in BOOK.level_names}
    table = [
        [ranks["EN"], ranks["S"], ranks["NS"]],
        [ranks["EN"], ranks["S"], np.nan],
        [ranks["S"], np.nan, ranks["HN"]],
    ]
    assert (every.annotators, every.n_clips, every.n_labels) == (3, 3, 7)
    assert every.nominal == pytest.approx(krippendorff_alpha(table))
    assert every.ordinal == pytest.approx(krippendorff_alpha(table, "ordinal"))
    assert (sure.n_clips, sure.n_labels) == (2, 5)


def test_a_films_segments_are_compared_above_the_lowest_level():
    """Planted: the same segments; one annotator says by EN what the others leave unmarked."""
    same = [("S", 10, 20), ("HN", 40, 50)]
    rows = [(annotator, a, b, level) for annotator in ("AB", "CD", "EF") for level, a, b in same]
    (film,) = unitised_alphas(annotated(*rows, ("AB", 0, 10, "EN"), ("AB", 50, 90, "EN")))
    assert (film.movie, film.annotators, film.n_segments) == ("tt1", ("AB", "CD", "EF"), (2, 2, 2))
    assert (film.value.segments, film.value.marked, film.value.values) == (1, 1, 1)
    (film,) = unitised_alphas(annotated(*rows, ("AB", 0, 15, "HN")))
    assert film.n_cut == 1


def test_segments_without_times_and_films_of_one_annotator_are_refused():
    with pytest.raises(ManifestError, match="start_s"):
        unitised_alphas(Manifest((Clip("c", "tt1", "x.mp4", level="S", annotator="AB"),), Path(), BOOK))
    with pytest.raises(ManifestError, match="two annotators"):
        unitised_alphas(annotated(("AB", 0, 10, "S")))
