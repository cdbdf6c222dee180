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
from obygaze_film import compare_films
from obygaze_film.cells import cells_of
from obygaze_film.claims import Words
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
from obygaze_film.windows_to_judge import choose_next, content_notices, unknown_notices
from tests.film.films import scored_film
from tests.planted_models import codebook

FILMS_OF_LENGTHS = pytest.mark.parametrize(
    "end_s",
    [5.0, 9.0, 100.5, 600.0],
    ids=["shorter than a window of 8 s", "a little longer", "no whole number of windows", "ten minutes"],
)


def film_of(end_s, folder, trained_models):
    """Score a film of so many seconds; a very short one has no shots."""
    _folder, film = scored_film(
        folder, trained_models, end_s=end_s, window_s=min(8.0, end_s), with_shots=end_s > 20
    )
    return film


@FILMS_OF_LENGTHS
def test_cells_cover_the_film_without_gaps(trained_models, tmp_path, end_s):
    """Cells are the windows that people judge, one after the other. All are as long as a window.

    The last one takes in what is left of the film, so that none is shorter.
    """
    film = film_of(end_s, tmp_path, trained_models)
    window_s = max(film.record.windows.window_s, film.model().clip_s)

    starts_s, ends_s = cells_of(film).spans.T

    assert len(starts_s) == max(1, int(end_s // window_s))
    assert starts_s[0] == 0
    assert starts_s[1:].tolist() == ends_s[:-1].tolist()
    assert ends_s[-1] == end_s
    lengths_s = ends_s - starts_s
    assert lengths_s[:-1] == pytest.approx(window_s)
    assert lengths_s[-1] >= min(window_s, end_s) - 1e-9


@FILMS_OF_LENGTHS
def test_cells_add_up_to_the_films_content_and_expected_rate(trained_models, tmp_path, end_s):
    """Content is what is neither black nor credits; `p` is the model's mean probability in each cell."""
    film = film_of(end_s, tmp_path, trained_models)
    rows = film.rows()
    seconds = rows["end_s"] - rows["start_s"]
    is_black_or_credits = rows["flags"].str.contains("black|credits")

    cells = cells_of(film)

    assert cells.content_s.sum() == pytest.approx(seconds[~is_black_or_credits].sum())
    mean_p = np.average(cells.p, weights=cells.content_s)
    assert mean_p == pytest.approx(film.rate().value)


def judged_by_ab(clips, folder, is_violent=lambda clip: clip.start_s < 200):
    """Let AB judge clips: violent in the first 200 of 600 seconds, or where `is_violent` says so."""
    judged = []
    for clip in clips:
        level = "violent" if is_violent(clip) else "calm"
        judged.append(replace(clip, level=level, annotator="AB"))
    return Manifest(tuple(judged), folder, codebook(folder))


def content_of(timeline, clip):
    """Seconds of a window that are neither black nor credits."""
    cells = cells_of(timeline)
    return cells.content_s[cells.index_with_content(clip.start_s, clip.end_s)]


def test_blind_windows_say_how_they_were_drawn_and_no_score(planted_timeline):
    """Who judges blindly must not know the model's score, and the estimate must know the draw.

    That is its law, seed and place. Windows have 8 s, and not the length of shots.
    """
    windows = choose_next([planted_timeline], 30, blind=True)

    for number, window in enumerate(windows, 1):
        assert window.duration_s == 8.0
        assert window.extras == {
            "draw": "random",
            "seen_score": "0",
            "place": str(number),
            "law": "successive",
            "seed": "0",
            "content_s": f"{content_of(planted_timeline, window):g}",
        }


def test_a_shorter_blind_list_is_the_beginning_of_a_longer_one(planted_timeline):
    """Ten windows of a film are drawn, and then thirty: the first ten of these are the same, and in order.

    So one may stop to judge at any window of a list, and go on later.
    """
    ten_windows = choose_next([planted_timeline], 10, blind=True)
    thirty_windows = choose_next([planted_timeline], 30, blind=True)
    assert ten_windows == thirty_windows[:10]


def test_a_window_whose_judgement_counts_in_no_share_is_asked_for_again(planted_timeline, tmp_path):
    """AB judged twelve windows of a draw. In the table, a number of the third became "8 s".

    That judgement cannot be read, and a share counts judgements up to the first that is missing. So the third
    window is asked for again, at its place. With its new judgement the share counts all twelve.
    """
    drawn = choose_next([planted_timeline], 12, blind=True)
    third = drawn[2]
    spoilt = [replace(third, extras=third.extras | {"content_s": "8 s"})]
    judged = judged_by_ab([*drawn[:2], *spoilt, *drawn[3:]], tmp_path)

    again, *_ = choose_next([planted_timeline], 3, blind=True, judged=judged.clips)

    assert (again.start_s, again.extras["place"]) == (third.start_s, "3")
    judged_again = judged_by_ab([replace(again, clip_id="again")], tmp_path)
    rate, _notices = correct_rate(planted_timeline, judged.with_clips([*judged, *judged_again]))
    assert rate.n == 12


def test_no_blind_window_lies_in_the_credits_at_the_end(planted_timeline):
    """Credits are no content, and a share is of content.

    The film has 75 windows: all that can be drawn are asked for.
    """
    rows = planted_timeline.rows()
    has_content = ~rows["flags"].str.contains("black|credits")
    content_ends_s = rows.loc[has_content, "end_s"].max()

    windows = choose_next([planted_timeline], 75, blind=True)

    for window in windows:
        assert window.start_s < content_ends_s


def test_a_later_blind_list_continues_the_first(planted_timeline, tmp_path):
    """The first list ended at place 20, so that the next begins with 21.

    Windows judged in sight of the score are of no draw, and change nothing.
    """
    judged_blindly = judged_by_ab(choose_next([planted_timeline], 20, blind=True), tmp_path)
    judged_in_sight = judged_by_ab(choose_next([planted_timeline], 20), tmp_path)

    next_ten = choose_next([planted_timeline], 10, blind=True, judged=[*judged_blindly, *judged_in_sight])

    assert places_of(next_ten) == [21, 22, 23, 24, 25, 26, 27, 28, 29, 30]


def places_of(windows):
    """Return the places of windows in their draw."""
    return [int(window.extras["place"]) for window in windows]


def test_windows_that_were_drawn_and_not_judged_are_drawn_again(planted_timeline):
    """20 windows were drawn, and handed back without a level. The next 20 that are asked for are the same.

    A blind draw must have no gaps, so that an unjudged window stays the next one.
    """
    without_levels = choose_next([planted_timeline], 20, blind=True)
    drawn_again = choose_next([planted_timeline], 20, blind=True, judged=without_levels)
    assert drawn_again == without_levels


def chosen_as(reason, clips):
    """Return those of clips that were chosen as "uncertain" or as "random"."""
    return [clip for clip in clips if clip.extras["draw"] == reason]


def test_a_third_of_the_windows_to_judge_in_sight_is_random(planted_timeline):
    """The others are those of which the model is least certain, from which it learns most: 14 of 21.

    All are whole windows of 8 s, to be judged in sight of the score.
    """
    clips = choose_next([planted_timeline], 21)
    assert len(chosen_as("uncertain", clips)) == 14
    assert len(chosen_as("random", clips)) == 7
    for clip in clips:
        assert clip.extras["seen_score"] == "1"
        assert clip.duration_s == 8.0


def test_the_probability_beside_a_window_to_judge_is_that_of_the_films_page(planted_timeline):
    """Halves go up: of a film with .285 everywhere the page and the list of windows say 0.29."""
    everywhere = replace(planted_timeline, table=planted_timeline.table.assign(p=0.285))
    clips = choose_next([everywhere], 9)
    assert {clip.extras["p"] for clip in clips} == {Words("en").probability(0.285)} == {"0.29"}


def test_random_windows_in_sight_are_not_those_to_judge_blindly(planted_timeline):
    """A judge who has seen the score of a window can judge it blindly no more."""
    in_sight = chosen_as("random", choose_next([planted_timeline], 21))
    blind = choose_next([planted_timeline], 7, blind=True)
    assert {clip.clip_id for clip in in_sight} != {clip.clip_id for clip in blind}


def test_uncertain_windows_are_near_the_threshold(planted_timeline):
    """Of 21 windows to judge in sight of the score, 14 are chosen as those of which the model is uncertain.

    Their mean distance from the threshold, on the scale of logits, is less than the median of all windows.
    """
    cells = cells_of(planted_timeline)
    distances = np.abs(logit(cells.p) - logit(planted_timeline.model().threshold_p))

    uncertain = chosen_as("uncertain", choose_next([planted_timeline], 21))

    indices = [cells.index_with_content(clip.start_s, clip.end_s) for clip in uncertain]
    assert distances[indices].mean() < np.median(distances)


def test_many_uncertain_windows_fill_the_film_without_neighbours(planted_timeline):
    """300 windows are asked for of a film that has 75, so that as many are chosen as the rule allows.

    Neighbouring windows show nearly the same, and so teach the model little more than one of them: between
    two chosen windows at least one is left out. At most two are: of three, each of 8 s, the middle one has no
    chosen neighbour and would have been chosen itself.
    """
    uncertain = chosen_as("uncertain", choose_next([planted_timeline], 300))
    gaps_s = [following.start_s - clip.end_s for clip, following in pairwise(uncertain)]
    assert min(gaps_s) > 0
    assert max(gaps_s) == 2 * 8.0


def test_windows_that_were_judged_are_not_chosen_again(planted_timeline, tmp_path):
    """AB judged 21 windows in sight of the score, and 21 more are asked for."""
    judged = judged_by_ab(choose_next([planted_timeline], 21), tmp_path)
    next_windows = choose_next([planted_timeline], 21, judged=list(judged))
    judged_ids = {clip.clip_id for clip in judged}
    for clip in next_windows:
        assert clip.clip_id not in judged_ids


@pytest.fixture
def film_unlike_training(trained_models, tmp_path):
    """A film called unlike, all of which is unlike training: no probability of it counts."""
    _folder, film = scored_film(tmp_path, trained_models, "unlike", shift=30.0)
    assert not cells_of(film).is_known.any()
    return film


@pytest.mark.parametrize(
    ("first_unjudged", "message"),
    [
        pytest.param(0, r"{n} windows are not judged.* --blind draws them", id="all are left"),
        pytest.param(-1, r"1 window is not judged.* --blind draws it", id="one is left"),
        pytest.param(None, r"^no window is left to judge$", id="none is left"),
    ],
)
def test_windows_near_the_threshold_are_refused_of_a_film_unlike_training(
    film_unlike_training, tmp_path, first_unjudged, message
):
    """Without --blind windows are chosen by how near p is to the threshold; this film has no p that counts.

    AB judged the windows of a blind draw up to `first_unjudged` (None: to its end). The message says how many
    windows a blind draw still has.
    """
    all_windows = choose_next([film_unlike_training], 100, blind=True)
    judged = judged_by_ab(all_windows[:first_unjudged], tmp_path)

    with pytest.raises(FilmError, match=message.format(n=len(all_windows))):
        choose_next([film_unlike_training], 12, judged=list(judged))


def test_a_notice_names_a_film_without_windows_to_be_judged_in_sight_of_its_scores(
    planted_timeline, film_unlike_training
):
    """Windows of two films are asked for, to be judged in sight of the model's scores.

    The second film, called "unlike", is unlike training all over, so that no score of it counts. A notice
    names it, with the number of its windows, all of which can be judged blindly.
    """
    n_windows = len(choose_next([film_unlike_training], 100, blind=True))
    assert n_windows < 100  # so that these are all

    (notice,) = unknown_notices([planted_timeline, film_unlike_training])

    assert notice.startswith(f"unlike: no window is left to judge in sight of its score: {n_windows} windows")


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


def test_a_rate_is_corrected_by_blind_judgements_alone(planted_timeline, tmp_path):
    """The first 200 of a film's 600 s are violent, as AB calls them. Of 72 judgements 60 were made blindly.

    These correct the rate that the model expects, so that the interval holds 200 / 600. The other 12 were
    made in sight of the score; they are left out, with a notice. `worth` says how many judgements would tell
    as much without the model: more than the 60, and fewer than the film has rows.
    """
    judgements = judged_by_ab(sixty_blind_and_twelve_in_sight(planted_timeline), tmp_path)

    rate, notices = correct_rate(planted_timeline, judgements)

    assert rate.n == 60
    assert rate.method == "difference"
    assert rate.annotators == ["AB"]
    assert rate.low < 200 / 600 < rate.high
    assert 60 < rate.worth < rate.n_rows
    assert notices == ["left out 12 judgements made with the score in sight, or not saying"]


def test_a_rate_does_not_depend_on_how_judgements_spell_the_film(planted_timeline, tmp_path):
    """Judgements may name a film in capitals, and by its file: TT0000001.mkv is the film tt0000001."""
    clips = sixty_blind_and_twelve_in_sight(planted_timeline)
    clips_spelled_otherwise = [replace(clip, movie=clip.movie.upper() + ".mkv") for clip in clips]

    expected = correct_rate(planted_timeline, judged_by_ab(clips, tmp_path))
    rate_and_notices = correct_rate(planted_timeline, judged_by_ab(clips_spelled_otherwise, tmp_path))

    assert rate_and_notices == expected


def trained_on(timeline):
    """Return the film as one that its first model was trained on."""
    model, *others = timeline.record.models
    models = [structs.replace(model, is_trained_on=True), *others]
    return replace(timeline, record=structs.replace(timeline.record, models=models))


def test_a_model_that_was_trained_on_a_film_narrows_no_rate_of_it(planted_timeline, tmp_path):
    """AB judged 30 windows. A model that was trained on the film may have learnt these very judgements.

    Then it is right about judged windows alone. So Wilson's interval is given, which rests on judgements
    alone, and not a "difference" from the model. The rate is nearly the share of positive windows: windows of
    much content are drawn more often, and so weigh nearly as much as others.
    """
    judgements = judged_by_ab(choose_next([planted_timeline], 30, blind=True), tmp_path)
    rate_by_new_film, _notices = correct_rate(planted_timeline, judgements)
    assert rate_by_new_film.method == "difference"

    rate, notices = correct_rate(trained_on(planted_timeline), judgements)

    assert rate.method == "wilson"
    assert rate.value == pytest.approx(rate.n_positive_by_all / rate.n, abs=0.01)
    assert any("trained on this film" in notice for notice in notices)


@pytest.fixture
def sixty_by_ab(planted_timeline, tmp_path):
    """AB's blind judgements of the first 60 windows of a draw."""
    return judged_by_ab(choose_next([planted_timeline], 60, blind=True), tmp_path)


OPPOSITE = {"violent": "calm", "calm": "violent"}


@pytest.fixture
def machine_labels(planted_timeline, tmp_path):
    """Labels of all windows by a machine, vlm: as AB would judge them, but every tenth turned round."""
    by_ab = judged_by_ab(choose_next([planted_timeline], 600, blind=True), tmp_path)
    by_machine = []
    for index, clip in enumerate(by_ab):
        level = OPPOSITE[clip.level] if index % 10 == 0 else clip.level
        by_machine.append(replace(clip, annotator="vlm", level=level))
    return by_ab.with_clips(by_machine)


def test_good_labels_of_a_machine_are_worth_more_than_the_model(
    planted_timeline, sixty_by_ab, machine_labels
):
    """AB judged 60 windows. `worth` is how many would be needed for as narrow an interval without help.

    A machine, vlm, labelled all windows, nine in ten of them as AB would.
    """
    rate_by_model, _notices = correct_rate(planted_timeline, sixty_by_ab)
    rate_by_machine, _notices = correct_rate(planted_timeline, sixty_by_ab, labels=machine_labels)
    assert rate_by_machine.model == "vlm"
    assert rate_by_machine.worth > 60
    assert rate_by_machine.worth > rate_by_model.worth


def test_the_true_share_lies_in_the_interval_of_a_rate_that_labels_help_to_estimate(
    planted_timeline, sixty_by_ab, machine_labels
):
    """To AB the first 200 of a film's 600 s are violent, and AB judged 60 windows.

    A machine labelled all windows, nine in ten as AB would, and its labels take the model's place.
    """
    rate, _notices = correct_rate(planted_timeline, sixty_by_ab, labels=machine_labels)
    true_share = 200 / 600
    assert rate.low < true_share < rate.high


def test_the_share_that_labels_expect_is_the_share_that_they_call_positive(
    planted_timeline, sixty_by_ab, machine_labels
):
    """A machine, vlm, labelled all windows, and its labels take the model's place.

    They are yes or no, and no probabilities: the share that they expect is that of the windows they call
    violent. It is of content, in which windows differ a little.
    """
    rate, _notices = correct_rate(planted_timeline, sixty_by_ab, labels=machine_labels)
    share_labelled_violent = np.mean([clip.level == "violent" for clip in machine_labels])
    assert rate.expected == pytest.approx(share_labelled_violent, abs=0.01)


def test_labels_may_take_the_place_of_a_model_that_was_trained_on_the_film(
    planted_timeline, sixty_by_ab, machine_labels
):
    """AB judged 60 windows of a film that the model was trained on, and a machine labelled all windows.

    A model that knows the film may not correct its share. Labels have learnt nothing from it: they correct
    the share as if the model were new to the film, and no notice says that judgements alone are counted.
    """
    rate, notices = correct_rate(trained_on(planted_timeline), sixty_by_ab, labels=machine_labels)

    rate_of_new_film, _notices = correct_rate(planted_timeline, sixty_by_ab, labels=machine_labels)
    assert rate == rate_of_new_film
    assert not any("trained on this film" in notice for notice in notices)


def test_labels_of_two_machines_are_refused(planted_timeline, sixty_by_ab, machine_labels):
    """Labels stand in for one model; here one is by another annotator than all others."""
    first, *others = machine_labels
    by_two = machine_labels.with_clips([*others, replace(first, annotator="AB")])
    with pytest.raises(FilmError, match="2 annotators"):
        correct_rate(planted_timeline, sixty_by_ab, labels=by_two)


def test_labels_of_another_film_are_refused(planted_timeline, sixty_by_ab, machine_labels):
    """AB judged 60 windows of a film; a machine's labels are of a film called other."""
    of_another_film = machine_labels.with_clips(replace(clip, movie="other") for clip in machine_labels)
    with pytest.raises(FilmError, match="no span"):
        correct_rate(planted_timeline, sixty_by_ab, labels=of_another_film)


@pytest.fixture
def judgements_with_an_s_more(sixty_by_ab, planted_timeline):
    """AB's judgements as of a film whose name has one letter more than that of the timeline."""
    return [
        replace(clip, movie=f"{planted_timeline.movie}s", clip_id=f"o{clip.clip_id}") for clip in sixty_by_ab
    ]


def test_a_similar_name_may_be_a_misspelling_if_the_film_has_no_judgements(
    planted_timeline, sixty_by_ab, judgements_with_an_s_more
):
    """The film itself has no judgements, so that those of a name with one letter more may be meant for it."""
    judgements = sixty_by_ab.with_clips(judgements_with_an_s_more)
    with pytest.raises(FilmError, match=rf"{planted_timeline.movie}s.*did you mean"):
        correct_rate(planted_timeline, judgements)


def test_a_similar_name_is_another_film_if_the_film_has_judgements(
    planted_timeline, sixty_by_ab, judgements_with_an_s_more
):
    """The film has its own judgements, so that the other name is hardly a misspelling of it."""
    judgements = sixty_by_ab.with_clips([*sixty_by_ab, *judgements_with_an_s_more])
    _, notices = correct_rate(planted_timeline, judgements)
    assert f"{planted_timeline.movie}s" in " ".join(notices)
    assert "did you mean" not in " ".join(notices)


def test_too_few_judgements_are_refused(planted_timeline, tmp_path):
    """Five judgements say too little of a share."""
    windows = choose_next([planted_timeline], 5, blind=True)
    with pytest.raises(FilmError, match="10 judged surely are needed"):
        correct_rate(planted_timeline, judged_by_ab(windows, tmp_path))


def test_a_table_without_a_codebook_is_refused(planted_timeline, tmp_path):
    """Without its codebook nobody knows which level is positive."""
    windows = choose_next([planted_timeline], 30, blind=True)
    without_codebook = Manifest(tuple(windows), Path(tmp_path))
    with pytest.raises(FilmError, match="'violent'"):
        correct_rate(planted_timeline, without_codebook)


def test_judgements_of_no_window_and_of_other_films_are_left_out_and_named(planted_timeline, tmp_path):
    """Of 31 judgements ten have times that no window of the film has, as they begin half a second late.

    One is of another film. The share is estimated from the other 20, and a notice each names what is left
    out.
    """
    windows = choose_next([planted_timeline], 30, blind=True)
    begun_late = [replace(clip, start_s=clip.start_s + 0.5) for clip in windows[20:]]
    of_another_film = replace(windows[0], clip_id="other-1", movie="other")
    judgements = judged_by_ab([*windows[:20], *begun_late, of_another_film], tmp_path)

    rate, notices = correct_rate(planted_timeline, judgements)

    assert rate.n == 20
    on_other_film, on_no_window = sorted(notices)
    assert on_other_film == "left out 1 judgement of another film (other)"
    assert on_no_window.startswith("left out 10 judgements whose times are no window")


def test_a_place_counts_however_a_data_frame_writes_it(planted_timeline, tmp_path):
    """A column of whole numbers with a gap becomes one of floats: place 3 is written 3.0."""
    judgements = judged_by_ab(choose_next([planted_timeline], 30, blind=True), tmp_path)
    with_floats = []
    for clip in judgements:
        place = clip.extras["place"]
        with_floats.append(replace(clip, extras=clip.extras | {"place": f"{place}.0"}))

    expected = correct_rate(planted_timeline, judgements)

    assert correct_rate(planted_timeline, judgements.with_clips(with_floats)) == expected


def notice_when_the_last_of_20_is_changed(timeline, tmp_path, change):
    """Let AB judge 20 windows and change the last judgement; fail unless the rate leaves it out.

    It is the last, so that no other one is left out for a gap before it. Return the notice that it is left
    out, which says why.
    """
    *others, last = choose_next([timeline], 20, blind=True)
    rate, (notice,) = correct_rate(timeline, judged_by_ab([*others, change(last)], tmp_path))
    assert rate.n == 19
    return notice


@pytest.mark.parametrize("seen_score", ["", "1"])
def test_a_judgement_that_was_not_made_blindly_is_left_out(planted_timeline, tmp_path, seen_score):
    """The last of 20 judgements has no 0 in `seen_score`, as those have that were made blindly.

    1 stands for judgements in sight of the score. An empty cell does not say, which is not enough.
    """

    def with_seen_score(clip):
        return replace(clip, extras=clip.extras | {"seen_score": seen_score})

    notice = notice_when_the_last_of_20_is_changed(planted_timeline, tmp_path, with_seen_score)
    assert notice == "left out 1 judgement made with the score in sight, or not saying"


@pytest.mark.parametrize("place", ["", "9" * 10, "9" * 5000], ids=["none", "ten digits", "5000 digits"])
def test_a_judgement_without_a_place_in_a_draw_is_left_out(planted_timeline, tmp_path, place):
    """The last of 20 judgements has an empty place, or a number far larger than any film's number of windows.

    The place says which window of the random order it is; without it the chance to be drawn is unknown.
    """

    def with_place(clip):
        return replace(clip, extras=clip.extras | {"place": place})

    notice = notice_when_the_last_of_20_is_changed(planted_timeline, tmp_path, with_place)
    assert notice.startswith("left out 1 judgement without a place in a draw")


@pytest.mark.parametrize(("earlier_s", "later_s"), [(0.5, 0.0), (0.0, 0.5)], ids=["start", "end"])
def test_a_judgement_of_more_than_a_window_is_left_out(planted_timeline, tmp_path, earlier_s, later_s):
    """The last of 20 judgements begins or ends half a second outside its window: it is not of what was drawn.

    The notice says so: its times are none of the film's grid of windows.
    """

    def lengthened(clip):
        return replace(clip, start_s=clip.start_s - earlier_s, end_s=clip.end_s + later_s)

    notice = notice_when_the_last_of_20_is_changed(planted_timeline, tmp_path, lengthened)
    assert notice.startswith("left out 1 judgement whose times are no window of this film's grid of 8 s")


def without_a_law(clips):
    """Return windows that do not name the law they were drawn by, nor seed and content, as in some files."""
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
    for number, cell in enumerate(order[:n], 1):
        start_s, end_s = cells.spans[cell].tolist()
        extras = {"draw": "random", "seen_score": "0", "place": str(number)}
        windows.append(Clip(f"w{number}", timeline.movie, start_s=start_s, end_s=end_s, extras=extras))
    return windows


def windows_by_the_law_of_now(timeline, n):
    """Draw the first n windows as they are drawn now, by a successive draw."""
    return choose_next([timeline], n, blind=True)


def test_a_draw_begun_by_the_earlier_law_continues_by_it(planted_timeline, tmp_path):
    """A law is the rule by which windows are drawn at random, and one draw cannot have two.

    AB judged 20 windows of a list by the earlier law, sequential Poisson sampling.
    """
    judged = judged_by_ab(windows_by_the_earlier_law(planted_timeline, 20), tmp_path)

    next_ten = choose_next([planted_timeline], 10, blind=True, judged=judged)

    assert {clip.extras["law"] for clip in next_ten} == {"sequential-poisson"}
    assert places_of(next_ten) == [21, 22, 23, 24, 25, 26, 27, 28, 29, 30]


@pytest.fixture
def thirty_without_a_law(planted_timeline, tmp_path):
    """AB's judgements of 30 windows that do not name the law by which they were drawn, nor their content.

    20 are of an earlier version's list. When 10 more were asked for, that list was gone on with.
    """
    first_20 = judged_by_ab(windows_by_the_earlier_law(planted_timeline, 20), tmp_path)
    next_10 = choose_next([planted_timeline], 10, blind=True, judged=first_20)
    return judged_by_ab([*first_20, *without_a_law(next_10)], tmp_path)


def estimate_of_windows(cells, windows):
    """Estimate a rate from a film's judged cells alone, without what `correct_rate` does besides."""
    order, y, _ = votes(windows.by_cell)
    one_draw = order[None]  # [1, n]
    return estimate_rate(cells, one_draw, y[None], unsure=windows.unsure, sampling=windows.sampling)


def test_windows_without_a_law_are_of_the_earlier_one(planted_timeline, thirty_without_a_law):
    """AB judged 30 windows that do not name the law (the method) by which they were drawn, nor their content.

    Versions before laws were named wrote such windows, and drew them by sequential Poisson sampling; all
    count as drawn by it. A notice says that they count as if they were alike in content.
    """
    film = judged_film(planted_timeline, thirty_without_a_law)
    windows = film.together()
    rate, _notices = correct_rate(planted_timeline, thirty_without_a_law)

    assert len(windows.by_cell) == 30
    assert windows.sampling == SEQUENTIAL_POISSON
    assert any("alike in content" in notice for notice in film.notices)
    by_poisson_sampling = estimate_of_windows(cells_of(planted_timeline), windows)
    assert rate.low == by_poisson_sampling.low[0]
    assert rate.high == by_poisson_sampling.high[0]


def test_windows_of_a_second_law_are_left_out_and_counted(planted_timeline, tmp_path):
    """AB judged 15 windows that were drawn by an earlier law (method), and then 5 by the law of now.

    In a table of both, columns that earlier windows lack are empty. Windows of two laws are not one random
    draw: the 15 count, and a notice says that 5 are left out.
    """
    empty_columns = {"law": "", "seed": "", "content_s": ""}
    earlier_windows = windows_by_the_earlier_law(planted_timeline, 15)
    by_earlier_law = [replace(window, extras=window.extras | empty_columns) for window in earlier_windows]
    by_law_of_now = windows_by_the_law_of_now(planted_timeline, 5)

    film = judged_film(planted_timeline, judged_by_ab([*by_earlier_law, *by_law_of_now], tmp_path))

    assert film.together().sampling == SEQUENTIAL_POISSON
    assert len(film.together().by_cell) == 15
    assert any(notice.startswith("left out 5 judgements") for notice in film.notices)


@pytest.fixture
def first_drawn_with_4_s_of_content(planted_timeline, tmp_path):
    """AB's judgements of 20 windows; the first had 4 s of content when it was drawn, and has 8 s now."""
    first, *rest = choose_next([planted_timeline], 20, blind=True)
    return judged_by_ab([replace(first, extras=first.extras | {"content_s": "4"}), *rest], tmp_path)


def test_a_window_counts_with_the_content_that_it_had_when_it_was_drawn(
    planted_timeline, first_drawn_with_4_s_of_content
):
    """AB judged 20 windows. The first had 4 s of content when it was drawn, and has 8 s now.

    Windows are drawn in proportion to their content: its chance came from the 4 s, so that the estimate must
    count these. A notice says that the content has changed.
    """
    first = first_drawn_with_4_s_of_content.clips[0]
    cell_of_first = cells_of(planted_timeline).index_with_content(first.start_s, first.end_s)

    film = judged_film(planted_timeline, first_drawn_with_4_s_of_content)

    judged_windows = film.together()
    assert judged_windows.cells.content_s[cell_of_first] == 4
    (notice,) = film.notices
    assert notice.startswith("1 window had")


def test_no_notice_says_that_content_changed_if_the_row_has_no_times(
    planted_timeline, first_drawn_with_4_s_of_content, tmp_path
):
    """The first of AB's 20 rows says 4 s of content, where the film has 8 s now, and has lost its times.

    With its times there would be a notice that its window had other content when it was drawn. Without start
    and end it is of the whole film, and of no window whose content could have changed.
    """
    first, *others = first_drawn_with_4_s_of_content.clips
    of_whole_film = replace(first, start_s=None, end_s=None)
    judgements = judged_by_ab([of_whole_film, *others], tmp_path, is_violent=lambda _clip: True)
    assert content_notices([planted_timeline], judgements) == []


def test_who_draws_more_windows_is_told_of_content_that_changed(
    planted_timeline, first_drawn_with_4_s_of_content
):
    """The first of 20 judged windows had 4 s of content when it was drawn, and has 8 s now."""
    (notice,) = content_notices([planted_timeline], first_drawn_with_4_s_of_content)
    assert "1 window" in notice


def test_who_draws_more_windows_is_told_nothing_if_no_content_changed(planted_timeline, tmp_path):
    """20 windows were judged, and each has the content now that it had when it was drawn."""
    judged = judged_by_ab(choose_next([planted_timeline], 20, blind=True), tmp_path)
    assert content_notices([planted_timeline], judged) == []


def test_who_draws_more_windows_is_told_nothing_of_those_still_to_judge(
    planted_timeline, first_drawn_with_4_s_of_content
):
    """The first row had other content when it was drawn, and is not filled in yet: it was not judged."""
    first, *others = first_drawn_with_4_s_of_content.clips
    partly_filled = first_drawn_with_4_s_of_content.with_clips([replace(first, level=None), *others])
    assert content_notices([planted_timeline], partly_filled) == []


def test_a_window_judged_blindly_outside_the_draw_is_still_to_be_drawn(planted_timeline, tmp_path):
    """Somebody judged the first three windows of the draw without a score, in a table that names no places.

    No share counts these judgements, and the desk asks for the windows too: the draw is of the whole film.
    """
    drawn = choose_next([planted_timeline], 5, blind=True)
    without_place = [replace(clip, extras=clip.extras | {"place": ""}) for clip in drawn[:3]]
    judged = judged_by_ab(without_place, tmp_path)

    next_five = choose_next([planted_timeline], 5, blind=True, judged=judged)

    assert [clip.start_s for clip in next_five] == [clip.start_s for clip in drawn]
    assert places_of(next_five) == [1, 2, 3, 4, 5]


def test_a_draw_goes_on_though_content_changed(planted_timeline, first_drawn_with_4_s_of_content):
    """20 windows were drawn and judged. When the first was drawn it had other seconds of content than now.

    A film that was scored again may have other black and credits. The next windows are those of place 21 on.
    """
    next_five = choose_next([planted_timeline], 5, blind=True, judged=first_drawn_with_4_s_of_content)
    assert places_of(next_five) == [21, 22, 23, 24, 25]


@pytest.mark.parametrize("content", ["9", "-1", "0", "much", "nan", "1e400"])
def test_a_window_with_an_impossible_content_is_left_out(planted_timeline, tmp_path, content):
    """A window lasts 8 s, so that its seconds of content are more than 0 and 8 at most.

    A table says something else of the last of 20 windows, and a notice names the column.
    """

    def with_content(clip):
        return replace(clip, extras=clip.extras | {"content_s": content})

    notice = notice_when_the_last_of_20_is_changed(planted_timeline, tmp_path, with_content)
    assert "content_s" in notice


def test_more_windows_are_drawn_with_the_seed_of_the_first(planted_timeline, tmp_path):
    """AB judged ten windows that were drawn with the seed 1. It is the same whether the seed is given again.

    Another seed would give another order, and the two parts would be no draw of one law.
    """
    first_ten = judged_by_ab(choose_next([planted_timeline], 10, blind=True, seed=1), tmp_path)
    second_ten = choose_next([planted_timeline], 20, blind=True, seed=1)[10:]
    assert choose_next([planted_timeline], 10, blind=True, seed=1, judged=first_ten) == second_ten
    assert choose_next([planted_timeline], 10, blind=True, judged=first_ten) == second_ten


def test_no_more_windows_are_drawn_where_those_judged_are_of_two_seeds(planted_timeline, tmp_path):
    """AB judged places 1 to 10 of the draw with seed 1, and places 11 to 20 of that with seed 2.

    Two seeds are two draws, and it is not known which is to go on. The message names both seeds.
    """
    first_ten = judged_by_ab(choose_next([planted_timeline], 10, blind=True, seed=1), tmp_path)
    second_ten = judged_by_ab(choose_next([planted_timeline], 20, blind=True, seed=2)[10:], tmp_path)
    with pytest.raises(FilmError, match="1, 2"):
        choose_next([planted_timeline], 10, blind=True, judged=[*first_ten, *second_ten])


BY_EACH_LAW_OF_DRAWS = pytest.mark.parametrize(
    "draw", [windows_by_the_earlier_law, windows_by_the_law_of_now]
)


def thirty_judgements_of_which_two_are_unsure(draw, timeline, folder):
    """Let AB judge 30 windows, and not be sure of those at places 4 and 10."""
    clips = []
    for number, clip in enumerate(judged_by_ab(draw(timeline, 30), folder), 1):
        clips.append(replace(clip, level="unsure") if number in (4, 10) else clip)
    return Manifest(tuple(clips), folder, codebook(folder))


@pytest.mark.long
@BY_EACH_LAW_OF_DRAWS
def test_a_rate_is_of_the_windows_that_a_judge_is_sure_of(planted_timeline, tmp_path, draw):
    """AB is not sure of two of 30 windows, which are neither positive nor negative.

    Their seconds are no part of the content that the rate refers to.
    """
    judgements = thirty_judgements_of_which_two_are_unsure(draw, planted_timeline, tmp_path)
    windows = judged_film(planted_timeline, judgements).together()
    expected = estimate_of_windows(windows.cells, windows)

    rate, _notices = correct_rate(planted_timeline, judgements)

    assert rate.value == expected.value[0]
    assert rate.low == expected.low[0]
    assert rate.high == expected.high[0]
    assert rate.content_s == pytest.approx(windows.cells.content_s.sum() - rate.unsure_s)


@BY_EACH_LAW_OF_DRAWS
def test_windows_of_which_the_judge_is_unsure_have_neither_answers_nor_content(
    planted_timeline, tmp_path, draw
):
    """AB judged 30 windows of a draw, by today's law or the earlier one, and is not sure of two of them.

    The answers are those of the 28 others, in the order of the draw. A rate is of what AB is sure of: the
    seconds of the two unsure windows count as no content of it.
    """
    judgements = thirty_judgements_of_which_two_are_unsure(draw, planted_timeline, tmp_path)

    windows = judged_film(planted_timeline, judgements).together()

    cells = cells_of(planted_timeline)
    sure_clips = [clip for clip in judgements if clip.level != "unsure"]
    cells_of_sure = [cells.index_with_content(clip.start_s, clip.end_s) for clip in sure_clips]
    assert list(windows.by_cell) == cells_of_sure
    assert len(windows.unsure) == 2
    assert windows.sure_cells.content_s[list(windows.unsure)].tolist() == [0, 0]


def test_draws_of_two_seeds_are_refused(planted_timeline, tmp_path):
    """Two draws of one film overlap, and so are no sample by one law."""
    with_seed_0 = choose_next([planted_timeline], 20, blind=True, seed=0)
    with_seed_1 = choose_next([planted_timeline], 20, blind=True, seed=1)
    with_other_ids = [replace(clip, clip_id=f"1-{clip.clip_id}") for clip in with_seed_1]
    with pytest.raises(FilmError, match="two seeds"):
        correct_rate(planted_timeline, judged_by_ab([*with_seed_0, *with_other_ids], tmp_path))


def with_level_at(manifest, places, level):
    """Give the windows at some places, counted from 1, another level; None: they were not judged."""
    clips = []
    for number, clip in enumerate(manifest, 1):
        clips.append(replace(clip, level=level) if number in places else clip)
    return manifest.with_clips(clips)


@pytest.fixture
def judged_to_the_25th(planted_timeline, tmp_path):
    """A list of 40 windows in the order of their draw, of which AB judged the first 25."""
    forty = judged_by_ab(choose_next([planted_timeline], 40, blind=True), tmp_path)
    return with_level_at(forty, range(26, 41), level=None)


def test_a_list_of_40_drawn_windows_judged_to_the_25th_gives_the_rate_of_a_list_of_25(
    planted_timeline, judged_to_the_25th
):
    """A list has 40 windows in the order in which they were drawn, and AB judged the first 25.

    The first 25 windows of a draw are a draw of 25, so that nothing is wrong with the rate. The 15 that were
    not judged are counted in a notice.
    """
    list_of_25 = judged_to_the_25th.with_clips(judged_to_the_25th.clips[:25])
    rate_by_list_of_25, _notices = correct_rate(planted_timeline, list_of_25)

    rate, notices = correct_rate(planted_timeline, judged_to_the_25th)

    assert rate == rate_by_list_of_25
    assert notices == ["left out 15 judgements without a level"]


def test_an_unsure_window_is_no_gap_in_a_list(planted_timeline, judged_to_the_25th):
    """Of 25 windows AB was not sure of the fifth: it is left out, and those after it count."""
    rate, _notices = correct_rate(planted_timeline, with_level_at(judged_to_the_25th, [5], "unsure"))
    assert rate.n == 24


def test_judgements_count_up_to_the_first_gap_in_the_draw(planted_timeline, tmp_path):
    """AB sorted a list of 40 windows by time and judged the first 20.

    A rate is of the windows that come first in the draw, which are too few here: an error names the place in
    the list of the first one that is missing.
    """
    forty = judged_by_ab(choose_next([planted_timeline], 40, blind=True), tmp_path)
    first_20_in_time = sorted(forty, key=lambda clip: clip.start_s)[:20]
    missing_places = [number for number, clip in enumerate(forty, 1) if clip not in first_20_in_time]
    with pytest.raises(FilmError, match=f"place {missing_places[0]}"):
        correct_rate(planted_timeline, forty.with_clips(first_20_in_time))


@pytest.mark.parametrize("n_contradicted", [0, 1])
def test_contradicting_judgements_of_one_window_are_named(planted_timeline, tmp_path, n_contradicted):
    """AB judges the first three of 20 windows again: all as before, or the first one the other way round.

    The notice says that AB called it once violent and once calm.
    """
    judgements = judged_by_ab(choose_next([planted_timeline], 20, blind=True), tmp_path)
    again = []
    for index, clip in enumerate(judgements.clips[:3]):
        level = OPPOSITE[clip.level] if index < n_contradicted else clip.level
        again.append(replace(clip, clip_id=f"again-{clip.clip_id}", level=level))

    _, notices = correct_rate(planted_timeline, judgements.with_clips([*judgements, *again]))

    assert len(notices) == n_contradicted
    for notice in notices:
        assert notice.startswith("once ")


def judgements_of_two(timeline, folder, *, opposite_at=()):
    """Let AB and CD judge 40 windows alike, but for those at some places, counted from 0."""
    by_ab = judged_by_ab(choose_next([timeline], 40, blind=True), folder)
    by_cd = []
    for index, clip in enumerate(by_ab):
        level = OPPOSITE[clip.level] if index in opposite_at else clip.level
        by_cd.append(replace(clip, clip_id=f"cd-{clip.clip_id}", annotator="CD", level=level))
    return by_ab.with_clips([*by_ab, *by_cd])


@pytest.mark.parametrize("opposite_at", [(7,), (1, 3, 7, 20)])
def test_two_judges_agreement_is_cohens_kappa(planted_timeline, tmp_path, opposite_at):
    """AB and CD differ on one or on four of 40 windows; scikit-learn computes the same kappa.

    Its interval lies between -1 and 1.
    """
    judgements = judgements_of_two(planted_timeline, tmp_path, opposite_at=opposite_at)
    levels_by_ab = [clip.level for clip in judgements if clip.annotator == "AB"]
    levels_by_cd = [clip.level for clip in judgements if clip.annotator == "CD"]

    rate, _notices = correct_rate(planted_timeline, judgements)

    (pair,) = rate.agreement
    assert pair.annotators == ["AB", "CD"]
    assert pair.n == 40
    assert pair.alike == 40 - len(opposite_at)
    assert pair.kappa == pytest.approx(cohen_kappa_score(levels_by_ab, levels_by_cd))
    assert -1 <= pair.low < pair.kappa < pair.high <= 1


def test_two_judges_who_always_agree_have_an_interval(planted_timeline, tmp_path):
    """AB and CD agree on all 40 windows, so that kappa is 1.

    On others they might differ: its interval begins below 1.
    """
    rate, _notices = correct_rate(planted_timeline, judgements_of_two(planted_timeline, tmp_path))
    (pair,) = rate.agreement
    assert pair.kappa == 1.0
    assert pair.high == 1.0
    assert 0.5 < pair.low < 0.95


def test_rates_are_read_back_as_they_were_written(planted_timeline, tmp_path):
    """AB and CD judged 40 windows: there are rates of each and of both, and their agreement."""
    rates = correct_rates(planted_timeline, judgements_of_two(planted_timeline, tmp_path))
    write_rates(tmp_path, [rates])
    assert read_rates(tmp_path) == [rates]


def test_rates_of_a_judge_whose_name_reverses_text_are_refused(planted_timeline, tmp_path):
    """U+202E, put before the name AB in the file, makes all that follows run from right to left."""
    write_rates(tmp_path, [correct_rates(planted_timeline, judgements_of_two(planted_timeline, tmp_path))])
    path = tmp_path / RATES
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"AB"', '"\\u202eAB"'), encoding="utf-8")
    with pytest.raises(FilmError):
        read_rates(tmp_path)


@pytest.fixture
def film_of_50_s(trained_models, tmp_path):
    """A scored film of 50 s, which has six windows of 8 s."""
    _folder, film = scored_film(tmp_path, trained_models, end_s=50.0, with_shots=False)
    return film


def test_the_share_of_a_film_of_few_windows_is_counted(film_of_50_s, tmp_path):
    """All six windows of a film of 50 s are judged: the first two, of 16 s, are violent.

    So the share is 16 / 50, and its interval has no width.
    """
    windows = choose_next([film_of_50_s], 40, blind=True)
    assert len(windows) == 6
    judgements = judged_by_ab(windows, tmp_path, is_violent=lambda clip: clip.start_s < 16)

    rate, _notices = correct_rate(film_of_50_s, judgements)

    assert rate.value == pytest.approx(16 / 50)
    assert rate.low == pytest.approx(16 / 50)
    assert rate.high == pytest.approx(16 / 50)
    assert rate.worth is None


def test_a_film_of_six_windows_must_be_judged_whole(film_of_50_s, tmp_path):
    """An estimate needs ten judged windows, and the film has six: it can only be judged whole.

    AB judged five of them, which is refused.
    """
    windows = choose_next([film_of_50_s], 40, blind=True)
    with pytest.raises(FilmError, match="all 6 of the film are needed"):
        correct_rate(film_of_50_s, judged_by_ab(windows[:5], tmp_path))


def test_a_model_without_probabilities_expects_a_half_of_every_cell(planted_timeline):
    """No row of the film has a probability. An estimate needs one of each cell: .5 favours neither answer."""
    without_p = replace(
        planted_timeline, table=planted_timeline.table.assign(p=np.nan, p_low=np.nan, p_high=np.nan)
    )
    assert (cells_of(without_p).p == 0.5).all()


def every_third_window_violent(windows, judge, first_violent):
    """Let a judge call every third of these windows violent, from a first one on, and the others calm."""
    clips = []
    for place, window in enumerate(windows):
        level = "violent" if place % 3 == first_violent else "calm"
        clips.append(replace(window, clip_id=f"{judge}-{window.clip_id}", level=level, annotator=judge))
    return clips


def test_three_judges_agreement_is_krippendorffs_alpha(planted_timeline, tmp_path):
    """AB and CD judge 30 windows, and EF the first 20 of them; each calls other windows violent.

    AB calls windows 0, 3, 6, ... violent, CD 2, 5, ..., and EF 1, 4, ... Alpha measures the agreement of any
    number of judges, over the windows that two or more judged: 30.
    """
    windows = choose_next([planted_timeline], 30, blind=True)
    by_ab = every_third_window_violent(windows, "AB", first_violent=0)
    by_cd = every_third_window_violent(windows, "CD", first_violent=2)
    by_ef = every_third_window_violent(windows[:20], "EF", first_violent=1)
    is_violent = np.full((3, 30), np.nan)  # a row a judge; NaN: not judged
    for row, by_judge in enumerate((by_ab, by_cd, by_ef)):
        is_violent[row, : len(by_judge)] = [clip.level == "violent" for clip in by_judge]

    rates = correct_rates(planted_timeline, Manifest((*by_ab, *by_cd, *by_ef), tmp_path, codebook(tmp_path)))

    assert rates.alpha.annotators == ["AB", "CD", "EF"]
    assert rates.alpha.n_windows == 30
    assert rates.alpha.value == pytest.approx(krippendorff_alpha(is_violent))


def test_labels_without_an_annotator_are_called_labels(planted_timeline, sixty_by_ab, machine_labels):
    """A share of judged windows may be estimated with labels of all windows in place of the model's scores.

    Here nobody is named as the annotator of these labels. Then they are called "labels": a sentence on the
    share must not name the model, which has no part in it.
    """
    by_nobody = machine_labels.with_clips(replace(clip, annotator="") for clip in machine_labels)
    rate, _notices = correct_rate(planted_timeline, sixty_by_ab, labels=by_nobody)
    assert rate.model == "labels"
    assert rate.is_of_labels


def test_an_empty_first_row_does_not_hide_who_made_the_labels(planted_timeline, sixty_by_ab, machine_labels):
    """Labels of a machine, vlm, help to estimate the rate in place of the model's scores.

    The first row of their table has neither label nor annotator. It must not be taken for a second annotator
    beside vlm, whose labels would then be refused, nor for the one whom the rate names as its help.
    """
    first, *others = machine_labels
    empty_row = replace(first, level=None, annotator="")
    with_an_empty_row = machine_labels.with_clips([empty_row, *others])

    rate, _notices = correct_rate(planted_timeline, sixty_by_ab, labels=with_an_empty_row)

    helped_by = rate.model
    assert helped_by == "vlm"


def test_a_comparison_of_films_calls_labels_without_an_annotator_as_a_rate_does(
    planted_timeline, sixty_by_ab, machine_labels
):
    """Labels take the model's place, and name nobody who gave them.

    Both say in `model` whose answers correct the share: without an annotator's name these are "labels".
    """
    by_nobody = machine_labels.with_clips(replace(clip, annotator="") for clip in machine_labels)
    rate, _notices = correct_rate(planted_timeline, sixty_by_ab, labels=by_nobody)
    comparison = compare_films([planted_timeline], sixty_by_ab, labels=by_nobody)
    assert comparison.model == rate.model == "labels"
