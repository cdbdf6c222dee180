"""A round of annotation: films, lengths and pairs are spread evenly, by a seed."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, assign, judgements_of, machines_of, windows

FOUR_ANNOTATORS = ("AB", "CD", "EF", "GH")


def make_corpus(n_films):
    """Make a manifest of films of 20 to 119 windows, each of 46 s and a clip."""
    n_windows = np.random.default_rng(0).integers(20, 120, n_films).tolist()
    clips = []
    for film, n in enumerate(n_windows):
        clips += [Clip(f"f{film:02}-{k:03}", f"f{film:02}", "", 46.0 * k, 46.0 * k + 46) for k in range(n)]
    return Manifest(tuple(clips), Path())


def films_by_annotator(assignment):
    """Return each annotator's films, {annotator: {movie: a clip of it}}.

    Every clip of a film has in its extras the film's place in the annotator's order.
    """
    films = {}
    for clip in assignment:
        films.setdefault(clip.annotator, {})[clip.movie] = clip
    return films


def annotators_by_film(assignment):
    """Return the annotators of each film, {movie: their names}."""
    annotators = {}
    for clip in assignment:
        annotators.setdefault(clip.movie, set()).add(clip.annotator)
    return annotators


@cache
def twenty_films():
    """Return a manifest of 20 films."""
    return make_corpus(n_films=20)


@cache
def assign_twenty_films(annotators_per_film, n_calibration, seed=0):
    """Assign 20 films to four annotators; once, as several tests look at the same assignment."""
    return assign(twenty_films(), FOUR_ANNOTATORS, annotators_per_film, calibration=n_calibration, seed=seed)


FOR_THREE_ROUNDS = pytest.mark.parametrize(
    ("annotators_per_film", "n_calibration"),
    [(1, 0), (2, 3), (4, 0)],
    ids=["one for each film", "two, and three films for calibration", "all four for each film"],
)


@FOR_THREE_ROUNDS
def test_films_for_calibration_are_of_all_four_annotators_and_others_of_as_many_as_asked(
    annotators_per_film, n_calibration
):
    """Twenty films are assigned to four annotators, each film to as many of them as asked.

    But some are for calibration: everybody annotates them, so that people can be compared. They have a 1 in
    the column "calibration", and no clip has a level yet.
    """
    assignment = assign_twenty_films(annotators_per_film, n_calibration)

    annotators_of = annotators_by_film(assignment)
    assert annotators_of.keys() == set(twenty_films().movies)
    n_films_by_number_of_annotators = Counter(len(names) for names in annotators_of.values())
    for_calibration = Counter({4: n_calibration})
    other_films = Counter({annotators_per_film: 20 - n_calibration})
    assert n_films_by_number_of_annotators == for_calibration + other_films
    for clip_of_film in films_by_annotator(assignment).values():
        n_marked_for_calibration = sum(clip.extras["calibration"] == "1" for clip in clip_of_film.values())
        assert n_marked_for_calibration == n_calibration
    assert all(clip.level is None for clip in assignment)


@FOR_THREE_ROUNDS
def test_annotators_have_about_as_many_films_and_clips(annotators_per_film, n_calibration):
    """Twenty films are assigned to four annotators: nobody has more than one film more than another.

    Films differ in length, so clips can't be spread as evenly as films: up to 15 % more are allowed.
    """
    assignment = assign_twenty_films(annotators_per_film, n_calibration)

    n_films_of_each = [len(films) for films in films_by_annotator(assignment).values()]
    assert max(n_films_of_each) - min(n_films_of_each) <= 1
    n_clips_of_each = Counter(clip.annotator for clip in assignment).values()
    assert max(n_clips_of_each) / min(n_clips_of_each) < 1.15


@FOR_THREE_ROUNDS
def test_films_are_numbered_from_1_on_for_each_annotator(annotators_per_film, n_calibration):
    """Twenty films are assigned to four annotators, who work through theirs in the order of these numbers.

    The number of a clip's film stands in the column "order".
    """
    assignment = assign_twenty_films(annotators_per_film, n_calibration)

    for films in films_by_annotator(assignment).values():
        numbers = sorted(int(clip.extras["order"]) for clip in films.values())
        assert numbers == list(range(1, len(films) + 1))


@pytest.mark.long
@pytest.mark.parametrize(("annotators_per_film", "n_calibration"), [(2, 0), (2, 3), (3, 2)])
def test_pairs_of_annotators_share_about_as_many_films(annotators_per_film, n_calibration):
    """Twenty films are assigned to four annotators. Agreement is measured for each pair of them.

    So no pair should share much fewer films than another: two at most.
    """
    assignment = assign_twenty_films(annotators_per_film, n_calibration)

    n_common_films = Counter()
    for annotators in annotators_by_film(assignment).values():
        for pair in combinations(sorted(annotators), 2):
            n_common_films[pair] += 1
    assert max(n_common_films.values()) - min(n_common_films.values()) <= 2


def test_films_for_calibration_stand_evenly_through_the_order():
    """Two annotators label 20 films: both label 4 for calibration, and each half of the other 16.

    So each has 12 films. Whoever drifts over time shows it on films for calibration, so these must be spread:
    the first film is one, and from one to the next, or to the end, are at most 4 films.
    """
    assignment = assign_twenty_films(annotators_per_film=2, n_calibration=4, seed=1)

    for films in films_by_annotator(assignment).values():
        places = sorted(
            int(clip.extras["order"]) for clip in films.values() if clip.extras["calibration"] == "1"
        )
        behind_the_last_film = len(films) + 1
        assert places[0] == 1
        assert max(np.diff([*places, behind_the_last_film])) <= 4


def test_the_seed_decides_the_assignment():
    """20 films are assigned to four annotators, two for each film, and four films to all of them."""
    assignment = assign(twenty_films(), FOUR_ANNOTATORS, each=2, calibration=4, seed=1)

    with_the_same_seed = assign(twenty_films(), FOUR_ANNOTATORS, each=2, calibration=4, seed=1)
    with_another_seed = assign(twenty_films(), FOUR_ANNOTATORS, each=2, calibration=4, seed=2)

    assert with_the_same_seed == assignment
    assert with_another_seed != assignment


def test_existing_columns_are_not_replaced():
    """An assignment writes a column "order": the place of a film in an annotator's work.

    The manifest has a column of this name already, with another meaning.
    """
    corpus = make_corpus(n_films=3)
    with_order_of_story = corpus.with_clips(replace(clip, extras={"order": "story"}) for clip in corpus)

    annotators_per_film = 2
    with pytest.raises(ManifestError, match="order"):
        assign(with_order_of_story, FOUR_ANNOTATORS, annotators_per_film)


@pytest.mark.long
def test_the_films_of_mobygaze_are_assigned_evenly(segments):
    """MObyGaze has 20 films, whose windows of 46 s are assigned to four people.

    Two films are for calibration: all four annotate them. Each of the other 18 films is annotated by two
    people, which makes 36 assignments, or 9 for each person. So each person has 2 + 9 = 11 films, and nobody
    has 10 % more minutes than another.
    """
    annotators = ("AB", "CD", "EF", "GH")
    windows_of_46_s = windows(segments, seconds=46)
    annotators_per_film = 2

    assignment = assign(windows_of_46_s, annotators, annotators_per_film, calibration=2)

    assert [len(films) for films in films_by_annotator(assignment).values()] == [11, 11, 11, 11]
    minutes = []
    for annotator in annotators:
        seconds = sum(clip.duration_s for clip in assignment if clip.annotator == annotator)
        minutes.append(seconds / 60)
    assert max(minutes) / min(minutes) < 1.1


def test_sixty_annotators_have_four_films_each_if_thirty_annotate_each_of_eight_films():
    """Eight films by 30 annotators each are 240, and 240 / 60 = 4 films for each of sixty annotators."""
    sixty_annotators = [str(number) for number in range(60)]
    eight_films = make_corpus(n_films=8)
    annotators_per_film = 30

    assignment = assign(eight_films, sixty_annotators, annotators_per_film)

    films = films_by_annotator(assignment)
    assert len(films) == 60
    assert {len(own_films) for own_films in films.values()} == {4}


@pytest.mark.parametrize(
    ("annotators", "annotators_per_film", "n_calibration"),
    [
        pytest.param(("AB", "ab "), 1, 0, id="one name twice, in capitals and small letters"),
        pytest.param(("AB",), 2, 0, id="one annotator, and two for each film"),
        pytest.param(("AB", "CD", "EF", "GH"), 2, 4, id="4 of 3 films for calibration"),
        pytest.param(("AB", ""), 1, 0, id="an empty name"),
    ],
)
def test_impossible_rounds_are_refused(annotators, annotators_per_film, n_calibration):
    """Three films shall be assigned to so many annotators each, and those for calibration to everybody.

    That can't be done for a film by two people of one, for four of three films, or for people without a name
    of their own.
    """
    three_films = make_corpus(n_films=3)
    with pytest.raises(ManifestError):
        assign(three_films, annotators, annotators_per_film, calibration=n_calibration)


@pytest.mark.parametrize(
    "twin", ["Rene", "REN\u00c9 ", "R\u0435n\u00e9"], ids=["accent", "case", "Cyrillic e"]
)
def test_one_annotator_is_not_two_of_a_round_also_where_one_of_them_gets_no_film(twin):
    """Of one film, René would get it and the twin nothing, so that no manifest of both would refuse them."""
    with pytest.raises(ManifestError, match="one name"):
        assign(make_corpus(n_films=1), ["Ren\u00e9", twin], each=1)


def test_annotators_whose_names_are_the_same_but_for_the_order_are_two_in_an_assignment():
    """Two annotators of a manifest are called "Lee, An" and "An Lee", and both get films.

    As titles of films they would be one: "An" is an article, which may stand behind a title. That rule is not
    for people.
    """
    assignment = assign(make_corpus(n_films=2), ["Lee, An", "An Lee"], each=1)

    assert {clip.annotator for clip in assignment} == {"Lee, An", "An Lee"}


def test_names_are_stored_in_one_form_of_unicode():
    """The accent of Léa is given as a sign of its own (NFD). It is stored as one letter with the e."""
    decomposed_name = normalize("NFD", "Léa")
    assert decomposed_name != "Léa"

    three_films = make_corpus(n_films=3)
    annotators_per_film = 2

    assignment = assign(three_films, [decomposed_name, "AB"], annotators_per_film)

    assert {clip.annotator for clip in assignment} == {"Léa", "AB"}


def films_of_clips(n_clips, seconds):
    """Make a manifest of films of so many clips and seconds; no clip has times where seconds are None."""
    clips = []
    for film, n in n_clips.items():
        for k in range(n):
            start_s, end_s = (None, None)
            if seconds is not None:
                start_s, end_s = k * seconds[film] / n, (k + 1) * seconds[film] / n
            clips.append(Clip(f"{film}-{k}", film, "", start_s, end_s))
    return Manifest(tuple(clips), Path())


@pytest.mark.parametrize(
    ("seconds", "pairs"),
    [
        ({"a": 4000.0, "b": 1000.0, "c": 2000.0, "d": 3000.0}, {frozenset("ab"), frozenset("cd")}),
        (None, {frozenset("ad"), frozenset("bc")}),
    ],
    ids=["seconds", "clips, as none has times"],
)
def test_annotators_get_films_of_about_the_same_length_together(seconds, pairs):
    """The longest of four films goes with the shortest, so that both annotators watch as long.

    a, b, c and d have 4, 3, 2 and 1 clips: where no clip has times, that is their length.
    """
    four_films = films_of_clips({"a": 4, "b": 3, "c": 2, "d": 1}, seconds)

    assignment = assign(four_films, ("AB", "CD"), each=1)

    assert {frozenset(films) for films in films_by_annotator(assignment).values()} == pairs


@pytest.mark.parametrize("films", ["a", "abc"])
def test_all_films_may_be_for_calibration(films):
    """One film, or three, of a clip each, are assigned to AB and CD, one annotator for each film.

    But all films are for calibration, so that each is of both annotators.
    """
    corpus = films_of_clips(dict.fromkeys(films, 1), seconds=None)

    assignment = assign(corpus, ("AB", "CD"), each=1, calibration=len(films))

    assert annotators_by_film(assignment) == {film: {"AB", "CD"} for film in films}
    assert {clip.extras["calibration"] for clip in assignment} == {"1"}


def test_a_round_without_clips_is_refused(tmp_path):
    """Nobody would get anything to annotate."""
    with pytest.raises(ManifestError, match="no clip"):
        assign(Manifest((), tmp_path), FOUR_ANNOTATORS, each=2)


def test_a_clip_that_is_assigned_to_somebody_keeps_nothing_of_how_others_labelled_it():
    """AB judged a clip in sight of a model's score (seen_score 1), and the machine vlm-7b answered about it.

    The clip is assigned to CD, who labels it EN. CD is no machine, and nothing is known of whether CD saw a
    score, so that neither column of the earlier labels may come along. A note on the clip itself does.
    """
    labelled_before = (
        Clip("c", "m", level="S", annotator="AB", extras={"seen_score": "1", "model": "", "note": "dark"}),
        Clip(
            "c", "m", level="S", annotator="vlm", extras={"seen_score": "", "model": "vlm-7b", "note": "dark"}
        ),
    )

    (assigned_to_cd,) = assign(Manifest(labelled_before, Path()), ["CD"], each=1)

    labelled_by_cd = Manifest((replace(assigned_to_cd, level="EN"),), Path())
    assert machines_of(labelled_by_cd) == ()
    (judgement,) = judgements_of(labelled_by_cd).every
    assert judgement.is_blind is None
    assert assigned_to_cd.extras["note"] == "dark"
