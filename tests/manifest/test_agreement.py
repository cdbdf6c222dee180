"""Gamma: 1 for perfect agreement, 0 for chance, which is the mean over every order of the labels."""

from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.manifest import (
    Clip,
    Manifest,
    agreement,
    builtin_codebook,
    level_pairs,
    project,
    windows,
)
from obygaze_features.manifest.agreement import (
    DEFAULT_WINDOW_S,
    distances,
    expected_disorder,
    mean_defined,
    on_common_clips,
)
from obygaze_features.manifest.agreement import gamma as gamma_of

OBYGAZE12 = builtin_codebook("obygaze12")
LEVELS = OBYGAZE12.level_names
EN, HN, NS, S = LEVELS
DISTANCES = distances(OBYGAZE12)
gamma = partial(gamma_of, codebook=OBYGAZE12)
sequences = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=5)


def test_the_distances_of_levels_are_those_of_the_paper():
    """Tores et al. (CVPR 2024), equation 2; rows and columns are EN, HN, NS and S."""
    assert DISTANCES.tolist() == [
        [0, 0.3, 0.7, 1],
        [0.3, 0, 0.4, 0.7],
        [0.7, 0.4, 0, 0.3],
        [1, 0.7, 0.3, 0],
    ]


def test_gamma_is_1_for_agreement_0_for_chance_and_less_for_opposition():
    """Gamma is 1 - observed / expected disorder.

    Disorder is the mean distance of two labels of a clip, and expected is its mean over every order of the
    second annotator's labels.
    """
    perfect = gamma([EN, HN, NS, S], [EN, HN, NS, S])
    assert perfect.value == 1
    chance = gamma([EN, S], [EN, EN])  # observed (0 + 1)/2; expected: half of EN-EN, half of S-EN
    assert (chance.observed, chance.expected, chance.value) == (0.5, 0.5, 0)
    assert gamma([EN, S], [S, EN]).value == -1


@pytest.mark.parametrize(("a", "b"), [([], []), ([EN, EN], [EN, EN]), ([S], [S])])
def test_gamma_is_undefined_where_chance_has_no_disorder(a, b):
    """Where all labels are the same, every order agrees and gamma would be 0 / 0."""
    result = gamma(a, b)
    assert result.value is None
    assert mean_defined([result.value]) is None


@given(sequences, st.randoms(use_true_random=False))
def test_the_closed_form_is_the_mean_over_every_order(first, random):
    second = [random.choice(LEVELS) for _ in first]
    a = np.array([OBYGAZE12.rank(level) for level in first])
    b = np.array([OBYGAZE12.rank(level) for level in second])
    every = [DISTANCES[a, list(order)].mean() for order in permutations(b)]
    assert expected_disorder(a, b, DISTANCES) == pytest.approx(np.mean(every))


def nine_seconds_labelled_by_two(folder):
    """AB labelled nine clips of 1 s; CD the first six of them."""
    by_ab = [Clip(f"c{k}", "m", "", k, k + 1, "S", (), "AB") for k in range(9)]
    by_cd = [replace(clip, annotator="CD") for clip in by_ab[:6]]
    return Manifest((*by_ab, *by_cd), folder)


def with_ids_for_each_annotator(labels):
    """Name clips differently for each annotator, so that their times alone tell which are common."""
    return labels.with_clips(replace(clip, clip_id=f"{clip.annotator}-{clip.clip_id}") for clip in labels)


def test_clips_left_out_by_an_annotator_are_not_free_segments(tmp_path):
    """CD labelled six of the nine clips that AB labelled.

    The clips are common, so they are compared as they are, without windows; six have two labels. Times alone
    show that, where each annotator's file names clips in its own way.
    """
    labels = nine_seconds_labelled_by_two(tmp_path)
    assert on_common_clips(labels) == (labels, None)
    assert agreement(labels)[0].all_levels.n_clips == 6
    common, _ = on_common_clips(with_ids_for_each_annotator(labels))
    assert agreement(common)[0].all_levels.n_clips == 6


