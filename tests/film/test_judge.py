"""Which windows are judged next, and which judgements correct a film's rate."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from scipy.special import logit
from sklearn.metrics import cohen_kappa_score

from obygaze_features.manifest import Clip, Manifest, krippendorff_alpha
from obygaze_film.cells import cells_of
from obygaze_film.draws import SEQUENTIAL_POISSON
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import (
    correct_rate,
    correct_rates,
    read_rates,
    write_rates,
)
from obygaze_film.judged_windows import judged_film, votes
from obygaze_film.rate_estimates import estimate_rate
from obygaze_film.scored_files import RATES
from obygaze_film.windows_to_judge import choose_next, content_notices
from tests.film.films import scored_film
from tests.planted_models import codebook

FILMS_OF_LENGTHS = pytest.mark.parametrize("end_s", [5.0, 9.0, 100.5, 600.0])
"""Shorter than a window of 8 s, a little longer, of no whole number of windows, and of ten minutes."""


def film_of(end_s, folder, trained):
    """A scored film of so many seconds; a very short one has no shots."""
    _, film = scored_film(folder, trained, end_s=end_s, window_s=min(8.0, end_s), with_shots=end_s > 20)
    return film


@FILMS_OF_LENGTHS
def test_cells_cover_the_film_one_after_the_other_and_none_is_shorter_than_a_window(trained, tmp_path, end_s):
    film = film_of(end_s, tmp_path, trained)
    spans = cells_of(film).spans
    window_s = max(film.record.windows.window_s, film.model().clip_s)
    lengths = np.diff(spans)[:, 0]
    assert len(spans) == max(1, int(end_s // window_s))
    assert lengths[:-1] == pytest.approx(window_s)
    assert lengths.min() >= min(window_s, end_s) - 1e-9
    assert (spans[0, 0], spans[-1, 1]) == (0, end_s)
    assert spans[1:, 0].tolist() == spans[:-1, 1].tolist()


@FILMS_OF_LENGTHS
def test_cells_have_the_films_content_in_seconds_and_its_rate(trained, tmp_path, end_s):
    """Content is what is neither black nor credits."""
    film = film_of(end_s, tmp_path, trained)
    cells, rows = cells_of(film), film.rows()
    is_empty = rows["flags"].str.contains("black|credits")
    seconds = rows["end_s"] - rows["start_s"]
    assert cells.content_s.sum() == pytest.approx(seconds[~is_empty].sum())
    assert np.average(cells.p, weights=cells.content_s) == pytest.approx(film.rate().value)


def judged(clips, folder, is_violent=lambda clip: clip.start_s < 200):
    """AB judges clips of a film of 600 s: violent in its first 200 seconds, if nothing else is asked for."""
    levels = ("violent" if is_violent(clip) else "calm" for clip in clips)
    return Manifest(
        tuple(replace(clip, level=level, annotator="AB") for clip, level in zip(clips, levels, strict=True)),
        folder,
        codebook(folder),
    )


TRUE_SHARE = 200 / 600
"""Of the film that `judged` calls violent."""


def content_of(timeline, clip):
    """Seconds of a window that are neither black nor credits."""
    cells = cells_of(timeline)
    return cells.content_s[cells.index_with_content(clip.start_s, clip.end_s)]


def test_the_first_windows_of_a_longer_blind_list_are_those_of_a_shorter_one(timeline):
    """The first rows are a draw of their own: one may stop at any."""
    assert choose_next([timeline], 30, blind=True)[:10] == choose_next([timeline], 10, blind=True)


def test_blind_windows_say_how_they_were_drawn_and_no_score(timeline):
    windows = choose_next([timeline], 30, blind=True)
    assert [clip.extras for clip in windows] == [
        {
            "draw": "random", "seen_score": "0", "place": str(place),
            "law": "successive", "seed": "0", "content_s": f"{content_of(timeline, clip):g}",
        }
        for place, clip in enumerate(windows, 1)
    ]  # fmt: skip
    assert {clip.duration_s for clip in windows} == {8.0}  # windows, not pieces of shots


def test_no_blind_window_lies_in_the_credits_at_the_end(timeline):
    """The film has 75 windows: all that can be drawn are asked for."""
    rows = timeline.rows()
    content_ends_s = rows.loc[~rows["flags"].str.contains("black|credits"), "end_s"].max()
    assert max(clip.start_s for clip in choose_next([timeline], 75, blind=True)) < content_ends_s


def test_a_later_blind_list_goes_on_where_the_first_ended_and_ignores_judgements_in_sight(timeline, tmp_path):
    first = judged(choose_next([timeline], 20, blind=True), tmp_path)
    in_sight = judged(choose_next([timeline], 20), tmp_path)
    rest = choose_next([timeline], 10, blind=True, judged=[*first, *in_sight])
    assert [clip.extras["place"] for clip in rest] == [str(place) for place in range(21, 31)]


def test_windows_that_were_drawn_and_not_judged_are_drawn_again(timeline):
    unjudged = choose_next([timeline], 20, blind=True)
    assert choose_next([timeline], 20, blind=True, judged=unjudged) == unjudged


def drawn_as(kind, clips):
    """Those of clips that were chosen as "uncertain" or as "random"."""
    return [clip for clip in clips if clip.extras["draw"] == kind]


def test_of_windows_to_judge_next_a_third_is_random_and_all_are_judged_in_sight(timeline):
    clips = choose_next([timeline], 21)
    uncertain, random = drawn_as("uncertain", clips), drawn_as("random", clips)
    assert (len(uncertain), len(random)) == (14, 7)
    assert {clip.extras["seen_score"] for clip in clips} == {"1"}
    assert {clip.duration_s for clip in clips} == {8.0}
    blind = choose_next([timeline], 7, blind=True)
    assert {clip.clip_id for clip in random} != {clip.clip_id for clip in blind}  # new to the judge


def test_uncertain_windows_are_near_the_threshold(timeline):
    """Nearer, on the scale of logits, than half of all windows are."""
    cells = cells_of(timeline)
    distance = np.abs(logit(cells.p) - logit(timeline.model().threshold_p))
    uncertain = drawn_as("uncertain", choose_next([timeline], 21))
    chosen = [cells.index_with_content(clip.start_s, clip.end_s) for clip in uncertain]
    assert distance[chosen].mean() < np.median(distance)


def test_uncertain_windows_are_no_neighbours(timeline):
    uncertain = drawn_as("uncertain", choose_next([timeline], 21))
    assert all(clip.end_s < following.start_s for clip, following in pairwise(uncertain))


def test_uncertain_windows_leave_no_room_for_one_more_where_all_are_asked_for(timeline):
    """Between two are at most two windows of 8 s: one of them would be a neighbour of the next."""
    every = drawn_as("uncertain", choose_next([timeline], 300))
    assert max(following.start_s - clip.end_s for clip, following in pairwise(every)) == 16.0


def test_windows_that_were_judged_are_not_chosen_again(timeline, tmp_path):
    clips = choose_next([timeline], 21)
    again = choose_next([timeline], 21, judged=list(judged(clips, tmp_path)))
    assert not {clip.clip_id for clip in again} & {clip.clip_id for clip in clips}


def blind_and_in_sight(timeline):
    """60 windows to be judged blindly, and 12 of which the judge saw the score."""
    blind = choose_next([timeline], 60, blind=True)
    extras = dict.fromkeys(blind[0].extras, "") | {"draw": "random", "seen_score": "1"}
    in_sight = choose_next([timeline], 12)
    return [*blind, *(replace(clip, clip_id=f"{clip.clip_id}-seen", extras=extras) for clip in in_sight)]


def test_a_rate_is_corrected_by_blind_judgements_alone(timeline, tmp_path):
    rate, notices = correct_rate(timeline, judged(blind_and_in_sight(timeline), tmp_path))
    assert (rate.n, rate.method, rate.annotators) == (60, "difference", ["AB"])
    assert rate.low < TRUE_SHARE < rate.high
    assert 60 < rate.worth < rate.n_rows
    assert notices == ["left out 12 judgements made with the score in sight, or not saying"]


def test_a_rate_is_the_same_where_judgements_spell_the_film_otherwise_and_is_read_back(timeline, tmp_path):
    clips = blind_and_in_sight(timeline)
    spelled = judged([replace(clip, movie=clip.movie.upper() + ".mkv") for clip in clips], tmp_path)
    assert correct_rate(timeline, spelled) == correct_rate(timeline, judged(clips, tmp_path))
    found = correct_rates(timeline, spelled)
    write_rates(tmp_path, [found])
    assert read_rates(tmp_path) == [found]


def test_a_model_that_was_trained_on_a_film_narrows_no_rate_of_it(timeline, tmp_path):
    """It may have learnt these very judgements: where they are it is right, and only there."""
    judgements = judged(choose_next([timeline], 30, blind=True), tmp_path)
    assert correct_rate(timeline, judgements)[0].method == "difference"
    model, *others = timeline.record.models
    record = structs.replace(timeline.record, models=[structs.replace(model, is_trained_on=True), *others])
    rate, notices = correct_rate(replace(timeline, record=record), judgements)
    assert rate.method == "wilson"
    # Windows are weighed by their content over the chance of being drawn: nearly alike.
    assert rate.value == pytest.approx(rate.n_positive_by_all / rate.n, abs=0.01)
    assert any("trained on this film" in notice for notice in notices)


@pytest.fixture
def blind(timeline, tmp_path):
    """AB's judgements of the first 60 windows of a draw."""
    return judged(choose_next([timeline], 60, blind=True), tmp_path)


