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
from msgspec import structs
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import cohen_kappa_score

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest
from obygaze_film.agreement import (
    boundary_f1,
    kappa,
    merged,
    reachable_top_precision,
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
    PRIOR,
    SHIFTED,
    Marks,
    answers_of,
    compare_marks,
    evaluate_films,
    evaluation_report,
    human_marks,
    marks_of,
)
from obygaze_film.judged_clock import JudgedClock
from obygaze_film.positive import Meaning, Positive
from obygaze_film.score import MOBYGAZE
from obygaze_models.evaluation.metrics import average_precision
from tests.film.page.invented import fake_scored_film, ten_minute_film, with_columns, with_model

SURE = Positive((Meaning("S", "Sure", ""),), is_concept=False, task_title="")

ORACLE = json.loads((Path(__file__).parent / "oracles" / "sed_eval.json").read_text(encoding="utf-8"))
"""Spans, and what the packages sed_eval and sed_scores_eval give of them (oracles/README.md)."""


def spans(pairs):
    """Make an array [N, 2] of starts and ends in seconds; [0, 2] of an empty list."""
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


RANDOM_SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=10).map(
    lambda rows: [(start, start + length) for start, length in rows]
)


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_f1_of_boundaries_is_that_of_sed_eval(case):
    """A boundary is found if one lies within the collar, some seconds before or after it.

    A case has spans, and the values that the package sed_eval 0.2.1 gives of them, by collar. It was run
    once, and its values are kept in a file.
    """
    reference, estimated = spans(case["reference"]), spans(case["estimated"])

    for collar_s, f1_of_sed_eval in case["boundary_f1"].items():
        f1 = boundary_f1(reference, estimated, float(collar_s))
        assert f1 == pytest.approx(f1_of_sed_eval, abs=1e-12)


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_the_f1_of_seconds_is_that_of_sed_eval(case):
    """A case has two lists of spans of whole seconds, in films of 1,000 s, and the value of sed_eval.

    For such spans sed_eval compares the same seconds.
    """
    reference_spans, estimated_spans = case["whole_seconds"]
    reference = seconds_in(spans(reference_spans), 1000)  # of each second whether it is in a span
    estimated = seconds_in(spans(estimated_spans), 1000)

    assert second_f1(reference, estimated) == pytest.approx(case["second_f1"], abs=1e-12)


def test_a_second_is_in_a_span_if_its_middle_is():
    """Seconds have their middles at .5, 1.5, 2.5, ...; a span has its start, and not its end.

    The span .5 to 1.5 s has the middle .5 alone, and 2.4 to 4.6 s has 2.5, 3.5 and 4.5.
    """
    is_in_a_span = seconds_in(spans([(0.5, 1.5), (2.4, 4.6)]), 5)
    assert is_in_a_span.tolist() == [True, False, True, True, True]


def test_a_segment_that_overlaps_just_by_the_asked_share_is_right():
    """0-5 s covers a half of 0-10 s, and an overlap of .5 is asked for."""
    reference, estimated = spans([(0, 10)]), spans([(0, 5)])
    assert segment_f1(reference, estimated, threshold=0.5) == 1
    assert segment_ap(reference, estimated, [1.0], threshold=0.5) == 1


def test_boundaries_just_as_far_apart_as_allowed_are_right():
    """With a collar of 5 s, starts and ends may be 5 s apart: 5-15 s meets 0-10 s.

    Ends of a reference longer than 25 s may be a fifth of its length apart, 12 s of 60: 35-102 meets 30-90 s.
    """
    reference = spans([(0, 10), (30, 90)])
    estimated = spans([(5, 15), (35, 102)])
    assert boundary_f1(reference, estimated, collar_s=5.0) == 1


@pytest.mark.parametrize("case", ORACLE["scored"])
def test_average_precision_of_seconds_is_that_of_sed_scores_eval(case):
    """A case has the true spans in 1,000 s, a score of each second, and the value of sed_scores_eval."""
    is_positive = seconds_in(spans(case["truth"]), 1000).astype(np.int64)
    precision = average_precision(is_positive, np.array(case["scores"]))
    assert precision == pytest.approx(case["second_ap"], abs=1e-9)


def values_by_who_and_metric(model, people, *, n_shifts):
    """Compare the marks of a model, called "m", with people's.

    Return a table with value, low, high and p, whose rows are named by who is measured and the metric.
    """
    comparison = compare_marks(model, people, name="m", n_shifts=n_shifts)
    return comparison.summary.set_index(["who", "metric"])


def films_of_rates(rates: Sequence[float]) -> dict[str, Marks]:
    """Plant films of 50 seconds, of which the first part is marked: the rate is the share that is marked."""
    marks = {}
    for number, rate in enumerate(rates):
        marked_s = 50 * rate
        marks[f"f{number}"] = Marks(
            seconds=np.arange(50) < marked_s, segments=spans([(0, marked_s)]), rate=rate
        )
    return marks


def rank_correlation(by_model: Sequence[float], by_annotator: Sequence[float]) -> pd.Series:
    """Compute the rank correlation of a model's rates of films and an annotator's: value, low and high."""
    people = {movie: {"a": marks} for movie, marks in films_of_rates(by_annotator).items()}
    table = values_by_who_and_metric(films_of_rates(by_model), people, n_shifts=2)
    return table.loc["m", "rate_rank"][["value", "low", "high"]]


def test_a_rank_correlation_of_1_has_no_interval():
    """Model and annotator order five films in the same way.

    A film's rate is the share that somebody marks. An interval is by bootstrap: any sample of films in
    perfect order has a correlation of 1 again.
    """
    correlation = rank_correlation(by_model=[0.2, 0.3, 0.4, 0.6, 0.7], by_annotator=[0.1, 0.2, 0.3, 0.4, 0.5])

    assert correlation["value"] == 1
    assert correlation[["low", "high"]].isna().all()


def test_a_rank_correlation_below_1_has_an_interval_around_it():
    """An annotator and a model mark shares of five films; the model swaps the order of the last two."""
    correlation = rank_correlation(by_model=[0.2, 0.3, 0.4, 0.7, 0.6], by_annotator=[0.1, 0.2, 0.3, 0.4, 0.5])

    assert -1 < correlation["low"] < correlation["value"] < correlation["high"] < 1


def film_marked_once(rng):
    """Plant a film of 1 to 7 minutes of which a person marks 5 to 20 s; return its seconds and the marks."""
    n_seconds = int(rng.integers(60, 400))
    start_s = int(rng.integers(n_seconds - 20))
    length_s = int(rng.integers(5, 20))
    return n_seconds, human_marks(spans([(start_s, start_s + length_s)]), n_seconds)


def all_seconds_alike(n_seconds):
    """Mark all of a film, each second with the same score."""
    return Marks(
        seconds=np.ones(n_seconds, np.bool_),
        segments=spans([(0, n_seconds)]),
        rate=1.0,
        scores=np.full(n_seconds, 0.3),
    )


@pytest.mark.parametrize("n_films", range(4, 13))
def test_a_model_that_scores_all_seconds_alike_has_p_1(n_films):
    """P is the share of shifts of the model's timeline that agree with people at least as well.

    In films where the model marks all seconds, with one score, every shift is the same: p is 1. The sum over
    the films may differ in its last bit between shifts, which must not count as a difference.
    """
    rng = np.random.default_rng(0)
    model = {}
    people = {}
    for number in range(n_films):
        n_seconds, marks_of_person = film_marked_once(rng)
        people[f"f{number}"] = {"a": marks_of_person}
        model[f"f{number}"] = all_seconds_alike(n_seconds)

    table = values_by_who_and_metric(model, people, n_shifts=20)

    for metric in ("second_ap", "second_auc", "second_f1", "kappa"):
        assert table.loc[("m", metric), "p"] == 1


