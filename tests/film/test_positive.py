"""What a model calls positive is decided once: claims, rates, pages, exports and comparisons follow it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_film.cells import cells_by, cells_of
from obygaze_film.claims import LANGUAGES, Words, film_claims, kinds, phrases, rate_claims, sentences
from obygaze_film.claims.of_film import corpus_experts
from obygaze_film.evaluation import annotated
from obygaze_film.exchange import export
from obygaze_film.film_groups import compare_films
from obygaze_film.judged_rate import correct_rates
from obygaze_film.page import film_page
from obygaze_film.positive import positive_of
from obygaze_film.score import MOBYGAZE, agreement_of_people, score_film
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.prediction.final import save_models
from tests.film.films import film_store
from tests.film.page.invented import invented_film, with_model
from tests.film.page.test_page import text_of
from tests.film.saying import first_sentence

BOOK = builtin_codebook("obygaze12")
SMALL = {"n_rows": 60, "duration_s": 900.0}
MEANINGS_OF_TWO = {
    "HN": "with elements that can objectify a character, and do not here",
    "S": "staged like those",
}


def means_in(language):
    """What levels and concepts mean, as the codebook says it in a language."""
    return {part.name: part.in_language(language).means for part in (*BOOK.levels, *BOOK.concepts)}


def of_concept(film, concept="Body"):
    """A film as a model of a concept scores it."""
    known = {"task": f"concept:{concept}", "levels": ["EN", "HN", "S"], "negative": [], "positive": []}
    means = {concept: BOOK.means[concept]}
    return with_model(film, concept=concept, means=means, human=agreement_of_people("obygaze12", []), **known)


def of_two_levels(film):
    """A film as a model scores it whose positive levels are HN and S."""
    known = {"negative": ["EN"], "positive": ["HN", "S"], "means": MEANINGS_OF_TWO}
    return with_model(film, human=agreement_of_people("obygaze12", ["HN", "S"]), **known)


FILM = of_concept(invented_film(**SMALL))
WINDOWS = choose_next([FILM], 30, blind=True)


def judged(windows=WINDOWS, **judges):
    """Judgements of the first windows of a draw: of each judge a tuple for each, (level, *concepts)."""
    clips = []
    for judge, calls in judges.items():
        for clip, (level, *concepts) in zip(windows, calls, strict=False):
            name = f"{judge}-{clip.clip_id}"
            own = replace(clip, clip_id=name, level=level, concepts=tuple(concepts), annotator=judge)
            clips.append(own)
    return Manifest(tuple(clips), Path(), BOOK)


def test_a_saved_model_of_a_concept_scores_a_film_as_that_concept(trained, tmp_path):
    """A concept's model has the levels of its clips on both sides: they are not what it finds."""
    concept = trained.manifest.codebook.concept_names[0]
    run = evaluate(trained.data, ["linear"], f"concept:{concept}")
    path = save_models(run, trained.data, ["linear"], tmp_path / "models")["linear"]
    record = score_film(film_store(tmp_path, "tt01"), [path]).model()
    assert (record.concept, record.positive, record.negative) == (concept, [], [])
    assert record.levels == list(trained.manifest.codebook.labels)
    assert positive_of(record).text == concept
    assert record.human is None


def test_claims_on_a_concepts_model_are_of_the_concept_and_of_no_level():
    levels = {"EN", "HN", "S", "Sure", "Hard Negative"}
    claims = film_claims(FILM)
    for claim in claims:
        assert not levels & set(str(claim.what).replace("/", " ").split()), claim.KIND
    of_positive = [
        claim for claim in claims if claim.KIND in {"marked passages", "expected share", "passage"}
    ]
    assert {claim.what for claim in of_positive} == {"Body"}


