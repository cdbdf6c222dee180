"""A corrected rate covers what it should, and is narrower than judgements alone."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from scipy.special import expit, logit
from scipy.stats import binomtest, hypergeom
from sklearn.metrics import cohen_kappa_score

from obygaze_features.manifest import Clip, Manifest
from obygaze_film.cells import Cells, cells_of, inclusion_chances
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import (
    correct_rate,
    difference_estimate,
    estimate_rate,
    kappa_interval,
    least_judged,
    read_rates,
    write_rates,
)
from obygaze_film.scored_files import RATES
from obygaze_film.windows_to_judge import choose_next
from tests.film.films import scored_film
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
    drawn = np.argpartition(rng.random(y.shape) / seconds, n, axis=1)[:, :n]
    chances = n * seconds / seconds.sum(axis=1, keepdims=True)
    judged = (np.take_along_axis(values, drawn, axis=1) for values in (y, p, np.ones_like(y), chances))
    mean = np.average(p, weights=seconds, axis=1)
    variance = np.average((p - mean[:, None]) ** 2, weights=seconds, axis=1)
    found = difference_estimate(*judged, film_p=mean, film_variance=variance)
    truth = np.average(y, weights=seconds, axis=1)
    holds = (found.low <= truth) & (truth <= found.high)
    return holds.mean(), (found.high - found.low).mean(), (found.alone_high - found.alone_low).mean()


@pytest.mark.long
@pytest.mark.parametrize("prevalence", [0.02, 0.1, 0.35, 0.5])
def test_it_covers_from_useless_models_to_good_ones_and_is_narrower_than_judgements_alone(prevalence):
    """Rare to common, all sizes and qualities: alone it finds the corner in which an interval is too short.

    2,000 draws leave a coverage uncertain by .005 (one standard error).
    """
    for n in SIZES:
        for quality in (0, 0.5, 1, 2):  # AUC .5, .64, .76, .92
            coverage, width, alone = cover(prevalence, quality, n)
            assert 0.93 <= coverage <= 0.975, (quality, n, coverage)
            assert width < alone if quality else width == pytest.approx(alone, rel=1e-6), (quality, n)
        coverage, width, alone = cover(prevalence, 0, n, noise=1.0)  # probabilities that say nothing
        assert 0.93 <= coverage <= 0.975, (n, coverage)
        assert width == pytest.approx(alone, rel=0.015)


@pytest.mark.parametrize("model", [{}, {"bias": 1.5}, {"bias": -1.5}, {"sharpness": 2.5}, {"sharpness": 0.4}])
def test_it_needs_no_trust_in_the_model(model):
    """Biased, overconfident and timid probabilities cost width, never coverage."""
    for prevalence, n in ((0.05, 30), (0.2, 100), (0.5, 30)):
        coverage, width, alone = cover(prevalence, 1, n, n_films=250, **model)
        assert coverage >= 0.92  # 1,000 draws: .007
        assert width < alone


def test_a_timid_model_is_not_counted_more_than_once():
    y = np.tile([[0.0, 1.0]], (1, 10))
    found = difference_estimate(y, 0.49 + 0.02 * y, np.ones_like(y), 0 * y, film_p=0.5, film_variance=1e-4)
    assert found.gain == 1


def test_the_estimate_of_four_judgements_by_hand():
    """Alone .5, D = .65 - .45: the gain at R is 2 R (1 - R), R = .5 - .05 times it; the fifth weighs 0."""
    y, p, weights = [[1, 0, 1, 0, 0]], [[0.8, 0.3, 0.6, 0.5, 0.9]], [[1, 1, 1, 1, 0]]
    found = difference_estimate(y, p, weights, np.zeros((1, 5)), film_p=0.5, film_variance=0.1)
    (rate,) = found.value
    assert rate == pytest.approx(0.5 - 0.05 * 2 * rate * (1 - rate), abs=1e-6)
    assert found.gain == pytest.approx(2 * rate * (1 - rate), abs=1e-6)


def test_a_cell_without_content_is_neither_found_nor_drawn():
    edges = np.arange(0.0, 25, 8)
    cells = Cells(np.column_stack([edges[:-1], edges[1:]]), np.array([0, 0.5, 8]), np.ones(3), np.ones(3))
    assert [cells.find(start, start + 8) for start in (0.0, 8.0, 16.0, 20.0)] == [None, 1, 2, None]
    assert sorted(cells.drawn("m", 0)) == [1, 2]


def test_a_model_that_is_too_sure_counts_by_half():
    """Probabilities .1 and .9 of windows of which .3 and .7 are positive: the slope of y on p is .5."""
    rng = np.random.default_rng(0)
    high = rng.permutation(np.arange(4000) < 2000)
    y, p = (rng.random(4000) < np.where(high, 0.7, 0.3)).astype(float)[None], np.where(high, 0.9, 0.1)[None]
    found = difference_estimate(y, p, np.ones_like(y), 0 * y, film_p=0.5, film_variance=0.16)
    assert found.gain == pytest.approx(0.5, abs=0.05)


def exact_coverage(positives, n):
    """Coverage over all samples of n of 1,000 equal windows by a model that says the same of each."""
    counts = np.arange(n + 1)
    chances = hypergeom(N_ROWS, positives, n).pmf(counts)
    labels = np.arange(n)[None] < counts[:, None]
    found = difference_estimate(
        labels, np.full((n + 1, n), 0.2), np.ones((n + 1, n)), np.full((n + 1, n), n / N_ROWS),
        film_p=0.2, film_variance=0.0,
    )  # fmt: skip
    truth = positives / N_ROWS
    return chances[(found.low <= truth) & (truth <= found.high)].sum()


def test_equal_windows_and_a_useless_model_are_covered_by_93_to_97_percent_but_for_five_cells():
    """Then only the count of positives is known: coverage is the sum of the chances of some counts.

    Of 20 positives in 1,000, a draw of 30 has 3 or more with chance .020 and 2 with .098, and fewer even more
    often: whichever counts an interval leaves out, that is at most .020 or at least .098, and never .03 to
    .07. In the same way with 60. (Unequal durations, or a better model, tell draws of equal count apart.)
    """
    values = {(p, n): exact_coverage(round(p * N_ROWS), n) for p in PREVALENCES for n in SIZES}
    above = {cell: round(coverage, 3) for cell, coverage in values.items() if coverage > 0.97}
    assert above == {
        (0.02, 30): 0.980, (0.02, 60): 0.972, (0.05, 60): 0.975, (0.05, 100): 0.974, (0.1, 30): 0.976,
    }  # fmt: skip
    assert min(values.values()) >= 0.93


def test_without_a_model_it_is_wilsons_interval():
    for k in (0, 1, 7, 30):
        y = np.array([[1.0] * k + [0.0] * (30 - k)])
        found = difference_estimate(
            y, np.full((1, 30), 0.3), np.ones((1, 30)), np.zeros((1, 30)), film_p=0.3, film_variance=0.0
        )
        expected = binomtest(k, 30).proportion_ci(method="wilson")
        assert (found.low[0], found.high[0]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def cells_like(seconds, p=None):
    """Cells of these seconds of content; times do not matter."""
    seconds = np.asarray(seconds, dtype=float)
    p = np.full(len(seconds), 0.5) if p is None else p
    return Cells(np.zeros((len(seconds), 2)), seconds, seconds, p)


def test_all_windows_judged_leave_nothing_open():
    rng = np.random.default_rng(0)
    seconds, y, p = (values[0] for values in draws(rng, 0.2, 1, n_films=1))
    order = rng.permutation(N_ROWS)
    found = estimate_rate(cells_like(seconds, p), order[None], y[order][None])
    truth = np.average(y, weights=seconds)
    assert (found.value[0], found.low[0], found.high[0]) == pytest.approx((truth, truth, truth))


@pytest.mark.parametrize("judged", [range(9), [*range(8), 15]])
def test_a_window_certain_to_be_drawn_counts_only_where_it_was_judged(judged):
    """The last is long enough for that; without its judgement, all that is known is positive."""
    judged = np.array([judged])
    found = estimate_rate(cells_like([46] * 15 + [100]), judged, np.ones(judged.shape))
    assert (found.value[0], found.high[0]) == (1, 1)
    assert 0.5 < found.low[0] < 1


SIZES_OF_CELLS = st.lists(st.floats(0.1, 200), min_size=2, max_size=40)


@settings(deadline=None, max_examples=100)
@given(SIZES_OF_CELLS, st.integers(1, 40))
def test_chances_add_up_to_the_number_drawn_and_are_proportional_to_content_below_1(seconds, n):
    seconds, n = np.array(seconds), min(n, len(seconds))
    chances = inclusion_chances(seconds, n)
    assert chances.sum() == pytest.approx(n)
    assert (chances <= 1).all()
    below = chances < 1
    assert not below.any() or np.ptp(chances[below] / seconds[below]) <= 1e-9
    assert seconds[~below].min(initial=np.inf) >= seconds[below].max(initial=0)


def test_a_draw_is_in_proportion_to_content_and_leaves_out_what_has_none():
    seconds = np.array([46.0] * 20 + [23.0] * 10 + [5.0] * 10 + [0.0] * 5)
    counts = np.zeros(45)
    for seed in range(4000):
        counts[cells_like(seconds).drawn("film", seed)[:8]] += 1
    # A share of 4,000 draws is uncertain by .007 at most (one standard error).
    assert counts / 4000 == pytest.approx(inclusion_chances(seconds, 8), abs=0.025)
    assert counts[40:].sum() == 0
    assert len(cells_like(seconds).drawn("film", 0)) == 40


def drawn_and_judged(seconds, y, p, n):
    """Coverage, mean width and mean error of 60 draws of n from each film [F, N]."""
    held, width, errors = [], [], []
    for film in range(len(y)):
        cells, truth = cells_like(seconds[film], p[film]), np.average(y[film], weights=seconds[film])
        drawn = np.array([cells.drawn(str(film), seed)[:n] for seed in range(60)])
        found = estimate_rate(cells, drawn, y[film][drawn])
        held.append((found.low <= truth) & (truth <= found.high))
        width.append(found.high - found.low)
        errors.append(found.value - truth)
    return np.mean(held), np.mean(width), np.mean(errors)


@pytest.mark.parametrize("n", [30, 60])
def test_it_covers_where_positive_rows_are_longer_and_where_one_in_twenty_is_very_long(n):
    """Rows drawn with equal chances cover .87 to .91."""
    rng = np.random.default_rng(n)
    seconds, y, p = (values[:, :600] for values in draws(rng, 0.2, 1, n_films=16))
    coverage, _, error = drawn_and_judged(np.where(y > 0, 3, 1) * seconds, y, p, n)
    assert 0.93 <= coverage <= 0.975  # 960 draws: .007
    assert abs(error) < 0.01
    very_long = np.where(rng.random((16, 60)) < 0.05, 120.0, 5.0)
    coverage, width, _ = drawn_and_judged(very_long, y[:, :60], p[:, :60], n // 2)
    assert coverage >= 0.92
    assert width < 0.3


@pytest.mark.parametrize("end_s", [5.0, 9.0, 100.5, 600.0])
def test_cells_cover_the_film_and_none_is_shorter_than_a_window(trained, tmp_path, end_s):
    _, film = scored_film(tmp_path, trained, end_s=end_s, window_s=min(8.0, end_s), with_shots=end_s > 20)
    cells = cells_of(film)
    window_s = max(film.record.windows.window_s, film.model().clip_s)
    lengths = np.diff(cells.spans)[:, 0]
    assert len(cells.spans) == max(1, int(end_s // window_s))
    assert lengths[:-1] == pytest.approx(window_s)
    assert lengths.min() >= min(window_s, end_s) - 1e-9
    assert (cells.spans[0, 0], cells.spans[-1, 1]) == (0, end_s)
    assert cells.spans[1:, 0].tolist() == cells.spans[:-1, 1].tolist()
    rows = film.rows()
    empty = rows["flags"].str.contains("black|credits")
    seconds = rows["end_s"] - rows["start_s"]
    assert cells.content.sum() == pytest.approx(seconds[~empty].sum())
    assert np.average(cells.p, weights=cells.content) == pytest.approx(film.rate().value)


def judged(clips, folder, truth=lambda clip: clip.start_s < 200):
    """Judge clips: violent in the first 200 seconds."""
    levels = ("violent" if truth(clip) else "calm" for clip in clips)
    return Manifest(
        tuple(replace(clip, level=level, annotator="AB") for clip, level in zip(clips, levels, strict=True)),
        folder,
        codebook(folder),
    )


def test_blind_windows_show_no_score_and_a_larger_n_adds_to_them(timeline):
    few, many = (choose_next([timeline], n, blind=True) for n in (10, 30))
    assert many[:10] == few  # the first rows are a draw of their own: one may stop at any
    assert [clip.extras for clip in many] == [
        {"draw": "random", "seen_score": "0", "place": str(place)} for place in range(1, 31)
    ]
    assert {clip.duration_s for clip in many} == {8.0}  # windows, not pieces of shots
    rows = timeline.rows()
    last = rows.loc[~rows["flags"].str.contains("black|credits"), "end_s"].max()
    assert max(clip.start_s for clip in choose_next([timeline], 75, blind=True)) < last


def test_a_later_blind_list_goes_on_where_the_first_ended_and_ignores_judgements_in_sight(timeline, tmp_path):
    first = judged(choose_next([timeline], 20, blind=True), tmp_path)
    in_sight = judged(choose_next([timeline], 20), tmp_path)
    rest = choose_next([timeline], 10, blind=True, judged=[*first, *in_sight])
    assert [clip.extras["place"] for clip in rest] == [str(place) for place in range(21, 31)]
    unjudged = choose_next([timeline], 20, blind=True)
    assert choose_next([timeline], 20, blind=True, judged=unjudged) == unjudged


def test_windows_to_judge_next_are_uncertain_spread_and_a_third_random(timeline, tmp_path):
    clips = choose_next([timeline], 21)
    draws = [clip.extras["draw"] for clip in clips]
    assert (draws.count("uncertain"), draws.count("random")) == (14, 7)
    assert {clip.extras["seen_score"] for clip in clips} == {"1"}
    uncertain = [clip for clip in clips if clip.extras["draw"] == "uncertain"]
    assert all(a.end_s < b.start_s for a, b in pairwise(uncertain))  # no neighbours
    every = [clip for clip in choose_next([timeline], 300) if clip.extras["draw"] == "uncertain"]
    assert max(b.start_s - a.end_s for a, b in pairwise(every)) == 16.0  # and nothing else is left out
    assert {clip.duration_s for clip in clips} == {8.0}
    random = {clip.clip_id for clip in clips if clip.extras["draw"] == "random"}
    assert random != {clip.clip_id for clip in choose_next([timeline], 7, blind=True)}  # new to the judge
    cells = cells_of(timeline)
    near = np.abs(logit(cells.p) - logit(timeline.model().threshold_p))
    chosen = [cells.find(clip.start_s, clip.end_s) for clip in uncertain]
    assert near[chosen].mean() < np.median(near)
    again = choose_next([timeline], 21, judged=list(judged(clips, tmp_path)))
    assert not {clip.clip_id for clip in again} & {clip.clip_id for clip in clips}


def test_a_rate_is_corrected_by_blind_judgements_alone(timeline, tmp_path):
    blind = choose_next([timeline], 60, blind=True)
    seen = [replace(clip, clip_id=f"{clip.clip_id}-seen") for clip in choose_next([timeline], 12)]
    seen = [replace(clip, extras={"draw": "random", "seen_score": "1", "place": ""}) for clip in seen]
    both = [*blind, *seen]
    rate, notices = correct_rate(timeline, judged(both, tmp_path))
    assert (rate.n, rate.method, rate.annotators) == (60, "difference", ["AB"])
    assert rate.low < 200 / 600 < rate.high
    assert rate.worth > 0
    assert notices == ["left out 12 judgements made with the score in sight, or not saying"]
    spelled = judged([replace(clip, movie=clip.movie.upper() + ".mkv") for clip in both], tmp_path)
    assert correct_rate(timeline, spelled) == (rate, notices)
    write_rates(tmp_path, [rate])
    assert read_rates(tmp_path) == [rate]


def test_a_model_that_was_trained_on_a_film_narrows_no_rate_of_it(timeline, tmp_path):
    """It may have learnt these very judgements: where they are it is right, and only there."""
    (model, *others), seen = timeline.record.models, judged(choose_next([timeline], 30, blind=True), tmp_path)
    record = structs.replace(timeline.record, models=[structs.replace(model, is_trained_on=True), *others])
    rate, notices = correct_rate(replace(timeline, record=record), seen)
    assert rate.method == "wilson"
    assert rate.value == pytest.approx(rate.n_positive / rate.n)
    assert any("trained on this film" in notice for notice in notices)
    assert correct_rate(timeline, seen)[0].method == "difference"


def test_a_machines_labels_of_all_windows_narrow_a_rate_as_a_models_probabilities_do(timeline, tmp_path):
    blind = judged(choose_next([timeline], 60, blind=True), tmp_path)
    every = judged(choose_next([timeline], 600, blind=True), tmp_path)
    flipped = [
        replace(clip, annotator="vlm", level={"violent": "calm"}.get(clip.level, "violent"))
        if place % 10 == 0
        else replace(clip, annotator="vlm")
        for place, clip in enumerate(every)
    ]
    alone, (by_model, _) = 60, correct_rate(timeline, blind)
    by_machine, _ = correct_rate(timeline, blind, labels=every.with_clips(flipped))
    assert by_machine.model == "vlm"
    assert by_machine.worth > max(alone, by_model.worth)
    assert by_machine.low < 200 / 600 < by_machine.high
    assert by_machine.expected == pytest.approx(
        np.mean([clip.level == "violent" for clip in flipped]), abs=0.01
    )
    with pytest.raises(FilmError, match="2 annotators"):
        correct_rate(timeline, blind, labels=every.with_clips([*flipped[1:], every.clips[0]]))
    elsewhere = every.with_clips([replace(clip, movie="other") for clip in flipped])
    with pytest.raises(FilmError, match="no span"):
        correct_rate(timeline, blind, labels=elsewhere)


def test_judgements_that_cannot_be_used_are_named(timeline, tmp_path):
    blind = choose_next([timeline], 30, blind=True)
    with pytest.raises(FilmError, match="at least 10"):
        correct_rate(timeline, judged(blind[:5], tmp_path))
    shifted = [*blind[:20], *(replace(clip, start_s=clip.start_s + 0.5) for clip in blind[20:])]
    extras = {"draw": "random", "seen_score": "0", "place": "1"}
    other = Clip("other-1", "other", start_s=0, end_s=4, extras=extras)
    rate, notices = correct_rate(timeline, judged([*shifted, other], tmp_path))
    assert rate.n == 20
    assert [notice.partition(" film's")[0] for notice in notices] == [
        "left out 1 judgement of other films (other)",
        "left out 10 judgements whose times are no window of this",
    ]
    with pytest.raises(FilmError, match="'violent'"):
        correct_rate(timeline, Manifest(tuple(blind), Path(tmp_path)))


def test_places_count_as_data_frames_write_them(timeline, tmp_path):
    blind = judged(choose_next([timeline], 30, blind=True), tmp_path)
    floats = [replace(clip, extras={**clip.extras, "place": f"{clip.extras['place']}.0"}) for clip in blind]
    assert correct_rate(timeline, blind.with_clips(floats)) == correct_rate(timeline, blind)


@pytest.mark.parametrize(
    "change",
    [
        {"seen_score": ""},
        {"seen_score": "1"},
        {"place": ""},
        {"place": "9" * 10},
        {"place": "9" * 5000},
        {"start_s": -0.5},
        {"end_s": 0.5},
    ],
    ids=lambda change: str(change)[:20],
)
def test_a_judgement_counts_only_if_blind_drawn_and_of_the_whole_window(timeline, tmp_path, change):
    """Of the last of a draw, so that no other one is left out for a gap before it."""
    *blind, last = choose_next([timeline], 20, blind=True)
    times = {name: getattr(last, name) + shift for name, shift in change.items() if name.endswith("_s")}
    said = {name: value for name, value in change.items() if not name.endswith("_s")}
    extras = last.extras | said
    rate, notices = correct_rate(timeline, judged([*blind, replace(last, extras=extras, **times)], tmp_path))
    assert rate.n == 19
    assert len(notices) == 1
    assert ("in a draw" in notices[0]) == ("place" in change)


def test_draws_of_two_seeds_are_refused(timeline, tmp_path):
    draws_of_two = [
        replace(clip, clip_id=f"{seed}-{clip.clip_id}")
        for seed in (0, 1)
        for clip in choose_next([timeline], 20, blind=True, seed=seed)
    ]
    with pytest.raises(FilmError, match="two seeds"):
        correct_rate(timeline, judged(draws_of_two, tmp_path))


def test_of_a_partly_judged_list_what_comes_before_the_first_gap_counts(timeline, tmp_path):
    whole = list(judged(choose_next([timeline], 40, blind=True), tmp_path))
    book = codebook(tmp_path)

    def rate_of(clips):
        return correct_rate(timeline, Manifest(tuple(clips), tmp_path, book))

    stopped = [replace(clip, level=None) if place > 25 else clip for place, clip in enumerate(whole, 1)]
    rate, notices = rate_of(stopped)
    assert rate == rate_of(whole[:25])[0]
    assert notices == ["left out 15 judgements without a level"]
    # A window that the judge was not sure of was judged: it is left out, and the list goes on.
    unsure = [replace(clip, level="unsure") if place == 5 else clip for place, clip in enumerate(stopped, 1)]
    assert rate_of(unsure)[0].n == 24
    # Sorted by time and stopped half way: only what comes before the first gap is a draw of the whole film.
    half = sorted(whole, key=lambda clip: clip.start_s)[:20]
    gap = next(place for place, clip in enumerate(whole, 1) if clip not in half)
    with pytest.raises(FilmError, match=f"place {gap}"):
        rate_of(half)


def test_that_a_judge_says_two_things_of_a_window_is_said(timeline, tmp_path):
    first = list(judged(choose_next([timeline], 20, blind=True), tmp_path))
    again = [replace(clip, clip_id=f"x-{clip.clip_id}") for clip in first[:3]]
    changed = replace(again[0], level="calm" if again[0].level == "violent" else "violent")
    for more, n in ((again, 0), ([changed, *again[1:]], 1)):
        notices = correct_rate(timeline, Manifest((*first, *more), tmp_path, codebook(tmp_path)))[1]
        assert [notice.split()[0] for notice in notices] == ["1"] * n


def test_the_interval_of_kappa_knows_that_rare_calls_tell_little():
    marked = np.arange(20) < 2
    none = kappa_interval(marked, np.zeros(20, np.bool_))  # whatever window is left out: 0
    assert (none.low < -0.05, none.mean, none.high > 0.3) == (True, 0.0, True)
    rng, truth, held = np.random.default_rng(0), 0.605, []
    for _ in range(300):
        y = rng.random(20) < 0.1
        a, b = (y ^ (rng.random(20) < 0.05) for _ in range(2))
        found = kappa_interval(a, b)
        held += [found.low <= truth <= found.high] * (not np.isnan(found.mean))
    assert np.mean(held) > 0.92


def test_two_judges_agreement_is_given_within_the_bounds_of_kappa(timeline, tmp_path):
    first = list(judged(choose_next([timeline], 40, blind=True), tmp_path))
    book = codebook(tmp_path)

    def second(*differs):
        other = {"violent": "calm", "calm": "violent"}
        for place, clip in enumerate(first):
            level = other[clip.level] if place in differs else clip.level
            yield replace(clip, clip_id=f"cd-{clip.clip_id}", annotator="CD", level=level)

    def rate_of(*clips):
        return correct_rate(timeline, Manifest(clips, tmp_path, book))[0]

    for differs in ((7,), (1, 3, 7, 20)):
        judges = first, list(second(*differs))
        (pair,) = rate_of(*judges[0], *judges[1]).agreement
        assert (pair.annotators, pair.n, pair.alike) == (["AB", "CD"], 40, 40 - len(differs))
        assert pair.kappa == pytest.approx(cohen_kappa_score(*([c.level for c in one] for one in judges)))
        assert -1 <= pair.low < pair.kappa < pair.high <= 1
    same = rate_of(*first, *second())
    assert (same.agreement[0].kappa, same.agreement[0].high) == (1.0, 1.0)
    assert 0.5 < same.agreement[0].low < 0.95
    write_rates(tmp_path, [same])
    assert read_rates(tmp_path) == [same]
    written = (tmp_path / RATES).read_text(encoding="utf-8")
    (tmp_path / RATES).write_text(written.replace('"AB"', '"\\u202eAB"'), encoding="utf-8")
    with pytest.raises(FilmError):
        read_rates(tmp_path)


def test_a_film_of_few_windows_is_judged_whole(trained, tmp_path):
    _, timeline = scored_film(tmp_path, trained, end_s=50.0, with_shots=False)
    blind = choose_next([timeline], 40, blind=True)
    assert len(blind) == 6
    rate, _ = correct_rate(timeline, judged(blind, tmp_path, lambda clip: clip.start_s < 16))
    assert (rate.value, rate.low, rate.high) == pytest.approx((16 / 50, 16 / 50, 16 / 50))
    assert rate.worth is None
    with pytest.raises(FilmError, match="at least 6"):
        correct_rate(timeline, judged(blind[:5], tmp_path))


def test_cells_without_content_need_no_judgement():
    content = np.array([5.0, 0.0, 5.0, 5.0])
    assert least_judged(Cells(np.zeros((4, 2)), content, content, np.full(4, 0.5))) == 3


def test_a_cell_is_known_where_more_than_half_of_it_counts():
    spans = np.array([[0.0, 10], [10, 20], [20, 30]])
    cells = Cells(spans, np.full(3, 10.0), np.array([4.0, 5, 6]), np.full(3, 0.5))
    assert cells.is_known.tolist() == [False, False, True]


def test_a_model_without_probabilities_expects_a_half_of_every_cell(timeline):
    silent = replace(timeline, table=timeline.table.assign(p=np.nan, p_low=np.nan, p_high=np.nan))
    assert (cells_of(silent).p == 0.5).all()
