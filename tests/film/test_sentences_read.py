"""Sentences that readers halted at, each beside the film, the model or the judges that it is about."""

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace as changed

from obygaze_features.commands.manifest_film import DETECTORS
from obygaze_features.manifest import PLANTED, Manifest, builtin_codebook
from obygaze_film import schema
from obygaze_film.claims import (
    LANGUAGES,
    Words,
    film_claims,
    group_claims,
    phrases,
    sentences,
)
from obygaze_film.claims import (
    kinds as claim_kinds,
)
from obygaze_film.claims.of_film import passage_reasons
from obygaze_film.commands.film_lines import lines_of_film
from obygaze_film.exchange import export
from obygaze_film.film_groups import compare_films
from obygaze_film.group_report import comparison_report
from obygaze_film.notes import texts
from obygaze_film.page import film_page
from obygaze_film.page.figures import film_figure
from obygaze_film.score import MIN_ADDED_WIDTH, expected_rate, score_film
from obygaze_film.segments import reasons
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.evidence import span_evidence
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.prediction import load_model
from tests.film.films import film_store, shots_of
from tests.film.page.invented import fake_scored_film, ten_minute_film, with_model
from tests.film.page.test_page import text_of
from tests.film.saying import first_sentence, sentence_on_groups

BOOK = builtin_codebook("obygaze12")
SIXTY_ROWS = {"n_rows": 60, "duration_s": 900.0}
ENGLISH = Words("en")


def claim_of(film, kind):
    """Return the only claim of a kind on a film."""
    (claim,) = (claim for claim in film_claims(film) if isinstance(claim, kind))
    return claim


def with_unread(film):
    """Return the film with what is unlike training flagged as not read instead."""
    flags = film.table["flags"].str.replace("unlike", "missing")
    return replace(film, table=film.table.assign(flags=flags))


def judged_by(film, **labels_by_judge):
    """Plant what judges said of the first windows of a film's draw.

    `AB=[("S", "Look"), ("EN",)]`: AB called the first window S and saw Look, and called the second EN.
    """
    clips = []
    for judge, labels_of_windows in labels_by_judge.items():
        windows = choose_next([film], 40, blind=True)
        for window, (level, *concepts) in zip(windows, labels_of_windows, strict=False):
            judgement = replace(
                window,
                annotator=judge,
                clip_id=f"{judge}-{window.clip_id}",
                level=level,
                concepts=tuple(concepts),
            )
            clips.append(judgement)
    return Manifest(tuple(clips), Path(), BOOK)


# --- a very short film
# ---------------------------------------------------------------------------
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def films_by_length(trained_models, tmp_path):
    """Films of 13 s, which are two windows of 8 s, and of ten minutes, by their length."""
    films = {}
    for end_s in (13.0, 600.0):
        store = film_store(tmp_path, f"film{end_s:g}", end_s=end_s, planted=((3.0, 9.0),))
        films[end_s] = score_film(store, [trained_models.paths["pcbm_lr"]])
    return films


@pytest.mark.long
def test_the_bracket_of_a_short_film_is_wider(trained_models, films_by_length):
    """What a model expects as a film's share has a bracket: how far shares of other films were off.

    In a film of ten minutes this is a margin on either side. With few windows a share is off by more, by
    chance alone: the bracket of a film of 13 s is wider by more than .02.
    """
    margin = load_model(trained_models.paths["pcbm_lr"]).calibration.film_margin
    of_short_film = claim_of(films_by_length[13.0], claim_kinds.ExpectedShare).interval
    of_long_film = claim_of(films_by_length[600.0], claim_kinds.ExpectedShare).interval
    width_of_short_film = of_short_film.high - of_short_film.low
    width_of_long_film = of_long_film.high - of_long_film.low

    assert width_of_long_film <= 2 * margin + 1e-9
    assert width_of_short_film > width_of_long_film + 0.02


@pytest.mark.long
def test_terminal_and_page_say_if_a_film_has_few_windows(films_by_length):
    """With few windows the expected share is uncertain, and the sentence names the reason: "windows only".

    A film of 13 s has 13 / 8 = 1.6 windows of 8 s, or fewer where it has no content.
    """
    short_film, long_film = films_by_length[13.0], films_by_length[600.0]
    n_windows = claim_of(short_film, claim_kinds.ExpectedShare).n_windows
    assert n_windows == pytest.approx(1.6, abs=0.5)

    assert "windows only" in " ".join(lines_of_film(short_film, ENGLISH))
    assert "windows only" in text_of(film_page([short_film]))
    assert "windows only" not in " ".join(lines_of_film(long_film, ENGLISH))
    assert "windows only" not in text_of(film_page([long_film]))


@pytest.mark.long
def test_the_number_of_windows_is_given_if_it_widens_the_bracket(trained_models, films_by_length):
    """The fewer windows a film has, here 2 to 80, the wider the bracket around its expected share.

    If it is wider by `MIN_ADDED_WIDTH` (.005) or more than that of a film of many windows, the number of
    windows is given as the reason; else it is None.
    """
    model = load_model(trained_models.paths["pcbm_lr"])
    film = films_by_length[600.0]
    added_widths_with_number = []
    added_widths_without_number = []
    for n_windows in np.arange(2.0, 80.0, 0.5):
        window_s = film.rate().counted_s / n_windows
        rate = expected_rate(film.rows(), model, window_s=window_s, is_trained_on=False)
        low_of_many_windows, high_of_many_windows = model.calibration.bracket(rate.value)
        added_below = low_of_many_windows - rate.bracket_low
        added_above = rate.bracket_high - high_of_many_windows
        added_width = max(added_below, added_above)
        if rate.n_windows is None:
            added_widths_without_number.append(added_width)
        else:
            added_widths_with_number.append(added_width)

    assert min(added_widths_with_number) >= MIN_ADDED_WIDTH
    assert max(added_widths_without_number) < MIN_ADDED_WIDTH
    assert max(added_widths_without_number) > 0  # some are a little wider, and nothing is said of it


@pytest.mark.parametrize("page", ["film.md", "film-programmers.md"])
def test_the_docs_say_how_much_wider_a_bracket_must_be_for_a_sentence_to_blame_few_windows(page):
    """A film of few windows has a wider bracket. If it is wider by .005, a sentence names few windows as why.

    Two pages of the docs give this number (`MIN_ADDED_WIDTH`), as ".005".
    """
    text = (DOCS / page).read_text(encoding="utf-8")
    number = f"{MIN_ADDED_WIDTH:g}".removeprefix("0")
    assert f"by {number} or more" in text


@pytest.mark.parametrize(
    ("n_windows", "text"), [(2.5, "2.5 windows only"), (3.04, "3 windows only"), (1.0, "1 window only")]
)
def test_a_film_of_two_and_a_half_windows_keeps_the_half(n_windows, text):
    """A short film may have a fraction of a window: rounded down it would seem to have fewer.

    Sentence and note on its expected share write the number with one decimal, but for .0.
    """
    claim = replace(claim_of(fake_scored_film(**SIXTY_ROWS), claim_kinds.ExpectedShare), n_windows=n_windows)
    assert text in phrases.expected_sentence(claim, ENGLISH)
    assert text in phrases.expected_note(claim, ENGLISH)


