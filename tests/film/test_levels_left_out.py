"""A model that was neither calibrated nor tested on levels that films have says so wherever it claims."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from msgspec.structs import replace as changed

from obygaze_features.manifest import builtin_codebook
from obygaze_film.claims import LANGUAGES, Words, document, film_claims, kinds, phrases
from obygaze_film.claims.of_film import expected_share, model_evidence
from obygaze_film.commands.film_lines import first_lines
from obygaze_film.exchange import collect
from obygaze_film.page import film_page
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import desk_page
from tests.film.page.invented import invented_film, with_model
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


OF_ALL_LEVELS = invented_film(**SMALL)
"""A film scored by a model that was calibrated and tested on all levels."""

WITHOUT_EN = without_easy_negatives(OF_ALL_LEVELS)
"""The same film, scored by a model that never saw clips of the level EN."""

BOTH_FILMS = pytest.mark.parametrize(
    ("film", "lacks_en"), [(OF_ALL_LEVELS, False), (WITHOUT_EN, True)], ids=["all levels", "without EN"]
)

RESTS_ON_TESTED_LEVELS = {"title", "evidence", "marked passages", "passage", "expected share"}
"""Kinds of claims that hold only of levels that a model was calibrated and tested on."""


@BOTH_FILMS
def test_a_claim_names_the_levels_that_its_model_never_saw(film, lacks_en):
    """Films have scenes of EN (Easy Negative), and a model that never saw such clips may be wrong on them.

    So each of its claims has this as a condition; claims of a model of all levels have not.
    """
    claims = [claim for claim in film_claims(film) if claim.KIND in RESTS_ON_TESTED_LEVELS]
    for claim in claims:
        written = json.loads(json.dumps(document(claim)))
        assert (kinds.LEVELS_LEFT_OUT in written["conditions"]) == lacks_en
        assert written["levels_left_out"] == (["EN"] if lacks_en else [])


@pytest.mark.parametrize("film", [OF_ALL_LEVELS, WITHOUT_EN], ids=["all levels", "without EN"])
def test_every_claim_of_a_model_rests_on_its_tested_levels(film):
    """`RESTS_ON_TESTED_LEVELS` must list every kind of claim that a model makes."""
    of_models = {claim.KIND for claim in film_claims(film) if isinstance(claim, kinds.ModelClaim)}
    assert of_models == RESTS_ON_TESTED_LEVELS


def warning_beside_title(words):
    """Write the warning beside a film's title that its model never saw the level EN."""
    return words.say("verdict_levels", levels="EN")


def warning_beside_evidence(words):
    """Write the sentence beside the model's evidence that it was not tested on the level EN."""
    return words.say("without_levels", levels="EN")