def test_the_order_of_films_changes_no_number():
    """A person marks 40 s of each of four films of 300 s, and a model marks and scores seconds at random.

    The films are given in one order and in reverse: all numbers of the agreement are the same. P-values, by
    30 random shifts of the model's timeline, are among them.
    """
    rng = np.random.default_rng(1)
    by_model = {}
    by_people = {}
    for number, start in enumerate((5, 90, 200, 30)):
        by_people[f"f{number}"] = {"a": human_marks(spans([(start, start + 40)]), 300)}
        by_model[f"f{number}"] = Marks(
            seconds=rng.random(300) < 0.3, segments=spans([(20, 120)]), rate=0.3, scores=rng.random(300)
        )
    by_model_in_reverse = dict(reversed(by_model.items()))

    agreement = values_by_who_and_metric(by_model, by_people, n_shifts=30)
    agreement_in_reverse = values_by_who_and_metric(by_model_in_reverse, by_people, n_shifts=30)

    pd.testing.assert_frame_equal(agreement_in_reverse.sort_index(), agreement.sort_index())


def test_kappa_is_that_of_scikit_learn():
    """Two people mark .3 of 500 seconds each, at random."""
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 500)) < 0.3
    assert kappa(first, second) == pytest.approx(cohen_kappa_score(first, second))


def test_the_kappa_of_two_annotators_who_mark_everything_is_undefined():
    """Both mark all five seconds. So they would by chance, too: kappa, agreement beyond chance, is 0 / 0."""
    everything = np.ones(5, np.bool_)
    assert np.isnan(kappa(everything, everything))


def test_the_f1_of_no_segments_is_undefined_unless_there_are_some_to_find():
    """Where there are two to find and none is found it is 0."""
    nothing = spans([])
    two_segments = spans([(0, 10), (20, 30)])
    assert np.isnan(segment_f1(nothing, nothing, threshold=0.5))
    assert segment_f1(two_segments, nothing, threshold=0.5) == 0


def test_the_top_precision_of_a_model_that_lists_nothing_is_undefined():
    """A person marked one passage. Of the first three of no segments none is right or wrong."""
    marked_by_a_person = spans([(0, 10)])
    listed_by_the_model = spans([])
    assert np.isnan(top_precision([marked_by_a_person], listed_by_the_model, 3))


@pytest.mark.parametrize(
    ("by_model", "by_annotator"),
    [
        pytest.param([0.2, 0.2, 0.2, 0.2, 0.2], [0.1, 0.2, 0.3, 0.4, 0.5], id="equal rates"),
        pytest.param([0.2, 0.4], [0.1, 0.2], id="two films"),
    ],
)
def test_a_rank_correlation_without_an_order_is_undefined(by_model, by_annotator):
    """Equal rates have no order, and two films are always in perfect or reversed order."""
    assert rank_correlation(by_model, by_annotator).isna().all()


def test_segments_are_matched_one_to_one():
    """0-10 and 1-9 both overlap the reference 0-10, which only one may match; 21-29 matches 20-30.

    F1 is twice the matches over the number of all segments: 2 matches of 2 references and 3 estimates.
    """
    reference = spans([(0, 10), (20, 30)])
    estimated = spans([(0, 10), (1, 9), (21, 29)])
    assert segment_f1(reference, estimated, threshold=0.5) == pytest.approx(2 * 2 / (2 + 3))


def f1_by_assignment(may_match, n_reference, n_estimated):
    """Compute the F1 of the matching, one to one, that has most matches: scipy's linear sum assignment.

    `may_match` [reference, estimate] says of all pairs whether they may be matched.
    """
    rows, columns = linear_sum_assignment(may_match, maximize=True)
    n_matches = may_match[rows, columns].sum()
    return 2 * n_matches / (n_reference + n_estimated)


def overlaps_of_all(reference, estimated):
    """Compute the intersection over the union of each reference, by row, with each estimate, by column."""
    overlaps = np.zeros((len(reference), len(estimated)))
    for row, (start, end) in enumerate(reference):
        for column, (other_start, other_end) in enumerate(estimated):
            common = max(min(end, other_end) - max(start, other_start), 0)
            union = (end - start) + (other_end - other_start) - common
            overlaps[row, column] = common / union
    return overlaps


@given(RANDOM_SPANS, RANDOM_SPANS, st.sampled_from([0.1, 0.3, 0.5, 0.9]))
def test_f1_of_segments_is_that_of_the_best_matching(first, second, min_overlap):
    """Segments of two people are matched one to one, so that as many as possible have a partner.

    Two may be partners if their intersection is at least `min_overlap` of their union. F1 is 2 * matches over
    all segments; the oracle finds the best matching by scipy's linear sum assignment.
    """
    reference = spans(first)
    estimated = spans(second)
    may_match = overlaps_of_all(reference, estimated) >= min_overlap
    f1_of_best_matching = f1_by_assignment(may_match, len(reference), len(estimated))

    f1 = segment_f1(reference, estimated, min_overlap)

    assert f1 == pytest.approx(f1_of_best_matching)


@given(RANDOM_SPANS, RANDOM_SPANS)
def test_f1_of_boundaries_is_that_of_the_best_matching(first, second):
    """A pair may match if its starts are at most the collar apart, 2 s, and so are its ends.

    Of a reference longer than 10 s the ends may be a fifth of its length apart.
    """
    reference, estimated, collar_s = spans(first), spans(second), 2.0
    may_match = np.zeros((len(reference), len(estimated)), np.bool_)
    for row, (start, end) in enumerate(reference):
        end_collar_s = max(collar_s, 0.2 * (end - start))
        for column, (other_start, other_end) in enumerate(estimated):
            starts_match = abs(start - other_start) <= collar_s
            ends_match = abs(end - other_end) <= end_collar_s
            may_match[row, column] = starts_match and ends_match
    expected = f1_by_assignment(may_match, len(reference), len(estimated))

    assert boundary_f1(reference, estimated, collar_s) == pytest.approx(expected)


def precisions_where_a_reference_is_taken(overlaps, min_overlap):
    """Go through the estimated segments by rank, and let each take its best reference that is not taken yet.

    `overlaps` is [references, ranks]. Returns the precision at each rank that takes a reference: the share of
    the ranks up to it that took one.
    """
    n_references, n_ranks = overlaps.shape
    is_taken = np.zeros(n_references, np.bool_)
    precisions = []
    for rank in range(n_ranks):
        overlaps_with_free = np.where(is_taken, -1, overlaps[:, rank])
        best_reference = overlaps_with_free.argmax()
        if overlaps_with_free[best_reference] >= min_overlap:
            is_taken[best_reference] = True
            precisions.append(is_taken.sum() / (rank + 1))
    return precisions


@given(RANDOM_SPANS, RANDOM_SPANS, st.sampled_from([0.1, 0.3, 0.5, 0.9]))
def test_average_precision_lets_segments_take_references_by_rank(
    reference_spans, estimated_spans, min_overlap
):
    """The estimated segments are gone through from the highest score on; each takes the best reference left.

    A segment is wrong if no reference that is left overlaps it by `min_overlap` or more. The average
    precision is the sum, over the segments that take a reference, of the precision up to there, divided by
    the number of references. As usual, a precision is replaced by the highest that comes at it or after it.
    """
    reference = spans(reference_spans)
    estimated = spans(estimated_spans)
    scores_in_order = np.arange(len(estimated))[::-1]  # the first segment has the highest

    average_precision = segment_ap(reference, estimated, scores_in_order, min_overlap)

    overlaps = overlaps_of_all(reference, estimated)
    precisions = precisions_where_a_reference_is_taken(overlaps, min_overlap)
    highest_from_there_on = [max(precisions[place:]) for place in range(len(precisions))]
    assert average_precision == pytest.approx(sum(highest_from_there_on) / len(reference))


def test_average_precision_of_segments_by_hand():
    """Of three references the segment at rank 1 finds one, and that at rank 3 a second one.

    There precision is 1 and 2/3. The third reference is never found, and counts as 0.
    """
    reference = spans([(0, 10), (20, 30), (50, 60)])
    right, wrong, also_right = (0, 10), (40, 44), (20, 30)
    wrong_as_its_reference_is_taken = (1, 10)
    ranked = spans([right, wrong, also_right, wrong_as_its_reference_is_taken])
    precision = segment_ap(reference, ranked, [0.9, 0.8, 0.7, 0.6], threshold=0.5)
    assert precision == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_top_precision_counts_segments_that_any_annotator_marked():
    """Of the first three segments two lie mostly in a span that somebody marked: precision is 2/3."""
    first_person = spans([(0, 10)])
    second_person = spans([(20, 30)])
    meets_first_person = (0, 12)  # 10 s of 12
    meets_too_little = (26, 40)  # 4 s of 14
    meets_second_person = (22, 28)
    fourth = (50, 60)  # is not asked for
    ranked = spans([meets_first_person, meets_too_little, meets_second_person, fourth])

    assert top_precision([first_person, second_person], ranked, 3) == pytest.approx(2 / 3)


