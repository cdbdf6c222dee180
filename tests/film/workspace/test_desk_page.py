"""The desk's page: what it asks, cites and weighs."""

import gzip
import html
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace as changed

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
from tests.film.page.invented import invented_film, with_model


@pytest.mark.parametrize(
    ("perceives", "left_out"),
    [
        (["visual"], {"Speech", "Voice", "Soundtrack", "Narratology"}),
        (["heard", "visual"], {"Narratology"}),
        ([], set()),
    ],
)
def test_concepts_that_no_model_of_the_film_can_perceive_are_not_asked_for(tmp_path, perceives, left_out):
    film = with_model(invented_film(n_rows=60, duration_s=600.0), perceives=perceives)
    book = builtin_codebook("obygaze12")
    opened = OpenFilm(0, film, Decisions(tmp_path, film, book))
    text = desk_page([opened], opened, "read", "en")
    asked = {name for name in book.concept_names if f'data-concept="{name}"' in text}
    assert asked == set(book.concept_names) - left_out


def test_the_desk_of_two_hours_is_sent_in_less_than_100_kilobytes(tmp_path):
    film = invented_film(traced=True)
    lines = pd.DataFrame({"start_s": np.arange(0, 7000, 4.5)}).assign(
        text="She said this, and did not look back."
    )
    opened = OpenFilm(0, replace(film, subtitles=lines.assign(end_s=lines["start_s"] + 3)), None)
    opened.decisions = Decisions(tmp_path, opened.timeline, builtin_codebook("obygaze12"))
    for mode in ("read", "blind"):
        assert len(gzip.compress(desk_page([opened], opened, mode, "en").encode())) < 100_000


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_a_french_desk_defines_levels_and_concepts_in_french(tmp_path, mode):
    book = builtin_codebook("obygaze12")
    film = with_model(invented_film(n_rows=60, duration_s=600.0), means=book.means)
    opened = OpenFilm(0, film, Decisions(tmp_path, film, book))
    text = html.unescape(desk_page([opened], opened, mode, "fr"))
    for part in (*book.levels, *book.concepts):
        french = part.in_language("fr")
        assert f"{french.title} : {french.means}" in text
        assert part.means not in text
    examples = [example for one in book.concepts for kind in one.instances for example in kind.examples]
    assert not [example for example in examples if example in text]


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_no_two_elements_share_an_id(tmp_path, mode):
    film = invented_film(n_rows=60, duration_s=600.0)
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    ids = re.findall(r'<[a-z][^<>]*\sid="([^"]+)"', desk_page([opened], opened, mode, "en"))
    assert len(ids) > 20
    assert [name for name, n in Counter(ids).items() if n > 1] == []


def test_a_citation_names_the_model_by_twelve_digits(tmp_path):
    film = with_model(invented_film(n_rows=60, duration_s=600.0), sha256="0123456789abcdef" * 4)
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    cited = span_evidence(opened, [opened], 50.0, 70.0, Words("en"))["cited"]
    assert cited.startswith("probability ")
    assert re.search(r" 0123456789ab(;|$)", cited)


def a_black_film():
    """A film of which every row is black, as it is scored."""
    film = invented_film(n_rows=30, duration_s=600.0)
    undefined = dict.fromkeys(("p", "p_low", "p_high"), np.nan)
    rate = changed(film.model().rate, value=None, counted_s=0.0)
    return with_model(replace(film, table=film.table.assign(flags="black", **undefined)), rate=rate)


def test_a_film_that_is_black_opens_on_every_page_of_the_desk_and_stays_out_of_comparisons(tmp_path):
    film, other = a_black_film(), invented_film("tt0000043", n_rows=60, duration_s=600.0)
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    for mode in ("read", "blind"):
        assert desk_page([opened], opened, mode, "en")
    compared = compare_films([film, other], Manifest((), tmp_path, builtin_codebook("obygaze12")))
    assert [one.timeline.movie for one in compared.films] == ["tt0000043"]
    assert any("black" in note and film.movie in note for note in compared.notes)
    alone = compare_films([film], Manifest((), tmp_path, builtin_codebook("obygaze12")))
    assert comparison_page(alone, {}, "fr")


