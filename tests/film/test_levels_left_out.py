"""A model that was neither calibrated nor tested on levels that films have says so wherever it claims."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from msgspec.structs import replace as changed

from obygaze_features.manifest import builtin_codebook
from obygaze_film.claims import LANGUAGES, Words, document, film_claims, phrases
from obygaze_film.claims import kinds as claim_kinds
from obygaze_film.claims.of_film import expected_share, model_evidence
from obygaze_film.commands.film_lines import first_lines
from obygaze_film.exchange import collect
from obygaze_film.page import film_page
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import desk_page
from tests.film.page.invented import fake_scored_film, with_model
from tests.film.page.test_page import text_of
from tests.film.saying import heading_of

SMALL = {"n_rows": 60, "duration_s": 900.0}
BOOK = builtin_codebook("obygaze12")


def without_easy_negatives(film):
    """Return the film as scored by a model that never met clips of EN, only 30 of HN and 33 of S.

    As a film has scenes of EN too, no share of it is expected.
    """
    model = film.model()
    calibration = changed(model.calibration, clips={"HN": 30, "S": 33})
    refused = changed(model.rate, value=None, bracket_low=None, bracket_high=None)
    return with_model(film, levels_left_out=["EN"], calibration=calibration, rate=refused)


OF_ALL_LEVELS = fake_scored_film(**SMALL)
"""A film scored by a model that was calibrated and tested on all levels."""

WITHOUT_EN = without_easy_negatives(OF_ALL_LEVELS)
"""The same film, scored by a model that never saw clips of the level EN."""

BOTH_FILMS = pytest.mark.parametrize(
    ("film", "lacks_en"), [(OF_ALL_LEVELS, False), (WITHOUT_EN, True)], ids=["all levels", "without EN"]
)


@BOTH_FILMS
def test_a_claim_names_the_levels_that_its_model_never_saw(film, lacks_en):
    """One of two models was trained without clips of the level EN (easy negative). Films have such scenes.

    So what it says of them may be wrong: each claim on its scores has this as a condition, and names EN. The
    claims of the other model, trained on all levels, have no such condition.
    """
    model_claims = [claim for claim in film_claims(film) if isinstance(claim, claim_kinds.ModelClaim)]
    kinds_of_claims = {claim.KIND for claim in model_claims}
    assert kinds_of_claims == {"title", "evidence", "marked passages", "passage", "expected share"}

    levels_left_out = ["EN"] if lacks_en else []
    for claim in model_claims:
        written = json.loads(json.dumps(document(claim)))
        assert (claim_kinds.LEVELS_LEFT_OUT in written["conditions"]) == lacks_en
        assert written["levels_left_out"] == levels_left_out


def warning_that_en_was_never_seen(words):
    """Write the warning that stands beside a film's title: its model never saw the level EN."""
    return words.say("verdict_levels", levels="EN")


def note_that_en_was_not_tested(words):
    """Write the sentence that stands beside the model's evidence: it was not tested on the level EN."""
    return words.say("without_levels", levels="EN")


@BOTH_FILMS
@pytest.mark.parametrize("language", LANGUAGES)
def test_title_terminal_evidence_and_page_warn_that_the_model_lacks_a_level(film, lacks_en, language):
    """The model of one film never saw clips of the level EN (easy negative), of which films have scenes.

    So it may be wrong on them: each place warns. Of the film by a model that saw all levels none does.
    """
    words = Words(language)
    warning = warning_that_en_was_never_seen(words)
    note = note_that_en_was_not_tested(words)

    title = heading_of(film, language)
    first_line_of_terminal, *_ = first_lines(film, words)
    evidence = phrases.evidence_sentence(model_evidence(film.model()), words)
    page = text_of(film_page([film], language=language))

    assert (warning in title) == lacks_en
    assert (warning in first_line_of_terminal) == lacks_en
    assert (note in evidence) == lacks_en
    assert (warning in page) == lacks_en
    assert (note in page) == lacks_en


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_citation_names_the_levels_that_the_model_never_saw(language):
    """Whoever cites a passage must say that its model never saw clips of EN (easy negative).

    The film WITHOUT_EN is by such a model. A citation also has the positive level, here S, and the model's
    name, here m.
    """
    words = Words(language)
    passages = [claim for claim in film_claims(WITHOUT_EN) if isinstance(claim, claim_kinds.Passage)]
    assert passages
    for passage in passages:
        cited = phrases.citation_sentence(passage, positive="S", model="m", windows=None, words=words)
        assert warning_that_en_was_never_seen(words) in cited


@BOTH_FILMS
def test_an_export_says_on_which_levels_a_model_was_calibrated_if_it_never_met_one_of_them(film, lacks_en):
    """A film is scored by a model of all levels, or by one that never met clips of EN (`lacks_en`).

    The latter's probability was calibrated on clips of HN and S alone: the export's caveats say so, and that
    it was not tested on EN. Of the former they say neither.
    """
    caveats = " ".join(collect(film, "eaf").caveats)
    assert (note_that_en_was_not_tested(Words("en")) in caveats) == lacks_en
    assert ("HN and S" in caveats) == lacks_en


