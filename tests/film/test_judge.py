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


def content_of(timeline, clip):
    cells = cells_of(timeline)
    return cells.content[cells.find(clip.start_s, clip.end_s)]


def test_blind_windows_show_no_score_and_a_larger_n_adds_to_them(timeline):
    few, many = (choose_next([timeline], n, blind=True) for n in (10, 30))
    assert many[:10] == few  # the first rows are a draw of their own: one may stop at any
    assert [clip.extras for clip in many] == [
        {
            "draw": "random", "seen_score": "0", "place": str(place),
            "law": "successive", "seed": "0", "content_s": f"{content_of(timeline, clip):g}",
        }
        for place, clip in enumerate(many, 1)
    ]  # fmt: skip
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


def test_uncertain_windows_are_near_the_threshold_and_no_neighbours(timeline):
    uncertain = drawn_as("uncertain", choose_next([timeline], 21))
    assert all(one.end_s < following.start_s for one, following in pairwise(uncertain))
    cells = cells_of(timeline)
    distance = np.abs(logit(cells.p) - logit(timeline.model().threshold_p))
    chosen = [cells.find(clip.start_s, clip.end_s) for clip in uncertain]
    assert distance[chosen].mean() < np.median(distance)
    # More than there are: between two are at most two windows of 8 s, and no room for one more.
    every = drawn_as("uncertain", choose_next([timeline], 300))
    assert max(following.start_s - one.end_s for one, following in pairwise(every)) == 16.0


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
    assert rate.low < 200 / 600 < rate.high  # `judged` calls the first 200 of 600 seconds violent
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
    (model, *others), seen = timeline.record.models, judged(choose_next([timeline], 30, blind=True), tmp_path)
    record = structs.replace(timeline.record, models=[structs.replace(model, is_trained_on=True), *others])
    rate, notices = correct_rate(replace(timeline, record=record), seen)
    assert rate.method == "wilson"
    assert rate.value == pytest.approx(
        rate.n_positive_by_all / rate.n, abs=0.01
    )  # weighed by content over chance
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


def test_judgements_that_cannot_be_used_are_named(timeline, tmp_path):
    blind = choose_next([timeline], 30, blind=True)
    with pytest.raises(FilmError, match="10 judged surely are needed"):
        correct_rate(timeline, judged(blind[:5], tmp_path))
    shifted = [*blind[:20], *(replace(clip, start_s=clip.start_s + 0.5) for clip in blind[20:])]
    extras = blind[0].extras | {"place": "1"}
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


def by_an_earlier_version(clips):
    """Windows as they were drawn before they named a law."""
    return [
        replace(clip, extras={name: clip.extras[name] for name in ("draw", "seen_score", "place")})
        for clip in clips
    ]


def windows_by_sequential_poisson(timeline, n):
    """The first n windows of the earlier law, as that version wrote them."""
    cells = cells_of(timeline)
    order = cells.drawn(timeline.movie, 0, SEQUENTIAL_POISSON)[:n]
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
    both = judged([*first, *by_an_earlier_version(more)], tmp_path)
    film = judged_film(timeline, both)
    windows = film.together()
    assert (windows.law, len(windows.by_cell)) == (SEQUENTIAL_POISSON, 30)
    assert any("alike in content" in notice for notice in film.notices)
    cells, (order, y, _) = cells_of(timeline), votes(windows.by_cell)
    expected = estimate_rate(cells, order[None], y[None], law=SEQUENTIAL_POISSON)
    rate, _ = correct_rate(timeline, both)
    assert (rate.low, rate.high) == (expected.low[0], expected.high[0])


def test_windows_of_another_law_than_their_films_are_left_out_and_said(timeline, tmp_path):
    before = windows_by_sequential_poisson(timeline, 15)
    before = [replace(clip, extras=clip.extras | {"law": "", "seed": "", "content_s": ""}) for clip in before]
    later = choose_next([timeline], 5, blind=True)
    film = judged_film(timeline, judged([*before, *later], tmp_path))
    windows = film.together()
    assert (windows.law, len(windows.by_cell)) == (SEQUENTIAL_POISSON, 15)
    assert any(notice.startswith("left out 5 judgements") for notice in film.notices)