@pytest.fixture
def machine_labels(timeline, tmp_path):
    """A machine's labels of all windows: as AB would judge them, but every tenth the other way round."""
    other = {"violent": "calm", "calm": "violent"}
    every = judged(choose_next([timeline], 600, blind=True), tmp_path)
    return every.with_clips(
        replace(clip, annotator="vlm", level=clip.level if place % 10 else other[clip.level])
        for place, clip in enumerate(every)
    )


def test_a_machines_labels_of_all_windows_narrow_a_rate_as_a_models_probabilities_do(
    timeline, blind, machine_labels
):
    by_model, _ = correct_rate(timeline, blind)
    by_machine, _ = correct_rate(timeline, blind, labels=machine_labels)
    assert by_machine.model == "vlm"
    assert by_machine.worth > max(60, by_model.worth)  # more windows than the 60 that are judged
    assert by_machine.low < TRUE_SHARE < by_machine.high
    share_labelled = np.mean([clip.level == "violent" for clip in machine_labels])
    assert by_machine.expected == pytest.approx(share_labelled, abs=0.01)


def test_labels_of_two_machines_or_of_another_film_are_refused(timeline, blind, machine_labels):
    first, *rest = machine_labels
    of_two = machine_labels.with_clips([*rest, replace(first, annotator="AB")])
    with pytest.raises(FilmError, match="2 annotators"):
        correct_rate(timeline, blind, labels=of_two)
    elsewhere = machine_labels.with_clips(replace(clip, movie="other") for clip in machine_labels)
    with pytest.raises(FilmError, match="no span"):
        correct_rate(timeline, blind, labels=elsewhere)