# --- a model that tells nothing apart
# ---------------------------------------------------------------------------
def with_one_probability(film, p=0.0899):
    """Let the film's model, one without concepts, give the same probability to every row that it judges.

    Any p will do; .0899 is written as 0.09.
    """
    table = film.table.copy()
    has_p = table["p"].notna()
    table.loc[has_p, "p"] = p
    table.loc[has_p, "p_low"] = p - 0.05
    table.loc[has_p, "p_high"] = p + 0.05
    film = replace(film, table=table)
    return with_model(film, rate=changed(film.model().rate, value=p), by_concepts=False, concepts=[])


def same_probability_claims(film):
    """Return the claims that a model gives a film one probability throughout."""
    return [claim for claim in film_claims(film) if isinstance(claim, claim_kinds.SameProbability)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_with_one_number_tells_nothing_apart(language):
    """A model that gives the probability .0899 to every row of a film tells nothing apart in it.

    A sentence with this number says so, in the terminal and on the page.
    """
    words = Words(language)
    film = with_one_probability(fake_scored_film(**SIXTY_ROWS), p=0.0899)

    (claim,) = same_probability_claims(film)
    sentence = phrases.sentence(claim, words)
    lines_in_terminal = lines_of_film(film, words)
    page = text_of(film_page([film], language=language))

    assert words.probability(0.0899) in sentence
    assert any(sentence in line for line in lines_in_terminal)
    assert sentence in page


def with_one_other_probability(difference):
    """Make a film whose rows have the probability .3, but for one, which has so much more."""
    film = with_one_probability(fake_scored_film(**SIXTY_ROWS), p=0.3)
    table = film.table.copy()
    first_row = table.index[table["p"].notna()][0]
    table.loc[first_row, "p"] = 0.3 + difference
    return replace(film, table=table)


@pytest.mark.parametrize(
    ("difference", "written"),
    [(0.0002, ["0.30"]), (0.008, ["0.300", "0.308"])],
    ids=["written alike", "within a hundredth"],
)
def test_a_sentence_on_nearly_equal_probabilities_has_the_lowest_and_the_highest(difference, written):
    """A model gives .3 to all rows of a film but one, which gets a little more: it tells no rows apart.

    The sentence that says so has one number if both are 0.30 when rounded. .3 and .308 have three decimals:
    with two they would be 0.30 and 0.31, and seem further apart than they are.
    """
    (claim,) = same_probability_claims(with_one_other_probability(difference))

    sentence = phrases.sentence(claim, ENGLISH)

    for number in written:
        assert number in sentence


def test_a_model_is_not_said_to_tell_nothing_apart_if_its_numbers_are_two_hundredths_apart():
    """A model gives .3 to all rows of a film but one, which gets .32: that one is told apart from the others.

    So it is not claimed that the model gives the film one probability throughout.
    """
    assert same_probability_claims(with_one_other_probability(difference=0.02)) == []


def test_a_model_is_not_said_to_tell_nothing_apart_if_its_numbers_rise_in_passages():
    """The probabilities of a film rise where passages are planted, and are low elsewhere."""
    assert same_probability_claims(fake_scored_film(**SIXTY_ROWS)) == []


def same_share_claims(compared):
    """Return the claims that a model expects one share of all films."""
    return [claim for claim in group_claims(compared) if isinstance(claim, claim_kinds.SameShare)]


def three_films():
    """Plant three films that differ in their probabilities."""
    return [fake_scored_film(f"m{n}", seed=n, **SIXTY_ROWS) for n in range(3)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_films_with_one_expected_share_are_not_told_apart(language):
    """The model gives the same probability to every row of three films, and so expects one share of each.

    The shares tell nothing of how the films differ: a sentence says so of the 3 films, and is part of that
    which compares them. AB judged windows of the first film.
    """
    films = [with_one_probability(film) for film in three_films()]
    judgements = judged_by(films[0], AB=[("EN",), ("S",)] * 20)

    compared = compare_films(films, judgements)

    (claim,) = same_share_claims(compared)
    sentence = phrases.sentence(claim, Words(language))
    assert re.search(r"\b3 films", sentence)
    assert sentence in sentence_on_groups(compared, language)


def test_films_with_different_expected_shares_are_told_apart():
    """Three films differ in their probabilities, and so in their shares: no claim says that these are one."""
    films = three_films()
    judgements = judged_by(films[0], AB=[("EN",), ("S",)] * 20)
    assert same_share_claims(compare_films(films, judgements)) == []


# --- what cannot be judged
# ---------------------------------------------------------------------------
def sentences_on_what_is_not_judged(film):
    """Join what page and exports say of the part of a film that has no probability."""
    judged_time = claim_of(film, claim_kinds.JudgedTime)
    sentences_on_it = [
        phrases.unjudged_sentence(judged_time, ENGLISH),
        phrases.unjudged_caveat(judged_time, ENGLISH),
        phrases.unjudged_legend(judged_time, ENGLISH),
    ]
    share = claim_of(film, claim_kinds.ExpectedShare)
    if share.number is None:  # then a sentence says why
        sentences_on_it.append(phrases.sentence(share, ENGLISH))
    return " ".join(sentences_on_it)


def with_unread_first_row(film):
    """Return the film with its first row flagged as not read; those after it stay unlike training."""
    flags = film.table["flags"].copy()
    flags.iloc[0] = "missing"
    return replace(film, table=film.table.assign(flags=flags))


def film_beginning_unlike_training(part):
    """Invent a film of which the first part, .1 for a tenth of its time, is unlike training: it has no p."""
    return fake_scored_film(unlike_parts=((0.0, part),), **SIXTY_ROWS)


@pytest.mark.parametrize("part", [0.1, 0.5], ids=["a tenth", "half, so that no share is given"])
@pytest.mark.parametrize(
    ("with_flags", "is_unlike", "is_unread"),
    [
        (lambda film: film, True, False),
        (with_unread, False, True),
        (with_unread_first_row, True, True),
    ],
    ids=["unlike training", "unread", "both"],
)
def test_a_part_without_probability_is_called_unlike_training_or_unread(
    part, with_flags, is_unlike, is_unread
):
    """The beginning of a film has no probability, as it is unlike training, could not be read, or both.

    The two reasons have different remedies. The sentences on what is not judged give the right one alone:
    that it is "too unlike", or "not like", the training films, or that nothing could be "read". If the first
    row could not be read and the others are unlike training, they give both.
    """
    film = with_flags(film_beginning_unlike_training(part))
    text = sentences_on_what_is_not_judged(film)
    assert ("like" in text) == is_unlike
    assert ("read" in text) == is_unread


@pytest.mark.parametrize(
    ("with_flags", "reason"),
    [(lambda film: film, "like"), (with_unread, "read")],
    ids=["unlike training", "unread"],
)
def test_the_pages_legend_says_why_a_part_is_hatched(with_flags, reason):
    """The first tenth of a film is unlike training, or could not be read: its page draws it hatched.

    The legend of the hatching names the reason, by "like" or "read".
    """
    film = with_flags(film_beginning_unlike_training(part=0.1))
    legend = phrases.unjudged_legend(claim_of(film, claim_kinds.JudgedTime), ENGLISH)
    assert reason in legend
    assert legend in text_of(film_page([film]))


def beginning_of(words, key):
    """Return the words before the judged time in one form of the first sentence."""
    sentence = words[key].format(model_capitalised="", judged="JUDGED TIME")
    beginning, _ = sentence.split("JUDGED TIME")
    return beginning


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_a_wholly_read_film_is_called_wholly_judged(language):
    """Two films have a probability in all of their 60 rows, so that the model judged all that it read.

    The first was wholly read, so all of the film is judged. In each row of the second, pictures could not be
    read (`partial`): its first sentence must say of what was read that it is judged, and not of the film.
    """
    words = Words(language)
    film = fake_scored_film(unlike_parts=(), **SIXTY_ROWS)
    wholly_read = replace(film, table=film.table.assign(flags="", p=film.table["p"].fillna(0.1)))
    partly_read = with_model(wholly_read, flags={"partial": 900.0})  # all 900 seconds
    all_is_judged = beginning_of(words, "sentence_all")
    all_that_was_read_is_judged = beginning_of(words, "sentence_all_read")

    on_wholly_read = first_sentence(wholly_read, language=language)
    on_partly_read = first_sentence(partly_read, language=language)

    assert all_is_judged in on_wholly_read
    assert all_that_was_read_is_judged not in on_wholly_read
    assert all_that_was_read_is_judged in on_partly_read
    assert all_is_judged not in on_partly_read


HOLE_S = (60.08, 114.54)
"""Start and end of what a film of 168 s has no pictures of: 32% of it."""


@pytest.fixture(scope="module", params=[True, False], ids=["shots", "steps"])
def film_with_a_hole(request, trained_models, tmp_path_factory):
    """A scored film with a gun from 50 to 125 s, beyond both ends of the hole; rows are shots or steps."""
    folder = tmp_path_factory.mktemp("hole")
    store = film_store(folder, "hole", end_s=168.0, planted=((50.0, 125.0),), holes=(HOLE_S,))
    shots = shots_of("hole", end_s=168.0).assign(flags="") if request.param else None
    return score_film(store, [trained_models.paths["linear"]], shots=shots)


def test_a_second_without_pictures_has_no_probability(film_with_a_hole):
    """The film has no pictures from 60.08 to 114.54 s, and rows begin and end within .1 s of these ends."""
    rows = film_with_a_hole.rows()
    is_in_hole = (rows["start_s"] > 60.08 - 0.1) & (rows["end_s"] < 114.54 + 0.1)
    assert rows["p"].isna().tolist() == is_in_hole.tolist()
    assert set(rows[is_in_hole]["flags"]) == {"missing"}
    assert film_with_a_hole.time().unread_s == pytest.approx(114.54 - 60.08, abs=0.1)


def test_a_file_with_a_hole_is_not_said_to_be_cut_off(film_with_a_hole):
    """The film of 168 s has no pictures from 60.08 to 114.54 s, and has some again after that."""
    assert film_with_a_hole.time().unread_from_s is None
    assert "nothing could be read" not in " ".join(lines_of_film(film_with_a_hole, ENGLISH))


def test_no_passage_reaches_into_what_has_no_pictures(film_with_a_hole):
    """A gun is seen from 50 to 125 s, and the film has no pictures from 60.08 to 114.54 s.

    The passages with the gun end and begin at this hole, with a tenth of a second for rounding.
    """
    passages = film_with_a_hole.segments().query("reaches == 1")
    assert len(passages) > 0
    reaches_into_hole = (passages["end_s"] > 60.08 + 0.1) & (passages["start_s"] < 114.54 - 0.1)
    assert not reaches_into_hole.any()


@pytest.mark.parametrize(
    ("language", "share", "reason"),
    [("en", "32%", "could not be read"), ("fr", "32 %", "n’a pas pu être lu")],
)
def test_no_share_is_expected_of_a_film_of_which_a_third_is_unread(film_with_a_hole, language, share, reason):
    """A film of 168 s has no pictures from 60.08 to 114.54 s: these 32%, and no more, have no probability.

    A share is expected of a film only if at most a fifth of it is without a probability. So the sentence has
    none, but the part that is unread as the reason.
    """
    expected_share = claim_of(film_with_a_hole, claim_kinds.ExpectedShare)
    assert expected_share.number is None
    part_without_probability = expected_share.unlike
    assert part_without_probability == expected_share.unread

    sentence = with_plain_blanks(phrases.sentence(expected_share, Words(language)))
    assert share in sentence
    assert reason in sentence


def test_a_window_mostly_without_pictures_counts_for_no_row(trained_models, tmp_path):
    """Windows of 8 s begin every 4 s, and the damaged film has no pictures from 60 to 64.2 s.

    So the window from 60 to 68 s has pictures in 3.8 of its 8 seconds, and does not count. In the whole film
    the row at 64 s has two windows, those that begin at 60 and at 64 s, and in the damaged one the latter.
    """
    whole_store = film_store(tmp_path / "whole", "m", end_s=120.0)
    damaged_store = film_store(tmp_path / "damaged", "m", end_s=120.0, holes=((60.0, 64.2),))

    whole = score_film(whole_store, [trained_models.paths["linear"]]).rows().set_index("start_s")
    damaged = score_film(damaged_store, [trained_models.paths["linear"]]).rows().set_index("start_s")

    assert whole.loc[64.0]["n_windows"] == 2
    first_row_after_hole = damaged.loc[64.2:].iloc[0]
    assert first_row_after_hole["n_windows"] == 1
    pd.testing.assert_frame_equal(whole.loc[72.0:], damaged.loc[72.0:])


def test_no_gap_within_a_window_has_a_probability(trained_models, tmp_path):
    """Two gaps of 1.5 s lie in the window from 60 to 68 s, and one elsewhere: 4.5 s could not be read."""
    holes = [(61.0, 62.5), (64.5, 66.0), (100.0, 101.5)]
    store = film_store(tmp_path, "m", end_s=120.0, holes=holes)

    film = score_film(store, [trained_models.paths["linear"]])

    rows = film.rows()
    without_p = rows[rows["p"].isna()]
    assert list(zip(without_p["start_s"], without_p["end_s"], strict=True)) == holes
    assert film.time().unread_s == pytest.approx(4.5)


def test_only_the_missing_seconds_are_flagged_if_it_is_known_which_are_missing(trained_models, tmp_path):
    """A film has windows of 8 s, and its file is known to have no pictures from 60 to 61.5 s.

    These seconds are a row of their own, "missing". The rest of the window from 60 to 68 s could be read, and
    so no row is flagged "partial", as one would be in which some unknown part is missing.
    """
    store = film_store(tmp_path, "m", end_s=120.0, holes=((60.0, 61.5),))
    rows = score_film(store, [trained_models.paths["linear"]]).rows()

    missing = rows[rows["flags"] == "missing"]
    assert missing["start_s"].tolist() == [60.0]
    assert missing["end_s"].tolist() == [61.5]
    assert not rows["flags"].str.contains("partial").any()


def test_all_rows_of_a_window_are_flagged_partial_if_it_is_unknown_what_is_missing_in_it(
    trained_models, tmp_path
):
    """A film's windows of 8 s begin every 4 s. Some pictures of the 16th are missing, and nobody knows which.

    That window is from 60 to 68 s, and any second of it may be affected: both its rows of 4 s are flagged.
    """
    store = film_store(tmp_path, "m", end_s=120.0, damaged=("m-0016",))
    rows = score_film(store, [trained_models.paths["linear"]]).rows()

    partial = rows[rows["flags"].str.contains("partial")]
    assert partial["start_s"].tolist() == [60.0, 64.0]
    assert partial["end_s"].tolist() == [64.0, 68.0]


class CutOff(NamedTuple):
    """What is said in a language of a film of 168 s whose file is cut off at a second."""

    at_s: float
    language: str
    first_sentence: str
    rate: str
    unjudged: str


CUT_OFF = {
    "150 s, en": CutOff(
        at_s=150.0,
        language="en",
        first_sentence="Of the 150 s that it can judge (89% of the film) the model marks 2 passages, 54 s",
        rate="expects 38% of the time that it can judge",
        unjudged="18 s, 11% of the film, cannot be judged (hatched): none of it could be read. "
        "From 0:02:30 on nothing could be read, as where a file is cut off.",
    ),
    "113 s, en": CutOff(
        at_s=113.0,
        language="en",
        first_sentence="The model can judge 113 s of this film (67%); it says nothing of the rest. "
        "In the time",
        rate="No rate: 33% of the film without black and credits could not be read, and has no probability.",
        unjudged="55 s, 33% of the film, cannot be judged (hatched): none of it could be read. "
        "From 0:01:53 on nothing could be read, as where a file is cut off.",
    ),
    "113 s, fr": CutOff(
        at_s=113.0,
        language="fr",
        first_sentence="Le modèle peut juger 113 s de ce film (67 %) ; il ne dit rien du reste. "
        "Pendant le temps",
        rate="Pas de taux : 33 % du film sans noir ni générique n’a pas pu être lu, "
        "et n’a pas de probabilité.",
        unjudged="55 s, soit 33 % du film, sans jugement possible (hachuré) : rien n’en a pu être lu. "
        "À partir de 0:01:53, rien n’a pu être lu, comme d’un fichier tronqué.",
    ),
}


def film_cut_off_at(folder, trained_models, end_s):
    """Score a film of 168 s of which nothing could be read from `end_s` on.

    The window in which the file ends was read in part: it has a probability up to there alone.
    """
    planted = ((20.0, 60.0), (end_s - 10.0, 168.0))
    store = film_store(folder, "cut", end_s=168.0, planted=planted, holes=((end_s, 168.0),))
    return score_film(store, [trained_models.paths["linear"]])


@pytest.mark.parametrize(("readable_s", "clock"), [(150.0, "0:02:30"), (113.0, "0:01:53")])
def test_the_lost_end_of_a_file_is_not_judged(trained_models, tmp_path, readable_s, clock):
    """The first 150 s, or 113 s, of a film of 168 s can be read; the rest of the file is lost.

    In the film a gun is seen from 20 to 60 s, and from 10 s before the loss to the end. The last passage with
    a gun ends where the file does, and a line on the film says from when on nothing could be read.
    """
    film = film_cut_off_at(tmp_path, trained_models, readable_s)
    assert film.time().judged_s == readable_s
    assert film.time().unread_s == 168.0 - readable_s
    assert film.segments()["end_s"].max() == readable_s
    assert f"nothing could be read from {clock} on" in " ".join(lines_of_film(film, ENGLISH))


@pytest.mark.parametrize("cut_off", CUT_OFF.values(), ids=CUT_OFF)
def test_the_sentences_on_a_cut_off_file_say_what_is_judged(trained_models, tmp_path, cut_off):
    """The file of a film of 168 s is cut off at 150 s, so that 11% is lost, or at 113 s, so that 33% is.

    What is lost is said to be not judged, and why. If it is at most a fifth of the film, as 11%, a rate is
    given, and else the reason why there is none.
    """
    words = Words(cut_off.language)
    film = film_cut_off_at(tmp_path, trained_models, end_s=cut_off.at_s)

    first = first_sentence(film, language=cut_off.language)
    on_rate = phrases.sentence(claim_of(film, claim_kinds.ExpectedShare), words)
    on_unjudged_time = phrases.unjudged_sentence(claim_of(film, claim_kinds.JudgedTime), words)
    page = text_of(film_page([film], language=cut_off.language))

    assert with_plain_blanks(first).startswith(cut_off.first_sentence)
    assert with_plain_blanks(on_rate).startswith(cut_off.rate)
    assert with_plain_blanks(on_unjudged_time) == cut_off.unjudged
    assert cut_off.unjudged in with_plain_blanks(page)


def with_plain_blanks(text: str) -> str:
    """Write a text with plain blanks in place of those that French sets."""
    return text.replace("\u202f", " ").replace("\xa0", " ")


def test_sentences_in_a_terminal_do_not_say_how_time_is_drawn():
    """Half of a film is unlike training. On its page this time is drawn "hatched", and credits "dotted".

    Sentences on the page say so; in a terminal nothing is drawn.
    """
    film = fake_scored_film(unlike_parts=((0.0, 0.5),), **SIXTY_ROWS)
    assert not re.search("hatched|dotted", " ".join(lines_of_film(film, ENGLISH)))


def test_a_share_is_followed_by_how_far_shares_were_off():
    """A model expects that some share of a film is positive. A reader must learn how far it may be off.

    So a sentence, also on the film's page, says by how much the model's shares of other films were off.
    """
    film = fake_scored_film(**SIXTY_ROWS)

    claim = claim_of(film, claim_kinds.ExpectedShare)
    sentence_on_error = phrases.error_sentence(claim, ENGLISH)

    assert claim.number is not None
    assert sentence_on_error
    assert "was off by" in text_of(film_page([film]))


def test_without_a_share_nothing_is_said_of_how_far_shares_were_off():
    """The whole film is unlike all training clips, so the model expects no share of it."""
    whole_film = (0.0, 1.0)
    film = fake_scored_film(unlike_parts=(whole_film,), **SIXTY_ROWS)

    claim = claim_of(film, claim_kinds.ExpectedShare)
    sentence_on_error = phrases.error_sentence(claim, ENGLISH)

    assert claim.number is None
    assert sentence_on_error == ""
    assert "was off by" not in text_of(film_page([film]))


# --- shares of the time
# ---------------------------------------------------------------------------
@pytest.mark.parametrize("parts", [(66.5, 17.5, 16.0), (1.0, 1.0, 1.0), (99.7, 0.2, 0.1), (0.0, 0.0, 5.0)])
def test_the_shares_of_a_films_time_add_up_to_100_percent(parts):
    """`parts` are three parts of a film's time, in any unit, which are written as shares of the whole.

    Rounded one by one, shares may add up to 99 or 101%: they must add up to 100%. Only nothing is written as
    0%. A very small share is "<1%", and the one beside it ">99%", which do not add up.
    """
    shares = ENGLISH.shares_of_whole(parts)

    for part, share in zip(parts, shares, strict=True):
        assert (share == "0%") == (part == 0)
    has_bounds = any("<" in share or ">" in share for share in shares)
    if not has_bounds:
        percentages = [int(share.removesuffix("%")) for share in shares]
        assert sum(percentages) == 100


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_writes_the_share_of_a_part_alike(language):
    """.155 of a film is unlike training: rounded, it could be 15% in one sentence and 16% in another.

    All sentences write it alike, as they round the parts of the film's time together: what is judged, what is
    not, and what is black.
    """
    words = Words(language)
    film = film_beginning_unlike_training(part=0.155)
    judged_time = claim_of(film, claim_kinds.JudgedTime)

    parts = phrases.time_shares(judged_time, words)

    assert parts.judged in first_sentence(film, language=language)
    assert parts.unjudged in phrases.unjudged_caveat(judged_time, words)
    assert parts.unjudged in phrases.unjudged_sentence(judged_time, words)
    assert parts.black in phrases.black_caveat(judged_time, words)
    sentence_on_all_parts = phrases.sentence(judged_time, words)
    for part in parts:
        assert part in sentence_on_all_parts


class FilmThatBeginsBlack(NamedTuple):
    """A film, and how many of its first seconds are black."""

    film: Timeline
    black_s: float


def film_that_begins_black():
    """Make a film of 900 s, black for about 200 s; its windows of 8 s, every 4 s, say how black they are."""
    film = fake_scored_film(**SIXTY_ROWS)
    is_black = film.table["start_s"] <= 200.0
    seconds = film.table["end_s"] - film.table["start_s"]
    black_s = float(seconds[is_black].sum())
    window_starts_s = np.arange(0.0, 893.0, 4.0)  # the last window is from 892 to 900 s
    black_seconds_of_windows = np.clip(black_s - window_starts_s, 0, 8)
    variables = pd.DataFrame(
        {
            "start_s": window_starts_s,
            "end_s": window_starts_s + 8.0,
            "black": black_seconds_of_windows / 8.0,
        }
    )
    table = film.table.copy()
    table.loc[is_black, "flags"] = "black"
    return FilmThatBeginsBlack(replace(film, table=table, variables=variables), black_s)


def test_the_share_of_black_beside_its_tier_is_that_of_the_films_time():
    """A film of 900 s begins black; how black it is was measured in windows of 8 s, one every 4 s.

    The page gives the black part of the film's time. The mean of the windows would be another number: it
    counts the film's first and last 4 s too little, as these lie in one window and all others in two.
    """
    film, black_s = film_that_begins_black()

    page = text_of(film_page([film]))

    black_part_of_time = ENGLISH.number(black_s / 900.0)
    assert f"{black_part_of_time} of the time" in page
    mean_of_windows = ENGLISH.number(film.variables["black"].mean())
    assert mean_of_windows != black_part_of_time


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ((0.5,), "in half of the marked time"),
        ((0.5, 0.7), "in at least half of the marked time"),
        ((0.51,), "in more than half of the marked time"),
    ],
)
def test_half_of_the_time_is_said_to_be_half(shares, text):
    """A concept may be seen in just half of the marked time, in more, or several in at least half each.

    Each of several was counted alone: "each in" says that they need not be seen together.
    """
    film = fake_scored_film(**SIXTY_ROWS)
    concepts = []
    for number, share in enumerate(shares):
        concepts.append(claim_kinds.FrequentConcept(f"Concept {number}", is_near_chance=False, share=share))
    claim = replace(claim_of(film, claim_kinds.MarkedPassages), concepts=tuple(concepts))

    sentence = phrases.sentence(claim, ENGLISH)

    assert text in sentence
    assert ("each in" in sentence) == (len(shares) > 1)


