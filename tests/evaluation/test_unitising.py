"""Gamma with the alignment term: the disorder is pygamma-agreement's, and gamma falls as edges move."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.manifest.agreement import distances, mean_defined
from obygaze_models.evaluation.unitising import Units, best_alignment, unitised_agreement, unitised_gamma

CODEBOOK = builtin_codebook("obygaze12")
APART = distances(CODEBOOK)
ORACLE = json.loads(Path(__file__).with_name("oracles").joinpath("gamma.json").read_text(encoding="utf-8"))


def units(rows):
    spans = np.array([row[:2] for row in rows], dtype=float).reshape(-1, 2)
    return Units(spans, np.array([CODEBOOK.rank(row[2]) for row in rows], dtype=np.int64))


def film(*sides):
    spans = np.concatenate([side.spans for side in sides])
    return float(spans.min()), float(spans.max())


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_disorder_and_gamma_are_those_of_pygamma_agreement(case):
    """Disorders to their single precision; gammas, of other random draws, within their errors."""
    sides = [units(case[name]) for name in ("first", "second")]
    weights = {name: case[name] for name in ("alpha", "beta")}
    assert best_alignment(*sides, APART, **weights)[1] == pytest.approx(case["disorder"], abs=5e-6)
    ours = unitised_gamma(*sides, APART, film(*sides), samples=ORACLE["samples"], **weights)
    assert ours.value == pytest.approx(case["gamma"], abs=4 * 2**0.5 * ours.standard_error)
    assert ours.expected == pytest.approx(case["expected"], rel=0.03)


def test_the_same_segments_agree_wholly_and_gamma_falls_as_edges_and_levels_move():
    rng = np.random.default_rng(0)
    starts = np.arange(20) * 100.0
    one = Units(np.column_stack([starts, starts + 40]), rng.integers(1, 4, 20))
    values = []
    for seconds in (0, 10, 20, 40):
        other = Units(one.spans + rng.choice([-1, 1], size=(20, 1)) * seconds, one.ranks)
        values.append(unitised_gamma(one, other, APART, (0, 2000)).value)
    assert values[0] == 1
    assert values == sorted(values, reverse=True)
    moved = Units(one.spans, np.roll(one.ranks, 1))
    assert unitised_gamma(one, moved, APART, (0, 2000)).value < 1
    assert unitised_gamma(one, moved, APART, (0, 2000), beta=0).value == 1


def test_segments_drawn_at_random_agree_as_chance_does():
    rng = np.random.default_rng(1)

    def drawn():
        starts = np.sort(rng.uniform(0, 5000, 40))
        return Units(np.column_stack([starts, starts + 30]), rng.integers(1, 4, 40))

    values = [unitised_gamma(drawn(), drawn(), APART, (0, 5030), samples=20, seed=k).value for k in range(20)]
    assert abs(np.mean(values)) < 0.03


def test_what_is_undefined_is_said_and_what_has_no_times_is_refused():
    nobody = units([])
    assert unitised_gamma(nobody, nobody, APART, (0, 10)).value is None
    one = unitised_gamma(units([(0, 5, "S"), (9, 20, "S")]), nobody, APART, (0, 100), samples=5)
    assert (one.n_units, one.n_aligned, one.observed) == ((2, 0), 0, 2)
    clips = tuple(Clip(name, "m", level="S", annotator=name) for name in "ab")
    with pytest.raises(ManifestError, match="'a'"):
        unitised_agreement(Manifest(clips, Path()))
    with pytest.raises(ManifestError, match="nothing to compare"):
        unitised_agreement(Manifest((Clip("a", "m", "", 0, 1, "S", (), "a"),), Path()))


def test_names_of_films_and_annotators_and_the_order_of_rows_change_nothing():
    rng = np.random.default_rng(0)
    starts = rng.uniform(0, 900, 30).tolist()
    clips = [
        Clip(f"c{k}", "film", "", start, start + 20, ("HN", "S")[k % 2], (), "ab"[k % 3 > 0])
        for k, start in enumerate(starts)
    ]
    renamed = [replace(clip, movie="other", annotator={"a": "y", "b": "x"}[clip.annotator]) for clip in clips]
    (plain,), (other,) = (
        unitised_agreement(Manifest(tuple(each), Path())) for each in (clips, reversed(renamed))
    )
    for view in ("all_levels", "labels_only"):
        assert getattr(other, view).value == pytest.approx(getattr(plain, view).value)


@pytest.mark.long
def test_on_mobygaze_annotators_agree_above_chance(segments):
    """The paper prints gamma with alpha = 0 alone (0.42, of annotations that are not public).

    Three films; all 20 with 62 samples give 0.182 on average, and from 0.026 to 0.339.
    """

    def first(n):
        return segments.with_clips(clip for clip in segments if clip.movie in segments.movies[:n])

    pairs = unitised_agreement(first(3), samples=20)
    assert len(pairs) == 3
    assert all(pair.all_levels.value > 0 for pair in pairs)
    assert mean_defined(pair.all_levels.value for pair in pairs) == pytest.approx(0.23, abs=0.02)
    assert unitised_agreement(first(1), samples=20) == pairs[:1]
    backwards = segments.with_clips(reversed(first(3).clips))
    assert [pair.all_levels.value for pair in reversed(unitised_agreement(backwards, samples=20))] == (
        pytest.approx([pair.all_levels.value for pair in pairs])
    )