@pytest.mark.parametrize(("has_own", "is_hinted"), [(True, False), (False, True)])
def test_another_films_name_is_taken_for_a_misspelling_only_where_this_film_has_no_judgements(
    timeline, tmp_path, has_own, is_hinted
):
    own = judged(choose_next([timeline], 30, blind=True), tmp_path)
    others = [replace(clip, movie=f"{timeline.movie}s", clip_id=f"o{clip.clip_id}") for clip in own]
    clips = [*own, *others] if has_own else others
    try:
        _, notices = correct_rate(timeline, own.with_clips(clips))
        said = " ".join(notices)
    except FilmError as error:
        said = str(error)
    assert f"{timeline.movie}s" in said
    assert ("did you mean" in said) == is_hinted


def test_fewer_than_ten_judgements_are_refused_and_so_is_a_table_without_a_codebook(timeline, tmp_path):
    blind = choose_next([timeline], 30, blind=True)
    with pytest.raises(FilmError, match="10 judged surely are needed"):
        correct_rate(timeline, judged(blind[:5], tmp_path))
    with pytest.raises(FilmError, match="'violent'"):
        correct_rate(timeline, Manifest(tuple(blind), Path(tmp_path)))


def test_judgements_of_other_films_and_of_no_window_of_this_are_left_out_and_named(timeline, tmp_path):
    """Of 30 judgements the last ten are half a second late, and one more is of another film."""
    blind = choose_next([timeline], 30, blind=True)
    shifted = [*blind[:20], *(replace(clip, start_s=clip.start_s + 0.5) for clip in blind[20:])]
    extras = blind[0].extras | {"place": "1"}
    other = Clip("other-1", "other", start_s=0, end_s=4, extras=extras)
    rate, notices = correct_rate(timeline, judged([*shifted, other], tmp_path))
    assert rate.n == 20
    of_other, of_no_window = notices
    assert of_other.startswith("left out 1 judgement of another film (other)")
    assert of_no_window.startswith("left out 10 judgements whose times are no window of this film's")


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
    """The last of a draw is changed: the times are moved by seconds, cells are replaced.

    It is the last, so that no other one is left out for a gap before it.
    """
    *blind, last = choose_next([timeline], 20, blind=True)
    times = {name: getattr(last, name) + moved for name, moved in change.items() if name.endswith("_s")}
    cells = {name: text for name, text in change.items() if not name.endswith("_s")}
    changed = replace(last, extras=last.extras | cells, **times)
    rate, notices = correct_rate(timeline, judged([*blind, changed], tmp_path))
    assert rate.n == 19
    assert len(notices) == 1
    assert ("in a draw" in notices[0]) == ("place" in change)