@pytest.fixture
def marked_by_a_concept():
    """A claim on the passages that a model of the concept Look marks.

    Its threshold is only just below the film's highest probability, so that some rows of passages lie
    below it.
    """
    film = fake_scored_film(n_rows=400, duration_s=900.0)
    highest_p = float(film.table["p"].max())
    film = with_model(film, concept="Look", positive=[], negative=[], means={}, threshold_p=highest_p - 0.005)
    claim = claim_of(film, claim_kinds.MarkedPassages)
    assert claim.called_s < claim.marked_s < claim.judged.judged_s
    return claim


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_on_a_concepts_passages_says_in_how_much_of_them_it_is_found(
    marked_by_a_concept, language
):
    """A passage goes on over short gaps below the threshold, where the model does not find the concept Look.

    So the sentence says in how much of the passages it is found (`called_s` of `marked_s`), unless it is all.
    """
    words = Words(language)
    found_in_part = marked_by_a_concept
    found_in_all = replace(found_in_part, called_s=found_in_part.marked_s)

    # A sentence writes all its times with the same unit, which is chosen for the four of them together.
    _judged, _marked, _black_or_credits, found_time = words.durations(
        found_in_part.judged.judged_s,
        found_in_part.marked_s,
        found_in_part.judged.nothing_s,
        found_in_part.called_s,
    )
    look = words.say("quoted", text={"en": "Look", "fr": "Regard"}[language])
    text_on_found_time = words.say("marked_concept_called", reaching=found_time, positive=look)

    assert text_on_found_time in phrases.sentence(found_in_part, words)
    assert text_on_found_time not in phrases.sentence(found_in_all, words)


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_on_a_concepts_passages_says_if_they_are_all_that_is_judged(
    marked_by_a_concept, language
):
    """The concept is found in all of the passages; they are a part of what is judged, or all of it."""
    words = Words(language)
    in_passages = replace(marked_by_a_concept, called_s=marked_by_a_concept.marked_s)
    judged_time = in_passages.judged
    in_all_that_is_judged = replace(in_passages, judged=replace(judged_time, judged_s=in_passages.marked_s))

    assert words["marked_all"] not in phrases.sentence(in_passages, words)
    assert words["marked_all"] in phrases.sentence(in_all_that_is_judged, words)