def test_the_reachable_top_precision_is_that_of_the_best_order():
    """A person marked 0-15 s, in which three of six listed segments lie: those at ranks 2, 4 and 5.

    Of the first three segments one is right. In the best order all of them would be, and of six a half.
    """
    marked = [spans([(0, 15)])]
    ranked = spans([(40, 45), (0, 5), (50, 55), (5, 10), (10, 15), (60, 65)])
    assert top_precision(marked, ranked, 3) == pytest.approx(1 / 3)
    assert reachable_top_precision(marked, ranked, 3) == 1
    assert reachable_top_precision(marked, ranked, 6) == pytest.approx(3 / 6)


def test_the_reachable_top_precision_is_at_least_that_of_the_marks():
    """Two people marked three segments, none of which is listed.

    A perfect list of four would hold all three, and one of two would hold nothing else.
    """
    people = [spans([(0, 10), (20, 30)]), spans([(50, 60)])]
    listed = spans([(100, 110), (120, 130), (140, 150), (160, 170)])
    assert reachable_top_precision(people, listed, 4) == pytest.approx(3 / 4)
    assert reachable_top_precision(people, listed, 2) == 1


def test_the_reachable_top_precision_of_a_model_that_lists_nothing_is_undefined():
    """Two people marked three passages. A list of no segments can be put into no better order."""
    people = [spans([(0, 10), (20, 30)]), spans([(50, 60)])]
    listed = spans([])
    assert np.isnan(reachable_top_precision(people, listed, 3))


@pytest.mark.parametrize(
    "other_spelling",
    [pytest.param("ab 1", id="small letters"), pytest.param("\uff21\uff22_1", id="wide letters")],
)
def test_two_spellings_of_one_annotators_name_are_refused(segments, other_spelling):
    """Read as two people they would count as agreeing or differing with themselves.

    Of the corpus MObyGaze the first span gets one spelling of "AB 1", and all others get "AB 1".
    """
    mobygaze = segments
    first, *rest = mobygaze
    clips = [replace(first, annotator=other_spelling)]
    clips += [replace(clip, annotator="AB 1") for clip in rest]
    with pytest.raises(ManifestError, match="one name"):
        answers_of(mobygaze.with_clips(clips), SURE)


def marks_of_mobygaze(segments, positive):
    """Return what MObyGaze's two annotators marked as positive in each film: {movie: {annotator: marks}}.

    A second counts if both answered for it: neither marked it "not sure" (NS), unless this is positive.
    """
    film_s = {}
    for clip in segments:
        film_s[clip.movie] = max(film_s.get(clip.movie, 0), int(np.ceil(clip.end_s)))
    marks = {}
    for movie, answers in answers_of(segments, positive).items():
        first, second = (answers[name].is_answered(film_s[movie]) for name in ("annotator1", "annotator2"))
        clock = JudgedClock(first & second)
        marks[movie] = {
            name: human_marks(clock.spans(given.positive), clock.n_seconds) for name, given in answers.items()
        }
    return marks


@pytest.fixture(scope="module")
def annotators_of_mobygaze(segments):
    """What the two annotators of MObyGaze marked S in each film: {movie: {annotator: marks}}."""
    return marks_of_mobygaze(segments, SURE)


AGREEMENT_OF_MOBYGAZE = {
    "second_f1": 0.446, "kappa": 0.355, "second_ap": 0.284, "rate": 0.200, "rate_rank": 0.624,
    "segment_f1_0.1": 0.417, "segment_f1_0.3": 0.317, "segment_f1_0.5": 0.204,
    "boundary_f1_5s": 0.112, "boundary_f1_15s": 0.193,
}  # fmt: skip
"""Of annotator 1, measured against annotator 2, where segments that touch count as one."""

(CEILINGS_OF_SURE,) = (record for record in MOBYGAZE if record.positive == ["S"])
"""What pages show beside a model of S (Sure) as the agreement of people."""


@pytest.mark.long  # simulates
def test_the_two_annotators_of_mobygaze_agree_as_measured(annotators_of_mobygaze):
    """The public data MObyGaze have two annotators of 20 films; their agreement is the ceiling for any model.

    All numbers here were measured once on these data with this code, and must not change by a change of code:
    the agreement by metric, and that annotator2 marks .117 of the time. Pages show the interval of the rank
    correlation of the films' rates (`CEILINGS_OF_SURE`), which must be that of these data, too.
    """
    by_first = {movie: marks["annotator1"] for movie, marks in annotators_of_mobygaze.items()}
    by_second = {
        movie: {"annotator2": marks["annotator2"]} for movie, marks in annotators_of_mobygaze.items()
    }

    comparison = compare_marks(by_first, by_second, name="annotator1", n_shifts=20)

    table = comparison.summary.set_index(["who", "metric"])
    agreement = table.loc["annotator1"]
    assert agreement.loc["second_f1", "n_films"] == 20
    for metric, measured_once in AGREEMENT_OF_MOBYGAZE.items():
        assert round(float(agreement.loc[metric, "value"]), 3) == measured_once, metric
    part_marked_by_second = table.loc[("human: annotator2", "rate"), "value"]
    assert round(float(part_marked_by_second), 3) == 0.117
    rank_correlation_of_rates = agreement.loc["rate_rank"]
    assert rank_correlation_of_rates["low"] == pytest.approx(CEILINGS_OF_SURE.rank_low, abs=0.001)
    assert rank_correlation_of_rates["high"] == pytest.approx(CEILINGS_OF_SURE.rank_high, abs=0.001)


@pytest.mark.parametrize(
    ("ceiling", "metric"),
    [
        (CEILINGS_OF_SURE.kappa, "kappa"),
        (CEILINGS_OF_SURE.second_f1, "second_f1"),
        (CEILINGS_OF_SURE.segment_f1, "segment_f1_0.5"),
        (CEILINGS_OF_SURE.boundary_f1, "boundary_f1_5s"),
        (CEILINGS_OF_SURE.rank_correlation, "rate_rank"),
    ],
)
def test_pages_and_documentation_show_the_agreement_of_mobygaze(ceiling, metric):
    """Pages show the agreement of two annotators of MObyGaze as the ceiling for a model.

    It must be what another test measures, and what docs/film.md says.
    """
    assert ceiling == AGREEMENT_OF_MOBYGAZE[metric]
    documentation = (Path(__file__).parents[2] / "docs" / "film.md").read_text(encoding="utf-8")
    assert f"{ceiling:.2f}" in documentation


def marks_of_scores(scores):
    """Mark the 12 % of the seconds that have the highest scores: about as much as annotator 2 marked."""
    is_marked = scores > np.quantile(scores, 0.88)
    changes = np.diff(np.concatenate([[0], is_marked.astype(int), [0]]))
    starts, ends = np.flatnonzero(changes == 1), np.flatnonzero(changes == -1)
    segments = np.column_stack([starts, ends]).astype(float)
    return Marks(seconds=is_marked, segments=segments, rate=float(is_marked.mean()), scores=scores)


@pytest.fixture(scope="module")
def marks_of_six_films(annotators_of_mobygaze):
    """What annotator 2 marked in six films."""
    first_six = [*annotators_of_mobygaze][:6]
    return {movie: annotators_of_mobygaze[movie]["annotator2"] for movie in first_six}