def by_an_earlier_version(clips):
    """Windows as they were drawn before they named a law."""
    return [
        replace(clip, extras={name: clip.extras[name] for name in ("draw", "seen_score", "place")})
        for clip in clips
    ]


def windows_by_sequential_poisson(timeline, n):
    """The first n windows of the earlier law, as that version wrote them."""
    cells = cells_of(timeline)
    order = cells.order_of_draw(timeline.movie, 0, SEQUENTIAL_POISSON)[:n]
    spans = cells.spans[order].tolist()
    extras = {"draw": "random", "seen_score": "0"}
    return [
        Clip(f"w{place}", timeline.movie, start_s=a, end_s=b, extras=extras | {"place": str(place)})
        for place, (a, b) in enumerate(spans, 1)
    ]


def windows_by_the_law_of_now(timeline, n):
    """The first n windows of a draw as they are drawn now."""
    return choose_next([timeline], n, blind=True)


def test_a_film_that_was_drawn_before_windows_named_a_law_goes_on_by_the_earlier_one(timeline, tmp_path):
    first = judged(windows_by_sequential_poisson(timeline, 20), tmp_path)
    more = choose_next([timeline], 10, blind=True, judged=first)
    assert {clip.extras["law"] for clip in more} == {SEQUENTIAL_POISSON}
    assert [clip.extras["place"] for clip in more] == [str(place) for place in range(21, 31)]


def test_a_rate_of_windows_that_name_no_law_is_estimated_by_the_earlier_one(timeline, tmp_path):
    first = judged(windows_by_sequential_poisson(timeline, 20), tmp_path)
    more = choose_next([timeline], 10, blind=True, judged=first)
    judgements = judged([*first, *by_an_earlier_version(more)], tmp_path)
    film = judged_film(timeline, judgements)
    windows = film.together()
    assert (windows.sampling, len(windows.by_cell)) == (SEQUENTIAL_POISSON, 30)
    assert any("alike in content" in notice for notice in film.notices)
    cells, (order, y, _) = cells_of(timeline), votes(windows.by_cell)
    expected = estimate_rate(cells, order[None], y[None], sampling=SEQUENTIAL_POISSON)
    rate, _ = correct_rate(timeline, judgements)
    assert (rate.low, rate.high) == (expected.low[0], expected.high[0])


def test_windows_of_another_law_than_their_films_are_left_out_and_said(timeline, tmp_path):
    before = windows_by_sequential_poisson(timeline, 15)
    before = [replace(clip, extras=clip.extras | {"law": "", "seed": "", "content_s": ""}) for clip in before]
    later = choose_next([timeline], 5, blind=True)
    film = judged_film(timeline, judged([*before, *later], tmp_path))
    windows = film.together()
    assert (windows.sampling, len(windows.by_cell)) == (SEQUENTIAL_POISSON, 15)
    assert any(notice.startswith("left out 5 judgements") for notice in film.notices)