# --- passages
# ---------------------------------------------------------------------------
@pytest.fixture
def film_with_high_threshold():
    """A film by a model whose threshold is only just below the highest probability.

    So the mean of a passage, some of which reaches the threshold, is mostly below it.
    """
    film = fake_scored_film(n_rows=400, duration_s=900.0)
    highest_p = float(film.table["p"].max())
    return with_model(film, threshold_p=highest_p - 0.005)


@pytest.mark.parametrize("export_format", ["vtt", "srt", "eaf", "csv", "jsonld"])
def test_an_export_says_if_a_passages_mean_is_below_the_threshold(film_with_high_threshold, export_format):
    """A passage is marked if some of it reaches the threshold; its mean, which is printed, may be lower.

    Without a word on it readers would take this for an error.
    """
    film = film_with_high_threshold
    threshold = film.model().threshold_p
    passages_below = film.segments().query("reaches == 1 and p < @threshold")
    assert len(passages_below) > 0

    text = export(film, export_format)

    note_on_passage = f"reaches the threshold, {threshold:.2f}; the mean is below it"
    assert text.count(note_on_passage) == len(passages_below)
    assert f"A passage is marked where its p reaches the threshold, {threshold:.2f}" in text


def test_page_and_desk_say_if_a_passages_mean_is_below_the_threshold(film_with_high_threshold, tmp_path):
    """A passage is marked if some of it reaches the threshold; its mean, which is printed, may be lower.

    Without a word on it readers would take this for an error. The page and the desk's evidence on the passage
    say it.
    """
    film = film_with_high_threshold
    opened = OpenFilm(0, film, Decisions(tmp_path, film, BOOK))
    passages = [claim for claim in film_claims(film) if isinstance(claim, claim_kinds.Passage)]
    with_mean_below_threshold = [passage for passage in passages if passage.has(claim_kinds.MEAN_BELOW)]
    assert with_mean_below_threshold

    page = film_page([film])

    for passage in with_mean_below_threshold:
        mean_is_below = phrases.below_phrase(passage, ENGLISH)
        evidence = span_evidence(
            opened, [opened], start_s=passage.time.start_s, end_s=passage.time.end_s, words=ENGLISH
        )
        assert mean_is_below in page
        assert evidence["limit"] == mean_is_below
        assert mean_is_below in evidence["cited"]