def test_content_that_changed_since_the_draw_is_said_and_counts_as_it_was(timeline, tmp_path):
    blind = choose_next([timeline], 20, blind=True)
    halved = [replace(blind[0], extras=blind[0].extras | {"content_s": "4"}), *blind[1:]]
    film = judged_film(timeline, judged(halved, tmp_path))
    windows = film.together()
    first = cells_of(timeline).find(blind[0].start_s, blind[0].end_s)
    assert windows.cells.content[first] == 4
    assert len(film.notices) == 1
    assert film.notices[0].startswith("1 window had")
    (said_of_next,) = content_notices([timeline], judged(halved, tmp_path))
    assert "1 window" in said_of_next
    assert content_notices([timeline], judged(blind, tmp_path)) == []
    more = choose_next([timeline], 5, blind=True, judged=judged(halved, tmp_path))
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
    more = choose_next([timeline], 10, blind=True, seed=1, judged=first)
    assert more == choose_next([timeline], 20, blind=True, seed=1)[10:]
    assert choose_next([timeline], 10, blind=True, judged=first) == more
    other = judged(choose_next([timeline], 20, blind=True, seed=2)[10:], tmp_path)
    with pytest.raises(FilmError, match="1, 2"):
        choose_next([timeline], 10, blind=True, judged=[*first, *other])


@pytest.mark.parametrize("draw", [windows_by_sequential_poisson, windows_by_the_law_of_now])
def test_windows_of_which_nobody_was_sure_have_no_part_in_the_share(timeline, tmp_path, draw):
    blind = list(judged(draw(timeline, 30), tmp_path))
    unsure = [replace(clip, level="unsure") if place in (3, 9) else clip for place, clip in enumerate(blind)]
    judgements = Manifest(tuple(unsure), tmp_path, codebook(tmp_path))
    film = judged_film(timeline, judgements)
    windows = film.together()
    assert (len(windows.by_cell), len(windows.unsure)) == (28, 2)
    # The share, and the time that it is said to be of, are those of the other windows.
    rate, _ = correct_rate(timeline, judgements)
    assert rate.content_s == pytest.approx(windows.cells.content.sum() - rate.unsure_s)
    others, (order, y, _) = windows.cells.without(windows.unsure), votes(windows.by_cell)
    expected = estimate_rate(others, order[None], y[None], law=windows.law)
    assert (rate.value, rate.low, rate.high) == (expected.value[0], expected.low[0], expected.high[0])
    assert windows.sure_cells.content[list(windows.unsure)].tolist() == [0, 0]
    assert list(windows.by_cell) == [
        cells_of(timeline).find(clip.start_s, clip.end_s) for clip in unsure if clip.level != "unsure"
    ]


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
        assert [notice.split()[0] for notice in notices] == ["once"] * n


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
    rate, _ = correct_rate(timeline, judged(blind, tmp_path, lambda clip: clip.start_s < 16))
    assert (rate.value, rate.low, rate.high) == pytest.approx((16 / 50, 16 / 50, 16 / 50))
    assert rate.worth is None
    with pytest.raises(FilmError, match="all 6 of the film are needed"):
        correct_rate(timeline, judged(blind[:5], tmp_path))


def test_a_model_without_probabilities_expects_a_half_of_every_cell(timeline):
    silent = replace(timeline, table=timeline.table.assign(p=np.nan, p_low=np.nan, p_high=np.nan))
    assert (cells_of(silent).p == 0.5).all()


def test_three_judges_agreement_is_given_by_alpha_of_windows_that_two_or_more_judged(timeline, tmp_path):
    """Planted: AB and CD judge 30 windows, EF 20 of them; each window's calls in a table, by hand."""
    windows = choose_next([timeline], 30, blind=True)
    called, clips = np.full((3, 30), np.nan), []
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
