"""The desk's page: what it asks, cites and weighs."""

import gzip
import html
import re
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace as replace_fields

from obygaze_features.manifest import Manifest, builtin_codebook
from obygaze_film.claims import LANGUAGES, Words
from obygaze_film.claims.kinds import ALL_NOTHING, ALL_UNLIKE, ALL_UNREAD
from obygaze_film.claims.phrases import no_prediction_phrase
from obygaze_film.film_groups import compare_films
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.evidence import span_evidence
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import desk_page
from tests.film.page.invented import fake_scored_film, ten_minute_film, with_columns, with_model


def desk_of(film, folder):
    """Open a film at the desk, with nothing decided on it."""
    return OpenFilm(0, film, Decisions(folder, film, builtin_codebook("obygaze12")))


@pytest.mark.parametrize(
    ("perceives", "left_out"),
    [
        (["visual"], {"Speech", "Voice", "Soundtrack", "Narratology"}),
        (["heard", "visual"], {"Narratology"}),
        ([], set()),
    ],
    ids=["pictures", "pictures and sound", "a record that does not say"],
)
def test_only_concepts_that_the_films_model_can_perceive_are_asked_for(tmp_path, perceives, left_out):
    """A model of pictures perceives no speech, so the desk does not ask about concepts of sound or story.

    If a film's record does not say what its model perceives, all concepts are asked for.
    """
    film = with_model(ten_minute_film(), perceives=perceives)
    opened = desk_of(film, tmp_path)

    page = desk_page([opened], opened, "read", "en")

    all_concepts = set(builtin_codebook("obygaze12").concept_names)
    asked_for = {name for name in all_concepts if f'data-concept="{name}"' in page}
    assert asked_for == all_concepts - left_out


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_the_desk_of_a_long_film_with_subtitles_is_below_100_kilobytes(tmp_path, mode):
    """The page stays fast over a slow line, even with about 1,550 subtitles: one every 4.5 s of 7000 s.

    Servers send it compressed.
    """
    starts = np.arange(0, 7000, 4.5)
    text = "She said this, and did not look back."
    subtitles = pd.DataFrame({"start_s": starts, "text": text, "end_s": starts + 3})
    opened = desk_of(replace(fake_scored_film(traced=True), subtitles=subtitles), tmp_path)

    page = desk_page([opened], opened, mode, "en")

    assert len(gzip.compress(page.encode())) < 100_000


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_a_french_desk_defines_levels_and_concepts_in_french(tmp_path, mode):
    """The codebook has each definition in English and in French."""
    book = builtin_codebook("obygaze12")
    opened = desk_of(with_model(ten_minute_film(), means=book.means), tmp_path)

    page = html.unescape(desk_page([opened], opened, mode, "fr"))

    for level_or_concept in (*book.levels, *book.concepts):
        french = level_or_concept.in_language("fr")
        assert f"{french.title} : {french.means}" in page
        english_meaning = level_or_concept.means
        assert english_meaning not in page


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_a_french_desk_leaves_out_examples_which_are_in_english_only(tmp_path, mode):
    """A concept of the codebook has typical instances, and each of these has examples."""
    book = builtin_codebook("obygaze12")
    opened = desk_of(with_model(ten_minute_film(), means=book.means), tmp_path)

    page = html.unescape(desk_page([opened], opened, mode, "fr"))

    instances = [instance for concept in book.concepts for instance in concept.instances]
    examples = [example for instance in instances for example in instance.examples]
    assert examples
    for example in examples:
        assert example not in page


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_no_two_elements_share_an_id(tmp_path, mode):
    """HTML wants ids to be unique in a page; the page has more than 20, so that the search finds some."""
    opened = desk_of(ten_minute_film(), tmp_path)
    page = desk_page([opened], opened, mode, "en")

    ids = re.findall(r'<[a-z][^<>]*\sid="([^"]+)"', page)

    assert len(ids) > 20
    ids_there_twice = [name for name, count in Counter(ids).items() if count > 1]
    assert ids_there_twice == []