def with_likely_rows(*likely_rows):
    """Plant a film of 60 rows of 4 s with p .9 in these rows and .1 in all others."""
    film = fake_scored_film(n_rows=60, duration_s=240.0, unlike_parts=())
    starts = np.arange(0.0, 240.0, 4.0)
    table = film.table.assign(start_s=starts, end_s=starts + 4, flags="", p=0.1, p_low=0.05, p_high=0.2)
    table.loc[[*likely_rows], "p"] = 0.9
    return replace(film, table=table)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_place_too_short_for_a_passage_is_said_to_be_left_out(language):
    """A passage is 5 s long at least. Of a film's rows of 4 s only one, the 30th, reaches the threshold.

    So no passage is marked, and terminal and page say that 4 s are left out, as they are less than 5.
    """
    words = Words(language)
    film = with_likely_rows(30)
    marked = claim_of(film, claim_kinds.MarkedPassages)
    n_passages = marked.number
    assert n_passages == 0
    assert marked.short_s == 4.0

    in_terminal = " ".join(lines_of_film(film, words))
    page = text_of(film_page([film], language=language))

    four_seconds_are_left_out = words.say("short_places", time=words.duration(4.0), least="5")
    without_first_letter = four_seconds_are_left_out[1:]  # on the page it may begin with a capital
    assert four_seconds_are_left_out in in_terminal
    assert without_first_letter in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_part_of_less_than_half_a_second_is_said_nowhere(language):
    """Of a film of 240 s .2 s are unlike the training, and .2 s are black: 239.6 s are judged.

    Another .2 s reach the threshold alone, which is too short for a passage. Written in whole seconds, each
    of these is "0 s", so that no sentence and no caveat may speak of them.
    """
    words = Words(language)
    film = with_likely_rows()
    judged = replace(claim_of(film, claim_kinds.JudgedTime), judged_s=239.6, unlike_s=0.2, nothing_s=0.2)
    marked = replace(claim_of(film, claim_kinds.MarkedPassages), short_s=0.2)

    assert phrases.unjudged_sentence(judged, words) == ""
    assert phrases.unjudged_caveat(judged, words) == ""
    assert phrases.black_caveat(judged, words) == ""
    assert phrases.short_places_phrase(marked, words) == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_threshold_that_rounds_to_0_is_written_alike_everywhere(language):
    """The threshold of a rare concept may be .003, which is written as below 0.01, and never as 0.00."""
    words = Words(language)
    written = words.probability(0.003)
    for sentence in (
        phrases.threshold_label(p=0.003, words=words),
        phrases.figure_threshold_sentence(threshold_p=0.003, words=words),
        phrases.threshold_caveat(threshold_p=0.003, words=words),
    ):
        assert written in sentence


