"""A lab's own codebook with texts in French: its model files, scored films, pages and desks."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from obygaze_features.manifest import Manifest, codebook_of_text
from obygaze_film import read_films
from obygaze_film.claims import LANGUAGES, Words, document, film_claims, rate_claims, sentences
from obygaze_film.errors import FilmError
from obygaze_film.exchange import Decided
from obygaze_film.film_groups import compare_films
from obygaze_film.judged_rate import correct_rates
from obygaze_film.page import Owned, film_page
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.page.translated import named_rates
from obygaze_film.positive import positive_of
from obygaze_film.schema import read_record
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.definitions import changed_texts
from obygaze_film.workspace.evidence import span_evidence
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import desk_page
from obygaze_models.prediction.saved_model import load_model
from tests import planted_models
from tests.film.films import scored_film
from tests.film.page.invented import ten_minute_film

OWN = """\
name = "violence"
version = "1"
construct.en = "harm done on screen"
construct.fr = "le mal fait à l’écran"
[[levels]]
name = "calm"
title.fr = "paisible"
means.en = "quiet scenes"
means.fr = "des plans tranquilles"
[[levels]]
name = "unsure"
label = false
title.fr = "indécis"
[[levels]]
name = "violent"
title.fr = "brutal"
means.en = "those in which a blow lands"
means.fr = "ceux où un coup porte"
[[concepts]]
name = "Gun"
visual = true
title.fr = "Arme"
means.en = "a weapon is held"
means.fr = "on tient une arme"
[[concepts]]
name = "Dim light"
visual = true
title.fr = "Pénombre"
definition = "faces are hard to see"
means.fr = "on voit mal les visages"
[tasks.calm_violent]
negative = ["calm"]
positive = ["violent"]
"""

ENGLISH = (
    "calm", "unsure", "violent", "Gun", "Dim light", "harm done on screen", "quiet scenes",
    "those in which a blow lands", "a weapon is held", "faces are hard to see",
)  # fmt: skip
FRENCH = (
    "paisible", "indécis", "brutal", "Arme", "Pénombre", "le mal fait à l’écran", "des plans tranquilles",
    "ceux où un coup porte", "on tient une arme", "on voit mal les visages",
)  # fmt: skip
UNREAD = r'"(level|levels|names)": ?("[^"]*"|\[.*?\]|\{.*?\})|"\w+": |\{\w+\}'
"""In the data of pages: names by which scripts keep what is decided, keys, and places to fill."""

TEXTS_OF_OTHER_LANGUAGE = {"en": FRENCH, "fr": ENGLISH}
"""Language -> the codebook's texts that a page in it may not have."""

TEXTS_OF_LANGUAGE = {"en": ENGLISH, "fr": FRENCH}

VIOLENT = {"en": "violent", "fr": "brutal"}
GUN = {"en": "Gun", "fr": "Arme"}
DIM_LIGHT = {"en": "Dim light", "fr": "Pénombre"}
CONSTRUCT = {"en": "harm done on screen", "fr": "le mal fait à l’écran"}
MEANING_OF_VIOLENT = {"en": "those in which a blow lands", "fr": "ceux où un coup porte"}
"""What the codebook says in each language."""


@pytest.fixture(scope="module")
def trained_models(tmp_path_factory):
    """Models that were trained on labels of the codebook."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planted_models, "CODEBOOK", OWN)
        return planted_models.train_and_save_models(tmp_path_factory.mktemp("own"), ("pcbm_lr",))


@pytest.fixture(scope="module")
def film_read_back(trained_models, tmp_path_factory):
    """A scored film, as it is read back from its folder."""
    folder, _ = scored_film(tmp_path_factory.mktemp("scored"), trained_models, "tt1")
    (film,) = read_films([folder])
    return film


def texts_of_data(page):
    """Write the data that a page's scripts read, with letters in place of their codes."""
    data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, flags=re.DOTALL)
    return " ".join(json.dumps(json.loads(script), ensure_ascii=False) for script in data)