def agreement_with_planted_signal(marks_by_film, signal):
    """Compare annotator 2 with a model whose scores are `signal` times these marks, and noise.

    Scores are means over windows of 30 s, so that they are correlated in time as a model's are.
    """
    rng = np.random.default_rng(1)
    window = np.ones(30) / 30
    model, people = {}, {}
    for movie, marks in marks_by_film.items():
        noise = 2 * rng.normal(size=len(marks.seconds))
        scores = np.convolve(signal * marks.seconds + noise, window, mode="same")
        model[movie] = marks_of_scores(scores)
        people[movie] = {"annotator2": marks}
    return values_by_who_and_metric(model, people, n_shifts=99)


@pytest.fixture(scope="module")
def agreement_by_signal(marks_of_six_films):
    """How far models agree with a person's marks whose scores follow these not at all, weakly, strongly."""
    return [agreement_with_planted_signal(marks_of_six_films, signal) for signal in (0.0, 1.0, 2.0)]


@pytest.mark.nightly
@pytest.mark.long  # simulates
def test_precision_rises_with_planted_signal(agreement_by_signal):
    """A model whose scores follow a person's marks more closely has a higher average precision.

    P is the share of 99 shifts of the model's timeline, and of itself, that agree as well. Without a signal
    it is not small. With a strong one it is 1/100: no shift does as well.
    """
    precision_without, precision_if_weak, precision_if_strong = [
        table.loc["m", "second_ap"] for table in agreement_by_signal
    ]
    assert precision_without["value"] <= precision_if_weak["value"] <= precision_if_strong["value"]
    assert precision_if_strong["value"] > 3 * precision_without["value"]
    assert precision_without["p"] > 0.05  # not significant
    assert precision_if_strong["p"] == pytest.approx(1 / 100)


@pytest.mark.long  # simulates
def test_the_precision_of_a_shifted_timeline_stays_at_chance(agreement_by_signal, marks_of_six_films):
    """Scores of three models follow a person's marks not at all, weakly and strongly.

    Shifted against the film, all have the precision of scores at random: the share of the seconds that are
    marked.
    """
    marked_share = np.mean([marks.rate for marks in marks_of_six_films.values()])
    precisions = [table.loc[("shifted", "second_ap"), "value"] for table in agreement_by_signal]
    assert max(precisions) - min(precisions) < 0.015
    assert precisions[0] == pytest.approx(marked_share, abs=0.02)


@pytest.fixture
def films_m_and_n():
    """Two scored films of ten minutes, called m and n."""
    return [fake_scored_film(movie, n_rows=60, duration_s=600.0) for movie in ("m", "n")]


MARKED_IN_FILM_M = Clip("a", "m", start_s=0.0, end_s=100.0, level="S", annotator="ann")
"""What ann marked in film m: the first hundred seconds are S."""

MARKED_IN_FILM_N = replace(MARKED_IN_FILM_M, clip_id="b", movie="n")

MARKED_IN_FILM_NN = replace(MARKED_IN_FILM_M, clip_id="c", movie="nn")
"""Of a film that is not scored, or of film n, misspelled."""


def evaluate_marks(films, *clips):
    """Compare the films' segments with what people marked."""
    return evaluate_films(films, Manifest(clips, Path()), n_shifts=5)


def test_a_scored_film_that_nobody_annotated_is_left_out_and_named(films_m_and_n):
    """Film n is scored and has no annotation, so that there is nothing to compare it with."""
    assert evaluate_marks(films_m_and_n, MARKED_IN_FILM_M).record["left_out"] == ["n"]


def test_a_film_is_found_however_a_table_of_annotations_spells_it(films_m_and_n):
    """films/N.mkv is the film n: folder, capitals and suffix do not matter."""
    spelled_otherwise = replace(MARKED_IN_FILM_N, movie="films/N.mkv")
    record = evaluate_marks(films_m_and_n, MARKED_IN_FILM_M, spelled_otherwise).record
    assert record["left_out"] == []  # scored films without annotations
    assert record["not_scored"] == []  # annotated films without scores


def test_a_misspelled_film_is_named_with_the_one_that_may_be_meant(films_m_and_n):
    """Films m and n are scored; annotations are of m and "nn". The latter may be meant for n."""
    report = evaluation_report(evaluate_marks(films_m_and_n, MARKED_IN_FILM_M, MARKED_IN_FILM_NN))
    assert "nn (did you mean 'n'?)" in str(report.notes)


def test_a_message_on_misspelled_films_alone_suggests_the_scored_one(films_m_and_n):
    """Films m and n are scored; all annotations are of "nn", so that nothing can be compared."""
    with pytest.raises(FilmError, match=r"has nn \(did you mean 'n'"):
        evaluate_marks(films_m_and_n, MARKED_IN_FILM_NN)


def test_a_film_that_has_annotations_is_not_suggested_for_another_one(films_m_and_n):
    """Films m and n are scored; annotations are of m, n and "nn", which may be scored in another folder."""
    measured = evaluate_marks(films_m_and_n, MARKED_IN_FILM_M, MARKED_IN_FILM_NN, MARKED_IN_FILM_N)
    notes = evaluation_report(measured).notes
    assert measured.record["not_scored"] == ["nn"]
    assert "annotated, not among these films: nn" in notes
    assert "did you mean" not in str(notes)


@pytest.mark.parametrize(
    "other_model",
    [
        pytest.param({"key": "linear"}, id="another name"),
        pytest.param({"sha256": "0" * 64}, id="another file"),
    ],
)
def test_films_of_different_models_are_refused(films_m_and_n, other_model):
    """Film n was scored by another model: the numbers of both together would be of neither."""
    film_m, film_n = films_m_and_n
    by_another_model = with_model(film_n, **other_model)
    with pytest.raises(FilmError, match="different models"):
        evaluate_marks([film_m, by_another_model], MARKED_IN_FILM_M, MARKED_IN_FILM_N)


def test_a_film_that_the_model_was_trained_on_changes_no_number_and_is_named(films_m_and_n):
    """The model was trained on film n: what it marks there is no prediction."""
    film_m, film_n = films_m_and_n
    trained_on = with_model(film_n, is_trained_on=True)

    of_both = evaluate_marks([film_m, trained_on], MARKED_IN_FILM_M, MARKED_IN_FILM_N)
    of_new_film = evaluate_marks([film_m], MARKED_IN_FILM_M)

    pd.testing.assert_frame_equal(of_both.summary, of_new_film.summary)
    assert of_both.record["films"] == ["m"]
    assert of_both.record["trained_on"] == ["n"]
    assert "trained on them: 1 (n)" in "\n".join(evaluation_report(of_both).notes)


def test_an_evaluation_on_training_films_alone_is_refused(films_m_and_n):
    """Films m and n are annotated, and the model was trained on both: its marks there are no prediction."""
    trained_on = [with_model(film, is_trained_on=True) for film in films_m_and_n]
    with pytest.raises(FilmError, match=r"trained on all annotated films \(m, n\)"):
        evaluate_marks(trained_on, MARKED_IN_FILM_M, MARKED_IN_FILM_N)


def test_annotators_whose_names_differ_by_capitals_are_refused(films_m_and_n):
    """The names Ann and ann may be of one person, who must not be compared with herself."""
    by_ann = MARKED_IN_FILM_M
    by_ann_with_a_capital = replace(MARKED_IN_FILM_M, clip_id="b", annotator="Ann")
    with pytest.raises(ManifestError, match="annotator 'Ann' and 'ann'"):
        evaluate_marks(films_m_and_n, by_ann, by_ann_with_a_capital)


def test_an_annotation_after_the_films_end_is_refused(films_m_and_n):
    """The film lasts ten minutes, and the annotation is at one hour.

    It is of another film, or in another unit.
    """
    after_the_end = replace(MARKED_IN_FILM_M, start_s=3600.0, end_s=3605.0)
    with pytest.raises(FilmError, match="lasts 600 s"):
        evaluate_marks(films_m_and_n, after_the_end)


@pytest.mark.parametrize(
    ("end_s", "recorded"),
    [
        pytest.param(600.0, [], id="at the end"),
        pytest.param(601.0, [], id="rounded up to the next second"),
        pytest.param(9e7, ["m (ann: 9e+07 s)"], id="three years later, in another unit"),
    ],
)
def test_an_annotation_far_beyond_the_films_end_is_recorded(films_m_and_n, end_s, recorded):
    """The film lasts 600 s. What is recorded is whose annotation is cut there, and where it ended."""
    annotation = replace(MARKED_IN_FILM_M, start_s=480.0, end_s=end_s)
    assert evaluate_marks(films_m_and_n, annotation).record["cut"] == recorded