def test_two_likely_rows_of_4_s_are_long_enough_for_a_passage():
    """A passage is 5 s long at least. The rows 30 and 31 of a film reach the threshold: 8 s together.

    They are one passage, and no time that reaches the threshold is left out as too short (`short_s`).
    """
    claim = claim_of(with_likely_rows(30, 31), claim_kinds.MarkedPassages)
    n_passages = claim.number
    assert n_passages == 1
    assert claim.short_s == 0.0


@pytest.mark.parametrize(
    ("export_format", "has_contributions"),
    [("csv", True), ("vtt", False), ("srt", False), ("eaf", False), ("jsonld", False)],
)
def test_only_an_export_with_contributions_explains_them(export_format, has_contributions):
    """What concepts contribute to a score is a column of the table (csv). Other formats have none.

    Its caveats say what the numbers are: "Contributions are shares ...". The others must not, as their
    readers would look for them.
    """
    text = export(fake_scored_film(**SIXTY_ROWS), export_format)
    assert ("Contributions are shares" in text) == has_contributions


def film_with_activity_in_every_other_row():
    """Invent a film with Activity of 3 and -3.5 in turns, and its probability of .99 and .001.

    Usual are a value of 0 and a probability of .17.
    """
    film = fake_scored_film(**SIXTY_ROWS)
    concepts = [changed(concept, usual=0.0, usual_p=0.17) for concept in film.model().concepts]
    is_odd_row = np.arange(len(film.table)) % 2 == 1
    has_p = film.table["p"].notna()
    values = np.where(is_odd_row, 3.0, -3.5)
    activity_p = np.where(is_odd_row, 0.99, 0.001)
    table = film.table.assign(
        Activity_value=values,
        Activity_contribution=np.where(has_p, -0.5 * values, np.nan),
        Activity_p=np.where(has_p, activity_p, np.nan),
    )
    return with_model(replace(film, table=table), concepts=concepts, threshold_p=0.3)


def test_a_concept_whose_mean_value_is_below_and_mean_p_above_the_usual_is_called_more_and_less():
    """The concept Activity is 3 in odd rows and -3.5 in even ones; its usual value is 0.

    The mean of a passage is below that: (3 - 3.5) / 2 = -.25. But the mean of its probabilities, .99 and
    .001, is about .4955, above the usual .17: "in part more, in part less Activity than usual (0.4...".

    A passage may still have just less Activity than usual, if its rows are of one kind: then its probability
    must be below the usual one, too.
    """
    film = film_with_activity_in_every_other_row()

    text = " ".join(phrases.sentence(claim, ENGLISH) for claim in film_claims(film))

    assert "in part more, in part less Activity than usual (0.4" in text
    just_less = r"(?<!in part )less Activity than usual \((0\.\d+), 0\.17 at its usual value"
    for p_of_passage in re.findall(just_less, text):
        assert float(p_of_passage) < 0.17


def reason_that_raises_p(contribution):
    """Claim a reason for a passage, a concept that raises p by .0325 and adds `contribution` to the logit."""
    row_of_segment = {
        "concepts": "Type of shot",
        "concepts_p": "0.27",
        "usual_p": "0.26",
        "amounts": "mixed",
        "contributions": str(contribution),
        "changes": "0.0325",
        "present": "",
    }
    model = fake_scored_film(**SIXTY_ROWS).model()
    (reason,) = passage_reasons(model, reasons(row_of_segment), claim_kinds.ClaimTime("span"))
    return reason


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("contribution", "name_of_text"),
    [(0.2, "why_for"), (-0.0016, "why_both"), (0.0, "why_for")],
    ids=["above 0, as the change", "below 0, unlike the change", "none"],
)
def test_a_contradictory_reason_is_neither_for_nor_against(language, contribution, name_of_text):
    """A concept raises a passage's probability by .0325: it is for the passage ("why_for").

    But if what it adds to the mean logit is below 0, the two contradict each other, and the sentence begins
    as that on a reason which is both for and against ("why_both").
    """
    words = Words(language)
    beginning, *_ = words[name_of_text].split("{")  # up to where the concept is filled in

    reason = reason_that_raises_p(contribution)

    assert phrases.sentence(reason, words).startswith(beginning)


