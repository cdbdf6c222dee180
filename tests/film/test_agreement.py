"""Metrics of timelines against oracles, and against what people's own agreement must give."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import cohen_kappa_score

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest
from obygaze_film.agreement import (
    boundary_f1,
    find_overlaps,
    kappa,
    second_f1,
    seconds_in,
    segment_ap,
    segment_f1,
    top_precision,
)
from obygaze_film.errors import FilmError
from obygaze_film.evaluation import (
    ALL,
    NONE,
    Marks,
    _notes,
    annotated,
    compare_marks,
    evaluate_films,
    evaluation_report,
    human_marks,
    marks_of,
)
from obygaze_film.positive import Meaning, Positive
from obygaze_film.score import MOBYGAZE
from obygaze_models.evaluation.metrics import average_precision
from tests.film.page.invented import invented_film

SURE = Positive((Meaning("S", "Sure", ""),), is_concept=False, task_title="")

ORACLE = json.loads((Path(__file__).parent / "oracles" / "sed_eval.json").read_text(encoding="utf-8"))
"""Spans, and what the packages sed_eval and sed_scores_eval give of them (oracles/README.md)."""


def spans(pairs):
    """Make an array [N, 2] of starts and ends in seconds; [0, 2] of an empty list."""
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=10).map(
    lambda rows: [(start, start + length) for start, length in rows]
)


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_sed_eval_agrees_on_collars_and_on_seconds(case):
    """Values of sed_eval 0.2.1, made as oracles/README.md says."""
    reference, estimated = spans(case["reference"]), spans(case["estimated"])
    for collar, expected in case["boundary_f1"].items():
        assert boundary_f1(reference, estimated, float(collar)) == pytest.approx(expected, abs=1e-12)
    a, b = (seconds_in(spans(one), 1000) for one in case["whole_seconds"])
    assert second_f1(a, b) == pytest.approx(case["second_f1"], abs=1e-12)


def test_a_second_is_in_a_span_if_its_middle_is_and_an_end_is_not():
    assert seconds_in(spans([(0.5, 1.5), (2.4, 4.6)]), 5).tolist() == [True, False, True, True, True]


def test_what_is_as_far_apart_as_allowed_agrees():
    assert segment_ap(spans([(0, 10)]), spans([(0, 5)]), [1.0], 0.5) == 1
    assert boundary_f1(spans([(0, 10), (30, 90)]), spans([(5, 15), (35, 102)]), 5.0) == 1


@pytest.mark.parametrize("case", ORACLE["scored"])
def test_sed_scores_eval_agrees_on_the_precision_of_seconds(case):
    y = seconds_in(spans(case["truth"]), 1000).astype(np.int64)
    assert average_precision(y, np.array(case["scores"])) == pytest.approx(case["second_ap"], abs=1e-9)


def films_of_rates(rates: Sequence[float]) -> dict[str, Marks]:
    """Films of 50 seconds, of which the first part is marked: the rate is the share that is marked."""
    return {
        f"f{film}": Marks(np.arange(50) < 50 * rate, spans([(0, 50 * rate)]), rate)
        for film, rate in enumerate(rates)
    }


def rank_correlation(by_model: Sequence[float], by_annotator: Sequence[float]) -> pd.Series:
    """The rank correlation of a model's rates of films and an annotator's: value, low and high."""
    model, human = films_of_rates(by_model), films_of_rates(by_annotator)
    annotators_of = {movie: {"a": marks} for movie, marks in human.items()}
    found = compare_marks(model, annotators_of, name="m", n_shifts=2)
    return found.summary.set_index(["who", "metric"]).loc["m", "rate_rank"][["value", "low", "high"]]


def test_a_rank_correlation_of_equal_rates_or_of_two_films_is_undefined():
    assert rank_correlation([0.2] * 5, [0.1, 0.2, 0.3, 0.4, 0.5]).isna().all()
    assert rank_correlation([0.2, 0.4], [0.1, 0.2]).isna().all()


def test_a_rank_correlation_of_1_has_no_interval_and_a_lower_one_has():
    """Whichever films are drawn again, films in one order stay in it: no interval could be made."""
    in_order = rank_correlation([0.2, 0.3, 0.4, 0.6, 0.7], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert in_order["value"] == 1
    assert in_order[["low", "high"]].isna().all()
    last_two_swapped = rank_correlation([0.2, 0.3, 0.4, 0.7, 0.6], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert -1 < last_two_swapped["low"] < last_two_swapped["value"] < last_two_swapped["high"] < 1


def test_a_model_that_scores_all_seconds_alike_has_p_1_in_any_order_of_films():
    """No shift of its timeline changes it, so that every shift agrees with people as well as it does.

    Sums over films of equal numbers may differ in the last bit: that makes no shift a worse one.
    """
    rng, model, people = np.random.default_rng(0), {}, {}
    for film in range(12):
        n_seconds = int(rng.integers(60, 400))
        start, length = int(rng.integers(n_seconds - 20)), int(rng.integers(5, 20))
        people[f"f{film}"] = {"a": human_marks(spans([(start, start + length)]), n_seconds)}
        all_marked, scores = np.ones(n_seconds, np.bool_), np.full(n_seconds, 0.3)
        model[f"f{film}"] = Marks(all_marked, spans([(0, n_seconds)]), 1.0, scores)
    for n_films in range(4, 13):
        some = dict(list(model.items())[:n_films])
        table = compare_marks(some, people, name="m", n_shifts=20).summary.set_index(["who", "metric"])
        assert (table.loc["m", "p"][["second_ap", "second_auc", "second_f1", "kappa"]] == 1).all()


def test_shifts_that_leave_a_metric_undefined_are_no_worse_ones():
    """All that is scored is scored alike; moved, it may have nothing that is marked."""
    scores = np.where(np.arange(200) < 60, 0.3, np.nan)
    model = {"m": Marks(scores > 0, spans([(0, 60)]), 0.3, scores)}
    people = {"m": {"a": human_marks(spans([(20, 30)]), 200)}}
    table = compare_marks(model, people, name="m", n_shifts=50).summary.set_index(["who", "metric"])
    assert table.loc[("m", "second_auc"), "p"] == 1


def test_the_order_of_films_changes_no_number():
    """Four films, of which a person marks 40 seconds each, and a model's calls and scores at random."""
    rng = np.random.default_rng(1)
    people = {
        f"f{film}": human_marks(spans([(start, start + 40)]), 300)
        for film, start in enumerate((5, 90, 200, 30))
    }
    humans = {movie: {"a": marks} for movie, marks in people.items()}
    models = {
        movie: Marks(rng.random(300) < 0.3, spans([(20, 120)]), 0.3, rng.random(300)) for movie in people
    }
    tables = [
        compare_marks(dict(order), humans, name="m", n_shifts=30).summary.sort_values(["who", "metric"])
        for order in (models.items(), reversed(models.items()))
    ]
    pd.testing.assert_frame_equal(*(table.reset_index(drop=True) for table in tables))


