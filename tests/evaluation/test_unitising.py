"""Gamma with the alignment term: the disorder is pygamma-agreement's, and gamma falls as edges move."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.manifest.agreement import distances
from obygaze_models.evaluation.unitising import Units, best_alignment, unitised_agreement, unitised_gamma

CODEBOOK = builtin_codebook("obygaze12")
LEVEL_DISTANCES = distances(CODEBOOK)
ORACLE = json.loads(Path(__file__).with_name("oracles").joinpath("gamma.json").read_text(encoding="utf-8"))


def units(segments):
    """Return an annotator's segments, given as (start_s, end_s, level)."""
    spans = np.array([(start_s, end_s) for start_s, end_s, _ in segments], dtype=float).reshape(-1, 2)
    ranks = [CODEBOOK.rank(level) for *_, level in segments]
    return Units(spans, np.array(ranks, dtype=np.int64))


def extent(first, second):
    """Return when the first segment of two annotators begins, and when the last one ends."""
    spans = np.concatenate([first.spans, second.spans])
    return float(spans.min()), float(spans.max())


def drawn_units(rng, *, n_segments, duration_s):
    """Draw segments of 30 s with any level, which begin anywhere in `duration_s` seconds."""
    starts = np.sort(rng.uniform(0, duration_s, n_segments))
    return Units(np.column_stack([starts, starts + 30]), rng.integers(1, 4, n_segments))


@pytest.fixture
def twenty_segments():
    """Twenty segments of 40 s, one each 100 s, with levels drawn at random."""
    rng = np.random.default_rng(0)
    starts = np.arange(20) * 100.0
    return Units(np.column_stack([starts, starts + 40]), rng.integers(1, 4, 20))


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_the_disorder_is_that_of_pygamma_agreement(case):
    first = units(case["first"])
    second = units(case["second"])
    _, disorder = best_alignment(first, second, LEVEL_DISTANCES, alpha=case["alpha"], beta=case["beta"])
    assert disorder == pytest.approx(case["disorder"], abs=5e-6)  # theirs has single precision


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_gamma_is_that_of_pygamma_agreement(case):
    """Its chance annotations are other draws: gammas agree within four standard errors of a difference."""
    first = units(case["first"])
    second = units(case["second"])
    ours = unitised_gamma(
        first,
        second,
        LEVEL_DISTANCES,
        extent(first, second),
        alpha=case["alpha"],
        beta=case["beta"],
        samples=ORACLE["samples"],
    )

    assert ours.value == pytest.approx(case["gamma"], abs=4 * 2**0.5 * ours.standard_error)
    assert ours.expected == pytest.approx(case["expected"], rel=0.03)


def test_gamma_is_1_for_the_same_segments_and_falls_as_their_edges_move(twenty_segments):
    rng = np.random.default_rng(1)
    values = []
    for seconds in (0, 10, 20, 40):
        earlier_or_later = rng.choice([-1, 1], size=(20, 1))
        moved = Units(twenty_segments.spans + earlier_or_later * seconds, twenty_segments.ranks)
        values.append(unitised_gamma(twenty_segments, moved, LEVEL_DISTANCES, (0, 2000)).value)

    assert values[0] == 1
    assert values == sorted(values, reverse=True)


def test_other_levels_lower_gamma_unless_levels_have_no_weight(twenty_segments):
    """`beta` is the weight of levels."""
    relabelled = Units(twenty_segments.spans, np.roll(twenty_segments.ranks, 1))
    gamma = unitised_gamma(twenty_segments, relabelled, LEVEL_DISTANCES, (0, 2000))
    assert gamma.value < 1
    gamma_of_spans = unitised_gamma(twenty_segments, relabelled, LEVEL_DISTANCES, (0, 2000), beta=0)
    assert gamma_of_spans.value == 1


def test_gamma_of_segments_drawn_at_random_is_0_on_average():
    rng = np.random.default_rng(1)
    values = []
    for seed in range(20):
        first = drawn_units(rng, n_segments=40, duration_s=5000)
        second = drawn_units(rng, n_segments=40, duration_s=5000)
        gamma = unitised_gamma(first, second, LEVEL_DISTANCES, (0, 5030), samples=20, seed=seed)
        values.append(gamma.value)

    assert abs(np.mean(values)) < 0.03


def test_where_one_annotator_marked_nothing_no_segments_are_aligned():
    """Two segments without a partner cost 1 each, so the observed disorder is 2."""
    two_segments = units([(0, 5, "S"), (9, 20, "S")])
    gamma = unitised_gamma(two_segments, units([]), LEVEL_DISTANCES, (0, 100), samples=5)
    assert gamma.n_units == (2, 0)
    assert gamma.n_aligned == 0
    assert gamma.observed == 2
    assert unitised_gamma(units([]), units([]), LEVEL_DISTANCES, (0, 10)).value is None


@pytest.mark.parametrize(
    ("clips", "message"),
    [
        ((Clip("a", "m", level="S", annotator="a"), Clip("b", "m", level="S", annotator="b")), "'a'"),
        ((Clip("a", "m", "", 0, 1, "S", (), "a"),), "nothing to compare"),
    ],
    ids=["clips without times", "a single annotator"],
)
def test_segments_that_cannot_be_compared_are_refused(clips, message):
    with pytest.raises(ManifestError, match=message):
        unitised_agreement(Manifest(clips, Path()))


def test_names_of_films_and_annotators_and_the_order_of_rows_change_nothing():
    rng = np.random.default_rng(0)
    clips = []
    for number, start in enumerate(rng.uniform(0, 900, 30).tolist()):
        level = "S" if number % 2 else "HN"
        annotator = "b" if number % 3 else "a"
        clips.append(Clip(f"c{number}", "film", "", start, start + 20, level, (), annotator))
    new_names = {"a": "y", "b": "x"}
    renamed = [replace(clip, movie="other", annotator=new_names[clip.annotator]) for clip in clips]
    (agreement,) = unitised_agreement(Manifest(tuple(clips), Path()))
    (of_renamed,) = unitised_agreement(Manifest(tuple(reversed(renamed)), Path()))

    assert of_renamed.all_levels.value == pytest.approx(agreement.all_levels.value)
    assert of_renamed.labels_only.value == pytest.approx(agreement.labels_only.value)


@pytest.mark.long
def test_on_mobygaze_annotators_agree_above_chance(segments):
    """The paper prints gamma with alpha = 0 alone (0.42, of annotations that are not public).

    All 20 films with 62 samples give 0.182 on average, and from 0.026 to 0.339. The agreement on a film
    depends neither on other films nor on the order of segments.
    """
    films = segments.movies[:3]
    three_films = segments.with_clips(segment for segment in segments if segment.movie in films)
    first_film = segments.with_clips(segment for segment in segments if segment.movie == films[0])
    backwards = segments.with_clips(reversed(three_films.clips))

    pairs = unitised_agreement(three_films, samples=20)

    values = [pair.all_levels.value for pair in pairs]
    assert len(values) == 3
    assert min(values) > 0
    assert np.mean(values) == pytest.approx(0.23, abs=0.02)
    assert unitised_agreement(first_film, samples=20) == pairs[:1]
    of_backwards = [pair.all_levels.value for pair in unitised_agreement(backwards, samples=20)]
    assert of_backwards == pytest.approx(values[::-1])