def test_an_annotation_beyond_the_films_end_is_cut(films_m_and_n):
    """Cut at the film's end, 600 s, it gives the same numbers as an annotation that ends there."""
    to_the_end = replace(MARKED_IN_FILM_M, start_s=480.0, end_s=600.0)
    beyond_the_end = replace(to_the_end, end_s=9e7)
    expected = evaluate_marks(films_m_and_n, to_the_end).summary
    pd.testing.assert_frame_equal(evaluate_marks(films_m_and_n, beyond_the_end).summary, expected)


@pytest.mark.parametrize(("rule", "f1"), [(ALL, 1), (NONE, 0)])
def test_marking_all_is_right_of_an_all_positive_film(rule, f1):
    """A person marked all 50 seconds of film m, and 20 of 50 of film n; the model marks the same.

    Beside the model two simple rules are compared with the person: `ALL` marks all of a film, and `NONE`
    nothing. In film m `ALL` is right, with the only segment and its ends, and `NONE` finds neither.
    """
    marks = {"m": human_marks(spans([(0, 50)]), 50), "n": human_marks(spans([(0, 20)]), 50)}
    by_person_a = {"m": {"a": marks["m"]}, "n": {"a": marks["n"]}}

    comparison = compare_marks(marks, by_person_a, name="model", n_shifts=2, collars=(0.5,))

    in_film_m = comparison.by_film.query("movie == 'm'").set_index(["who", "metric"])["value"]
    assert in_film_m[rule, "segment_f1_0.5"] == f1
    assert in_film_m[rule, "boundary_f1_0.5s"] == f1


def test_the_guess_by_other_films_leaves_out_films_without_a_rate():
    """The baseline `PRIOR` guesses a film's rate as the mean rate that people marked in other films.

    They marked .2, .4 and .8 of the films f0, f1 and f2, of which the model has no rate of the last. So f0 is
    guessed as .4 by f1 alone, and f1 as .2 by f0 alone.
    """
    marks = films_of_rates([0.2, 0.4, 0.8])
    model = marks | {"f2": replace(marks["f2"], rate=np.nan)}
    people = {movie: {"a": marks_of_film} for movie, marks_of_film in marks.items()}

    comparison = compare_marks(model, people, name="m", n_shifts=2)

    values = comparison.by_film.set_index(["who", "metric", "movie"])["value"]

    assert values[PRIOR, "rate", "f0"] == 0.4
    assert values[PRIOR, "rate", "f1"] == 0.2


@pytest.mark.parametrize(
    ("duration_s", "n_seconds"),
    [
        pytest.param(74.25, 74, id="second 74 is cut before its middle and does not count"),
        pytest.param(74.5, 75, id="second 74 is cut at its middle and counts"),
        pytest.param(75.0, 75, id="second 74 is whole"),
        pytest.param(0.2, 1, id="a film has at least one second"),
    ],
)
def test_the_last_second_of_a_film_counts_if_the_film_reaches_its_middle(duration_s, n_seconds):
    """A model and people are compared second by second, and a film seldom ends with a whole second.

    Second 74, counted from 0, is the time from 74 to 75 s, and its middle is at 74.5 s.
    """
    film = fake_scored_film(duration_s=duration_s, n_rows=5)
    the_only_model = None
    _marks, clock = marks_of(film, the_only_model)

    seconds_of_film = clock.is_judged  # one entry a second, whether the model can judge it or not
    assert len(seconds_of_film) == n_seconds


def test_marks_that_the_model_cannot_judge_are_counted(film_with_an_unjudged_half):
    """Ann marked the first 100 s of a film, of which the model can judge the second half alone.

    The note says how many seconds are left out.
    """
    first_100_s = MARKED_IN_FILM_M

    measured = evaluate_marks([film_with_an_unjudged_half], first_100_s)

    (unjudged_s,) = measured.record["unjudged_marks_s"].values()
    assert unjudged_s > 1
    notes = "\n".join(evaluation_report(measured).notes)
    assert f"{unjudged_s:.0f} s marked as S lie where pcbm_lr cannot judge" in notes


def test_the_comparison_with_people_depends_on_a_models_probabilities_and_not_on_its_logits():
    """Each row of a film has a logit, a probability p, and `called`, 1 if the logit reaches the threshold.

    The p of a model without skill may fall as its logit rises. Passages go by p, and so must the seconds that
    a model marks: if all logits change their sign, and all calls are reversed, while p stays, no number of
    the comparison with ann changes.
    """
    film = fake_scored_film("m", duration_s=1000.0, n_rows=100)
    reversed_rows = film.table.assign(logit=-film.table["logit"], called=1 - film.table["called"])
    film_with_reversed_logits = replace(film, table=reversed_rows)

    by_rising_logit = evaluate_marks([film], MARKED_IN_FILM_M)
    by_falling_logit = evaluate_marks([film_with_reversed_logits], MARKED_IN_FILM_M)

    pd.testing.assert_frame_equal(by_falling_logit.by_film, by_rising_logit.by_film)


def test_rows_that_are_not_filled_in_are_counted_in_the_films_that_are_evaluated(films_m_and_n):
    """Ann filled in one of two rows of film m, and none of two of a film that is not scored."""
    not_filled_in = replace(MARKED_IN_FILM_M, clip_id="x", start_s=100.0, end_s=200.0, level=None)
    elsewhere = [replace(not_filled_in, clip_id=f"{n}", movie="elsewhere") for n in range(2)]

    measured = evaluate_marks(films_m_and_n, MARKED_IN_FILM_M, not_filled_in, *elsewhere)

    assert measured.record["unlabelled"] == {"ann": 1}


def test_labels_of_a_film_that_the_model_was_trained_on_are_not_counted_as_left_out(films_m_and_n):
    """The model was trained on film n, so that it is compared with people in film m alone.

    In n, Ann left a row empty ("unlabelled"), and bob saw the model's score ("in sight"). In a film that is
    compared, both would be reported as left out. Here nothing is, as n is left out as a whole.
    """
    film_m, film_n = films_m_and_n
    known_film = with_model(film_n, is_trained_on=True)
    blind = {"seen_score": "0"}
    by_ann_in_m = replace(MARKED_IN_FILM_M, extras=blind)
    by_ann_in_n = replace(MARKED_IN_FILM_N, extras=blind)
    not_filled_in = replace(by_ann_in_n, clip_id="x", start_s=100.0, end_s=200.0, level=None)
    by_bob_in_n = replace(by_ann_in_n, clip_id="y", annotator="bob", extras={"seen_score": "1"})

    measured = evaluate_marks([film_m, known_film], by_ann_in_m, by_ann_in_n, not_filled_in, by_bob_in_n)

    assert measured.record["trained_on"] == ["n"]
    assert measured.record["unlabelled"] == {}
    assert measured.record["in_sight"] == {}


def test_a_film_labelled_only_in_sight_of_the_score_is_left_out_as_without_an_annotation_that_counts(
    films_m_and_n,
):
    """Ann marked film m blindly, and one passage of film n with the model's score in sight.

    What was marked in sight measures no agreement: it is counted by its annotator and left out. So film n has
    no annotation that counts; the note must not say that it has none.
    """
    blind = replace(MARKED_IN_FILM_M, extras={"seen_score": "0"})
    in_sight = replace(MARKED_IN_FILM_N, extras={"seen_score": "1"})

    measured = evaluate_marks(films_m_and_n, blind, in_sight)

    n_in_sight_by_annotator = measured.record["in_sight"]
    assert n_in_sight_by_annotator == {"ann": 1}
    assert "without an annotation that counts, left out: n" in evaluation_report(measured).notes