def test_no_second_behind_the_films_rows_is_called():
    """The film lasts 600 s, and what people marked goes on to second 640."""
    film = invented_film(n_rows=60, duration_s=600.0)
    marks = marks_of(film, key=None, n=640)
    assert marks.seconds.any()
    assert not marks.seconds[600:].any()


def test_kappa_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 500)) < 0.3
    assert kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))


def test_kappa_of_two_who_mark_everything_is_undefined():
    everything = np.ones(5, np.bool_)
    assert np.isnan(kappa(everything, everything))


TWO_SEGMENTS = spans([(0, 10), (20, 30)])


def test_segments_are_matched_one_to_one():
    """Two estimates overlap the first reference, and one matches it: two matches of 2 + 3 segments."""
    estimated = spans([(0, 10), (1, 9), (21, 29)])
    assert segment_f1(TWO_SEGMENTS, estimated, 0.5) == pytest.approx(2 * 2 / (2 + 3))


def test_overlaps_are_found_with_the_intersection_over_the_union():
    """Of 0 to 10 s with itself, and with 1 to 9 s: 8 of 10 seconds."""
    found = find_overlaps(spans([(0, 10)]), spans([(0, 10), (1, 9), (21, 29)]))
    assert found.pairs.second.tolist() == [0, 1]
    assert found.tiou.tolist() == [1, 0.8]