def sentence_on_error_of_shares(film, words):
    """Write the sentence on how far the model's expected shares of films were off."""
    return phrases.error_sentence(expected_share(film.model(), film.rows()), words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_error_of_shares_names_the_levels_it_was_measured_on(language):
    """The error is measured with the clips that the model was trained on.

    If these lack the level EN (the film WITHOUT_EN), the sentence names the others, HN and S. If they have
    all levels (OF_ALL_LEVELS), it names none.
    """
    words = Words(language)
    assert words.listed(["HN", "S"]) in sentence_on_error_of_shares(WITHOUT_EN, words)
    assert "HN" not in sentence_on_error_of_shares(OF_ALL_LEVELS, words)


def why_no_share(film, words):
    """Write the sentence that says why no share of a film is expected."""
    return phrases.no_share_sentence(expected_share(film.model(), film.rows()), words)


def test_a_refused_share_names_the_levels_unless_the_film_was_trained_on():
    """A model that never saw EN expects no share of a film, nor does one that was trained on the film.

    Where both is so, the more serious reason is given: the film was trained on. WITHOUT_EN is a film by a
    model that never saw clips of the level EN.
    """
    words = Words("en")
    also_trained_on = with_model(WITHOUT_EN, is_trained_on=True)
    assert why_no_share(WITHOUT_EN, words) == words.say("levels_left_out", levels="EN")
    assert why_no_share(also_trained_on, words) == words["no_rate_trained"]


# --- captions
# ---------------------------------------------------------------------------
def test_captions_name_flags_in_words():
    """A flag such as `no_skill` is a name in files; the label of a passage has its text, in words.

    Each row of an invented film gets three flags beside its own, joined by semicolons.
    """
    words = Words("en")
    film = OF_ALL_LEVELS
    flags = [f"{own_flags};bars;no_skill;trained_on".strip(";") for own_flags in film.table["flags"]]
    flagged = replace(film, table=film.table.assign(flags=flags))

    passages = [claim for claim in film_claims(flagged) if isinstance(claim, claim_kinds.Passage)]
    assert passages

    for passage in passages:
        label = phrases.passage_label(passage, words)
        words_of_label = set(re.split("[,; ]+", label))
        assert "no_skill" not in words_of_label
        assert "trained_on" not in words_of_label
        assert passage.flags
        for flag in passage.flags:
            assert words[f"flag_{flag}"] in label


# --- pages of models without concepts
# ---------------------------------------------------------------------------
BY_CONCEPTS = OF_ALL_LEVELS
"""By a model whose concepts add to the logit, each from its usual value."""

BY_TREE = with_model(
    OF_ALL_LEVELS, concepts=[changed(concept, usual=None) for concept in OF_ALL_LEVELS.model().concepts]
)
"""By a model whose concepts add to the logit, but have no usual value."""

WITHOUT_CONCEPTS = with_model(fake_scored_film(concepts=(), **SMALL), by_concepts=False)


@pytest.mark.parametrize(
    ("film", "has_contributions", "has_usual_values"),
    [(BY_CONCEPTS, True, True), (BY_TREE, True, False), (WITHOUT_CONCEPTS, False, False)],
    ids=["concepts", "tree", "no concepts"],
)
def test_a_page_explains_only_what_its_model_has(film, has_contributions, has_usual_values):
    """In models of concepts, as a linear one or a tree, each concept contributes to the probability.

    The linear model counts this from a usual value of the concept, and the tree has none. A page explains
    contributions and usual values if its model has them.
    """
    words = Words("en")
    about_contributions = words["about_3"]
    about_usual_values = words["about_3_usual"]

    page = unescape(film_page([film]))

    assert (about_contributions in page) == has_contributions
    assert (about_usual_values in page) == has_usual_values


def page_and_desk(film, folder):
    """Return the texts of a film's page and of its desk, in English."""
    opened = OpenFilm(0, film, Decisions(folder, film, BOOK))
    return (unescape(film_page([film])), unescape(desk_page([opened], opened, mode="read", language="en")))


@pytest.mark.parametrize(
    ("film", "are_changes_of_p", "are_contributions"),
    [(BY_CONCEPTS, True, False), (BY_TREE, False, True), (WITHOUT_CONCEPTS, False, False)],
    ids=["concepts", "tree", "no concepts"],
)
def test_page_and_desk_say_what_a_reason_is(film, are_changes_of_p, are_contributions, tmp_path):
    """A concept is a reason for a passage if it changes the probability by .01 or more from its usual value.

    If concepts have no usual value, as in a tree, it is one if it contributes .05 or more to the logit. A
    model without concepts has no reasons, and nothing is said.
    """
    words = Words("en")
    reasons_are_changes_of_p = words.say("reasons_what", least=words.number(0.01))
    reasons_are_contributions = words.say("reasons_what_weights", least=words.number(0.05))

    for text in page_and_desk(film, tmp_path):
        assert (reasons_are_changes_of_p in text) == are_changes_of_p
        assert (reasons_are_contributions in text) == are_contributions
