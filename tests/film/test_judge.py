"""A corrected rate covers what it should, and is narrower than judgements alone."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest, hypergeom

from obygaze_features.manifest import Clip, Manifest
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import correct_rate, difference_estimate, read_rates, write_rates
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.dataset import load_dataset
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.report.run_tables import run_report
from tests.planted_models import codebook

PREVALENCES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
SIZES = (30, 60, 100, 200)
N_ROWS, N_FILMS, N_EACH = 1000, 500, 4


def draws(rng, prevalence, quality, *, n_films=N_FILMS, bias=0.0, sharpness=1.0, noise=0.0):
    """Seconds, y, p of films, [F, 1000]: positives score `quality` deviations above negatives."""
    seconds = 1 + 5 * rng.gamma(3, 1 / 3, (n_films, N_ROWS))
    n_positive = max(1, round(prevalence * N_ROWS))
    y = rng.permuted(np.tile(np.arange(N_ROWS) < n_positive, (n_films, 1)), axis=1).astype(float)
    score = quality * (y - 0.5) + rng.normal(size=y.shape)
    return seconds, y, expit((sharpness * quality + noise) * score + logit(n_positive / N_ROWS) + bias)


def cover(prevalence, quality, n, *, n_films=N_FILMS, seed=0, **model):
    """2,000 draws of n windows, 4 from each of 500 films: coverage, mean width, width of judgements alone."""
    rng = np.random.default_rng([round(1000 * prevalence), round(10 * quality), n, seed])
    films = draws(rng, prevalence, quality, n_films=n_films, **model)
    seconds, y, p = (np.repeat(values, N_EACH, axis=0) for values in films)
    drawn = np.argpartition(rng.random(y.shape), n, axis=1)[:, :n]
    judged = (np.take_along_axis(values, drawn, axis=1) for values in (y, p, seconds))
    mean = np.average(p, weights=seconds, axis=1)
    variance = np.average((p - mean[:, None]) ** 2, weights=seconds, axis=1)
    found = difference_estimate(*judged, n_rows=N_ROWS, film_p=mean, film_variance=variance)
    truth = np.average(y, weights=seconds, axis=1)
    holds = (found.low <= truth) & (truth <= found.high)
    return holds.mean(), (found.high - found.low).mean(), (found.alone_high - found.alone_low).mean()


@pytest.mark.long
@pytest.mark.parametrize("prevalence", PREVALENCES)
def test_it_covers_from_useless_models_to_good_ones_and_is_narrower_than_judgements_alone(prevalence):
    # 2,000 draws leave a coverage uncertain by .005 (one standard error).
    for n in SIZES:
        for quality in (0, 0.5, 1, 2):  # AUC .5, .64, .76, .92
            coverage, width, alone = cover(prevalence, quality, n)
            assert 0.93 <= coverage <= 0.97, (quality, n, coverage)
            assert width < alone if quality else width == pytest.approx(alone, rel=1e-6), (quality, n)
        coverage, width, alone = cover(prevalence, 0, n, noise=1.0)  # probabilities that say nothing
        assert 0.93 <= coverage <= 0.97, (n, coverage)
        assert width == pytest.approx(alone, rel=0.015)


@pytest.mark.parametrize("model", [{}, {"bias": 1.5}, {"bias": -1.5}, {"sharpness": 2.5}, {"sharpness": 0.4}])
def test_it_needs_no_trust_in_the_model(model):
    """Biased, overconfident and timid probabilities cost width, never coverage."""
    for prevalence, n in ((0.05, 30), (0.2, 100), (0.5, 30)):
        coverage, width, alone = cover(prevalence, 1, n, n_films=250, **model)
        assert coverage >= 0.92  # 1,000 draws: .007
        assert width < alone


def exact_coverage(positives, n):
    """Coverage over all samples of n of 1,000 equal windows by a model that says the same of each."""
    counts = np.arange(n + 1)
    chances = hypergeom(N_ROWS, positives, n).pmf(counts)
    labels = np.arange(n)[None] < counts[:, None]
    found = difference_estimate(
        labels, np.full((n + 1, n), 0.2), np.ones((n + 1, n)), n_rows=N_ROWS, film_p=0.2, film_variance=0.0
    )
    truth = positives / N_ROWS
    return chances[(found.low <= truth) & (truth <= found.high)].sum(), chances


def test_equal_windows_and_a_useless_model_leave_two_cells_that_no_interval_covers_by_93_to_97_percent():
    """Then only the count of positives is known: coverage is the sum of the chances of some counts.

    Of 20 positives in 1,000, a draw of 30 has 3 or more with chance .020 and 2 with .098, and fewer even more
    often: whichever counts an interval leaves out, that is at most .020 or at least .098, and never .03 to
    .07. In the same way with 60. (Unequal durations, or a better model, tell draws of equal count apart.)
    """
    covered = {}
    for prevalence in PREVALENCES:
        for n in SIZES:
            coverage, chances = exact_coverage(round(prevalence * N_ROWS), n)
            rare = chances[chances < 0.03].sum()
            # Leave out common counts, one or more: too much. Leave out rare ones alone: too little.
            is_impossible = rare < 0.03 and not ((chances >= 0.03) & (chances <= 0.07)).any()
            covered[prevalence, n] = coverage, is_impossible
    assert [cell for cell, (_, is_impossible) in covered.items() if is_impossible] == [(0.02, 30), (0.02, 60)]
    values = {cell: coverage for cell, (coverage, _) in covered.items()}
    above = {cell: round(coverage, 3) for cell, coverage in values.items() if coverage > 0.97}
    assert above == {
        (0.02, 30): 0.980, (0.02, 60): 0.972, (0.05, 60): 0.975, (0.05, 100): 0.974, (0.1, 30): 0.976,
    }  # fmt: skip
    assert min(values.values()) >= 0.93


def test_without_a_model_it_is_wilsons_interval():
    for k in (0, 1, 7, 30):
        y = np.array([[1.0] * k + [0.0] * (30 - k)])
        found = difference_estimate(
            y, np.full((1, 30), 0.3), np.ones((1, 30)), film_p=0.3, film_variance=0.0, n_rows=10**9
        )
        expected = binomtest(k, 30).proportion_ci(method="wilson")
        assert (found.low[0], found.high[0]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_all_windows_judged_leave_nothing_open():
    rng = np.random.default_rng(0)
    seconds, y, p = (values[0] for values in draws(rng, 0.2, 1, n_films=1))
    mean = np.average(p, weights=seconds)
    found = difference_estimate(
        y[None], p[None], seconds[None], film_p=mean, film_variance=np.var(p), n_rows=N_ROWS
    )
    truth = np.average(y, weights=seconds)
    assert found.value[0] == pytest.approx(truth, abs=1e-3)
    assert found.high[0] - found.low[0] < 1e-4


def judged(clips, folder, truth=lambda clip: clip.start_s < 200):
    """Judge clips: violent in the first 200 seconds."""
    levels = ("violent" if truth(clip) else "calm" for clip in clips)
    return Manifest(
        tuple(replace(clip, level=level, annotator="AB") for clip, level in zip(clips, levels, strict=True)),
        folder,
        codebook(folder),
    )


def test_blind_windows_show_no_score_and_a_larger_n_adds_to_them(scored):
    timeline = Timeline.read(scored[0])
    few, many = (choose_next([timeline], n, blind=True) for n in (10, 30))
    assert {clip.clip_id for clip in few} < {clip.clip_id for clip in many}
    assert all(clip.extras == {"draw": "random", "seen_score": "0"} for clip in many)
    assert len(many) == 30
    starts = [clip.start_s for clip in many]
    assert starts == sorted(starts)
    rows = timeline.rows()
    ends = rows.loc[rows["flags"].str.contains("credits"), "start_s"]
    assert not set(starts) & set(ends)


def test_windows_to_judge_next_are_uncertain_spread_and_a_third_random(scored):
    timeline = Timeline.read(scored[0])
    clips = choose_next([timeline], 21)
    draws = [clip.extras["draw"] for clip in clips]
    assert (draws.count("uncertain"), draws.count("random")) == (14, 7)
    assert {clip.extras["seen_score"] for clip in clips} == {"1"}
    uncertain = [clip for clip in clips if clip.extras["draw"] == "uncertain"]
    assert all(a.end_s < b.start_s for a, b in pairwise(uncertain))  # no neighbours
    rows = timeline.rows().set_index("start_s")
    threshold = timeline.model().threshold_p
    near = np.abs(logit(rows["p"]) - logit(threshold))
    assert near[[clip.start_s for clip in uncertain]].mean() < near.median()
    seen = [(clip.movie, clip.start_s) for clip in clips]
    again = choose_next([timeline], 21, judged=seen)
    assert not {clip.clip_id for clip in again} & {clip.clip_id for clip in clips}


def test_a_rate_is_corrected_by_blind_judgements_alone(scored, tmp_path):
    timeline = Timeline.read(scored[0])
    blind = choose_next([timeline], 60, blind=True)
    seen = [replace(clip, clip_id=f"{clip.clip_id}-seen") for clip in choose_next([timeline], 12)]
    both = [
        *blind,
        *(replace(clip, extras={k: clip.extras[k] for k in ("draw", "seen_score")}) for clip in seen),
    ]
    rate, notices = correct_rate(timeline, judged(both, tmp_path))
    assert (rate.n, rate.method, rate.annotators) == (60, "difference", ["AB"])
    assert rate.low < 200 / 600 < rate.high
    assert rate.worth > 0
    assert notices == ["left out 12 judgements made with the score in sight, or not saying"]
    write_rates(tmp_path, [rate])
    assert read_rates(tmp_path) == [rate]


def test_judgements_that_cannot_be_used_are_named(scored, tmp_path):
    timeline = Timeline.read(scored[0])
    blind = choose_next([timeline], 30, blind=True)
    few = judged(blind[:5], tmp_path)
    with pytest.raises(FilmError, match="5 windows were judged blindly, at least 10 are needed"):
        correct_rate(timeline, few)
    shifted = [*blind[:20], *(replace(clip, start_s=clip.start_s + 0.5) for clip in blind[20:])]
    other = Clip("other-1", "other", start_s=0, end_s=4, extras={"draw": "random", "seen_score": "0"})
    rate, notices = correct_rate(timeline, judged([*shifted, other], tmp_path))
    assert rate.n == 20
    assert notices == [
        "left out 1 judgements of other films",
        "left out 10 judgements whose times are no window of this timeline",
    ]
    with pytest.raises(FilmError, match="'violent' positive, which is no level of the judgements' codebook"):
        correct_rate(timeline, Manifest(tuple(blind), Path(tmp_path)))


def test_judgements_made_with_the_score_in_sight_are_trained_on_and_not_tested(trained):
    """A third of the clips: they are in no test fold, unless asked for."""
    seen = [place % 3 == 0 for place in range(len(trained.manifest))]
    marked = trained.manifest.with_clips(
        replace(clip, extras={"seen_score": "1" if was_seen else "0"})
        for clip, was_seen in zip(trained.manifest, seen, strict=True)
    )
    anchored = {clip.clip_id for clip in marked if clip.extras["seen_score"] == "1"}
    data = load_dataset(trained.store, marked)
    run = evaluate(data, ["linear"], "calm_violent")
    tested = set(run.predictions.table["clip_id"])
    assert not tested & anchored
    assert run.record["clips"]["seen_score"] > 0
    assert run.record["clips"]["tested"] == len(tested)
    assert any("model's score in sight: trained on, not tested" in note for note in run_report(run).notes)
    asked = evaluate(data, ["linear"], "calm_violent", test_seen_scores=True)
    assert set(asked.predictions.table["clip_id"]) > tested
    assert "seen_score" not in asked.record["clips"]
    before = evaluate(load_dataset(trained.store, trained.manifest), ["linear"], "calm_violent")
    assert asked.predictions.table.equals(before.predictions.table)
    assert [fold["train_clips"] for fold in run.record["folds"]] == [
        fold["train_clips"] for fold in before.record["folds"]
    ]