def test_segments_match_themselves_and_what_overlaps_exactly_as_much_as_asked_for():
    assert segment_f1(TWO_SEGMENTS, TWO_SEGMENTS, 0.99) == 1
    assert segment_f1(spans([(0, 10)]), spans([(0, 5)]), 0.5) == 1


def test_the_f1_of_no_segments_is_undefined_and_that_of_none_found_is_0():
    assert np.isnan(segment_f1(spans([]), spans([]), 0.5))
    assert segment_f1(TWO_SEGMENTS, spans([]), 0.5) == 0


def f1_by_assignment(pairs, n_reference, n_estimated):
    """Match one to one as many as can be of the pairs that may match, and give the F1 of that."""
    rows, columns = linear_sum_assignment(pairs, maximize=True)
    return 2 * pairs[rows, columns].sum() / (n_reference + n_estimated)


def overlaps_of_all(reference, estimated):
    """Give intersection over union of each reference, by row, with each estimate, by column."""
    ends = np.minimum(reference[:, None, 1], estimated[None, :, 1])
    starts = np.maximum(reference[:, None, 0], estimated[None, :, 0])
    common = np.maximum(ends - starts, 0)
    lengths = np.diff(reference)[:, None, 0] + np.diff(estimated)[None, :, 0]
    return common / (lengths - common)


@given(SPANS, SPANS, st.sampled_from([0.1, 0.3, 0.5, 0.9]))
def test_segments_are_matched_as_if_all_were_compared_with_all(first, second, threshold):
    reference, estimated = spans(first), spans(second)
    found = segment_f1(reference, estimated, threshold)
    pairs = overlaps_of_all(reference, estimated) >= threshold
    assert found == pytest.approx(f1_by_assignment(pairs, len(reference), len(estimated)))


@given(SPANS, SPANS)
def test_boundaries_are_matched_as_if_all_were_compared_with_all(first, second):
    """Beginnings within the collar, ends within it or a fifth of the reference's length."""
    reference, estimated, collar_s = spans(first), spans(second), 2.0
    apart = np.abs(reference[:, None] - estimated[None])  # beginnings and ends, of all pairs
    allowed = np.maximum(collar_s, 0.2 * np.diff(reference))
    pairs = (apart[:, :, 0] <= collar_s) & (apart[:, :, 1] <= allowed)
    found = boundary_f1(reference, estimated, collar_s)
    assert found == pytest.approx(f1_by_assignment(pairs, len(reference), len(estimated)))


@given(SPANS, SPANS, st.sampled_from([0.1, 0.3, 0.5, 0.9]))
def test_the_precision_of_ranked_segments_is_that_of_a_loop_over_ranks(first, second, threshold):
    """Each in turn takes the reference that it overlaps most of those that are left."""
    reference, estimated = spans(first), spans(second)
    scores = np.arange(len(estimated))[::-1]  # the first is the highest
    left, n_right, precisions = overlaps_of_all(reference, estimated), 0, []
    for rank in range(len(estimated)):
        best = left[:, rank].argmax()
        if left[best, rank] >= threshold:
            n_right += 1
            precisions.append(n_right / (rank + 1))
            left[best] = -1  # it is taken
    interpolated = [max(precisions[place:]) for place in range(len(precisions))]
    expected = sum(interpolated) / len(reference)
    assert segment_ap(reference, estimated, scores, threshold) == pytest.approx(expected)