def test_a_note_says_1_s_if_half_a_second_of_marks_cannot_be_judged(film_with_an_unjudged_half):
    """Ann marked the first half second of a film, of which the model can judge the second half alone.

    A note says how many seconds of marks are left out so, if it is half a second or more. All sentences write
    whole seconds, halves rounded up: .5 s is "1 s", and not "0 s", which would say that nothing is left out.
    """
    first_half_second = replace(MARKED_IN_FILM_M, end_s=0.5)
    measured = evaluate_marks([film_with_an_unjudged_half], first_half_second)
    notes = "\n".join(evaluation_report(measured).notes)
    assert "ann: 1 s marked as S lie where pcbm_lr cannot judge" in notes


@pytest.fixture
def agreement_of_films_alike():
    """A model marks nothing, a person .2 of each of three films: values by (who, metric)."""
    model = films_of_rates([0.0, 0.0, 0.0])
    people = {movie: {"a": marks} for movie, marks in films_of_rates([0.2, 0.2, 0.2]).items()}
    return values_by_who_and_metric(model, people, n_shifts=2)


def test_a_mean_of_films_that_are_all_alike_has_no_interval(agreement_of_films_alike):
    """The model marks nothing, the person .2 of each of three films: kappa is 0 in all, which says little."""
    kappa_of_model = agreement_of_films_alike.loc[("m", "kappa")]
    assert kappa_of_model["value"] == 0
    assert np.isnan(kappa_of_model["low"])
    assert np.isnan(kappa_of_model["high"])


def test_the_kappa_of_marking_nothing_has_an_interval_without_width(agreement_of_films_alike):
    """The baseline `NONE` marks nothing: its kappa is 0 in every film there is, not only in these three."""
    kappa_of_marking_nothing = agreement_of_films_alike.loc[(NONE, "kappa")]
    assert kappa_of_marking_nothing["low"] == 0
    assert kappa_of_marking_nothing["high"] == 0


@pytest.mark.parametrize("metric", ["second_ap", "second_f1", "segment_f1_0.1"])
def test_a_baseline_has_no_interval_if_all_films_are_marked_alike(metric):
    """The baseline `ALL` marks each whole film, and an annotator the same two passages in each of three.

    An interval is estimated from how much the films' values differ. Here they do not, as the marks are alike;
    in other films, where people mark more, the baseline would get more. So no interval is given, rather than
    one without width.
    """
    two_passages = human_marks(spans([(0, 10), (20, 30)]), n=50)
    model = {"m": two_passages, "n": two_passages, "o": two_passages}
    people = {"m": {"a": two_passages}, "n": {"a": two_passages}, "o": {"a": two_passages}}

    table = values_by_who_and_metric(model, people, n_shifts=2)

    assert 0 < table.loc[(ALL, metric), "value"] < 1
    assert table.loc[(ALL, metric), ["low", "high"]].isna().all()


@pytest.fixture
def films_marked_by_two():
    """Four films: bob marks the same passage as ann in m and n; in o and p both mark nothing."""
    films = [fake_scored_film(movie, n_rows=60, duration_s=600.0) for movie in ("m", "n", "o", "p")]
    clips = []
    for film in films:
        level = "S" if film.movie in {"m", "n"} else "HN"
        for annotator in ("ann", "bob"):
            clip_id = film.movie + annotator
            clip = replace(
                MARKED_IN_FILM_M, clip_id=clip_id, movie=film.movie, annotator=annotator, level=level
            )
            clips.append(clip)
    return evaluate_marks(films, *clips)


def kappa_by_column(table):
    """Return the cells of kappa in a table of a report, by the heading of their column."""
    (row,) = [row for row in table.rows if row[0] == "kappa"]
    return dict(zip(table.headers, row, strict=True))


def test_a_mean_that_is_undefined_in_some_films_is_followed_by_the_number_of_the_others(films_marked_by_two):
    """A table is of four films: ann's marks are compared with those of bob and of a model, pcbm_lr.

    Bob and ann marked the same in two films, and nothing in the other two, where their kappa is undefined. So
    their mean kappa is over two films, and "(2)" stands after it; a note below the table explains such
    numbers. The model marks something in all four films: its kappa with ann is defined in all, and none is
    needed.
    """
    table_of_ann, *_ = evaluation_report(films_marked_by_two).blocks

    mean_kappa_with = kappa_by_column(table_of_ann)
    assert mean_kappa_with["human: bob"].endswith("(2)")
    assert not mean_kappa_with["pcbm_lr"].endswith(")")
    assert "(n): over n of these 4 films" in "\n".join(table_of_ann.notes)


def test_a_number_of_films_in_brackets_stands_only_beside_means_over_fewer_films_than_the_table(
    films_m_and_n,
):
    """Ann alone marked films m and n, so that all kappas of the table are means over both.

    A mean over one film would end with "(1)", and a note would explain such numbers, as "(n)". Neither is
    needed here.
    """
    measured = evaluate_marks(films_m_and_n, MARKED_IN_FILM_M, MARKED_IN_FILM_N)

    first_table, *_ = evaluation_report(measured).blocks

    for mean_kappa in kappa_by_column(first_table).values():
        assert not mean_kappa.endswith(")")
    for note in first_table.notes:
        assert "(n)" not in note


def values_in_column(table, header):
    """Return the text of the value that each cell of a column begins with, by the title of its row."""
    column = table.headers.index(header)
    values = {}
    for row in table.rows:
        value, *_interval = row[column].split()
        values[row[0]] = value
    return values


def test_the_rows_on_the_ten_first_passages_say_that_all_annotators_marks_are_their_truth(films_m_and_n):
    """Ann marks all of film m; bob marks nothing, as he calls its first 100 s HN, which is negative.

    In bob's table all rows but those titled "top 10" compare the model (pcbm_lr) with bob's marks, by which
    nothing is right. The model's ten first passages are compared with the marks of ann and bob together, by
    which they are right: their titles must say so, or the table would contradict itself.
    """
    film_m, _film_n = films_m_and_n
    by_ann = mark(start_s=0.0, end_s=600.0, annotator="ann")
    by_bob = replace(mark(start_s=0.0, end_s=100.0, annotator="bob"), level="HN")

    report = evaluation_report(evaluate_marks([film_m], by_ann, by_bob))

    (table_of_bob,) = [block for block in report.blocks if block.title == "Truth: bob"]
    value_of_model = values_in_column(table_of_bob, "pcbm_lr")
    assert float(value_of_model["F1 of seconds"]) == 0
    titles_of_top_10 = [title for title in value_of_model if title.startswith("top 10")]
    assert titles_of_top_10
    for title in titles_of_top_10:
        assert float(value_of_model[title]) > 0
        assert "all together" in title


def test_a_note_compares_model_and_annotator_by_means_over_the_films_that_both_have_values_in(
    films_marked_by_two,
):
    """Of four films ann and bob marked the same passage in m and n, and nothing in o and p.

    So ann's kappa with bob is 1 in two films, and undefined in the others, while the model has a kappa with
    ann in more. Means over different films do not compare: a note gives both means over m and n, with the
    number of these films in brackets.
    """
    kappas_of_model = films_marked_by_two.by_film.query(
        "truth == 'ann' and who == 'pcbm_lr' and metric == 'kappa'"
    )
    is_m_or_n = kappas_of_model["movie"].isin(["m", "n"])
    kappa_of_model = kappas_of_model[is_m_or_n]["value"].mean()

    table_of_ann, *_ = evaluation_report(films_marked_by_two).blocks

    (note,) = [note for note in table_of_ann.notes if note.startswith("pcbm_lr and human: bob")]
    kappa_of_bob, n_films = "1.000", 2
    assert f"kappa {kappa_of_model:.3f} and {kappa_of_bob} ({n_films})" in note


@pytest.fixture
def agreement_on_no_positive_second():
    """A model's agreement, by metric, with a person whose only mark is of a negative level, HN."""
    film = fake_scored_film("m", n_rows=60, duration_s=600.0)
    table = evaluate_marks([film], replace(MARKED_IN_FILM_M, level="HN")).summary.set_index(["who", "metric"])
    return table.loc[film.model().key]


def test_an_auc_without_positive_seconds_is_undefined(agreement_on_no_positive_second):
    """AUC compares positive with negative seconds.

    Of a film the only mark is of HN, a negative level, so that no second is positive.
    """
    auc = agreement_on_no_positive_second.loc["second_auc"]
    assert np.isnan(auc["value"])
    assert np.isnan(auc["p"])