# --- whose labels, in which language
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("language", "labels_of_a_program"),
    [("en", "a program labelled S"), ("fr", "un programme a étiquetés S")],
)
def test_labels_of_a_program_are_not_called_those_of_experts(language, labels_of_a_program):
    """The model was trained on labels that a program gave (`PLANTED`), and no expert has seen the clips."""
    film = with_model(fake_scored_film(**SIXTY_ROWS), labelled_by=[PLANTED], human=None, means=BOOK.means)
    for text in (first_sentence(film, language=language), text_of(film_page([film], language=language))):
        assert not re.search("experts call|expertes et experts|personnes expertes", text)
        assert labels_of_a_program in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_people_who_gave_the_labels_are_named_on_the_page(language):
    """AB and CD labelled the model's training clips; there is no record of experts' agreement (`human`)."""
    film = with_model(fake_scored_film(**SIXTY_ROWS), labelled_by=["AB", "CD"], human=None, means=BOOK.means)
    assert "AB" in text_of(film_page([film], language=language))


def citation_and_figure(film, folder, language):
    """Cite seconds 50 to 70 of a film of ten minutes, and draw the figure of all of it; return both texts."""
    opened = OpenFilm(0, film, Decisions(folder, film, BOOK))
    evidence = span_evidence(opened, [opened], start_s=50.0, end_s=70.0, words=Words(language))
    figure = film_figure(opened.view(language), start_s=0.0, end_s=600.0)
    return evidence["cited"], text_of(str(figure))


@pytest.mark.parametrize(
    ("language", "nobody_judged_any_clip", "nobody_judged_some_clips"),
    [
        ("en", "and nobody judged them", "and nobody judged those"),
        ("fr", "et personne ne les a jugées", "et personne n’a jugé celles-là"),
    ],
    ids=["en", "fr"],
)
@pytest.mark.parametrize(
    ("labelled_by", "are_all_by_program", "are_some_by_program"),
    [([PLANTED], True, False), (["AB", PLANTED], False, True), (["AB"], False, False)],
    ids=["by a program", "by a program and AB", "by AB"],
)
def test_citation_and_figure_say_if_a_program_gave_labels(
    tmp_path,
    language,
    nobody_judged_any_clip,
    nobody_judged_some_clips,
    labelled_by,
    are_all_by_program,
    are_some_by_program,
):
    """A model's numbers are only as good as its labels: all, some or none of them were given by a program.

    The program is the annotator `PLANTED`, and AB a person. Whoever cites 20 seconds of a film, or copies its
    figure, must say that nobody judged the model's clips, or some of them.
    """
    film = with_model(ten_minute_film(), labelled_by=labelled_by, human=None)

    citation, figure = citation_and_figure(film, tmp_path, language)

    for text in (citation, figure):
        assert (nobody_judged_any_clip in text) == are_all_by_program
        assert (nobody_judged_some_clips in text) == are_some_by_program


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("labelled_by", [[PLANTED], ["AB", PLANTED], ["AB"]], ids=" and ".join)
def test_a_citation_has_no_full_stop(tmp_path, language, labelled_by):
    """A citation of a film is one sentence of several clauses, to be put into one's own text."""
    film = with_model(ten_minute_film(), labelled_by=labelled_by, human=None)
    citation, _figure = citation_and_figure(film, tmp_path, language)
    assert not citation.endswith(".")


@pytest.mark.parametrize(
    ("language", "by_people"),
    [
        ("en", "the others were labelled by AB and CD."),
        ("fr", "les autres ont été annotés par AB et CD."),
    ],
)
def test_a_program_is_not_counted_among_the_people_who_labelled(language, by_people):
    """A model that learnt from judgements of people was trained on the planted labels of its corpus too."""
    film = with_model(fake_scored_film(**SIXTY_ROWS), labelled_by=["AB", "CD", PLANTED], human=None)
    page = text_of(film_page([film], language=language))
    assert by_people in page
    assert Words(language)["no_human_partly_planted"] in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_claims_give_a_levels_meaning_in_the_asked_language(language):
    """A model that marks passages of the level S (Sure) has only the English text of what S means.

    Its codebook also has a French text and title. The sentence on the passages has those of its language.
    """
    film = with_model(fake_scored_film(**SIXTY_ROWS), means={"S": BOOK.means["S"]})
    marked_passages = claim_of(film, claim_kinds.MarkedPassages)
    (level_s,) = [level for level in BOOK.levels if level.name == "S"]
    level_in_language = level_s.in_language(language)

    (sentence,) = sentences([marked_passages], language)

    assert level_in_language.means in sentence
    assert level_in_language.title in sentence


# --- judges
# ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"), [(0.01, "+1,0 point de"), (-0.019, "−1,9 point de"), (0.02, "+2,0 points de")]
)
def test_french_has_no_plural_of_points_below_two(value, text):
    """French plurals begin at two: "1,9 point", and "2,0 points"."""
    claim = claim_kinds.GroupChange(
        who=("AB",), what="S", time=claim_kinds.ClaimTime("content"), number=value, change="A minus B",
        is_by_decade=False, n_films=9, n_judged=9,
    )  # fmt: skip
    assert text in sentences([claim], "fr")[0]


def test_a_comparison_says_how_many_films_a_rate_needs():
    """Two films are compared, and of one of them AB judges three windows.

    Two films are too few for a rate of their group, and three windows for a rate of a film.
    """
    films = [fake_scored_film(f"m{number}", seed=number, **SIXTY_ROWS) for number in range(2)]
    compared = compare_films(films, judged_by(films[0], AB=[("EN",)] * 3))
    reason = compared.groups["reason"].iloc[0]
    assert reason.startswith("a rate needs 5 films in which enough windows are judged; of 2 films here none")


# --- numbers beside what they are of
# ---------------------------------------------------------------------------


def test_only_a_report_on_two_judges_has_a_note_on_sure_windows():
    """AB judged 14 windows, and CD the first 12 of them; of two of these CD was not sure (NS).

    A share of two judges is of the windows that each was sure of: 10. The report must have a note that says
    so. A report on AB alone needs none.
    """
    film = fake_scored_film(**SIXTY_ROWS)
    by_ab = [("S",), ("EN",)] * 7
    by_cd = [("NS",), ("NS",)] + [("S",), ("EN",)] * 5

    report_on_two = comparison_report(compare_films([film], judged_by(film, AB=by_ab, CD=by_cd)))
    report_on_one = comparison_report(compare_films([film], judged_by(film, AB=by_ab)))

    note_on_windows = texts("en")["note_windows"]
    assert note_on_windows in report_on_two.notes
    assert note_on_windows not in report_on_one.notes
    (row,) = report_on_two.data.query("table == 'Films'").to_dict("records")
    assert row["n_windows"] == 10
    assert row["n_unsure"] == 2