def test_average_precision_of_segments_by_hand():
    """Three references; ranked right, wrong, right, and the first again, which is taken: wrong.

    Precision is 1 where the first is found, and 2/3 where the second is; the third is never found.
    """
    reference = spans([(0, 10), (20, 30), (50, 60)])
    estimated = spans([(0, 10), (40, 44), (20, 30), (1, 10)])
    assert segment_ap(reference, estimated, [0.9, 0.8, 0.7, 0.6], 0.5) == pytest.approx((1 + 2 / 3) / 3)


def test_average_precision_of_segments_is_interpolated():
    """Ranked wrong, right, right: precision is 1/2, then 2/3, and the better one counts for both."""
    reference = spans([(0, 10), (20, 30), (50, 60)])
    estimated = spans([(40, 44), (0, 10), (20, 30)])
    assert segment_ap(reference, estimated, [0.9, 0.8, 0.7], 0.5) == pytest.approx((2 / 3 + 2 / 3) / 3)


def test_top_precision_counts_what_meets_the_span_of_any_annotator():
    """Of the first three the second overlaps what a person marked too little; the fourth is not asked for."""
    people = [spans([(0, 10)]), spans([(20, 30)])]
    ranked = spans([(0, 12), (26, 40), (22, 28), (50, 60)])
    assert top_precision(people, ranked, 3) == pytest.approx(2 / 3)


def test_top_precision_of_no_segments_is_undefined():
    assert np.isnan(top_precision([spans([(0, 10)])], spans([]), 3))


@pytest.mark.parametrize("other_spelling", ["ab 1", "\uff21\uff22_1"])  # the second in wide letters
def test_annotators_of_one_name_are_refused(segments, other_spelling):
    first, *rest = segments
    clips = [replace(first, annotator=other_spelling)]
    clips += [replace(clip, annotator="AB 1") for clip in rest]
    with pytest.raises(ManifestError, match="one name"):
        annotated(segments.with_clips(clips), SURE)


@pytest.fixture(scope="module")
def people(segments):
    """Marks of the two annotators of MObyGaze by film: {movie: {annotator: marks}}."""
    n_seconds = {}
    for clip in segments:
        n_seconds[clip.movie] = max(n_seconds.get(clip.movie, 0), int(np.ceil(clip.end_s)))
    return {
        movie: {name: human_marks(own, n_seconds[movie]) for name, own in spans_of.items()}
        for movie, spans_of in annotated(segments, SURE).items()
    }


@pytest.mark.long  # simulates
def test_two_annotators_of_mobygaze_agree_as_far_as_the_ceilings_say(people):
    """Annotator 1 against annotator 2, segments that touch as one; rounded, film.md's figures."""
    first = {movie: both["annotator1"] for movie, both in people.items()}
    second = {movie: {"annotator2": both["annotator2"]} for movie, both in people.items()}
    found = compare_marks(first, second, name="annotator1", n_shifts=20)
    table = found.summary.set_index(["who", "metric"])
    expected = {
        "second_f1": 0.401, "kappa": 0.308, "second_ap": 0.256, "rate": 0.202, "rate_rank": 0.433,
        "segment_f1_0.1": 0.398, "segment_f1_0.3": 0.291, "segment_f1_0.5": 0.172,
        "boundary_f1_5s": 0.095, "boundary_f1_15s": 0.173,
    }  # fmt: skip
    values = {metric: round(float(table.loc[("annotator1", metric), "value"]), 3) for metric in expected}
    assert values == expected
    assert round(float(table.loc[("human: annotator2", "rate"), "value"]), 3) == 0.120
    (of_sure,) = (record for record in MOBYGAZE if record.positive == ["S"])
    rank = table.loc[("annotator1", "rate_rank")]
    assert (rank["low"], rank["high"]) == pytest.approx((of_sure.rank_low, of_sure.rank_high), abs=0.001)
    assert table.loc[("annotator1", "second_f1"), "n_films"] == 20
    # The ceilings that pages show beside a model are these figures, and so are those of film.md.
    ceilings = {
        "kappa": of_sure.kappa, "second_f1": of_sure.second_f1, "segment_f1_0.5": of_sure.segment_f1,
        "boundary_f1_5s": of_sure.boundary_f1, "rate_rank": of_sure.rank_correlation,
    }  # fmt: skip
    assert ceilings == {metric: expected[metric] for metric in ceilings}
    text = (Path(__file__).parents[2] / "docs" / "film.md").read_text(encoding="utf-8")
    assert all(f"{value:.2f}" in text for value in ceilings.values())