@pytest.mark.parametrize(
    "start_s", [0.0, 9.0], ids=["a segment over the clips of others", "a segment that nobody else has"]
)
def test_free_segments_are_compared_on_windows(tmp_path, start_s):
    """A third annotator cut the film at other times.

    So labels are projected onto windows of one length first.
    """
    labels = with_ids_for_each_annotator(nine_seconds_labelled_by_two(tmp_path))
    segment = Clip("own", "m", "", start_s, 9.5, "S", (), "EF")
    _, window_s = on_common_clips(labels.with_clips([*labels, segment]))
    assert window_s == DEFAULT_WINDOW_S


@pytest.mark.nightly
@pytest.mark.long
def test_the_means_over_every_pair_of_mobygaze(segments):
    """These are our numbers, as docs/corpora.md says them; the corpus has 20 films of two annotators."""
    clips, window_s = on_common_clips(segments)
    assert window_s == DEFAULT_WINDOW_S
    assert clips == project(segments, windows(segments, DEFAULT_WINDOW_S), per_annotator=True).manifest
    assert on_common_clips(clips) == (clips, None)
    pairs = agreement(clips)

    assert len(pairs) == 20
    for pair in pairs:
        assert pair.all_levels.value < 1
        assert pair.labels_only.value < 1
    assert mean_defined(pair.all_levels.value for pair in pairs) == pytest.approx(0.356, abs=5e-4)
    assert mean_defined(pair.labels_only.value for pair in pairs) == pytest.approx(0.383, abs=5e-4)


@pytest.mark.long
def test_the_default_window_is_the_mean_moviegraphs_clip(segments, obygaze12):
    """ObyGaze12's clips are those of MovieGraphs.

    In the 11 films that MObyGaze has too, there are 1745 clips of 46.4 s on average.
    """
    common = set(obygaze12.movies) & set(segments.movies)
    seconds = sum(max(clip.end_s for clip in segments if clip.movie == movie) for movie in common)
    number = sum(clip.movie in common for clip in obygaze12)
    assert (len(common), number) == (11, 1745)
    assert round(seconds / number, 1) == 46.4
    assert round(seconds / number) == DEFAULT_WINDOW_S


def labelled(*rows):
    return Manifest(
        tuple(
            Clip(f"{movie}-{start}-{by}", movie, "", start, start + 1, level, (), by)
            for movie, start, by, level in rows
        ),
        Path(),
    )


def test_three_annotators_are_three_pairs_and_only_shared_clips_count():
    """A pair is compared on the clips that both labelled. The clip at 2 s has one label."""
    rows = [("m", start, by, "EN" if start else "S") for by in ("a", "b", "c") for start in (0, 1)]
    pairs = agreement(labelled(*rows, ("m", 2, "a", "NS")))
    assert [pair.annotators for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert {pair.all_levels.n_clips for pair in pairs} == {2}


def test_clips_without_times_and_videos_are_compared_by_their_ids():
    """AB and CD give the clip x the same level (EN), and the clip y two levels (S and HN)."""
    said = [("x", "AB", EN), ("y", "AB", S), ("x", "CD", EN), ("y", "CD", HN)]
    clips = [Clip(name, "m", level=level, annotator=annotator) for name, annotator, level in said]
    (pair,) = level_pairs(Manifest(tuple(clips), Path()))
    assert pair.counts == {(EN, EN): 1, (S, HN): 1}


def test_disagreements_about_the_lowest_level_count_apart():
    """Two annotators judge a clip for each pair of `levels`; a clip of one annotator does not count."""
    levels = [("EN", "EN"), ("EN", "S"), ("HN", "EN"), ("HN", "S"), ("NS", "S"), ("S", "S")]
    rows = []
    for n, (level_of_a, level_of_b) in enumerate(levels):
        rows += [("m", n, "a", level_of_a), ("m", n, "b", level_of_b)]
    (pair,) = level_pairs(labelled(*rows, ("m", 9, "a", "S")))
    assert pair.counts == dict.fromkeys(levels, 1)
    n_all, n_alike, n_one_says_lowest, n_other = 6, 2, 2, 2  # EN, S; EN-S, HN-EN; HN-S, NS-S

    assert [*pair.counts_by_outcome("EN").values()] == [n_all, n_alike, n_one_says_lowest, n_other]