def test_a_citation_names_the_model_by_12_digits_of_its_digest(tmp_path):
    """The first 12 of the 64 digits of a model's SHA-256 are enough to tell models apart."""
    film = with_model(ten_minute_film(), sha256="0123456789abcdef" * 4)

    citation = cite(film, start_s=50.0, end_s=70.0, folder=tmp_path)

    assert citation.text.startswith("probability ")
    assert re.search(r" 0123456789ab(;|$)", citation.text)


def black_film():
    """Return a film as it is scored if every row is black: no probabilities and no share."""
    film = ten_minute_film()
    without_share = replace_fields(film.model().rate, value=None, counted_s=0.0)
    film = with_columns(film, flags="black", p=np.nan, p_low=np.nan, p_high=np.nan)
    return with_model(film, rate=without_share)


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_an_all_black_film_opens_on_the_desk(tmp_path, mode):
    """A film without any probability has nothing to show, but must not break the page."""
    opened = desk_of(black_film(), tmp_path)
    page = desk_page([opened], opened, mode, "en")
    assert "<html" in page


def test_an_all_black_film_is_left_out_of_a_comparison_with_a_note(tmp_path):
    """A black film has no share to compare: a note names it, and the other film stays."""
    nobody_judged = Manifest((), tmp_path, builtin_codebook("obygaze12"))
    black, other = black_film(), ten_minute_film("tt0000043")

    compared = compare_films([black, other], nobody_judged)

    assert [film.timeline.movie for film in compared.films] == ["tt0000043"]
    assert any("black" in note and black.movie in note for note in compared.notes)


def test_a_comparison_of_a_black_film_alone_has_a_page(tmp_path):
    """No film is left to compare, which must not break the page."""
    nobody_judged = Manifest((), tmp_path, builtin_codebook("obygaze12"))

    compared = compare_films([black_film()], nobody_judged)

    assert compared.films == ()
    assert "<html" in comparison_page(compared, language="fr")


class Citation(NamedTuple):
    """What the desk says of a span: the text to cite, and the note beside its numbers."""

    text: str
    note: str


def cite(film, start_s, end_s, folder, language="en"):
    """Let the desk cite a span of a film."""
    opened = desk_of(film, folder)
    evidence = span_evidence(opened, [opened], start_s, end_s, Words(language))
    return Citation(evidence["cited"], evidence["note"])


def film_of_seconds(flags_of_first_minute=""):
    """Make a film of 600 rows of a second; rows of the first minute that have flags have no probability."""
    film = fake_scored_film(n_rows=600, duration_s=600.0, unlike_parts=())
    film = with_columns(film, start_s=np.arange(600.0), end_s=np.arange(1.0, 601.0), flags="")
    if flags_of_first_minute:
        film.table.loc[:59, "flags"] = flags_of_first_minute
        film.table.loc[:59, ["p", "p_low", "p_high"]] = np.nan
    return film


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_citation_says_how_much_of_its_span_the_model_judged(tmp_path, language):
    """A span lasts 65 s. The model judged only its last 5 s, since the first minute is unlike its training.

    Text and note give both numbers, so that nobody takes the probability for one of the whole span.
    """
    film = film_of_seconds(flags_of_first_minute="unlike")

    citation = cite(film, start_s=0.0, end_s=65.0, folder=tmp_path, language=language)

    assert "65 s" in citation.text
    assert "65 s" in citation.note
    # "5 s" alone is in "65 s", too
    assert re.search(r"(?<!\d)5 s", citation.text)
    assert re.search(r"(?<!\d)5 s", citation.note)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_citation_of_a_span_that_the_model_judged_wholly_has_no_note_of_judged_seconds(tmp_path, language):
    """Of a span that the model judged in part, a citation says how many of its seconds were judged.

    The first minute of a film is unlike training, and the model judged all of the second, which is cited. So
    nothing need be added: neither text nor note says of how many of the 60 s the probability is.
    """
    film = film_of_seconds(flags_of_first_minute="unlike")

    citation = cite(film, start_s=60.0, end_s=120.0, folder=tmp_path, language=language)

    no_note = ""
    assert "60 s" not in citation.text
    assert citation.note == no_note