@pytest.fixture
def with_a_changed_content(timeline, tmp_path):
    """Judgements of 20 windows, of which the first had 4 s of content when it was drawn, and has 8 s now."""
    first, *rest = choose_next([timeline], 20, blind=True)
    return judged([replace(first, extras=first.extras | {"content_s": "4"}), *rest], tmp_path)


def test_content_that_changed_since_the_draw_is_said_and_counts_as_it_was(timeline, with_a_changed_content):
    film = judged_film(timeline, with_a_changed_content)
    first = with_a_changed_content.clips[0]
    assert (
        film.together().cells.content_s[cells_of(timeline).index_with_content(first.start_s, first.end_s)]
        == 4
    )
    (notice,) = film.notices
    assert notice.startswith("1 window had")


def test_a_row_of_a_whole_film_is_no_window(timeline, with_a_changed_content, tmp_path):
    first, *rest = with_a_changed_content.clips
    of_whole_film = replace(first, start_s=None, end_s=None)
    without_times = judged([of_whole_film, *rest], tmp_path, lambda _: True)
    assert content_notices([timeline], without_times) == []


def test_who_draws_more_windows_is_told_of_content_that_changed(timeline, with_a_changed_content, tmp_path):
    (notice,) = content_notices([timeline], with_a_changed_content)
    assert "1 window" in notice
    unchanged = judged(choose_next([timeline], 20, blind=True), tmp_path)
    assert content_notices([timeline], unchanged) == []
    more = choose_next([timeline], 5, blind=True, judged=with_a_changed_content)
    assert [clip.extras["place"] for clip in more] == ["21", "22", "23", "24", "25"]


@pytest.mark.parametrize("content", ["9", "-1", "0", "much", "nan", "1e400"])
def test_a_content_that_is_no_part_of_its_window_is_left_out_and_said(timeline, tmp_path, content):
    *blind, last = choose_next([timeline], 20, blind=True)
    wrong = replace(last, extras=last.extras | {"content_s": content})
    rate, notices = correct_rate(timeline, judged([*blind, wrong], tmp_path))
    assert rate.n == 19
    assert len(notices) == 1
    assert "content_s" in notices[0]


def test_more_windows_are_drawn_with_the_seed_of_the_first(timeline, tmp_path):
    first = judged(choose_next([timeline], 10, blind=True, seed=1), tmp_path)
    next_ten = choose_next([timeline], 20, blind=True, seed=1)[10:]
    assert choose_next([timeline], 10, blind=True, seed=1, judged=first) == next_ten
    assert choose_next([timeline], 10, blind=True, judged=first) == next_ten  # none is given: the first's


def test_no_more_windows_are_drawn_where_those_judged_are_of_two_seeds(timeline, tmp_path):
    of_seed_1 = judged(choose_next([timeline], 10, blind=True, seed=1), tmp_path)
    of_seed_2 = judged(choose_next([timeline], 20, blind=True, seed=2)[10:], tmp_path)
    with pytest.raises(FilmError, match="1, 2"):
        choose_next([timeline], 10, blind=True, judged=[*of_seed_1, *of_seed_2])


BOTH_LAWS = pytest.mark.parametrize("draw", [windows_by_sequential_poisson, windows_by_the_law_of_now])


def judged_but_two(draw, timeline, folder):
    """AB judges 30 windows and is not sure of the fourth and the tenth."""
    clips = [
        replace(clip, level="unsure") if place in (3, 9) else clip
        for place, clip in enumerate(judged(draw(timeline, 30), folder))
    ]
    return Manifest(tuple(clips), folder, codebook(folder))


@BOTH_LAWS
def test_windows_of_which_nobody_was_sure_are_kept_apart(timeline, tmp_path, draw):
    judgements = judged_but_two(draw, timeline, tmp_path)
    windows = judged_film(timeline, judgements).together()
    assert (len(windows.by_cell), len(windows.unsure)) == (28, 2)
    assert windows.sure_cells.content_s[list(windows.unsure)].tolist() == [0, 0]
    assert list(windows.by_cell) == [
        cells_of(timeline).index_with_content(clip.start_s, clip.end_s)
        for clip in judgements
        if clip.level != "unsure"
    ]


