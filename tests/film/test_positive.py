"""What a model calls positive is decided once: claims, rates, pages, exports and comparisons follow it."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import DEFINITION, PLANTED, Clip, Manifest, builtin_codebook
from obygaze_film.cells import cells_by
from obygaze_film.claims import LANGUAGES, Words, film_claims, phrases, rate_claims, sentences
from obygaze_film.claims import kinds as claim_kinds
from obygaze_film.claims.of_film import corpus_experts
from obygaze_film.evaluation import answers_of, count_unlabelled, evaluate_films, evaluation_report
from obygaze_film.exchange import export
from obygaze_film.film_groups import compare_films
from obygaze_film.judged_rate import correct_rates, rates_by_definition
from obygaze_film.page import film_page
from obygaze_film.positive import Meaning, Positive, people_besides_program, positive_of
from obygaze_film.score import MOBYGAZE, agreement_of_people, score_film
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.prediction.final import save_models
from tests.film.films import film_store
from tests.film.page.invented import fake_scored_film, with_model
from tests.film.page.test_page import text_of
from tests.film.saying import first_sentence

OBYGAZE12 = builtin_codebook("obygaze12")
SIXTY_ROWS = {"n_rows": 60, "duration_s": 900.0}
MEANINGS_OF_TWO = {
    "HN": "with elements that can objectify a character, and do not here",
    "S": "staged like those",
}


def means_in(language):
    """Return what levels and concepts mean, by name, as the codebook says it in a language."""
    return {part.name: part.in_language(language).means for part in (*OBYGAZE12.levels, *OBYGAZE12.concepts)}


def as_scored_by_model_of_concept(film, concept):
    """Return the film as a model of a concept scores it."""
    fields = {"task": f"concept:{concept}", "levels": ["EN", "HN", "S"], "negative": [], "positive": []}
    means = {concept: OBYGAZE12.means[concept]}
    human = agreement_of_people("obygaze12", [])
    return with_model(film, concept=concept, means=means, human=human, **fields)


def as_scored_by_model_of_hn_and_s(film):
    """Return the film as a model scores it whose positive levels are HN and S."""
    fields = {"negative": ["EN"], "positive": ["HN", "S"], "means": MEANINGS_OF_TWO}
    return with_model(film, human=agreement_of_people("obygaze12", ["HN", "S"]), **fields)


FILM_SCORED_BY_MODEL_OF_BODY = as_scored_by_model_of_concept(fake_scored_film(**SIXTY_ROWS), "Body")
"""A film scored by a model that finds the concept Body."""
WINDOWS = choose_next([FILM_SCORED_BY_MODEL_OF_BODY], 30, blind=True)


def judgements_by(windows=WINDOWS, **labels_by_judge):
    """Plant what judges said of the first of some windows.

    `AB=[("S", "Look"), ("EN",)]`: AB called the first window S and saw Look, and called the second EN.
    """
    clips = []
    for judge, labels_of_windows in labels_by_judge.items():
        for window, (level, *concepts) in zip(windows, labels_of_windows, strict=False):
            judgement = replace(
                window,
                annotator=judge,
                clip_id=f"{judge}-{window.clip_id}",
                level=level,
                concepts=tuple(concepts),
            )
            clips.append(judgement)
    return Manifest(tuple(clips), Path(), OBYGAZE12)


@pytest.mark.long
def test_a_saved_model_of_a_concept_scores_a_film_as_that_concept(trained_models, tmp_path):
    """A model is trained on a concept of clips that have levels, too. It is saved and scores a film.

    The record of the film names the concept. The model does not tell levels apart: none is positive or
    negative, and how far experts agree on levels is not given.
    """
    concept = trained_models.manifest.codebook.concept_names[0]
    run = evaluate(trained_models.data, ["linear"], f"concept:{concept}")
    path = save_models(run, trained_models.data, ["linear"], tmp_path / "models")["linear"]
    model = score_film(film_store(tmp_path, "tt01"), [path]).model()

    assert model.concept == concept
    assert model.positive == []
    assert model.negative == []
    assert model.levels == list(trained_models.manifest.codebook.labels)
    assert model.human is None
    assert positive_of(model).text == concept


def test_claims_of_a_concepts_model_name_the_concept():
    """A model is of a level or of a concept, here Body, and all it says must be of that one thing."""
    names_of_levels = {"EN", "HN", "S", "Sure", "Hard Negative"}
    claims = film_claims(FILM_SCORED_BY_MODEL_OF_BODY)

    for claim in claims:
        words_of_what = set(str(claim.what).replace("/", " ").split())
        assert words_of_what.isdisjoint(names_of_levels), claim.KIND
    claims_on_positive = [
        claim for claim in claims if claim.KIND in {"marked passages", "expected share", "passage"}
    ]
    assert {claim.what for claim in claims_on_positive} == {"Body"}


@pytest.mark.parametrize(("language", "name"), [("en", "Body"), ("fr", "Corps")])
def test_sentences_on_a_concepts_model_name_the_concept(language, name):
    """A film is scored by a model of the concept Body, and not of a level: what it marks must be called so.

    The first sentence has the concept's name, with the codebook's meaning of it if anything is marked, which
    with a threshold of 1 nothing is. So do the sentence on the expected share and the label of each passage.
    """
    words = Words(language)
    film_without_marks = with_model(FILM_SCORED_BY_MODEL_OF_BODY, threshold_p=1.0)
    claims = film_claims(FILM_SCORED_BY_MODEL_OF_BODY)
    (expected_share,) = [claim for claim in claims if claim.KIND == "expected share"]
    passages = [claim for claim in claims if claim.KIND == "passage"]

    on_marked_passages = first_sentence(FILM_SCORED_BY_MODEL_OF_BODY, language=language)
    on_no_marks = first_sentence(film_without_marks, language=language)

    assert name in on_marked_passages
    assert means_in(language)["Body"] in on_marked_passages
    assert name in on_no_marks
    assert name in phrases.sentence(expected_share, words)
    assert passages
    for passage in passages:
        assert name in phrases.passage_label(passage, words)


def test_the_page_of_a_concepts_model_names_no_level_and_no_experts_on_it():
    """A model finds the concept Body, and nothing of levels. How well experts agree on Body is not known.

    The page says so in one sentence. Beside it, it must speak neither of the level S (Sure) nor of experts.
    """
    sentence_on_experts = Words("en")["no_human"]
    page = text_of(film_page([FILM_SCORED_BY_MODEL_OF_BODY])).replace(sentence_on_experts, "")
    assert OBYGAZE12.means["S"] not in page
    assert "(Sure)" not in page
    assert "experts" not in page.lower()


@pytest.mark.parametrize("export_format", ["vtt", "csv", "eaf"])
def test_exports_of_a_concepts_model_name_no_level(export_format):
    """The model finds Body; S (Sure) is the level that is positive to other models."""
    assert "(Sure)" not in export(FILM_SCORED_BY_MODEL_OF_BODY, export_format)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_sentence_names_all_positive_levels(language):
    """HN and S are positive to this model; no title of another level is in the sentence."""
    film = as_scored_by_model_of_hn_and_s(fake_scored_film(**SIXTY_ROWS))
    sentence = first_sentence(film, language=language)
    for level in OBYGAZE12.levels:
        title = level.in_language(language).title
        if level.name in {"HN", "S"}:
            assert level.name in sentence
            assert title in sentence
        else:
            assert title not in sentence


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_sentence_translates_a_models_text_on_a_level_only_if_the_codebook_has_the_same_text(
    language,
):
    """A model finds the levels HN and S, and its record says in English what they mean.

    What it says of HN is the codebook's text, so that a French sentence has the codebook's translation. What
    it says of S ("staged like those") is not: it has no translation, and stands as it is.
    """
    film = as_scored_by_model_of_hn_and_s(fake_scored_film(**SIXTY_ROWS))
    text_on_hn = MEANINGS_OF_TWO["HN"]
    text_on_s = MEANINGS_OF_TWO["S"]
    assert text_on_hn == OBYGAZE12.means["HN"]
    assert text_on_s != OBYGAZE12.means["S"]

    sentence = first_sentence(film, language=language)

    codebooks_text_on_hn = means_in(language)["HN"]
    assert codebooks_text_on_hn in sentence
    assert text_on_s in sentence


class LabelledWindows(NamedTuple):
    """What a judge says of all windows: of each the level, and concepts.

    In `n_sure` windows the level is S, and in `n_body` Body is named.
    """

    labels: list[tuple[str, ...]]
    n_sure: int
    n_body: int


def labelled_at_random(seed):
    """Draw for each window a level, and, independently of it, whether Body is named beside Look."""
    rng = np.random.default_rng(seed)
    has_body = rng.random(len(WINDOWS)) < 0.4
    labels = []
    for is_there in has_body:
        level = str(rng.choice(["EN", "HN", "NS", "S"]))
        concepts = ("Look", "Body") if is_there else ("Look",)
        labels.append((level, *concepts))
    n_sure = sum(level == "S" for level, *_ in labels)
    return LabelledWindows(labels, n_sure, int(has_body.sum()))


@pytest.mark.parametrize("seed", range(2))
def test_a_concepts_share_counts_windows_in_which_it_is_named(seed):
    """AB gives all windows of a film random levels, NS (not sure) among them, and names Body in some.

    The film's model finds the concept Body: a window is positive if AB names Body in it, even if AB is not
    sure of its level. So no window is left out as unsure.
    """
    windows = labelled_at_random(seed)

    rates = correct_rates(FILM_SCORED_BY_MODEL_OF_BODY, judgements_by(AB=windows.labels))

    (share,) = [claim for claim in rate_claims(rates) if isinstance(claim, claim_kinds.JudgedShare)]
    (in_english,) = sentences([share], "en")
    (in_french,) = sentences([share], "fr")
    assert share.what == "Body"
    assert share.has(claim_kinds.OF_CONCEPT)
    assert share.positives == (windows.n_body,)
    assert share.n == len(WINDOWS)
    assert share.n_unsure == 0
    assert "Body" in in_english
    assert "Corps" in in_french


@pytest.mark.parametrize("seed", range(2))
def test_the_share_of_a_film_scored_by_a_model_of_a_level_counts_windows_of_that_level(seed):
    """AB gives each of 30 windows a random level and, independently of it, concepts.

    The film was scored by a model that finds the level S, and not a concept: positive are the windows that AB
    called S, whatever concepts AB named in them.
    """
    windows = labelled_at_random(seed)
    film_scored_by_model_of_s = fake_scored_film(**SIXTY_ROWS)

    rates = correct_rates(film_scored_by_model_of_s, judgements_by(AB=windows.labels))

    (rate_of_ab,) = rates.rates
    assert rate_of_ab.positives == [windows.n_sure]


LEVELS_WITHOUT_CONCEPTS = [("EN",), ("S",)] * 15
"""What somebody calls 30 windows who was not asked for concepts: none of them is said to be absent."""


def test_a_rate_of_a_concept_is_refused_if_nobody_names_concepts():
    """A model finds the concept Body. AB gives 30 windows levels, and names no concept in any of them.

    So AB was not asked for concepts, and a share of 0 % would be wrong.
    """
    with pytest.raises(ObygazeError, match="Body"):
        correct_rates(FILM_SCORED_BY_MODEL_OF_BODY, judgements_by(AB=LEVELS_WITHOUT_CONCEPTS))


def test_a_rate_of_a_concept_leaves_out_a_judge_who_names_none():
    """A model finds the concept Body. AB gives 30 windows levels alone, and CD names Body in some.

    AB was not asked for concepts: the rate is CD's alone. A notice counts AB's judgements, as many as there
    are windows.
    """
    with_concepts = [("EN",), ("S", "Body")] * 15

    rates = correct_rates(
        FILM_SCORED_BY_MODEL_OF_BODY, judgements_by(AB=LEVELS_WITHOUT_CONCEPTS, CD=with_concepts)
    )

    assert [rate.annotators for rate in rates.rates] == [["CD"]]
    n_windows = len(WINDOWS)
    assert any(str(n_windows) in notice and "Body" in notice for notice in rates.notices)


def with_judgements_of_another_film(judgements, labelled_elsewhere):
    """Add to the judgements of a film others, which are taken to be of another film."""
    elsewhere = [
        replace(clip, movie="another film", clip_id=f"another-{clip.clip_id}") for clip in labelled_elsewhere
    ]
    return judgements.with_clips([*judgements, *elsewhere])


def test_a_judge_who_names_concepts_in_another_film_finds_none_in_this_one():
    """A model finds the concept Body. AB names Body in another film, and no concept in any window here.

    So AB was asked for concepts, and says that they are absent here: the share is 0 of all windows.
    """
    in_this_film = judgements_by(AB=LEVELS_WITHOUT_CONCEPTS)
    in_another_film = judgements_by(AB=[("S", "Body")] * 30)

    rates = correct_rates(
        FILM_SCORED_BY_MODEL_OF_BODY, with_judgements_of_another_film(in_this_film, in_another_film)
    )

    assert [(rate.annotators, rate.positives, rate.n) for rate in rates.rates] == [
        (["AB"], [0], len(WINDOWS))
    ]


def under(definition, judgements):
    """Let judgements say that they were made under a definition, named by its digest."""
    return [replace(clip, extras=clip.extras | {DEFINITION: definition}) for clip in judgements]


@pytest.mark.parametrize("cd_judged_under", ["b" * 64, "a" * 64])
def test_who_names_concepts_under_one_definition_is_not_taken_to_see_none_under_another(cd_judged_under):
    """A model finds Body. AB judges this film by levels alone, and names Body in another film.

    Who names concepts anywhere is taken to see none where none is named; but AB names them under definition
    a, and judges this film under b, by which AB may never have been asked for concepts. So AB is left out,
    and the share is CD's, who names Body in this film, under b or under a.
    """
    by_ab = under("b" * 64, judgements_by(AB=LEVELS_WITHOUT_CONCEPTS))
    by_cd = under(cd_judged_under, judgements_by(CD=[("EN",), ("S", "Body")] * 15))
    by_ab_elsewhere = under("a" * 64, judgements_by(AB=[("S", "Body")] * 30))
    in_this_film = Manifest((*by_ab, *by_cd), Path(), OBYGAZE12)

    rates = rates_by_definition(
        FILM_SCORED_BY_MODEL_OF_BODY, with_judgements_of_another_film(in_this_film, by_ab_elsewhere)
    )

    assert [rate.annotators for rate in rates.rates] == [["CD"]]


def test_a_film_in_which_a_machine_names_no_concept_has_none_if_it_names_concepts_elsewhere():
    """Labels of a machine called "vlm" take the place of a model of Body.

    It gives windows of this film levels without a concept, and names Body in another film: so it looks for
    Body, and says that no window of this film has it. Their probability of Body is 0.
    """
    in_this_film = judgements_by(vlm=LEVELS_WITHOUT_CONCEPTS)
    in_another_film = judgements_by(vlm=[("S", "Body")] * 30)
    labels = with_judgements_of_another_film(in_this_film, in_another_film)

    cells = cells_by(labels, FILM_SCORED_BY_MODEL_OF_BODY)

    assert (cells.p == 0).all()


def test_labels_without_concepts_cannot_replace_a_concepts_model():
    """Labels of all windows by a machine may take the place of a model's probabilities.

    This machine gives levels alone, and the model finds the concept Body: they say nothing of where it is.
    """
    with pytest.raises(ObygazeError, match="Body"):
        cells_by(judgements_by(machine=LEVELS_WITHOUT_CONCEPTS), FILM_SCORED_BY_MODEL_OF_BODY)


LABELS_OF_A_MACHINE = judgements_by(machine=[("EN", "Body"), ("S", "Look"), ("NS", "Body")] * 10)


def test_a_label_gives_a_concept_the_probability_0_or_1():
    """Labels of windows by a machine take the place of the model, which finds the concept Body.

    A label that names Body gives the probability 1, another one 0, whatever its level. Each is a window, a
    cell of the film.
    """
    cells = cells_by(LABELS_OF_A_MACHINE, FILM_SCORED_BY_MODEL_OF_BODY)
    for clip in LABELS_OF_A_MACHINE:
        if clip.level is not None:
            p = cells.p[cells.index_of(clip.start_s, clip.end_s)]
            assert p == pytest.approx(1.0 if "Body" in clip.concepts else 0.0)


def test_annotated_spans_of_a_concept_are_those_of_the_clips_that_name_it():
    """The truth to compare a model of Body with is where annotators named Body, whatever the level.

    Here a machine labelled 30 windows, two in three of them with Body: as many seconds are positive as these
    windows have together.
    """
    truth = answers_of(LABELS_OF_A_MACHINE, positive_of(FILM_SCORED_BY_MODEL_OF_BODY.model()))
    spans = truth[FILM_SCORED_BY_MODEL_OF_BODY.movie]["machine"].positive
    with_body = [clip for clip in LABELS_OF_A_MACHINE if "Body" in clip.concepts]
    expected_s = sum(clip.end_s - clip.start_s for clip in with_body)
    assert sum(end - start for start, end in spans) == pytest.approx(expected_s)


def test_spans_of_a_concept_count_whether_or_not_they_have_a_level():
    """Two spans of a film, 0 to 10 and 50 to 60 s, are annotated for the concept Body, which its model finds.

    AB gives each a level and Body, and CD Body alone: for both they are positive. EF's two rows are empty and
    count as unlabelled.
    """
    movie = FILM_SCORED_BY_MODEL_OF_BODY.movie
    first = Clip("a", movie, start_s=0.0, end_s=10.0, level="S", concepts=("Body",), annotator="AB")
    second = replace(first, clip_id="b", start_s=50.0, end_s=60.0)
    by_ab = [first, second]
    by_cd = [replace(clip, level=None, annotator="CD") for clip in by_ab]
    by_ef = [replace(clip, level=None, concepts=(), annotator="EF") for clip in by_ab]
    annotations = Manifest((*by_ab, *by_cd, *by_ef), Path(), OBYGAZE12)
    body = positive_of(FILM_SCORED_BY_MODEL_OF_BODY.model())

    answers = answers_of(annotations, body)[movie]
    n_unlabelled = count_unlabelled(annotations, body, [movie])

    assert set(answers) == {"AB", "CD"}
    assert answers["AB"].positive.tolist() == [[0, 10], [50, 60]]
    assert answers["CD"].positive.tolist() == [[0, 10], [50, 60]]
    assert n_unlabelled == {"EF": 2}


def test_who_names_no_concept_is_no_reference_for_a_concept():
    """A model finds Body. AB names it in every other window, and CD gave the same windows levels alone.

    To a rate CD says nothing of Body, and so to an evaluation: CD is not taken for somebody who saw none.
    """
    with_concepts = [("EN",), ("S", "Body")] * 15
    truth = judgements_by(AB=with_concepts, CD=LEVELS_WITHOUT_CONCEPTS)

    measured = evaluate_films([FILM_SCORED_BY_MODEL_OF_BODY], truth, n_shifts=5)

    assert set(measured.summary["truth"]) == {"AB"}
    notes = evaluation_report(measured).notes
    assert any(f"{len(WINDOWS)} judgements of CD, who names no concept" in note for note in notes)


def test_a_model_of_a_concept_is_not_measured_by_a_person_who_named_it_only_in_sight_of_the_score():
    """A model finds Body. AB and CD judge all windows, and name Body in every other one of the first ten.

    CD judges these ten with the model's score in sight, and gives the others, blindly, levels alone. Nobody
    can tell where CD would have seen Body without the score, so CD must not be taken for somebody who saw it
    nowhere: only AB's judgements are truth, and CD's windows are counted as judged without concepts.
    """
    labels_of_first_ten = [("EN",), ("S", "Body")] * 5
    labels_of_others = [("S",)] * (len(WINDOWS) - 10)
    by_ab = judgements_by(AB=labels_of_first_ten + labels_of_others)
    by_cd = judgements_by(CD=labels_of_first_ten + labels_of_others).clips
    by_cd_in_sight = [replace(clip, extras={**clip.extras, "seen_score": "1"}) for clip in by_cd[:10]]
    judgements = Manifest((*by_ab, *by_cd_in_sight, *by_cd[10:]), Path(), OBYGAZE12)

    measured = evaluate_films([FILM_SCORED_BY_MODEL_OF_BODY], judgements, n_shifts=5)

    assert set(measured.summary["truth"]) == {"AB"}
    assert measured.record["without_concepts"] == {"CD": len(WINDOWS)}


def test_labels_without_concepts_are_counted_in_the_films_that_are_evaluated():
    """A model finds Body, which AB names. EF gave two windows of another film levels alone."""
    by_ab = judgements_by(AB=[("EN",), ("S", "Body")] * 15)
    elsewhere = [replace(clip, movie="elsewhere") for clip in judgements_by(EF=[("EN",), ("S",)])]
    truth = by_ab.with_clips([*by_ab, *elsewhere])

    measured = evaluate_films([FILM_SCORED_BY_MODEL_OF_BODY], truth, n_shifts=5)

    assert measured.record["without_concepts"] == {}


def test_an_evaluation_for_a_concept_is_refused_if_nobody_names_concepts():
    """The model finds Body, and AB gave windows levels alone."""
    with pytest.raises(ObygazeError, match=r"nobody names a concept in the truth .*Body"):
        evaluate_films([FILM_SCORED_BY_MODEL_OF_BODY], judgements_by(AB=LEVELS_WITHOUT_CONCEPTS))


@pytest.mark.long
def test_films_scored_by_a_model_of_a_concept_are_compared_by_the_share_of_that_concept():
    """Six films are scored by a model of the concept Body, and AB judges twelve windows of each.

    AB names Body in every third window. Another third has the level S, which is positive to models of levels
    and does not matter here. So what is compared is Body, and its share of the films is about 1/3.
    """
    labels_of_three_windows = [("EN", "Body"), ("S", "Look"), ("HN",)]
    labels_of_twelve_windows = labels_of_three_windows * 4
    films = []
    judgements = []
    for year in range(1980, 1986):
        film = as_scored_by_model_of_concept(
            fake_scored_film(f"m{year}", year=year, seed=year, **SIXTY_ROWS), concept="Body"
        )
        twelve_windows = choose_next([film], 12, blind=True)
        films.append(film)
        judgements += judgements_by(twelve_windows, AB=labels_of_twelve_windows)

    compared = compare_films(films, Manifest(tuple(judgements), Path(), OBYGAZE12))

    (share_of_all_films,) = compared.groups["value"]
    assert compared.positive.text == "Body"
    assert share_of_all_films == pytest.approx(1 / 3, abs=0.1)


def test_films_without_any_concept_count_in_the_mean_of_films():
    """AB judges twelve windows of each of six films: Body is in all of three, and no concept in the others.

    The mean of the six shares is 1/2. If the films without were left out, as if AB had not been asked for
    concepts, it would be 1.
    """
    films = []
    judgements = []
    for year in range(1980, 1986):
        film = as_scored_by_model_of_concept(
            fake_scored_film(f"m{year}", year=year, seed=year, **SIXTY_ROWS), concept="Body"
        )
        films.append(film)
        label = ("S", "Body") if year < 1983 else ("EN",)
        judgements += judgements_by(choose_next([film], 12, blind=True), AB=[label] * 12)

    compared = compare_films(films, Manifest(tuple(judgements), Path(), OBYGAZE12))

    (mean_of_films,) = compared.groups["value"]
    assert mean_of_films == pytest.approx(1 / 2, abs=0.1)


@pytest.mark.parametrize(
    ("positive_levels", "level", "is_positive"),
    [
        (["S"], "S", True),
        (["S"], "EN", False),
        (["S"], "NS", None),
        (["HN", "S"], "HN", True),
        (["HN", "NS", "S"], "NS", True),
    ],
)
def test_a_judgement_is_positive_by_its_level(positive_levels, level, is_positive):
    """NS, "not sure", counts only for a model to which it is a positive level itself."""
    film = with_model(fake_scored_film(**SIXTY_ROWS), positive=positive_levels)
    clip = Clip("c", film.movie, level=level, concepts=("Body",))
    assert positive_of(film.model()).is_positive(clip, OBYGAZE12.labels) is is_positive


@pytest.mark.parametrize(
    ("level", "concepts", "is_positive"),
    [
        ("EN", ("Body",), True),
        ("S", (), False),
        ("NS", ("Body",), True),
        ("NS", (), False),
        (None, ("Body",), True),
        (None, ("Look",), False),
        (None, (), None),
    ],
)
def test_a_judgement_is_positive_for_a_concept_that_it_names(level, concepts, is_positive):
    """For a model of Body the level does not matter, not even NS, "not sure", nor does its lack.

    Without a level and a concept nothing was judged.
    """
    clip = Clip("c", FILM_SCORED_BY_MODEL_OF_BODY.movie, level=level, concepts=concepts)
    assert (
        positive_of(FILM_SCORED_BY_MODEL_OF_BODY.model()).is_positive(clip, OBYGAZE12.labels) is is_positive
    )


@pytest.mark.parametrize("agreement", MOBYGAZE, ids=lambda agreement: "-".join(agreement.positive))
def test_the_sentence_on_how_far_experts_agree_is_on_the_levels_that_the_films_model_finds(agreement):
    """`MOBYGAZE` has how far experts agree on each set of levels that a model may find, such as S alone.

    It was measured on the corpus MObyGaze, whose levels are those of the codebook obygaze12. A film's claim
    has the numbers (kappa and a rank correlation) on the levels of its own model, which the sentence names.
    """
    experts_on_levels_of_model = agreement_of_people("obygaze12", agreement.positive)
    film = with_model(
        fake_scored_film(**SIXTY_ROWS), positive=agreement.positive, human=experts_on_levels_of_model
    )

    claim = corpus_experts(film.model())

    assert claim.number == agreement.kappa
    assert claim.rank == agreement.rank_correlation
    for language in LANGUAGES:
        words = Words(language)
        sentence = phrases.sentence(claim, words)
        assert words.number(agreement.kappa) in sentence
        for level in agreement.positive:
            assert level in sentence


def test_the_agreement_of_experts_is_unknown_for_other_levels():
    """How far experts agree was measured on sets of levels of obygaze12, such as S, but not on HN alone."""
    assert agreement_of_people("obygaze12", ["HN"]) is None


def test_the_agreement_of_experts_is_unknown_for_other_codebooks():
    """How far experts agree was measured with the levels of obygaze12; "violence" is another codebook."""
    assert agreement_of_people("violence", ["S"]) is None


def named(name, title="", text=""):
    """Return what a level or a concept is called."""
    return Meaning(name, title, text)


@pytest.mark.parametrize(
    ("positive_levels", "names", "names_with_titles"),
    [
        ((), "What is there", "What is there"),
        ((named("S"),), "S", "S"),
        ((named("S", "S"),), "S", "S"),
        ((named("S", "Sure"),), "S", "S (Sure)"),
        ((named("HN", "Hard Negative"), named("S")), "HN / S", "HN (Hard Negative) / S"),
    ],
    ids=["nothing", "no title", "a title that is the name", "a title", "two levels"],
)
def test_what_a_model_finds_is_called_by_its_positive_levels_or_else_by_the_title_of_its_task(
    positive_levels, names, names_with_titles
):
    """Sentences name the levels that a model finds, some with the titles that the codebook gives them.

    A bank of concepts has values of concepts and decides nothing, so that no level is its positive one. The
    title of its task, "What is there", stands in sentences where else would be an empty text.
    """
    positive = Positive(positive_levels, is_concept=False, task_title="What is there")
    assert positive.text == names
    assert positive.titled == names_with_titles


@pytest.mark.parametrize(
    ("is_concept", "names", "unknown"),
    [
        (False, ("HN", "S"), ""),
        (False, ("violent", "S"), "violent"),
        (False, ("HN", "violent", "calm"), "violent"),
        (False, ("Body",), "Body"),
        (False, (), ""),
        (True, ("Body",), ""),
        (True, ("S",), "S"),
    ],
)
def test_the_first_name_that_a_codebook_lacks_is_named(is_concept, names, unknown):
    """A judgement by another codebook would be counted as negative throughout.

    A concept is no level, nor a level a concept, though both are names of the codebook.
    """
    positive = Positive(tuple(named(name) for name in names), is_concept, task_title="")
    assert positive.first_unknown_name(OBYGAZE12) == unknown


@pytest.mark.parametrize(
    ("concepts_of_clips", "lacks_labels_of_body"),
    [
        pytest.param([], True, id="no clip"),
        pytest.param([()], True, id="a clip without concepts"),
        pytest.param([(), ()], True, id="two clips without concepts"),
        pytest.param([(), ("Look",)], False, id="a clip of two names Look"),
        pytest.param([("Body",)], False, id="the clip names Body"),
    ],
)
def test_clips_serve_as_labels_of_a_concept_if_any_of_them_names_one(concepts_of_clips, lacks_labels_of_body):
    """All clips have the level S, and so always serve as labels of it. Each has some concepts, or none.

    For a model of Body, clips serve if one of them names any concept. If none does, nobody was asked for
    concepts, and Body is not known to be absent.
    """
    clips = [
        Clip(f"c{number}", "m", level="S", concepts=concepts)
        for number, concepts in enumerate(concepts_of_clips)
    ]
    level_s = Positive((named("S"),), is_concept=False, task_title="")
    concept_body = Positive((named("Body"),), is_concept=True, task_title="")

    assert concept_body.lacks_labels_in(clips) is lacks_labels_of_body
    assert level_s.lacks_labels_in(clips) is False


@pytest.mark.parametrize(
    ("level", "concepts", "is_labelled_for_s", "is_labelled_for_body"),
    [
        pytest.param(None, (), False, False, id="neither level nor concepts"),
        pytest.param(None, ("Look",), False, True, id="another concept alone"),
        pytest.param("NS", (), True, True, id="another level alone"),
        pytest.param("S", ("Look",), True, True, id="a level and a concept"),
    ],
)
def test_a_level_labels_a_clip_for_any_model_and_a_concept_only_for_models_of_concepts(
    level, concepts, is_labelled_for_s, is_labelled_for_body
):
    """Whether a clip counts for a model of the level S, and for one of the concept Body.

    A labelled clip without S, or without Body, is negative; one that is not labelled is left out. Who named
    another concept than Body has said that Body is not there, but nothing of the level.
    """
    clip = Clip("c", "m", level=level, concepts=concepts)
    level_s = Positive((named("S"),), is_concept=False, task_title="")
    concept_body = Positive((named("Body"),), is_concept=True, task_title="")

    assert level_s.is_labelled(clip) is is_labelled_for_s
    assert concept_body.is_labelled(clip) is is_labelled_for_body


@pytest.mark.parametrize(
    ("labelled_by", "is_planted", "people"),
    [
        ([], False, ()),
        (["AB"], False, ()),
        ([PLANTED], True, ()),
        ([PLANTED, "AB"], False, ("AB",)),
        (["CD", PLANTED, "AB"], False, ("CD", "AB")),
    ],
)
def test_labels_of_a_program_alone_are_told_from_those_with_people_beside_it(labelled_by, is_planted, people):
    """Scores of a model of planted labels say nothing of films, and a reader is told so.

    Where people labelled too, they are named; where no program did, there is nobody to tell apart.
    """
    model = with_model(fake_scored_film(**SIXTY_ROWS), labelled_by=labelled_by).model()
    assert positive_of(model).is_planted is is_planted
    assert people_besides_program(model) == people


def test_a_name_of_a_codebook_that_is_not_known_has_no_title_and_no_meaning():
    """A model's record may come without texts: then a sentence has the name alone."""
    film = with_model(
        fake_scored_film(**SIXTY_ROWS), codebook="a lab's", titles={}, means={}, translations={}
    )
    level_model = with_model(film, positive=["S"]).model()
    concept_model = with_model(film, concept="Body", positive=[]).model()

    for model, name in ((level_model, "S"), (concept_model, "Body")):
        (meaning,) = positive_of(model).meanings
        assert meaning == (name, "", "")
        assert meaning.titled == name