@pytest.mark.parametrize(("end_s", "is_moved"), [(14.0, True), (16.0, False)])
def test_the_last_window_of_a_short_film_is_moved_back(trained_models, tmp_path, end_s, is_moved):
    """A last window that would reach beyond the film is moved back.

    In a film of 14 s windows of 8 s begin at 0, 4 and 6 s. In one of 16 s they begin at 0, 4 and 8 s, and
    none is moved.
    """
    store = film_store(tmp_path, "short", end_s=end_s, planted=((3.0, 9.0),))
    film = score_film(store, [trained_models.paths["pcbm_lr"]])
    assert film.record.windows.hop_s == 4

    english = text_of(film_page([film]))
    french = text_of(film_page([film], language="fr"))

    assert "windows of 8 s every 4 s" in english
    assert ("every 4 s, the last one moved back" in english) == is_moved
    assert ("toutes les 4 s, la dernière reculée" in french) == is_moved


def test_a_page_on_two_windows_gives_no_distance_of_windows(trained_models, tmp_path):
    """A film of 9 s has two windows of 8 s, which begin at 0 and 1 s, and not 4 s apart as in other films.

    So its page says "windows of 8 s", and not "every 4 s".
    """
    store = film_store(tmp_path, "short", end_s=9.0, planted=((3.0, 9.0),))
    film = score_film(store, [trained_models.paths["pcbm_lr"]])
    assert film.record.windows.n == 2
    page = text_of(film_page([film]))
    assert "windows of 8 s" in page
    assert "windows of 8 s every" not in page  # as in "windows of 8 s every 4 s"


# --- who found what
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("language", "found_to_be"), [("en", "found to be black or credits"), ("fr", "détecté")]
)
@pytest.mark.parametrize(
    ("detector", "says_found_to_be"),
    [("own", True), ("flags.csv", False)],
    ids=["by a detector", "by a person, in a file"],
)
def test_sentences_say_found_to_be_credits_if_a_detector_flagged_them_and_not_if_a_person_did(
    language, found_to_be, detector, says_found_to_be
):
    """All shots of a film are flagged as credits, by our detector ("own") or by a person in a file.

    A detector may be wrong, and so both sentences with the time of black and credits say that these were
    "found to be" so (in French "détecté", with one ending or another).
    """
    film = fake_scored_film(unlike_parts=(), **SIXTY_ROWS)
    film = replace(film, shots=film.shots.assign(flags="credits", detector=detector))

    sentence_on_passages = first_sentence(film, language=language)
    sentence_on_judged_time = phrases.sentence(claim_of(film, claim_kinds.JudgedTime), Words(language))

    assert (found_to_be in sentence_on_passages) == says_found_to_be
    assert (found_to_be in sentence_on_judged_time) == says_found_to_be


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_on_black_and_credits_are_worded_otherwise_if_a_detector_found_them(language):
    """What a person flagged "is black or credits"; what a detector flagged "was found to be" so.

    Four texts speak of it. Each has a second wording for detectors, whose key ends with `_found`.
    """
    words = Words(language)
    for key in ("sentence_rest", "sure_nothing", "caveat_nothing", "time_parts"):
        text_if_a_person_flagged_it = words[key]
        text_if_a_detector_found_it = words[f"{key}_found"]
        assert text_if_a_detector_found_it != text_if_a_person_flagged_it


def test_the_record_of_a_film_allows_the_detectors_of_shots_that_the_command_offers():
    """`manifest import film` offers detectors of shots, and a scored film's tables name the one it used.

    The package of films may not import that command of the core, and has a list of its own: both are equal.
    """
    detectors_in_records = schema.DETECTORS
    detectors_of_command = DETECTORS
    assert detectors_in_records == detectors_of_command


def with_an_unlike_row_in_the_first_passage(film):
    """Let the row in the middle of the film's first passage be unlike training, without a probability."""
    first_passage = film.segments().iloc[0]
    table = film.table.copy()
    is_inside = (table["start_s"] >= first_passage["start_s"]) & (table["end_s"] <= first_passage["end_s"])
    rows_inside = table.index[is_inside]
    middle_row = rows_inside[len(rows_inside) // 2]
    table.loc[middle_row, ["p", "p_low", "p_high"]] = np.nan
    table.loc[middle_row, "flags"] = "unlike"
    return replace(film, table=table)


def test_a_passage_that_is_unlike_in_part_says_so():
    """One row in the middle of a passage is unlike training and not judged; the passage goes on over it."""
    film = with_an_unlike_row_in_the_first_passage(fake_scored_film(n_rows=300, duration_s=900.0))

    passages = [claim for claim in film_claims(film) if isinstance(claim, claim_kinds.Passage)]

    unlike_in_part = [claim for claim in passages if "unlike" in claim.flags]
    assert unlike_in_part
    for claim in unlike_in_part:
        assert claim.judged_s < claim.time.seconds
        assert "in part unlike training" in phrases.passage_label(claim, ENGLISH)
    assert "in part unlike training" in film_page([film])


def test_the_caveat_on_concepts_found_by_chance_has_the_singular_of_one_concept():
    """The caveat names the concepts that the model does not find better than by chance: Look, or two.

    The French legend on one such concept has the singular, too ("reconnu").
    """
    on_one = phrases.near_chance_caveat(["Look"], ENGLISH)
    on_two = phrases.near_chance_caveat(["Look", "Body"], ENGLISH)
    legend_in_french = Words("fr").counted("legend_unfound", 1)
    assert "finds this concept better" in on_one
    assert "finds these concepts better" in on_two
    assert legend_in_french.startswith("gris : non démontré mieux reconnu")


@pytest.fixture
def film_by_a_built_in_model():
    """A film scored by the model `linear`, whose English title is Logistic regression."""
    film = fake_scored_film(**SIXTY_ROWS)
    return with_model(film, model="linear", title="Logistic regression", construct="regard")


def test_a_french_page_has_french_words_for_models_and_codebooks(film_by_a_built_in_model):
    """The built-in model's English title is Logistic regression, and the codebook is obygaze12.

    The folder of the descriptors is called planted.
    """
    page = text_of(film_page([film_by_a_built_in_model], language="fr"))
    assert "Logistic regression" not in page
    assert "modèle Régression logistique (" in page
    assert "grille de codage obygaze12" in page
    assert "descripteurs du dossier « planted »" in page
    assert "très loin de la part réelle" in page


def test_a_french_page_keeps_the_title_of_a_model_of_somebodys_own(film_by_a_built_in_model):
    """Only a title that is the built-in model's, Logistic regression, is translated; this one is "linear"."""
    film = with_model(film_by_a_built_in_model, title="linear")
    page = text_of(film_page([film], language="fr"))
    assert "modèle linear (" in page


def test_every_built_in_model_has_a_title_in_each_language():
    """A page calls a built-in model by its title: in English that of its spec, in French a translation.

    Baselines, which do not look at features, score no film and need none.
    """
    for name, spec in BUILTIN_MODELS.items():
        if spec.looks_at_features:
            assert ENGLISH[f"title_of_{name}"] == spec.title
            assert f"title_of_{name}" in Words("fr")


@pytest.mark.parametrize(
    ("start_s", "end_s", "written"),
    [(82, 88, "0:01:22–0:01:28"), (87.708, 88.125, "0:01:27.7–0:01:28.1")],
)
def test_ends_of_a_short_span_are_written_with_tenths(start_s, end_s, written):
    """87.708 and 88.125 s would both be written as 0:01:28: tenths tell them apart.

    82 s are 0:01:22 and 88 s 0:01:28, which differ without tenths.
    """
    time = claim_kinds.ClaimTime("span", end_s - start_s, start_s, end_s)
    assert phrases.span_ends(time) == written