@pytest.mark.long  # simulates
def test_precision_rises_with_planted_signal_and_a_shifted_timeline_stays_flat(people):
    """Planted: scores of seconds are noise and, from none to twice, what annotator 2 marked."""
    people = dict(list(people.items())[:6])
    marked = {movie: both["annotator2"] for movie, both in people.items()}
    truth = {movie: {"annotator2": marks} for movie, marks in marked.items()}
    rng = np.random.default_rng(1)
    noise = {movie: rng.normal(size=len(marks.seconds)) for movie, marks in marked.items()}
    ap, ap_shifted, p = [], [], []
    for signal in (0.0, 1.0, 2.0):
        machine = {}
        for movie, marks in marked.items():
            # Windows of 30 s, as a model would see: smoothed, so that it is correlated in time.
            window = np.ones(30) / 30
            scores = np.convolve(signal * marks.seconds + noise[movie] * 2, window, mode="same")
            called = scores > np.quantile(scores, 0.88)  # 12 %: about what annotator 2 marked
            edges = np.flatnonzero(np.diff(np.concatenate([[0], called.astype(int), [0]])))
            called_spans = edges.reshape(-1, 2).astype(float)
            machine[movie] = Marks(called, called_spans, float(called.mean()), scores)
        table = compare_marks(machine, truth, name="m", n_shifts=19).summary.set_index(["who", "metric"])
        ap.append(table.loc[("m", "second_ap"), "value"])
        ap_shifted.append(table.loc[("shifted", "second_ap"), "value"])
        p.append(table.loc[("m", "second_ap"), "p"])
    assert ap == sorted(ap)
    assert ap[-1] > 3 * ap[0]
    assert max(ap_shifted) - min(ap_shifted) < 0.015
    share_marked = np.mean([marks.rate for marks in marked.values()])
    assert ap_shifted[0] == pytest.approx(share_marked, abs=0.02)  # what chance gives
    assert p[0] > 0.05
    assert p[-1] == pytest.approx(1 / 20)  # the least that 19 shifts can give


def notes_of(*who):
    """The notes below a table with rows of these."""
    return "\n".join(_notes({"positive": ["S"]}, pd.DataFrame({"who": who})))


def test_the_notes_call_two_annotators_each_others_yardstick_and_say_of_one_that_it_has_none():
    assert "yardstick" in notes_of("m", "human: a", "human: b")
    assert "One annotator" not in notes_of("m", "human: a", "human: b")
    assert "One annotator" in notes_of("m", "human: a")


def test_the_notes_do_not_say_that_people_are_measured_as_passages_are():
    """Passages go on over gaps, and short ones are dropped; marks of people are taken as they are."""
    said = notes_of("m", "human: a", "human: b")
    assert "measured as" not in said
    assert "gaps of up to 5 s" in said


@pytest.fixture
def two_films():
    """Two scored films of ten minutes, called m and n."""
    return [invented_film(movie, n_rows=60, duration_s=600.0) for movie in ("m", "n")]


OF_M = Clip("a", "m", start_s=0.0, end_s=100.0, level="S", annotator="ann")
"""What ann marked in film m: the first hundred seconds are S."""