def text_that_people_read(page):
    """Return what people read of a page: its text, names for screen readers, and the texts of its data."""
    body = re.sub(r"<(script|style|template)\b.*?</\1>", " ", page, flags=re.DOTALL)
    text = re.sub("<[^>]*>", " ", body)
    names = re.findall(r'(?:aria-label|title|data-means)="([^"]*)"', body)
    everything = html.unescape(" ".join([text, *names, texts_of_data(page)]))
    return re.sub(UNREAD, "", everything)


def words_in(text, words):
    """Return those of some words that a text has as whole words."""
    return [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)]


def judged_blindly(film):
    """Let somebody judge windows of a film blindly, each third of them violent."""
    clips = []
    for number, clip in enumerate(choose_next([film], 30, blind=True)):
        level = "calm" if number % 3 else "violent"
        clips.append(replace(clip, level=level, annotator="AB"))
    return clips


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_of_an_own_codebook_is_in_one_language(film_read_back, language):
    """A lab's codebook has texts in English and French, as "violent" and "brutal" for a level.

    The page of a film, on which AB decided two spans, has those of its own language alone: of the level
    violent with its meaning, of two concepts, and of what the codebook is about (harm done on screen).
    """
    decided_by_ab = [
        Decided(start_s=40.0, end_s=72.0, judges=("AB",), level="violent", concepts=("Gun",)),
        Decided(start_s=90.0, end_s=99.0, judges=("AB",), level="calm", is_blind=True),
    ]

    page = film_page([film_read_back], language=language, owned={"tt1": Owned(people=decided_by_ab)})

    text = text_that_people_read(page)
    assert words_in(text, TEXTS_OF_OTHER_LANGUAGE[language]) == []
    texts_on_page = words_in(text, TEXTS_OF_LANGUAGE[language])
    for text_by_language in (VIOLENT, GUN, DIM_LIGHT, CONSTRUCT, MEANING_OF_VIOLENT):
        assert text_by_language[language] in texts_on_page


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("mode", ["read", "blind"])
def test_a_desk_of_an_own_codebook_has_no_word_of_the_other_language(
    tmp_path, film_read_back, language, mode
):
    """A lab's codebook has texts in English and French, as "violent" and "brutal" for a level.

    A film is opened at the desk, to read it or to judge it blindly. What people read there, in English or
    French, has none of the codebook's texts of the other language.
    """
    opened = OpenFilm(0, film_read_back, Decisions(tmp_path, film_read_back, codebook_of_text(OWN)))

    desk = desk_page([opened], opened, mode=mode, language=language)

    texts_of_other_language = words_in(text_that_people_read(desk), TEXTS_OF_OTHER_LANGUAGE[language])
    assert texts_of_other_language == []


def test_the_desk_says_in_french_what_a_span_has(tmp_path, film_read_back):
    """A lab's codebook calls the level "violent" and the concept "Gun" "brutal" and "Arme" in French.

    A gun is seen from 40 to 72 s of a film. The desk says in French what the model found in this span, with
    no English text of the codebook.
    """
    opened = OpenFilm(0, film_read_back, Decisions(tmp_path, film_read_back, codebook_of_text(OWN)))

    evidence = span_evidence(opened, [opened], start_s=40.0, end_s=72.0, words=Words("fr"))

    text = json.dumps(evidence, ensure_ascii=False)
    english_texts = words_in(text, ENGLISH)
    french_texts = words_in(text, FRENCH)
    assert english_texts == []
    assert "brutal" in french_texts
    assert "Arme" in french_texts


@pytest.fixture(scope="module")
def judged_windows(film_read_back):
    """Blind judgements of 30 windows of the film."""
    return Manifest(tuple(judged_blindly(film_read_back)), Path(), codebook_of_text(OWN))


def read_again(rates):
    """Return rates as they are read from their file, where names of positives have no translation."""
    return msgspec.convert(msgspec.to_builtins(rates, enc_hook=str), type(rates))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("are_read", [False, True], ids=["made", "read from a file"])