@pytest.mark.long
@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("unlike", ALL_UNLIKE),
        ("missing", ALL_UNREAD),
        ("black", ALL_NOTHING),
        ("unlike;credits", ALL_NOTHING),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_span_without_a_probability_is_cited_with_the_reason(tmp_path, flags, reason, language):
    """The model did not judge the first minute of a film, as it is unlike training clips, unread, or black.

    A citation of 20 s of it says why there is no probability, in text and note, in English and French. Where
    the minute is both unlike and has credits, the reason is that there is nothing to judge.
    """
    film = film_of_seconds(flags_of_first_minute=flags)

    citation = cite(film, start_s=0.0, end_s=20.0, folder=tmp_path, language=language)

    phrase_of_reason = no_prediction_phrase(reason, Words(language))
    assert phrase_of_reason in citation.text
    assert phrase_of_reason in citation.note


@pytest.mark.parametrize(("start_s", "end_s"), [(50.0, 60.6), (59.0, 60.6)])
def test_a_span_has_a_probability_if_half_a_second_of_it_is_judged(tmp_path, start_s, end_s):
    """The model judges a film from 60 s on, as its first minute is unlike the training clips.

    So it has judged .6 s of each of these spans, which is enough for a probability and its parts.
    """
    desk = desk_of(film_of_seconds(flags_of_first_minute="unlike"), tmp_path)

    evidence = span_evidence(desk, [desk], start_s, end_s, Words("en"))

    assert evidence["p"] != ""
    assert evidence["parts"] != []
    assert desk.probability_of(start_s, end_s) is not None
    why_there_is_no_probability = Words("en")["no_probability_unlike"]
    assert why_there_is_no_probability not in evidence["note"]


@pytest.mark.parametrize(("start_s", "end_s"), [(50.0, 60.0003), (50.0, 60.4)])
def test_a_span_has_no_probability_if_less_than_half_a_second_of_it_is_judged(tmp_path, start_s, end_s):
    """The model judges a film from 60 s on, as its first minute is unlike the training clips.

    So it has judged .4 s of a span at most, or what rounding adds to its end. A note says why there is no
    probability.
    """
    desk = desk_of(film_of_seconds(flags_of_first_minute="unlike"), tmp_path)

    evidence = span_evidence(desk, [desk], start_s, end_s, Words("en"))

    assert evidence["p"] == ""
    assert evidence["parts"] == []
    assert desk.probability_of(start_s, end_s) is None
    why_there_is_no_probability = Words("en")["no_probability_unlike"]
    assert why_there_is_no_probability in evidence["note"]


def test_a_black_span_that_is_also_unlike_is_called_black(tmp_path):
    """Of the two flags black is the one that explains the other, so the desk shows it."""
    opened = desk_of(film_of_seconds(flags_of_first_minute="unlike;black"), tmp_path)
    words = Words("en")

    evidence = span_evidence(opened, [opened], start_s=0.0, end_s=20.0, words=words)

    assert evidence["flags"] == words["flag_black"]


@pytest.mark.parametrize(
    ("key", "fields"),
    [("verdict_trained", {"is_trained_on": True}), ("verdict_no_skill", {"no_skill": True})],
    ids=["trained on the film", "no better than chance"],
)
@pytest.mark.parametrize("language", ["en", "fr"])
def test_every_citation_carries_the_warning_on_its_model(tmp_path, language, key, fields):
    """Two models need a warning: one trained on this very film, and one no better than chance."""
    warning = Words(language)[key]
    film = film_of_seconds()
    film_of_doubtful_model = with_model(film, **fields)

    citation = cite(film, start_s=50.0, end_s=70.0, folder=tmp_path / "a", language=language)
    citation_of_doubtful_model = cite(
        film_of_doubtful_model, start_s=50.0, end_s=70.0, folder=tmp_path / "b", language=language
    )

    assert warning not in citation.text
    assert warning in citation_of_doubtful_model.text


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_citation_gives_the_length_of_the_training_clips(tmp_path, language):
    """The film's windows last 1 s, the clips of the model's training 6.083 s: 6.08 s is cited.

    French has a decimal comma.
    """
    film = with_model(film_of_seconds(), clip_s=6.083)

    citation = cite(film, start_s=50.0, end_s=70.0, folder=tmp_path, language=language)

    length = {"en": "6.08", "fr": "6,08"}[language]
    assert length in citation.text