def test_no_p_is_above_1_if_no_second_is_positive(agreement_on_no_positive_second):
    """A p is a share of shifts of the timeline, from 0 to 1.

    Of a film the only mark is of HN, a negative level, so that many numbers are undefined.
    """
    has_value = agreement_on_no_positive_second["value"].notna()
    p = agreement_on_no_positive_second["p"][has_value].dropna()
    assert (p <= 1).all()


def notes_on(films, *clips):
    """Return the notes of the report on films and what people marked, as one text."""
    return "\n".join(evaluation_report(evaluate_marks(films, *clips)).notes)


def test_the_notes_call_two_annotators_of_one_film_a_yardstick(films_m_and_n):
    """Ann and bob marked film m: they are measured against each other as the model is against them."""
    by_ann = MARKED_IN_FILM_M
    by_bob = replace(MARKED_IN_FILM_M, clip_id="b", annotator="bob")
    notes = notes_on(films_m_and_n, by_ann, by_bob)
    assert "yardstick" in notes
    assert "One annotator" not in notes


def test_the_notes_say_that_one_annotator_has_nobody_to_be_measured_against(films_m_and_n):
    """Ann alone marked film m: with a second person one would know how far people agree."""
    assert "One annotator" in notes_on(films_m_and_n, MARKED_IN_FILM_M)


def test_the_notes_say_that_annotators_of_different_films_cannot_be_compared(films_m_and_n):
    """Ann marked film m alone, and bob film n alone: how far they agree with each other is unknown.

    Where people marked the same film, their agreement is called the yardstick for the model's. Here the notes
    must speak of none.
    """
    by_ann_in_m = MARKED_IN_FILM_M
    by_bob_in_n = replace(MARKED_IN_FILM_N, annotator="bob")

    notes = notes_on(films_m_and_n, by_ann_in_m, by_bob_in_n)

    assert "No film has two annotators" in notes
    assert "yardstick" not in notes


def test_ends_may_differ_by_a_fifth_of_a_long_span_and_starts_by_the_collar_alone():
    """An end 20 s late is within a fifth of a span of 100 s, though not within a collar of 5 s.

    A start 20 s early is not within the collar either, and wrong.
    """
    span = spans([(100, 200)])
    late_end = spans([(100, 220)])
    early_start = spans([(80, 200)])
    assert boundary_f1(span, late_end, collar_s=5.0) == 1
    assert boundary_f1(span, early_start, collar_s=5.0) == 0


def test_the_notes_say_how_far_starts_and_ends_may_differ(films_m_and_n):
    """Spans of a model and of people are called the same if their starts and ends differ by little.

    The notes say by how much: starts by 5 or 15 s, ends by a fifth of the length too. The model's segments
    are joined across gaps of up to 5 s, and people's marks are not, but taken as they are: so the notes may
    not claim that one is "measured as" the other.
    """
    notes = notes_on(films_m_and_n, MARKED_IN_FILM_M)
    assert "starts differ by at most 5 or 15 s" in notes
    assert "20% of the length" in notes
    assert "gaps of up to 5 s" in notes
    assert "measured as" not in notes


# --- only the seconds that the model can judge count
# ---------------------------------------------------------------------------


@pytest.fixture
def film_with_an_unjudged_half():
    """A film m of ten minutes: nothing of its first half can be judged; its last half minute is credits."""
    return ten_minute_film("m", unlike_parts=((0.0, 0.5),))


def mark(start_s, end_s, annotator="ann"):
    """Return what an annotator marked S in film m."""
    return replace(
        MARKED_IN_FILM_M, clip_id=f"{annotator}{start_s}", start_s=start_s, end_s=end_s, annotator=annotator
    )


def numbers_of(films, *clips):
    """Return the value of each metric: indexed by truth, who, movie and metric."""
    by_film = evaluate_marks(films, *clips).by_film
    return by_film.set_index(["truth", "who", "movie", "metric"])["value"]


def test_marks_that_the_model_cannot_judge_change_no_number(film_with_an_unjudged_half):
    """Only seconds that the model can judge are compared: not the first half of this film, nor its credits.

    Two annotators mark passages of the judged half; then ann marks all of the other half, and credits.
    """
    in_judged_time = [
        mark(start_s=310.0, end_s=350.0),
        mark(start_s=320.0, end_s=380.0, annotator="bob"),
        mark(start_s=500.0, end_s=520.0, annotator="bob"),
    ]
    in_first_half = [mark(start_s=0.0, end_s=200.0), mark(start_s=220.0, end_s=240.0)]
    in_credits = mark(start_s=590.0, end_s=600.0)

    expected = numbers_of([film_with_an_unjudged_half], *in_judged_time)
    with_others = numbers_of([film_with_an_unjudged_half], *in_judged_time, *in_first_half, in_credits)

    pd.testing.assert_series_equal(with_others, expected)


def film_without_probability_from_100_to_150_s():
    """Make a film of 600 s with 60 rows of 10 s each."""
    film = ten_minute_film("m", unlike_parts=())
    starts_s = np.arange(0.0, 600.0, 10.0)
    is_judged = (starts_s < 100) | (starts_s >= 150)
    return with_columns(
        film,
        start_s=starts_s,
        end_s=starts_s + 10,
        flags=np.where(is_judged, "", "unlike"),
        p=np.where(is_judged, 0.3, np.nan),
        called=pd.array(np.where(is_judged, 0, None), dtype="Int64"),
    )


def test_a_mark_is_as_long_as_its_judged_time():
    """The model judges 550 of a film's 600 seconds, not those from 100 to 150; its clock leaves these out.

    A mark from 80 to 170 s, of which 40 s are judged, is from 80 to 120 s by this clock. One that lies within
    the part that is left out is none.
    """
    film = film_without_probability_from_100_to_150_s()

    _marks, clock = marks_of(film, key=None)

    around_the_gap = spans([(80, 170)])
    within_the_gap = spans([(110, 140)])
    assert clock.n_seconds == 550
    assert clock.spans(around_the_gap).tolist() == [[80, 120]]
    assert clock.spans(within_the_gap).tolist() == []


@given(RANDOM_SPANS, st.lists(st.booleans(), min_size=40, max_size=40))
def test_marks_on_the_clock_of_judged_time_cover_the_same_seconds(pairs, is_judged):
    """A model judges some of a film's 40 seconds. A clock of judged time counts these alone.

    Marks that are moved to this clock cover just those of the marked seconds that are judged.
    """
    clock = JudgedClock(np.array(is_judged))
    marks = merged(pairs)
    marks_by_the_clock = clock.spans(marks)

    is_marked = seconds_in(marks, 40)
    is_marked_by_the_clock = seconds_in(marks_by_the_clock, clock.n_seconds)

    assert is_marked_by_the_clock.tolist() == is_marked[is_judged].tolist()


def test_a_model_is_not_better_than_baselines_if_a_person_marks_all_time_that_it_judges(
    film_with_an_unjudged_half,
):
    """A person marks all of a film. Half of it is unlike training, and the model judges the other half.

    If all seconds are positive, every ranking of them has the average precision 1: that of the model, those
    of the baselines that mark all or nothing, and the model's own when shifted in time. So no p of the
    model's agreement is small. As half of the film is unlike training, no film counts in the model's rate.
    """
    everything = mark(start_s=0.0, end_s=600.0)
    summary = evaluate_marks([film_with_an_unjudged_half], everything).summary

    by_rater_and_metric = summary.set_index(["who", "metric"])
    for rater in ("pcbm_lr", ALL, NONE, SHIFTED):
        assert by_rater_and_metric.loc[(rater, "second_ap"), "value"] == 1
    assert by_rater_and_metric.loc[(ALL, "second_f1"), "value"] == 1
    assert by_rater_and_metric.loc[("pcbm_lr", "rate"), "n_films"] == 0
    assert (summary["p"].dropna() > 0.1).all()


