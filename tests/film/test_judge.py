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
    alpha_of_judges,
    correct_rate,
    correct_rates,
    read_rates,
    write_rates,
)
from obygaze_film.judged_windows import judged_film, votes
from obygaze_film.rate_estimates import estimate_rate
from obygaze_film.scored_files import RATES
from obygaze_film.windows_to_judge import choose_next, content_notices, unknown_notices
from tests.film.films import scored_film
from tests.planted_models import codebook

FILMS_OF_LENGTHS = pytest.mark.parametrize("end_s", [5.0, 9.0, 100.5, 600.0])
"""Shorter than a window of 8 s, a little longer, of no whole number of windows, and of ten minutes."""


def film_of(end_s, folder, trained):
    """Score a film of so many seconds; a very short one has no shots."""
    _, film = scored_film(folder, trained, end_s=end_s, window_s=min(8.0, end_s), with_shots=end_s > 20)
    return film


@FILMS_OF_LENGTHS
def test_cells_cover_the_film_without_gaps(trained, tmp_path, end_s):
    """Cells are the windows that people judge, one after the other. All are as long as a window.

    The last one takes in what is left of the film, so that none is shorter.
    """
    film = film_of(end_s, tmp_path, trained)
    starts, ends = cells_of(film).spans.T
    window_s = max(film.record.windows.window_s, film.model().clip_s)
    assert len(starts) == max(1, int(end_s // window_s))
    assert (starts[0], ends[-1]) == (0, end_s)
    assert starts[1:].tolist() == ends[:-1].tolist()

    lengths_s = ends - starts
    assert lengths_s[:-1] == pytest.approx(window_s)
    assert lengths_s[-1] >= min(window_s, end_s) - 1e-9


@FILMS_OF_LENGTHS
def test_cells_add_up_to_the_films_content_and_expected_rate(trained, tmp_path, end_s):
    """Content is what is neither black nor credits; `p` is the model's mean probability in each cell."""
    film = film_of(end_s, tmp_path, trained)
    cells, rows = cells_of(film), film.rows()
    is_empty = rows["flags"].str.contains("black|credits")
    seconds = rows["end_s"] - rows["start_s"]
    assert cells.content_s.sum() == pytest.approx(seconds[~is_empty].sum())

    expected_rate = film.rate().value
    assert np.average(cells.p, weights=cells.content_s) == pytest.approx(expected_rate)


def judged_by_ab(clips, folder, is_violent=lambda clip: clip.start_s < 200):
    """Let AB judge clips: violent in the first 200 of 600 seconds, or where `is_violent` says so."""
    levels = ("violent" if is_violent(clip) else "calm" for clip in clips)
    return Manifest(
        tuple(replace(clip, level=level, annotator="AB") for clip, level in zip(clips, levels, strict=True)),
        folder,
        codebook(folder),
    )


TRUE_SHARE = 200 / 600
"""Of the film of 600 s: what `judged_by_ab` calls violent."""


def content_of(timeline, clip):
    """Seconds of a window that are neither black nor credits."""
    cells = cells_of(timeline)
    return cells.content_s[cells.index_with_content(clip.start_s, clip.end_s)]


def test_blind_windows_say_how_they_were_drawn_and_no_score(timeline):
    """Who judges blindly must not know the model's score, and the estimate must know the draw.

    Its law, seed and place.
    """
    windows = choose_next([timeline], 30, blind=True)

    assert choose_next([timeline], 10, blind=True) == windows[:10]  # one may stop at any
    for place, clip in enumerate(windows, 1):
        assert clip.extras == {
            "draw": "random",
            "seen_score": "0",
            "place": str(place),
            "law": "successive",
            "seed": "0",
            "content_s": f"{content_of(timeline, clip):g}",
        }
        assert clip.duration_s == 8.0  # a window, not a piece of a shot


def test_no_blind_window_lies_in_the_credits_at_the_end(timeline):
    """Credits are no content, and a share is of content.

    The film has 75 windows: all that can be drawn are asked for.
    """
    rows = timeline.rows()
    content_ends_s = rows.loc[~rows["flags"].str.contains("black|credits"), "end_s"].max()
    assert max(clip.start_s for clip in choose_next([timeline], 75, blind=True)) < content_ends_s


def test_a_later_blind_list_continues_the_first(timeline, tmp_path):
    """The first list ended at place 20, so that the next begins with 21.

    Windows judged in sight of the score are of no draw, and change nothing.
    """
    first = judged_by_ab(choose_next([timeline], 20, blind=True), tmp_path)
    in_sight = judged_by_ab(choose_next([timeline], 20), tmp_path)
    rest = choose_next([timeline], 10, blind=True, judged=[*first, *in_sight])
    assert [clip.extras["place"] for clip in rest] == [str(place) for place in range(21, 31)]


def test_windows_that_were_drawn_and_not_judged_are_drawn_again(timeline):
    """A blind draw must have no gaps, so that an unjudged window stays the next one."""
    unjudged = choose_next([timeline], 20, blind=True)
    assert choose_next([timeline], 20, blind=True, judged=unjudged) == unjudged


def drawn_as(kind, clips):
    """Those of clips that were chosen as "uncertain" or as "random"."""
    return [clip for clip in clips if clip.extras["draw"] == kind]


def test_a_third_of_the_windows_to_judge_in_sight_is_random(timeline):
    """The others are those of which the model is least certain, from which it learns most: 14 of 21."""
    clips = choose_next([timeline], 21)
    assert len(drawn_as("uncertain", clips)) == 14
    assert len(drawn_as("random", clips)) == 7  # a third of 21
    assert {clip.extras["seen_score"] for clip in clips} == {"1"}
    assert {clip.duration_s for clip in clips} == {8.0}  # whole windows


def test_random_windows_in_sight_are_not_those_to_judge_blindly(timeline):
    """A judge who has seen the score of a window can judge it blindly no more."""
    in_sight = drawn_as("random", choose_next([timeline], 21))
    blind = choose_next([timeline], 7, blind=True)
    assert {clip.clip_id for clip in in_sight} != {clip.clip_id for clip in blind}


def test_uncertain_windows_are_near_the_threshold(timeline):
    """Their mean distance, on the scale of logits, is less than the median of all windows."""
    cells = cells_of(timeline)
    distances = np.abs(logit(cells.p) - logit(timeline.model().threshold_p))
    uncertain = drawn_as("uncertain", choose_next([timeline], 21))
    chosen = [cells.index_with_content(clip.start_s, clip.end_s) for clip in uncertain]
    assert distances[chosen].mean() < np.median(distances)


def test_many_uncertain_windows_fill_the_film_without_neighbours(timeline):
    """Neighbouring windows show nearly the same, and so teach the model little more than one of them.

    If three windows lay between two chosen ones, the middle one could be chosen, too.
    """
    uncertain = drawn_as("uncertain", choose_next([timeline], 300))
    gaps_s = [following.start_s - clip.end_s for clip, following in pairwise(uncertain)]
    window_s = 8.0
    assert min(gaps_s) > 0
    assert max(gaps_s) == 2 * window_s


def test_windows_that_were_judged_are_not_chosen_again(timeline, tmp_path):
    clips = choose_next([timeline], 21)
    again = choose_next([timeline], 21, judged=list(judged_by_ab(clips, tmp_path)))
    assert not {clip.clip_id for clip in again} & {clip.clip_id for clip in clips}


def test_a_film_unlike_training_has_only_blind_windows(timeline, trained, tmp_path):
    """No probability of it counts, so that no window is near the threshold.

    The message says how many windows a blind draw still has: all of them, one, or none.
    """
    _, unlike = scored_film(tmp_path, trained, "unlike", shift=30.0)

    assert not cells_of(unlike).is_known.any()

    blind = choose_next([unlike], 100, blind=True)
    with pytest.raises(FilmError, match=rf"{len(blind)} windows are not judged.* --blind draws them"):
        choose_next([unlike], 12)
    but_one = list(judged_by_ab(blind[:-1], tmp_path))
    with pytest.raises(FilmError, match=r"1 window is not judged.* --blind draws it"):
        choose_next([unlike], 12, judged=but_one)
    with pytest.raises(FilmError, match=r"^no window is left to judge$"):
        choose_next([unlike], 12, judged=list(judged_by_ab(blind, tmp_path)))

    (notice,) = unknown_notices([timeline, unlike])
    assert notice.startswith(
        f"unlike: no window is left to judge in sight of its score: {len(blind)} windows"
    )


def sixty_blind_and_twelve_in_sight(timeline):
    """Choose 60 windows to be judged blindly, and 12 of which the judge sees the score.

    The latter have another id, as a window may be chosen twice, and the columns of a blind list are empty.
    """
    blind = choose_next([timeline], 60, blind=True)
    extras_in_sight = dict.fromkeys(blind[0].extras, "") | {"draw": "random", "seen_score": "1"}
    in_sight = [
        replace(clip, clip_id=f"{clip.clip_id}-seen", extras=extras_in_sight)
        for clip in choose_next([timeline], 12)
    ]
    return [*blind, *in_sight]


def test_a_rate_is_corrected_by_blind_judgements_alone(timeline, tmp_path):
    """Of 72 judgements 60 are blind, and correct the rate that the model expects.

    The interval holds the true share. The other 12 were made in sight of the score and are left out, with
    a notice.
    """
    judgements = judged_by_ab(sixty_blind_and_twelve_in_sight(timeline), tmp_path)
    rate, notices = correct_rate(timeline, judgements)
    assert (rate.n, rate.method, rate.annotators) == (60, "difference", ["AB"])
    assert rate.low < TRUE_SHARE < rate.high
    assert 60 < rate.worth < rate.n_rows  # the model saves judgements
    assert notices == ["left out 12 judgements made with the score in sight, or not saying"]


def test_a_rate_does_not_depend_on_how_judgements_spell_the_film(timeline, tmp_path):
    """TT0000001.mkv is the film tt0000001."""
    clips = sixty_blind_and_twelve_in_sight(timeline)
    spelled = judged_by_ab([replace(clip, movie=clip.movie.upper() + ".mkv") for clip in clips], tmp_path)
    assert correct_rate(timeline, spelled) == correct_rate(timeline, judged_by_ab(clips, tmp_path))


def trained_on(timeline):
    """Return the film as one that its first model was trained on."""
    model, *others = timeline.record.models
    models = [structs.replace(model, is_trained_on=True), *others]
    return replace(timeline, record=structs.replace(timeline.record, models=models))


def test_a_model_that_was_trained_on_a_film_narrows_no_rate_of_it(timeline, tmp_path):
    """It may have learnt these very judgements, and then it is right about them alone."""
    judgements = judged_by_ab(choose_next([timeline], 30, blind=True), tmp_path)
    rate_with_model, _ = correct_rate(timeline, judgements)
    assert rate_with_model.method == "difference"

    rate, notices = correct_rate(trained_on(timeline), judgements)
    assert rate.method == "wilson"
    # Windows are weighed by their content over the chance of being drawn: nearly alike.
    assert rate.value == pytest.approx(rate.n_positive_by_all / rate.n, abs=0.01)
    assert any("trained on this film" in notice for notice in notices)


@pytest.fixture
def blind(timeline, tmp_path):
    """AB's judgements of the first 60 windows of a draw."""
    return judged_by_ab(choose_next([timeline], 60, blind=True), tmp_path)


OPPOSITE = {"violent": "calm", "calm": "violent"}


@pytest.fixture
def machine_labels(timeline, tmp_path):
    """Labels of all windows by a machine, vlm: as AB would judge them, but every tenth turned round."""
    by_ab = judged_by_ab(choose_next([timeline], 600, blind=True), tmp_path)
    by_machine = []
    for place, clip in enumerate(by_ab):
        level = OPPOSITE[clip.level] if place % 10 == 0 else clip.level
        by_machine.append(replace(clip, annotator="vlm", level=level))
    return by_ab.with_clips(by_machine)


def test_good_labels_of_a_machine_are_worth_more_than_the_model(timeline, blind, machine_labels):
    """AB judged 60; `worth` is how many AB would have to judge without them for as narrow an interval."""
    by_model, _ = correct_rate(timeline, blind)
    by_machine, _ = correct_rate(timeline, blind, labels=machine_labels)
    assert by_machine.model == "vlm"
    assert by_machine.worth > 60
    assert by_machine.worth > by_model.worth
    assert by_machine.low < TRUE_SHARE < by_machine.high
    # Labels are yes or no, so that the share expected by them is the share that is labelled violent.
    share_labelled = np.mean([clip.level == "violent" for clip in machine_labels])
    assert by_machine.expected == pytest.approx(share_labelled, abs=0.01)


def test_labels_of_two_machines_or_of_another_film_are_refused(timeline, blind, machine_labels):
    """Labels stand in for one model on this film; others cannot correct its rate."""
    first, *rest = machine_labels
    of_two = machine_labels.with_clips([*rest, replace(first, annotator="AB")])
    with pytest.raises(FilmError, match="2 annotators"):
        correct_rate(timeline, blind, labels=of_two)
    elsewhere = machine_labels.with_clips(replace(clip, movie="other") for clip in machine_labels)
    with pytest.raises(FilmError, match="no span"):
        correct_rate(timeline, blind, labels=elsewhere)


@pytest.fixture
def judgements_with_an_s_more(blind, timeline):
    """AB's judgements as of a film whose name has one letter more than that of the timeline."""
    return [replace(clip, movie=f"{timeline.movie}s", clip_id=f"o{clip.clip_id}") for clip in blind]


def test_a_similar_name_may_be_a_misspelling_if_the_film_has_no_judgements(
    timeline, blind, judgements_with_an_s_more
):
    """The film itself has no judgements, so that those of a name with one letter more may be meant for it."""
    with pytest.raises(FilmError, match=rf"{timeline.movie}s.*did you mean"):
        correct_rate(timeline, blind.with_clips(judgements_with_an_s_more))


def test_a_similar_name_is_another_film_if_the_film_has_judgements(
    timeline, blind, judgements_with_an_s_more
):
    """The film has its own judgements, so that the other name is hardly a misspelling of it."""
    _, notices = correct_rate(timeline, blind.with_clips([*blind, *judgements_with_an_s_more]))
    assert f"{timeline.movie}s" in " ".join(notices)
    assert "did you mean" not in " ".join(notices)


def test_too_few_judgements_and_a_table_without_a_codebook_are_refused(timeline, tmp_path):
    """Five judgements say too little of a share.

    Without its codebook nobody knows which level is positive.
    """
    blind = choose_next([timeline], 30, blind=True)
    with pytest.raises(FilmError, match="10 judged surely are needed"):
        correct_rate(timeline, judged_by_ab(blind[:5], tmp_path))
    with pytest.raises(FilmError, match="'violent'"):
        correct_rate(timeline, Manifest(tuple(blind), Path(tmp_path)))


def test_judgements_of_no_window_and_of_other_films_are_left_out_and_named(timeline, tmp_path):
    """Of 30 judgements the last ten are half a second late, and one more is of another film."""
    windows = choose_next([timeline], 30, blind=True)
    late = [replace(clip, start_s=clip.start_s + 0.5) for clip in windows[20:]]
    of_another_film = replace(windows[0], clip_id="other-1", movie="other")

    rate, notices = correct_rate(timeline, judged_by_ab([*windows[:20], *late, of_another_film], tmp_path))

    assert rate.n == 20
    assert sorted(notice[:50] for notice in notices) == [
        "left out 1 judgement of another film (other)"[:50],
        "left out 10 judgements whose times are no window of this film's"[:50],
    ]


def test_a_place_counts_however_a_data_frame_writes_it(timeline, tmp_path):
    """A column of whole numbers with a gap becomes one of floats: place 3 is written 3.0."""
    blind = judged_by_ab(choose_next([timeline], 30, blind=True), tmp_path)
    with_floats = [
        replace(clip, extras={**clip.extras, "place": f"{clip.extras['place']}.0"}) for clip in blind
    ]
    assert correct_rate(timeline, blind.with_clips(with_floats)) == correct_rate(timeline, blind)


def check_that_the_last_is_left_out(timeline, tmp_path, change):
    """Change the last of 20 judgements and check that it is left out; return the notice.

    It is the last, so that no other one is left out for a gap before it.
    """
    *others, last = choose_next([timeline], 20, blind=True)
    rate, (notice,) = correct_rate(timeline, judged_by_ab([*others, change(last)], tmp_path))
    assert rate.n == 19
    return notice


@pytest.mark.parametrize("seen_score", ["", "1"])
def test_a_judgement_that_was_not_made_blindly_is_left_out(timeline, tmp_path, seen_score):
    """`seen_score` is 1 for judgements in sight of the score.

    An empty cell does not say, which is not enough.
    """
    notice = check_that_the_last_is_left_out(
        timeline, tmp_path, lambda clip: replace(clip, extras=clip.extras | {"seen_score": seen_score})
    )
    assert "in a draw" not in notice


@pytest.mark.parametrize("place", ["", "9" * 10, "9" * 5000], ids=["none", "ten digits", "5000 digits"])
def test_a_judgement_without_a_place_in_a_draw_is_left_out(timeline, tmp_path, place):
    """The place says which window of the random order it is; without it the chance to be drawn is unknown."""
    notice = check_that_the_last_is_left_out(
        timeline, tmp_path, lambda clip: replace(clip, extras=clip.extras | {"place": place})
    )
    assert "in a draw" in notice


@pytest.mark.parametrize(("earlier_s", "later_s"), [(0.5, 0.0), (0.0, 0.5)], ids=["start", "end"])
def test_a_judgement_of_more_than_a_window_is_left_out(timeline, tmp_path, earlier_s, later_s):
    """It begins or ends half a second outside its window, and so was not of what was drawn."""
    notice = check_that_the_last_is_left_out(
        timeline,
        tmp_path,
        lambda clip: replace(clip, start_s=clip.start_s - earlier_s, end_s=clip.end_s + later_s),
    )
    assert "in a draw" not in notice


def without_a_law(clips):
    """Write windows as an earlier version wrote them, before they named the law they were drawn by."""
    return [
        replace(clip, extras={name: clip.extras[name] for name in ("draw", "seen_score", "place")})
        for clip in clips
    ]


def windows_by_the_earlier_law(timeline, n):
    """Draw the first n windows by sequential Poisson sampling, as versions did that did not name their law.

    Their lists had the place of a window in the draw, but neither law, nor seed, nor content.
    """
    cells = cells_of(timeline)
    order = cells.order_of_draw(timeline.movie, 0, SEQUENTIAL_POISSON)
    windows = []
    for place, cell in enumerate(order[:n], 1):
        start_s, end_s = cells.spans[cell].tolist()
        extras = {"draw": "random", "seen_score": "0", "place": str(place)}
        windows.append(Clip(f"w{place}", timeline.movie, start_s=start_s, end_s=end_s, extras=extras))
    return windows


def windows_by_the_law_of_now(timeline, n):
    """Draw the first n windows as they are drawn now, by a successive draw."""
    return choose_next([timeline], n, blind=True)


def test_a_draw_begun_by_the_earlier_law_continues_by_it(timeline, tmp_path):
    """A law is the rule by which windows are drawn at random, and one draw cannot have two."""
    first = judged_by_ab(windows_by_the_earlier_law(timeline, 20), tmp_path)
    more = choose_next([timeline], 10, blind=True, judged=first)
    assert {clip.extras["law"] for clip in more} == {SEQUENTIAL_POISSON}
    assert [clip.extras["place"] for clip in more] == [str(place) for place in range(21, 31)]


@pytest.fixture
def thirty_without_a_law(timeline, tmp_path):
    """AB's judgements of 30 windows that do not name the law by which they were drawn, nor their content.

    20 are of an earlier version's list. When 10 more were asked for, that list was gone on with.
    """
    first_20 = judged_by_ab(windows_by_the_earlier_law(timeline, 20), tmp_path)
    next_10 = choose_next([timeline], 10, blind=True, judged=first_20)
    return judged_by_ab([*first_20, *without_a_law(next_10)], tmp_path)


def estimate_of_windows(cells, windows):
    """Estimate a rate from a film's judged cells alone, without what `correct_rate` does besides."""
    order, y, _ = votes(windows.by_cell)
    one_draw = order[None]  # [1, n]
    return estimate_rate(cells, one_draw, y[None], sampling=windows.sampling)


def test_windows_without_a_law_are_of_the_earlier_one(timeline, thirty_without_a_law):
    """They do not say their content either: a notice says that they count as if they were alike in it."""
    film = judged_film(timeline, thirty_without_a_law)
    windows = film.together()
    expected = estimate_of_windows(cells_of(timeline), windows)

    rate, _ = correct_rate(timeline, thirty_without_a_law)

    assert windows.sampling == SEQUENTIAL_POISSON
    assert len(windows.by_cell) == 30
    assert (rate.low, rate.high) == (expected.low[0], expected.high[0])
    assert any("alike in content" in notice for notice in film.notices)


def test_windows_of_a_second_law_are_left_out_and_counted(timeline, tmp_path):
    """15 windows of the earlier law come first, then 5 of today's.

    In a table of both, the columns that the earlier law lacks are empty.
    """
    empty_cells = {"law": "", "seed": "", "content_s": ""}
    earlier = [
        replace(clip, extras=clip.extras | empty_cells) for clip in windows_by_the_earlier_law(timeline, 15)
    ]
    of_today = windows_by_the_law_of_now(timeline, 5)
    film = judged_film(timeline, judged_by_ab([*earlier, *of_today], tmp_path))

    assert film.together().sampling == SEQUENTIAL_POISSON
    assert len(film.together().by_cell) == 15
    assert any(notice.startswith("left out 5 judgements") for notice in film.notices)


@pytest.fixture
def drawn_with_4_s(timeline, tmp_path):
    """AB's judgements of 20 windows; the first had 4 s of content when it was drawn, and has 8 s now."""
    first, *rest = choose_next([timeline], 20, blind=True)
    return judged_by_ab([replace(first, extras=first.extras | {"content_s": "4"}), *rest], tmp_path)


def test_content_changed_since_the_draw_counts_as_it_was(timeline, drawn_with_4_s):
    """A window's chance of being drawn came of its content then: 4 s. A notice says that it has changed."""
    first = drawn_with_4_s.clips[0]
    film = judged_film(timeline, drawn_with_4_s)
    cell = cells_of(timeline).index_with_content(first.start_s, first.end_s)
    assert film.together().cells.content_s[cell] == 4
    (notice,) = film.notices
    assert notice.startswith("1 window had")


def test_a_row_without_times_has_no_content_that_changed(timeline, drawn_with_4_s, tmp_path):
    """The row is of the whole film, and not of a window.

    With its times it would have such a notice, as the only one whose content differs from the film's now.
    """
    first, *others = drawn_with_4_s.clips
    of_whole_film = replace(first, start_s=None, end_s=None)
    judgements = judged_by_ab([of_whole_film, *others], tmp_path, is_violent=lambda _clip: True)
    assert content_notices([timeline], judgements) == []


def test_who_draws_more_windows_is_told_of_content_that_changed(timeline, drawn_with_4_s, tmp_path):
    """The draw goes on with place 21 all the same; with unchanged content there is no notice."""
    (notice,) = content_notices([timeline], drawn_with_4_s)
    assert "1 window" in notice
    unchanged = judged_by_ab(choose_next([timeline], 20, blind=True), tmp_path)
    assert content_notices([timeline], unchanged) == []
    more = choose_next([timeline], 5, blind=True, judged=drawn_with_4_s)
    assert [clip.extras["place"] for clip in more] == ["21", "22", "23", "24", "25"]


@pytest.mark.parametrize("content", ["9", "-1", "0", "much", "nan", "1e400"])
def test_a_window_with_an_impossible_content_is_left_out(timeline, tmp_path, content):
    """A window lasts 8 s: its content is more than 0 and at most 8."""
    notice = check_that_the_last_is_left_out(
        timeline, tmp_path, lambda clip: replace(clip, extras=clip.extras | {"content_s": content})
    )
    assert "content_s" in notice


def test_more_windows_are_drawn_with_the_seed_of_the_first(timeline, tmp_path):
    """Another seed would give another order, and the two parts would be no draw of one law."""
    first = judged_by_ab(choose_next([timeline], 10, blind=True, seed=1), tmp_path)
    next_ten = choose_next([timeline], 20, blind=True, seed=1)[10:]
    assert choose_next([timeline], 10, blind=True, seed=1, judged=first) == next_ten
    assert choose_next([timeline], 10, blind=True, judged=first) == next_ten  # none is given: the first's


def test_no_more_windows_are_drawn_where_those_judged_are_of_two_seeds(timeline, tmp_path):
    """Two seeds are two draws, and it is not known which is to go on."""
    of_seed_1 = judged_by_ab(choose_next([timeline], 10, blind=True, seed=1), tmp_path)
    of_seed_2 = judged_by_ab(choose_next([timeline], 20, blind=True, seed=2)[10:], tmp_path)
    with pytest.raises(FilmError, match="1, 2"):
        choose_next([timeline], 10, blind=True, judged=[*of_seed_1, *of_seed_2])


BOTH_LAWS = pytest.mark.parametrize("draw", [windows_by_the_earlier_law, windows_by_the_law_of_now])


def judged_but_two(draw, timeline, folder):
    """Let AB judge 30 windows, and not be sure of those at places 4 and 10."""
    clips = []
    for place, clip in enumerate(judged_by_ab(draw(timeline, 30), folder), 1):
        clips.append(replace(clip, level="unsure") if place in (4, 10) else clip)
    return Manifest(tuple(clips), folder, codebook(folder))


@pytest.mark.long
@BOTH_LAWS
def test_a_rate_is_estimated_as_if_unsure_windows_did_not_exist(timeline, tmp_path, draw):
    """AB is not sure of two of 30 windows.

    These are neither positive nor negative, and a share is without their seconds.
    """
    judgements = judged_but_two(draw, timeline, tmp_path)
    windows = judged_film(timeline, judgements).together()
    sure = [clip for clip in judgements if clip.level != "unsure"]
    expected = estimate_of_windows(windows.cells.without(windows.unsure), windows)

    rate, _ = correct_rate(timeline, judgements)

    assert list(windows.by_cell) == [
        cells_of(timeline).index_with_content(clip.start_s, clip.end_s) for clip in sure
    ]
    assert len(windows.unsure) == 2
    assert windows.sure_cells.content_s[list(windows.unsure)].tolist() == [0, 0]
    assert (rate.value, rate.low, rate.high) == (expected.value[0], expected.low[0], expected.high[0])
    assert rate.content_s == pytest.approx(windows.cells.content_s.sum() - rate.unsure_s)


def test_draws_of_two_seeds_are_refused(timeline, tmp_path):
    """Two draws of one film overlap, and so are no sample by one law."""
    draws_of_two = [
        replace(clip, clip_id=f"{seed}-{clip.clip_id}")
        for seed in (0, 1)
        for clip in choose_next([timeline], 20, blind=True, seed=seed)
    ]
    with pytest.raises(FilmError, match="two seeds"):
        correct_rate(timeline, judged_by_ab(draws_of_two, tmp_path))


def with_level(manifest, places, level):
    """Give the windows at some places, counted from 1, another level; None: they were not judged."""
    clips = []
    for place, clip in enumerate(manifest, 1):
        clips.append(replace(clip, level=level) if place in places else clip)
    return manifest.with_clips(clips)


def test_a_list_judged_to_its_25th_window_counts_as_one_of_25(timeline, tmp_path):
    """The first windows of a draw are a draw themselves. The 15 that were not judged are counted in a notice.

    An "unsure" window is judged, and so no gap: it is left out, and those after it count.
    """
    forty = judged_by_ab(choose_next([timeline], 40, blind=True), tmp_path)
    judged_to_the_25th = with_level(forty, range(26, 41), None)
    first_25 = forty.with_clips(forty.clips[:25])

    rate, notices = correct_rate(timeline, judged_to_the_25th)
    assert rate == correct_rate(timeline, first_25)[0]
    assert notices == ["left out 15 judgements without a level"]

    without_the_fifth, _ = correct_rate(timeline, with_level(judged_to_the_25th, [5], "unsure"))
    assert without_the_fifth.n == 24


def test_judgements_count_up_to_the_first_gap_in_the_draw(timeline, tmp_path):
    """AB sorted a list of 40 windows by time and judged the first 20.

    A rate is of the windows that come first in the draw, which are too few here: an error names the place in
    the list of the first one that is missing.
    """
    forty = judged_by_ab(choose_next([timeline], 40, blind=True), tmp_path)
    first_20_in_time = sorted(forty, key=lambda clip: clip.start_s)[:20]
    missing_places = [place for place, clip in enumerate(forty, 1) if clip not in first_20_in_time]
    with pytest.raises(FilmError, match=f"place {missing_places[0]}"):
        correct_rate(timeline, forty.with_clips(first_20_in_time))


@pytest.mark.parametrize("n_contradicted", [0, 1])
def test_contradicting_judgements_of_one_window_are_named(timeline, tmp_path, n_contradicted):
    """AB judges the first three of 20 windows again: all as before, or the first one the other way round.

    The notice says that AB called it once violent and once calm.
    """
    judgements = judged_by_ab(choose_next([timeline], 20, blind=True), tmp_path)
    again = []
    for place, clip in enumerate(judgements.clips[:3]):
        level = OPPOSITE[clip.level] if place < n_contradicted else clip.level
        again.append(replace(clip, clip_id=f"again-{clip.clip_id}", level=level))
    _, notices = correct_rate(timeline, judgements.with_clips([*judgements, *again]))

    assert [notice.startswith("once ") for notice in notices] == [True] * n_contradicted


def judgements_of_two(timeline, folder, *, opposite_at=()):
    """Let AB and CD judge 40 windows alike, but for those at some places, counted from 0."""
    by_ab = judged_by_ab(choose_next([timeline], 40, blind=True), folder)
    by_cd = []
    for place, clip in enumerate(by_ab):
        level = OPPOSITE[clip.level] if place in opposite_at else clip.level
        by_cd.append(replace(clip, clip_id=f"cd-{clip.clip_id}", annotator="CD", level=level))
    return by_ab.with_clips([*by_ab, *by_cd])


@pytest.mark.parametrize("opposite_at", [(7,), (1, 3, 7, 20)])
def test_two_judges_agreement_is_cohens_kappa(timeline, tmp_path, opposite_at):
    """AB and CD differ on one or on four of 40 windows; scikit-learn computes the same kappa.

    Its interval lies between -1 and 1.
    """
    judgements = judgements_of_two(timeline, tmp_path, opposite_at=opposite_at)
    rate, _ = correct_rate(timeline, judgements)
    (pair,) = rate.agreement
    assert pair.annotators == ["AB", "CD"]
    assert correct_rates(timeline, judgements).alpha is None  # which is for three judges or more
    assert (pair.n, pair.alike) == (40, 40 - len(opposite_at))

    by_ab, by_cd = (
        [clip.level for clip in judgements if clip.annotator == judge] for judge in pair.annotators
    )
    assert pair.kappa == pytest.approx(cohen_kappa_score(by_ab, by_cd))
    assert -1 <= pair.low < pair.kappa < pair.high <= 1


def test_two_judges_who_always_agree_have_an_interval(timeline, tmp_path):
    """They agree on 40 windows, so that kappa is 1.

    On others they might differ: the interval begins below 1.
    """
    (pair,) = correct_rate(timeline, judgements_of_two(timeline, tmp_path))[0].agreement
    assert pair.kappa == pair.high == 1.0
    assert 0.5 < pair.low < 0.95


def test_rates_are_read_back_as_they_were_written_but_for_a_name_that_reverses_text(timeline, tmp_path):
    """U+202E makes all that follows run from right to left."""
    rates = correct_rates(timeline, judgements_of_two(timeline, tmp_path))
    write_rates(tmp_path, [rates])
    assert read_rates(tmp_path) == [rates]

    path = tmp_path / RATES
    turned_round = path.read_text(encoding="utf-8").replace('"AB"', '"\\u202eAB"')
    path.write_text(turned_round, encoding="utf-8")
    with pytest.raises(FilmError):
        read_rates(tmp_path)


def test_a_film_of_few_windows_is_judged_whole(trained, tmp_path):
    """A film of 50 s has six windows of 8 s, too few for an estimate: all six must be judged.

    Then the share is counted, 16 s of 50, and its interval has no width.
    """
    _, timeline = scored_film(tmp_path, trained, end_s=50.0, with_shots=False)
    blind = choose_next([timeline], 40, blind=True)
    assert len(blind) == 6

    judgements = judged_by_ab(blind, tmp_path, is_violent=lambda clip: clip.start_s < 16)
    rate, _ = correct_rate(timeline, judgements)
    assert (rate.value, rate.low, rate.high) == pytest.approx((16 / 50, 16 / 50, 16 / 50))
    assert rate.worth is None

    with pytest.raises(FilmError, match="all 6 of the film are needed"):
        correct_rate(timeline, judged_by_ab(blind[:5], tmp_path))


def test_a_model_without_probabilities_expects_a_half_of_every_cell(timeline):
    """A model that says nothing must favour neither answer."""
    silent = replace(timeline, table=timeline.table.assign(p=np.nan, p_low=np.nan, p_high=np.nan))
    assert (cells_of(silent).p == 0.5).all()


def test_three_judges_agreement_is_krippendorffs_alpha(timeline, tmp_path):
    """Alpha measures agreement of any number of judges, over the windows that two or more judged: 30.

    AB and CD judge 30 windows, EF 20. AB calls windows 0, 3, 6, ... violent, CD 2, 5, ..., EF 1, 4, ...
    """
    windows = choose_next([timeline], 30, blind=True)
    n_judged = {"AB": 30, "CD": 30, "EF": 20}
    first_violent = {"AB": 0, "CD": 2, "EF": 1}
    is_violent = np.full((3, 30), np.nan)  # a row a judge; NaN: not judged
    clips = []
    for row, judge in enumerate(n_judged):
        for column, clip in enumerate(windows[: n_judged[judge]]):
            is_violent[row, column] = column % 3 == first_violent[judge]
            level = "violent" if is_violent[row, column] else "calm"
            clips.append(replace(clip, clip_id=f"{judge}-{clip.clip_id}", level=level, annotator=judge))
    rates = correct_rates(timeline, Manifest(tuple(clips), tmp_path, codebook(tmp_path)))

    assert (rates.alpha.annotators, rates.alpha.n_windows) == (["AB", "CD", "EF"], 30)
    assert rates.alpha.value == pytest.approx(krippendorff_alpha(is_violent))


def film_judged_by(film, judges, book):
    """Let each judge call every third of the first twelve windows calm, and the others violent."""
    clips = []
    for judge in judges:
        for number, clip in enumerate(choose_next([film], 12, blind=True)):
            level = "violent" if number % 3 else "calm"
            clips.append(replace(clip, clip_id=f"{judge}-{number}", level=level, annotator=judge))
    return judged_film(film, Manifest(tuple(clips), Path(), book), None)


def test_alpha_is_of_the_judges_who_share_a_window_alone(timeline, tmp_path):
    """GH judges another film than AB, CD and EF: nothing says how far GH agrees with anybody.

    Of AB, CD and GH there is no alpha, as two judges alone share windows.
    """
    book = codebook(tmp_path)
    other = replace(timeline, record=structs.replace(timeline.record, movie="other"))
    other_by_gh = film_judged_by(other, ["GH"], book)
    alpha = alpha_of_judges([film_judged_by(timeline, ["AB", "CD", "EF"], book), other_by_gh])
    assert alpha.annotators == ["AB", "CD", "EF"]
    assert alpha_of_judges([film_judged_by(timeline, ["AB", "CD"], book), other_by_gh]) is None