def evaluated(films, *clips):
    """Compare the films' segments with what people marked."""
    return evaluate_films(films, Manifest(clips, Path()), n_shifts=5)


def test_films_that_nobody_annotated_are_left_out_by_name(two_films):
    assert evaluated(two_films, OF_M).record["left_out"] == ["n"]
    of_n = replace(OF_M, clip_id="b", movie="films/N.mkv")  # film n, as a table may spell it
    both = evaluated(two_films, OF_M, of_n)
    assert both.record["left_out"] == both.record["not_scored"] == []


def test_annotations_of_a_film_that_is_not_scored_are_said_with_the_film_that_may_be_meant(two_films):
    misspelled = replace(OF_M, clip_id="b", movie="nn")
    report = evaluation_report(evaluated(two_films, OF_M, misspelled))
    assert "nn (did you mean 'n'?)" in str(report.notes)
    with pytest.raises(FilmError, match=r"has nn \(did you mean 'n'"):
        evaluated(two_films, misspelled)


def test_a_film_with_annotations_of_its_own_is_not_meant_by_another_name(two_films):
    misspelled = replace(OF_M, clip_id="b", movie="nn")
    of_n = replace(OF_M, clip_id="c", movie="n")
    measured = evaluated(two_films, OF_M, misspelled, of_n)
    assert measured.record["not_scored"] == ["nn"]
    (answer,) = (sentence for sentence in evaluation_report(measured).answers if "ann" in sentence)
    assert "(95%)" in answer or "[" not in answer  # an interval is said with its level


def test_annotators_whose_names_differ_by_capitals_are_refused(two_films):
    with pytest.raises(ManifestError, match="annotator 'Ann' and 'ann'"):
        evaluated(two_films, OF_M, replace(OF_M, clip_id="b", annotator="Ann"))


def test_an_annotation_behind_the_films_end_is_refused(two_films):
    with pytest.raises(FilmError, match="lasts 600 s"):
        evaluated(two_films, replace(OF_M, start_s=3600.0, end_s=3605.0))


def test_an_annotation_that_goes_on_behind_the_films_end_is_cut_and_that_is_recorded(two_films):
    to_the_end = replace(OF_M, start_s=480.0, end_s=600.0)
    exact = evaluated(two_films, to_the_end)
    # 9e7 s are some three years: a time in another unit.
    cut = evaluated(two_films, replace(to_the_end, end_s=9e7))
    pd.testing.assert_frame_equal(exact.summary, cut.summary)
    assert exact.record["cut"] == []
    assert cut.record["cut"] == ["m (ann: 9e+07 s)"]


def test_to_mark_all_is_right_of_a_film_that_is_all_positive_and_to_mark_nothing_is_wrong():
    """A person marked all of film m, and 20 of the 50 seconds of film n."""
    films = {"m": human_marks(spans([(0, 50)]), 50), "n": human_marks(spans([(0, 20)]), 50)}
    humans = {movie: {"a": marks} for movie, marks in films.items()}
    found = compare_marks(films, humans, name="m", n_shifts=2, collars=(0.5,)).by_film
    value = found[found["movie"] == "m"].set_index(["who", "metric"])["value"]
    assert value[ALL, "segment_f1_0.5"] == value[ALL, "boundary_f1_0.5s"] == 1
    assert value[NONE, "segment_f1_0.5"] == value[NONE, "boundary_f1_0.5s"] == 0


def test_a_metric_that_is_undefined_has_no_p_either():
    """Nothing is marked positive: an AUC has no positive second to rank."""
    film = invented_film("m", n_rows=60, duration_s=600.0)
    table = evaluated([film], replace(OF_M, level="HN")).summary.set_index(["who", "metric"])
    of_model = table.loc[film.model().key]
    assert of_model.loc["second_auc", ["value", "p"]].isna().all()
    assert of_model["p"][of_model["value"].notna()].max() <= 1