def test_sentences_on_rates_name_the_level_in_the_language_of_the_reader(
    film_read_back, judged_windows, language, are_read
):
    """AB judged windows of a film, for the share of the level "violent", which is called "brutal" in French.

    Sentences on the share use the word of their language alone. A rate that is read from a file has only the
    level's name, to which `named_rates` adds the texts of the film's codebook.
    """
    rates = correct_rates(film_read_back, judged_windows)
    assert {rate.positive for rate in rates.rates} == {"violent"}
    if are_read:
        rates = named_rates(read_again(rates), film_read_back)

    text = " ".join(sentences(rate_claims(rates), language))

    assert {"en": "violent", "fr": "brutal"}[language] in text
    assert words_in(text, TEXTS_OF_OTHER_LANGUAGE[language]) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_comparison_with_an_own_codebook_is_in_one_language(film_read_back, judged_windows, language):
    """A lab's codebook has texts in English and French, as "violent" and "brutal" for a level.

    What people read on the page of a compared film has none of the language that is not asked for.
    """
    page = comparison_page(compare_films([film_read_back], judged_windows), language=language)
    assert words_in(text_that_people_read(page), TEXTS_OF_OTHER_LANGUAGE[language]) == []


def test_a_french_comparison_names_its_model(film_read_back, judged_windows):
    """The French page of a comparison says by which model shares are corrected: "modèle NAME."."""
    compared = compare_films([film_read_back], judged_windows)
    page = comparison_page(compared, language="fr")
    assert f"modèle {compared.model}." in text_that_people_read(page)


@pytest.mark.parametrize("language", LANGUAGES)
def test_claims_with_an_own_codebook_are_in_one_language(film_read_back, language):
    """A lab's codebook has texts in English and French, as "violent" and "brutal" for a level.

    Sentences on a film by a model of this codebook have those of their own language alone: of the level
    violent, of its meaning, and of the concept of a gun.
    """
    text = " ".join(sentences(film_claims(film_read_back), language))

    assert words_in(text, TEXTS_OF_OTHER_LANGUAGE[language]) == []
    texts_in_sentences = words_in(text, TEXTS_OF_LANGUAGE[language])
    for text_by_language in (VIOLENT, GUN, MEANING_OF_VIOLENT):
        assert text_by_language[language] in texts_in_sentences


def test_claims_as_data_have_names_and_no_translations(film_read_back):
    """A lab's codebook has French texts, as "brutal" for the level "violent".

    Programs find levels and concepts by their names, which are the same in each language: the data of claims
    have no French text.
    """
    documents = [document(claim) for claim in film_claims(film_read_back)]
    assert words_in(json.dumps(documents, ensure_ascii=False), FRENCH) == []


@pytest.fixture
def film_of_two_codebooks():
    """A film that two models scored, by the same numbers.

    The first one's concept is Look, which is called Regard in French; that of the second, of a lab with a
    codebook of its own, is called Regard in all languages.
    """
    film = ten_minute_film()
    (look,) = (concept for concept in film.model().concepts if concept.name == "Look")
    regard = msgspec.structs.replace(look, name="Regard")
    model_of_lab = msgspec.structs.replace(film.model(), key="lab", codebook="lab", concepts=[regard])
    renamed = {f"Look_{value}": f"Regard_{value}" for value in ("value", "p", "contribution")}
    rows_of_lab = film.table.rename(columns=renamed).assign(model="lab")
    table = pd.concat([film.table, rows_of_lab], ignore_index=True)
    record = msgspec.structs.replace(film.record, models=[film.model(), model_of_lab])
    return replace(film, record=record, table=table)


@pytest.mark.parametrize(("language", "name_of_look"), [("en", "Look"), ("fr", "Regard")])
def test_a_page_is_written_of_two_models_whose_concepts_have_one_name_in_french(
    film_of_two_codebooks, language, name_of_look
):
    """Two models scored a film: one has the concept Look, and that of a lab, with its own codebook, Regard.

    Look is called Regard in French, so that both concepts have one name on a French page. It is written all
    the same, with the first model's concept under its name in the page's language.
    """
    page = film_page([film_of_two_codebooks], language=language)
    assert name_of_look in text_that_people_read(page)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_concept_without_translations_keeps_its_name(film_of_two_codebooks, language):
    """The concept of the model "lab" is called Regard in all languages."""
    text = " ".join(sentences(film_claims(film_of_two_codebooks, "lab"), language))
    assert "Regard" in text