@BOTH_LAWS
def test_windows_of_which_nobody_was_sure_have_no_part_in_the_share(timeline, tmp_path, draw):
    """The share, and the time that it is said to be of, are those of the other windows."""
    judgements = judged_but_two(draw, timeline, tmp_path)
    windows = judged_film(timeline, judgements).together()
    rate, _ = correct_rate(timeline, judgements)
    assert rate.content_s == pytest.approx(windows.cells.content_s.sum() - rate.unsure_s)
    others, (order, y, _) = windows.cells.without(windows.unsure), votes(windows.by_cell)
    expected = estimate_rate(others, order[None], y[None], sampling=windows.sampling)
    assert (rate.value, rate.low, rate.high) == (expected.value[0], expected.low[0], expected.high[0])


def test_draws_of_two_seeds_are_refused(timeline, tmp_path):
    draws_of_two = [
        replace(clip, clip_id=f"{seed}-{clip.clip_id}")
        for seed in (0, 1)
        for clip in choose_next([timeline], 20, blind=True, seed=seed)
    ]
    with pytest.raises(FilmError, match="two seeds"):
        correct_rate(timeline, judged(draws_of_two, tmp_path))


def with_levels(manifest, levels):
    """Change the level of the windows at some places, counted from 1."""
    return manifest.with_clips(
        replace(clip, level=levels.get(place, clip.level)) for place, clip in enumerate(manifest, 1)
    )


def test_of_a_list_that_was_judged_to_its_25th_window_these_count(timeline, tmp_path):
    forty = judged(choose_next([timeline], 40, blind=True), tmp_path)
    rate, notices = correct_rate(timeline, with_levels(forty, dict.fromkeys(range(26, 41))))
    assert rate == correct_rate(timeline, forty.with_clips(forty.clips[:25]))[0]
    assert notices == ["left out 15 judgements without a level"]


def test_a_window_of_which_the_judge_was_not_sure_is_no_gap_in_a_list(timeline, tmp_path):
    """It was judged: it is left out, and the list goes on."""
    forty = judged(choose_next([timeline], 40, blind=True), tmp_path)
    stopped = dict.fromkeys(range(26, 41))
    rate, _ = correct_rate(timeline, with_levels(forty, stopped | {5: "unsure"}))
    assert rate.n == 24


def test_a_list_that_was_sorted_by_time_and_judged_half_way_counts_to_its_first_gap_alone(timeline, tmp_path):
    """Only what comes before the first gap is a draw of the whole film; here that is too little."""
    forty = judged(choose_next([timeline], 40, blind=True), tmp_path)
    first_half = sorted(forty, key=lambda clip: clip.start_s)[:20]
    first_gap = next(place for place, clip in enumerate(forty, 1) if clip not in first_half)
    with pytest.raises(FilmError, match=f"place {first_gap}"):
        correct_rate(timeline, forty.with_clips(first_half))


@pytest.mark.parametrize("n_changed", [0, 1])
def test_that_a_judge_says_two_things_of_a_window_is_said(timeline, tmp_path, n_changed):
    """AB judges the first three of 20 windows again: all as before, or the first one the other way round."""
    first = list(judged(choose_next([timeline], 20, blind=True), tmp_path))
    again = [replace(clip, clip_id=f"again-{clip.clip_id}") for clip in first[:3]]
    other = {"violent": "calm", "calm": "violent"}
    again[:n_changed] = [replace(clip, level=other[clip.level]) for clip in again[:n_changed]]
    _, notices = correct_rate(timeline, Manifest((*first, *again), tmp_path, codebook(tmp_path)))
    assert len(notices) == n_changed
    assert all(notice.startswith("once ") for notice in notices)