@pytest.mark.parametrize("language", LANGUAGES)
def test_title_and_terminal_warn_that_the_model_lacks_a_level(language):
    """The model never saw clips of EN, which films have."""
    words = Words(language)
    assert warning_beside_title(words) in heading_of(WITHOUT_EN, language)
    assert warning_beside_title(words) in first_lines(WITHOUT_EN, words)[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_evidence_and_page_say_that_the_model_was_not_tested_on_a_level(language):
    words = Words(language)
    evidence = phrases.evidence_sentence(model_evidence(WITHOUT_EN.model()), words)
    assert warning_beside_evidence(words) in evidence
    assert warning_beside_evidence(words) in text_of(film_page([WITHOUT_EN], language=language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_citation_names_the_levels_that_the_model_never_saw(language):
    words = Words(language)
    for claim in film_claims(WITHOUT_EN):
        if isinstance(claim, kinds.Passage):
            cited = phrases.citation_sentence(claim, positive="S", model="m", windows=None, words=words)
            assert warning_beside_title(words) in cited


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_of_all_levels_has_no_warning(language):
    words = Words(language)
    page = text_of(film_page([OF_ALL_LEVELS], language=language))
    for text in (heading_of(OF_ALL_LEVELS, language), page):
        assert warning_beside_title(words) not in text
        assert warning_beside_evidence(words) not in text


@BOTH_FILMS
def test_exports_do_not_call_p_calibrated_without_saying_on_what(film, lacks_en):
    """The probability was calibrated on clips of HN and S alone, and an export says so."""
    caveats = " ".join(collect(film, "eaf").caveats)
    assert (warning_beside_evidence(Words("en")) in caveats) == lacks_en
    assert ("HN and S" in caveats) == lacks_en


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_error_of_shares_names_the_levels_it_was_measured_on(
    language,
):
    """How far a model's expected shares were off is measured with the clips that it was trained on."""
    words = Words(language)

    def error_sentence(film):
        return phrases.error_sentence(expected_share(film.model(), film.rows()), words)

    assert words.listed(["HN", "S"]) in error_sentence(WITHOUT_EN)
    assert "HN" not in error_sentence(OF_ALL_LEVELS)


def why_no_share(film, words):
    """Write the sentence that says why no share of a film is expected."""
    return phrases.no_share_sentence(expected_share(film.model(), film.rows()), words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refused_share_names_the_levels(language):
    """No share is expected of a film by a model that never saw a level: the reason names EN."""
    words = Words(language)
    assert why_no_share(WITHOUT_EN, words) == words.say("levels_left_out", levels="EN")


def test_that_the_film_was_trained_on_is_said_before_the_levels():
    """Of two reasons against a share the more serious one is given."""
    words = Words("en")
    trained_on = with_model(WITHOUT_EN, is_trained_on=True)
    assert why_no_share(trained_on, words) == words["no_rate_trained"]


# --- captions
# ---------------------------------------------------------------------------
def test_captions_name_flags_in_words():
    """The label of a passage has the flags' texts; `no_skill` and `trained_on` are names in files."""
    cells = [f"{cell};bars;no_skill;trained_on".strip(";") for cell in OF_ALL_LEVELS.table["flags"]]
    flagged = replace(OF_ALL_LEVELS, table=OF_ALL_LEVELS.table.assign(flags=cells))
    for claim in film_claims(flagged):
        if isinstance(claim, kinds.Passage):
            label = phrases.passage_label(claim, Words("en"))
            assert claim.flags
            assert not {"no_skill", "trained_on"} & set(re.split("[,; ]+", label))
            assert all(Words("en")[f"flag_{flag}"] in label for flag in claim.flags)


# --- pages of models without concepts
# ---------------------------------------------------------------------------
BY_CONCEPTS = OF_ALL_LEVELS
"""By a model whose concepts add to the logit, each from its usual value."""

BY_TREE = with_model(
    OF_ALL_LEVELS, concepts=[changed(concept, usual=None) for concept in OF_ALL_LEVELS.model().concepts]
)
"""By a model whose concepts add to the logit, but have no usual value."""

WITHOUT_CONCEPTS = with_model(invented_film(concepts=(), **SMALL), by_concepts=False)

KINDS_OF_MODELS = pytest.mark.parametrize(
    ("film", "has_contributions", "has_usual"),
    [(BY_CONCEPTS, True, True), (BY_TREE, True, False), (WITHOUT_CONCEPTS, False, False)],
    ids=["concepts", "tree", "no concepts"],
)


@KINDS_OF_MODELS
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_explains_only_what_its_model_has(film, has_contributions, has_usual, language):
    """Models of concepts have contributions, and some of them usual values of concepts.

    Others have neither.
    """
    words = Words(language)
    on_contributions, on_usual_values = words["about_3"], words["about_3_usual"]
    page = unescape(film_page([film], language=language))
    assert (on_contributions in page) == has_contributions
    assert (on_usual_values in page) == has_usual


@KINDS_OF_MODELS
@pytest.mark.parametrize("language", LANGUAGES)
def test_page_and_desk_explain_the_signs_of_reasons_above_the_concepts_bars(
    film, has_contributions, has_usual, language, tmp_path
):
    """Where concepts have a usual value, a reason is a change of the probability, of .01 or more.

    Else it is a contribution to the logit, of .05 or more.
    """
    words = Words(language)
    of_changes = words.say("reasons_what", least=words.number(0.01))
    of_contributions = words.say("reasons_what_weights", least=words.number(0.05))
    opened = OpenFilm(0, film, Decisions(tmp_path, film, BOOK))
    pages = (film_page([film], language=language), desk_page([opened], opened, "read", language))
    has_contributions_alone = has_contributions and not has_usual
    for page in pages:
        text = unescape(page)
        assert (of_changes in text) == has_usual
        assert (of_contributions in text) == has_contributions_alone