@pytest.mark.parametrize(("language", "name"), [("en", "Body"), ("fr", "Corps")])
def test_sentences_on_a_concepts_model_name_the_concept(language, name):
    words = Words(language)
    said = first_sentence(FILM, language=language)
    assert name in said
    assert means_in(language)["Body"] in said
    assert name in first_sentence(with_model(FILM, threshold_p=1.0), language=language)  # none is marked
    for claim in film_claims(FILM):
        if claim.KIND == "expected share":
            assert name in phrases.sentence(claim, words)
        if claim.KIND == "passage":
            assert name in phrases.passage_label(claim, words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_neither_sentence_nor_page_of_a_concepts_model_says_what_a_level_means(language):
    assert BOOK.means["S"] not in first_sentence(FILM, language=language)
    page = text_of(film_page([FILM], language=language))
    assert BOOK.means["S"] not in page
    assert "(Sure)" not in page


@pytest.mark.parametrize("kind", ["vtt", "csv", "eaf"])
def test_no_export_of_a_concepts_model_names_a_level(kind):
    assert "(Sure)" not in export(FILM, kind)


@pytest.mark.parametrize("language", LANGUAGES)
def test_of_several_positive_levels_each_is_named_with_its_meaning(language):
    film = of_two_levels(invented_film(**SMALL))
    said = first_sentence(film, language=language)
    for name, meaning in MEANINGS_OF_TWO.items():
        assert name in said
        assert (means_in(language)[name] if meaning == BOOK.means[name] else meaning) in said
    for level in BOOK.levels:
        assert (level.in_language(language).title in said) == (level.name in MEANINGS_OF_TWO)


@pytest.mark.parametrize("seed", range(5))
def test_a_concepts_share_is_that_of_the_windows_where_a_judge_names_it_whatever_their_level(seed):
    rng = np.random.default_rng(seed)
    has_body = rng.random(len(WINDOWS)) < 0.4
    calls = []
    for has in has_body:
        level = str(rng.choice(["EN", "HN", "S"]))
        calls.append((level, "Look", "Body") if has else (level, "Look"))
    found = correct_rates(FILM, judged(AB=calls))  # FILM is scored by a model of Body
    (claim,) = [claim for claim in rate_claims(found) if isinstance(claim, kinds.JudgedShare)]
    assert (claim.what, claim.positives, claim.n) == ("Body", (int(has_body.sum()),), len(WINDOWS))
    assert claim.has(kinds.OF_CONCEPT)
    for language in LANGUAGES:
        assert {"en": "Body", "fr": "Corps"}[language] in sentences([claim], language)[0]
    # The same judgements, by a model of levels, are counted by their levels.
    by_level = correct_rates(invented_film(**SMALL), judged(AB=calls))
    n_sure = sum(level == "S" for level, *_ in calls)
    assert by_level.rates[0].positives == [n_sure]


def test_who_names_no_concept_does_not_say_that_one_is_absent():
    """AB gives levels alone, and so does a machine: neither is counted as saying that no Body is there."""
    levels_alone = [("EN",), ("S",)] * 15
    with_concepts = [("EN",), ("S", "Body")] * 15
    with pytest.raises(ObygazeError, match="Body"):
        correct_rates(FILM, judged(AB=levels_alone))
    found = correct_rates(FILM, judged(AB=levels_alone, CD=with_concepts))
    assert [rate.annotators for rate in found.rates] == [["CD"]]
    assert any(str(len(WINDOWS)) in notice and "Body" in notice for notice in found.notices)
    labels = judged(machine=levels_alone)
    with pytest.raises(ObygazeError, match="Body"):
        cells_by(labels, FILM)


def test_labels_in_a_models_place_and_annotations_are_read_as_it_calls_them():
    labels = judged(machine=[("EN", "Body"), ("S", "Look"), ("NS", "Body")] * 10)
    spans = cells_of(FILM).spans
    cells = cells_by(labels, FILM)
    for clip in labels:
        cell = int(np.argmin(np.abs(spans[:, 0] - clip.start_s)))
        if clip.level is not None:
            assert cells.p[cell] == pytest.approx(float("Body" in clip.concepts))
    truth = annotated(labels, positive_of(FILM.model()))[FILM.movie]["machine"]
    marked = [clip for clip in labels if "Body" in clip.concepts]
    assert sum(end - start for start, end in truth) == pytest.approx(
        sum(clip.end_s - clip.start_s for clip in marked)
    )


def test_a_comparison_of_films_is_of_the_concept_too():
    films = [
        of_concept(invented_film(f"m{year}", year=year, seed=year, **SMALL)) for year in range(1980, 1986)
    ]
    clips = []
    for film in films:
        windows = choose_next([film], 12, blind=True)
        clips += judged(windows, AB=[("EN", "Body"), ("S", "Look"), ("HN",)] * 4)
    compared = compare_films(films, Manifest(tuple(clips), Path(), BOOK))
    assert compared.positive.text == "Body"
    assert compared.groups["value"].iloc[0] == pytest.approx(1 / 3, abs=0.1)


@pytest.mark.parametrize(
    ("positive", "level", "concepts", "call"),
    [
        (["S"], "S", (), True),
        (["S"], "EN", ("Body",), False),
        (["S"], "NS", (), None),
        (["HN", "S"], "HN", (), True),
        (["HN", "NS", "S"], "NS", (), True),
        ("Body", "EN", ("Body",), True),
        ("Body", "S", (), False),
        ("Body", "NS", ("Body",), True),
        ("Body", "NS", (), False),
        ("Body", None, ("Body",), None),
    ],
)
def test_a_judgement_is_positive_by_one_function(positive, level, concepts, call):
    film = of_concept(FILM) if positive == "Body" else with_model(invented_film(**SMALL), positive=positive)
    clip = Clip("c", FILM.movie, level=level, concepts=concepts)
    assert positive_of(film.model()).is_positive(clip, BOOK.labels) is call


def test_how_far_experts_agree_is_said_on_the_levels_that_a_model_finds_alone():
    for known in MOBYGAZE:
        film = with_model(
            invented_film(**SMALL),
            positive=known.positive,
            human=agreement_of_people("obygaze12", known.positive),
        )
        claim = corpus_experts(film.model())
        assert (claim.number, claim.rank) == (known.kappa, known.rank_correlation)
        for language in LANGUAGES:
            said = phrases.sentence(claim, Words(language))
            assert all(level in said for level in known.positive)
            assert Words(language).number(known.kappa) in said
    assert agreement_of_people("obygaze12", ["HN"]) is None
    assert agreement_of_people("violence", ["S"]) is None
    page = text_of(film_page([FILM])).replace(Words("en")["no_human"], "")
    assert "xperts" not in page.replace(BOOK.means["S"], "")