@pytest.mark.parametrize("marked_s", [50, 97, 100])
def test_a_models_passage_has_no_small_p_if_a_person_marks_the_whole_film(marked_s):
    """A person marks all 100 seconds of a film, and a model the first 50, 97 or 100 in one passage.

    p is the share of shifts of the model's marks in time that agree with the person as well. Where all is
    positive every shift does, so that p is 1. That holds, too, for a passage of 97 s, which most shifts move
    over the film's end: it goes on at the beginning, and counts as one passage, and not as two short ones.
    """
    by_model = Marks(
        seconds=np.arange(100) < marked_s,
        segments=spans([(0, marked_s)]),
        rate=0.5,  # any rate and any scores: p of segments and of F1 does not depend on them
        scores=np.zeros(100),
    )
    by_person = human_marks(spans([(0, 100)]), n=100)
    model, people = {"film": by_model}, {"film": {"person": by_person}}

    table = values_by_who_and_metric(model, people, n_shifts=50)

    p_of_metrics = table.loc["m"]["p"]
    assert p_of_metrics["segment_f1_0.5"] == 1
    assert p_of_metrics["second_f1"] == 1
    assert (p_of_metrics.dropna() > 0.1).all()


def test_rates_of_model_and_annotator_are_of_the_same_time():
    """A model can't judge the first tenth of a film, unlike its training, nor the credits at the end.

    Only the time between is compared. The model expects .25 of it. Ann marks its first half, so that her rate
    is .5; she also marks the tenth and the credits, which do not count. The model's error is .25. Whoever
    marks all, a baseline, has a rate of 1 and an error of .5.
    """
    film = ten_minute_film("m", unlike_parts=((0.0, 0.1),))
    film = with_model(film, rate=structs.replace(film.rate(), value=0.25))
    judged_from_s = float(film.rows().query("flags == 'unlike'")["end_s"].max())
    judged_to_s = float(film.rows().query("flags == 'credits'")["start_s"].min())
    middle_s = (judged_from_s + judged_to_s) / 2
    up_to_the_middle = mark(start_s=0.0, end_s=middle_s)
    the_credits = mark(start_s=judged_to_s, end_s=600.0)

    numbers = numbers_of([film], up_to_the_middle, the_credits)

    rate_of_ann = numbers["ann", "human: ann", "m", "rate"]
    error_of_model = numbers["ann", "pcbm_lr", "m", "rate_error"]
    error_of_marking_all = numbers["ann", ALL, "m", "rate_error"]
    assert rate_of_ann == pytest.approx(0.5, abs=0.005)
    assert error_of_model == pytest.approx(0.25, abs=0.005)
    assert error_of_marking_all == pytest.approx(0.5, abs=0.005)


def test_mean_rates_of_model_and_people_are_over_the_films_of_which_the_model_has_a_rate(
    film_with_an_unjudged_half,
):
    """Ann marked films m and n. Half of m is unlike training, so that the model has no rate of it.

    Mean rates can only be compared if all are over the same films: the model's, ann's and those of baselines
    are of n alone, and a note names m with the reason. The baseline `PRIOR` has no rate at all: it guesses
    ann's rate in n from ann's rates in other films, and no other film has a rate.
    """
    half_judged_m = film_with_an_unjudged_half
    wholly_judged_n = ten_minute_film("n", unlike_parts=())

    evaluated = evaluate_marks([half_judged_m, wholly_judged_n], MARKED_IN_FILM_M, MARKED_IN_FILM_N)

    summary = evaluated.summary
    mean_rates = summary[summary["metric"].isin(["rate", "rate_error"])]
    is_prior = mean_rates["who"] == PRIOR
    assert (mean_rates["n_films"][~is_prior] == 1).all()
    assert (mean_rates["n_films"][is_prior] == 0).all()
    notes = "\n".join(evaluation_report(evaluated).notes)
    assert "(more than 20 % of the time is unlike training): m" in notes


def test_the_reachable_top_precision_is_0_if_no_mark_can_be_judged(film_with_an_unjudged_half):
    """All marks of ann lie in the first half of the film, where the model can judge and list nothing.

    Top precision within reach is the most that a list of the model's could get: none of it can be right.
    """
    numbers = numbers_of(
        [film_with_an_unjudged_half], mark(start_s=10.0, end_s=60.0), mark(start_s=100.0, end_s=140.0)
    )
    assert numbers["ann", "pcbm_lr", "m", "top10_within_reach"] == 0


def test_a_mark_shorter_than_half_of_the_shortest_passage_adds_nothing_to_the_reachable_precision():
    """A list's precision is the share of its passages that are right: of which half or more is marked.

    Ann marked 2, 3 and 20 s of a film. The model lists four passages, all of them elsewhere. The precision
    within reach is what another list of four would have, with one passage around each mark. As a passage
    lasts 5 s or more, one around the mark of 2 s would be wrong; those around the other two would be right.
    """
    marks_of_2_3_and_20_s = spans([(0, 2), (20, 23), (40, 60)])
    passages_elsewhere = spans([(100, 110), (120, 130), (140, 150), (160, 170)])

    within_reach = reachable_top_precision([marks_of_2_3_and_20_s], passages_elsewhere, k=4, min_s=5.0)

    assert within_reach == pytest.approx(2 / 4)


@pytest.fixture
def evaluation_of_m_and_n(film_with_an_unjudged_half):
    """An evaluation of a model in two films of 600 s, m and n: it can judge half of m, and n but its credits.

    Ann marked a passage in either film.
    """
    whole = ten_minute_film("n", unlike_parts=())
    return evaluate_marks(
        [film_with_an_unjudged_half, whole], mark(start_s=310.0, end_s=350.0), MARKED_IN_FILM_N
    )


def test_the_record_has_the_seconds_of_each_film_that_the_model_can_judge(evaluation_of_m_and_n):
    """An evaluation is of two films of 600 s, m and n, both with credits from second 587 on.

    The model cannot judge credits, nor in film m what comes before second 298, as it is unlike training.
    """
    seconds = evaluation_of_m_and_n.record["seconds"]

    assert seconds["m"] == {"judged": 587 - 298, "film": 600}
    assert seconds["n"] == {"judged": 587, "film": 600}


def test_the_report_says_of_how_many_seconds_its_numbers_are(evaluation_of_m_and_n):
    """Two films of 600 s each are compared, m and n, of which the model can judge less.

    Its judged seconds stand in the note above the tables, in the answer, and film by film.
    """
    m_judged_s = evaluation_of_m_and_n.record["seconds"]["m"]["judged"]
    n_judged_s = evaluation_of_m_and_n.record["seconds"]["n"]["judged"]
    judged_s = m_judged_s + n_judged_s

    report = evaluation_report(evaluation_of_m_and_n)

    assert f"judge: {judged_s:.0f} of the 1200 s of 2 films" in "\n".join(report.notes)
    (answer,) = report.answers
    assert f"in the {judged_s / 60:.0f} minutes that pcbm_lr can judge of 20 minutes" in answer
    (table_of_films,) = [block for block in report.blocks if block.headers[0] == "film"]
    column = table_of_films.headers.index("seconds compared")
    cells = [row[column] for row in table_of_films.rows]
    assert cells == [f"{m_judged_s:.0f} of 600", f"{n_judged_s:.0f} of 600"]


def test_a_film_that_cannot_be_judged_is_left_out_and_named(films_m_and_n):
    """All of film m is unlike training; film n is compared alone."""
    film_m = ten_minute_film("m", unlike_parts=((0.0, 1.0),))
    _, film_n = films_m_and_n

    measured = evaluate_marks([film_m, film_n], MARKED_IN_FILM_M, MARKED_IN_FILM_N)

    assert measured.record["films"] == ["n"]
    assert measured.record["not_judged"] == ["m"]
    assert "no second of it can be judged, left out: m" in "\n".join(evaluation_report(measured).notes)


def test_an_evaluation_on_films_that_cannot_be_judged_alone_is_refused():
    """All of film m is unlike training, and no other film is given."""
    film_m = ten_minute_film("m", unlike_parts=((0.0, 1.0),))
    with pytest.raises(FilmError, match=r"pcbm_lr can judge no second of the annotated films \(m\)"):
        evaluate_marks([film_m], MARKED_IN_FILM_M)