def judgements_of_two(timeline, folder, *, unlike=()):
    """AB judges 40 windows; CD says the same but of those at the places `unlike`."""
    by_ab = list(judged(choose_next([timeline], 40, blind=True), folder))
    other = {"violent": "calm", "calm": "violent"}
    by_cd = [
        replace(
            clip,
            clip_id=f"cd-{clip.clip_id}",
            annotator="CD",
            level=other[clip.level] if place in unlike else clip.level,
        )
        for place, clip in enumerate(by_ab)
    ]
    return Manifest((*by_ab, *by_cd), folder, codebook(folder))


@pytest.mark.parametrize("unlike", [(7,), (1, 3, 7, 20)])
def test_two_judges_agreement_is_given_within_the_bounds_of_kappa(timeline, tmp_path, unlike):
    judgements = judgements_of_two(timeline, tmp_path, unlike=unlike)
    (pair,) = correct_rate(timeline, judgements)[0].agreement
    assert (pair.annotators, pair.n, pair.alike) == (["AB", "CD"], 40, 40 - len(unlike))
    levels = {who: [clip.level for clip in judgements if clip.annotator == who] for who in ("AB", "CD")}
    assert pair.kappa == pytest.approx(cohen_kappa_score(levels["AB"], levels["CD"]))
    assert -1 <= pair.low < pair.kappa < pair.high <= 1


def test_two_judges_who_say_the_same_of_all_windows_may_still_differ_on_others(timeline, tmp_path):
    (pair,) = correct_rate(timeline, judgements_of_two(timeline, tmp_path))[0].agreement
    assert pair.kappa == pair.high == 1.0
    assert 0.5 < pair.low < 0.95


def test_rates_of_two_judges_are_read_back_unless_a_name_controls_a_terminal(timeline, tmp_path):
    found = correct_rates(timeline, judgements_of_two(timeline, tmp_path))
    write_rates(tmp_path, [found])
    assert read_rates(tmp_path) == [found]
    path = tmp_path / RATES
    turned_round = path.read_text(encoding="utf-8").replace('"AB"', '"\\u202eAB"')
    path.write_text(turned_round, encoding="utf-8")
    with pytest.raises(FilmError):
        read_rates(tmp_path)


def test_a_film_of_few_windows_is_judged_whole(trained, tmp_path):
    _, timeline = scored_film(tmp_path, trained, end_s=50.0, with_shots=False)
    blind = choose_next([timeline], 40, blind=True)
    assert len(blind) == 6
    judgements = judged(blind, tmp_path, is_violent=lambda clip: clip.start_s < 16)
    rate, _ = correct_rate(timeline, judgements)
    assert (rate.value, rate.low, rate.high) == pytest.approx((16 / 50, 16 / 50, 16 / 50))
    assert rate.worth is None
    with pytest.raises(FilmError, match="all 6 of the film are needed"):
        correct_rate(timeline, judged(blind[:5], tmp_path))


def test_a_model_without_probabilities_expects_a_half_of_every_cell(timeline):
    silent = replace(timeline, table=timeline.table.assign(p=np.nan, p_low=np.nan, p_high=np.nan))
    assert (cells_of(silent).p == 0.5).all()


def test_three_judges_agreement_is_given_by_alpha_of_windows_that_two_or_more_judged(timeline, tmp_path):
    """AB and CD judge 30 windows, EF 20 of them: alpha by hand is that of a table of judges by windows."""
    windows = choose_next([timeline], 30, blind=True)
    called, clips = np.full((3, 30), np.nan), []  # NaN: not judged
    for row, (judge, n) in enumerate({"AB": 30, "CD": 30, "EF": 20}.items()):
        for column, clip in enumerate(windows[:n]):
            called[row, column] = (column + row) % 3 == 0
            level = "violent" if called[row, column] else "calm"
            clips.append(replace(clip, clip_id=f"{judge}-{clip.clip_id}", level=level, annotator=judge))
    found = correct_rates(timeline, Manifest(tuple(clips), tmp_path, codebook(tmp_path)))
    assert (found.alpha.n_judges, found.alpha.n_windows) == (3, 30)
    assert found.alpha.value == pytest.approx(krippendorff_alpha(called))
    of_two = [clip for clip in clips if clip.annotator != "EF"]
    assert correct_rates(timeline, Manifest(tuple(of_two), tmp_path, codebook(tmp_path))).alpha is None