def test_translations_are_kept_in_model_files_and_films(trained_models, film_read_back):
    """A lab's codebook has texts in English and French; "violent" is called "brutal" in French."""
    book = codebook_of_text(OWN)
    card = load_model(trained_models.paths["pcbm_lr"]).card
    (model_of_film,) = film_read_back.record.models
    assert card.codebook["digest"] == book.digest()
    assert card.codebook["translations"]["fr"]["levels"]["violent"]["title"] == "brutal"
    assert model_of_film.translations["fr"] == book.texts("fr")


def test_translations_are_not_part_of_a_codebooks_digest():
    """A translation changes no meaning, so that a codebook with and without French texts has one digest."""
    without_french = "\n".join(line for line in OWN.splitlines() if ".fr" not in line)
    assert codebook_of_text(without_french).digest() == codebook_of_text(OWN).digest()


def test_a_film_scored_without_translations_is_shown_with_names(film_read_back):
    """The record of a scored film usually has titles and translations of the codebook's labels.

    This one has none, as records of earlier versions have none. So a French page calls levels and concepts by
    their names, such as "violent" and "Gun", which are English.
    """
    record = msgspec.to_builtins(film_read_back.record)
    for model in record["models"]:
        del model["translations"], model["titles"]
    film = replace(film_read_back, record=read_record(json.dumps(record).encode(), "film.json"))

    text = text_that_people_read(film_page([film], language="fr"))

    assert {"violent", "Gun"} <= set(words_in(text, ENGLISH))


def test_a_translation_with_a_control_character_is_refused(film_read_back):
    """A title from a stranger's file could clear the screen of a terminal that prints it."""
    record = msgspec.to_builtins(film_read_back.record)
    record["models"][0]["translations"]["fr"]["levels"]["violent"]["title"] = "brutal\x1b[2J"
    with pytest.raises(FilmError, match="brutal"):
        read_record(json.dumps(record).encode(), "film.json")


def test_a_translated_title_stands_beside_the_levels_name(film_read_back):
    """The level "violent" has the title "Violent scene" in English, and "brutal" in French.

    The name is what tables and the codebook have: readers find it there by "violent (brutal)".
    """
    model = msgspec.structs.replace(film_read_back.model(), titles={"violent": "Violent scene"})
    film = replace(film_read_back, record=msgspec.structs.replace(film_read_back.record, models=[model]))

    english = text_that_people_read(film_page([film], language="en"))
    french = text_that_people_read(film_page([film], language="fr"))

    assert positive_of(model).titled == "violent (Violent scene)"
    assert "violent (Violent scene)" in english
    assert "violent (brutal)" in french


def test_a_text_that_was_changed_in_both_languages_is_shown_in_french():
    """A codebook says in English and in French what its level "violent" means; in French it is "brutal".

    It meant that a blow lands (un coup porte), and is changed to mean that blood flows (le sang coule). A
    French desk shows the French texts, before and now.
    """
    redefined = OWN.replace("a blow lands", "blood flows")
    redefined = redefined.replace("un coup porte", "le sang coule")

    (text,) = changed_texts(codebook_of_text(OWN), codebook_of_text(redefined), "fr")

    assert text.name == "brutal"
    assert text.before == "brutal: ceux où un coup porte"
    assert text.now == "brutal: ceux où le sang coule"


def test_a_text_that_was_changed_in_english_alone_is_shown_in_english():
    """The French text is the same as before, and would not show what has changed."""
    with_other_definition = OWN.replace("a blow lands", "blood flows")
    (text,) = changed_texts(codebook_of_text(OWN), codebook_of_text(with_other_definition), "fr")
    assert "blood flows" in text.now