def cited_of(tmp_path, film, start_s, end_s, language="en"):
    """Cite a span of a film on the desk: the citation, and the note beside its numbers."""
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    found = span_evidence(opened, [opened], start_s, end_s, Words(language))
    return found["cited"], found["note"]


def with_seconds(flags_of):
    """Plant a film of 600 rows of a second, some of them without a probability: flags by second."""
    film = invented_film(n_rows=600, duration_s=600.0, unlike_parts=())
    table = film.table.assign(start_s=np.arange(600.0), end_s=np.arange(1.0, 601.0), flags="")
    for second, flags in flags_of.items():
        table.loc[second, "flags"] = flags
        table.loc[second, ["p", "p_low", "p_high"]] = np.nan
    return replace(film, table=table)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_citation_says_of_how_much_of_the_span_its_number_is(tmp_path, language):
    film = with_seconds(dict.fromkeys(range(60), "unlike"))
    cited, note = cited_of(tmp_path, film, 0.0, 65.0, language)
    assert all(length in text for length in ("5 s", "65 s") for text in (cited, note))
    cited, note = cited_of(tmp_path, film, 60.0, 120.0, language)
    assert ("60 s" in cited, note) == (False, "")


@pytest.mark.parametrize("flags", ["unlike", "missing", "black", "unlike;credits"])
def test_a_span_without_a_probability_is_cited_with_the_reason(tmp_path, flags):
    reason = {"unlike": ALL_UNLIKE, "missing": ALL_UNREAD}.get(flags, ALL_NOTHING)
    film = with_seconds(dict.fromkeys(range(60), flags))
    for language in LANGUAGES:
        cited, note = cited_of(tmp_path, film, 0.0, 20.0, language)
        why = no_prediction_phrase(reason, Words(language))
        assert why in cited
        assert why in note


@pytest.mark.parametrize(("start_s", "end_s", "has_p"), [(50.0, 60.0003, False), (50.0, 60.4, False),
                                                         (50.0, 60.6, True), (59.0, 60.6, True)])  # fmt: skip
def test_a_span_that_hardly_reaches_what_is_judged_has_no_probability(tmp_path, start_s, end_s, has_p):
    """Planted: the first minute is unlike everything; a time is rounded into the row behind it."""
    film = with_seconds(dict.fromkeys(range(60), "unlike"))
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    found = span_evidence(opened, [opened], start_s, end_s, Words("en"))
    assert bool(found["p"]) == bool(found["parts"]) == has_p
    assert (opened.probability_of(start_s, end_s) is not None) == has_p
    assert (Words("en")["no_probability_unlike"] in found["note"]) != has_p


def test_black_that_is_unlike_everything_too_is_black_on_the_desk(tmp_path):
    film = with_seconds(dict.fromkeys(range(60), "unlike;black"))
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    words = Words("en")
    found = span_evidence(opened, [opened], 0.0, 20.0, words)
    assert found["flags"] == words["flag_black"]


@pytest.mark.parametrize("language", ["en", "fr"])
def test_what_must_be_known_of_a_film_is_in_its_citations(tmp_path, language):
    words = Words(language)
    film = with_model(with_seconds({}), clip_s=6.083)
    cases = {"verdict_trained": {"is_trained_on": True}, "verdict_no_skill": {"no_skill": True}}
    plain, _ = cited_of(tmp_path / "plain", film, 50.0, 70.0, language)
    for key, change in cases.items():
        cited, _ = cited_of(tmp_path / key, with_model(film, **change), 50.0, 70.0, language)
        assert words[key] in cited
        assert words[key] not in plain
    assert words.number(6.08) in plain
