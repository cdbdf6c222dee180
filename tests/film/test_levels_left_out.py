"""A model that was neither calibrated nor tested on levels that films have says so wherever it claims."""

import json
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
WHOLE = invented_film(**SMALL)
CLIPS = {"HN": 30, "S": 33}


def without_easy(film):
    """The film as a model scores it that knows clips of HN and S alone: its share is refused."""
    model = film.model()
    calibration = changed(model.calibration, clips=CLIPS)
    refused = changed(model.rate, value=None, bracket_low=None, bracket_high=None)
    return with_model(film, levels_left_out=["EN"], calibration=calibration, rate=refused)


NARROW = without_easy(WHOLE)
MUST_SAY = {"title", "evidence", "marked passages", "passage", "expected share"}


@pytest.mark.parametrize("film", [WHOLE, NARROW])
def test_each_claim_that_rests_on_what_was_tested_has_the_condition_and_the_levels(film):
    is_narrow = film is NARROW
    claims = film_claims(film)
    assert {claim.KIND for claim in claims if isinstance(claim, kinds.ModelClaim)} == MUST_SAY
    for claim in claims:
        if claim.KIND in MUST_SAY:
            written = json.loads(json.dumps(document(claim)))
            assert (kinds.LEVELS_LEFT_OUT in written["conditions"]) == is_narrow
            assert written["levels_left_out"] == (["EN"] if is_narrow else [])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_lines_of_page_terminal_and_exports_and_a_citation_name_the_levels(language):
    words = Words(language)
    short = words.say("verdict_levels", levels="EN")
    whole = words.say("without_levels", levels="EN")
    assert short in heading_of(NARROW, language)
    assert short in first_lines(NARROW, words)[0]
    assert whole in phrases.evidence_sentence(model_evidence(NARROW.model()), words)
    page = text_of(film_page([NARROW], language=language))
    assert whole in page
    passages = [claim for claim in film_claims(NARROW) if isinstance(claim, kinds.Passage)]
    for claim in passages:
        assert short in phrases.citation_sentence(claim, "S", "m", None, words)
    for text in (heading_of(WHOLE, language), text_of(film_page([WHOLE], language=language))):
        assert short not in text
        assert whole not in text


def test_exports_do_not_call_p_calibrated_without_saying_on_what():
    caveats = {film is NARROW: " ".join(collect(film, "eaf").caveats) for film in (WHOLE, NARROW)}
    for is_narrow, text in caveats.items():
        assert (Words("en").say("without_levels", levels="EN") in text) == is_narrow
        assert ("HN and S" in text) == is_narrow


@pytest.mark.parametrize("language", LANGUAGES)
def test_how_far_a_share_was_off_is_said_of_the_clips_that_it_was_of(language):
    words = Words(language)
    said = {
        film is NARROW: phrases.error_sentence(expected_share(film.model(), film.rows()), words)
        for film in (WHOLE, NARROW)
    }
    assert words.listed(["HN", "S"]) in said[True]
    assert "HN" not in said[False]
    assert phrases.no_share_sentence(expected_share(NARROW.model(), NARROW.rows()), words) == words.say(
        "levels_left_out", levels="EN"
    )


def test_a_graver_reason_for_no_share_is_said_before():
    trained = with_model(NARROW, is_trained_on=True)
    words = Words("en")
    assert (
        phrases.no_share_sentence(expected_share(trained.model(), trained.rows()), words)
        == words["no_rate_trained"]
    )


# --- captions
# ---------------------------------------------------------------------------
def test_captions_name_flags_in_words():
    cells = [f"{cell};bars;no_skill;trained_on".strip(";") for cell in WHOLE.table["flags"]]
    table = WHOLE.table.assign(flags=cells)
    flagged = replace(WHOLE, table=table)
    for claim in film_claims(flagged):
        if isinstance(claim, kinds.Passage):
            label = phrases.passage_label(claim, Words("en"))
            assert claim.flags
            assert not {"no_skill", "trained_on"} & set(label.replace(",", ";").replace(";", " ").split())
            assert all(Words("en")[f"flag_{flag}"] in label for flag in claim.flags)


# --- pages of models without concepts
# ---------------------------------------------------------------------------
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_explains_contributions_and_what_is_usual_where_there_are_any(language, tmp_path):
    words = Words(language)
    linear = with_model(invented_film(concepts=(), **SMALL), by_concepts=False)
    tree = with_model(WHOLE, concepts=[changed(one, usual=None) for one in WHOLE.model().concepts])
    for film, has_parts, has_usual in ((WHOLE, True, True), (tree, True, False), (linear, False, False)):
        page = unescape(film_page([film], language=language))
        opened = OpenFilm(0, film, Decisions(tmp_path / str(has_usual) / str(has_parts), film, BOOK))
        assert (words["about_3"] in page) == has_parts
        assert (words["about_3_usual"] in page) == has_usual
        # The two signs of a reason are explained above the concepts' bars, on the page and at the desk.
        desk = unescape(desk_page([opened], opened, "read", language))
        for text in (page, desk):
            signs = words.say("reasons_what", least=words.number(0.01))
            weights = words.say("reasons_what_weights", least=words.number(0.05))
            assert (signs in text) == has_usual
            assert (weights in text) == (has_parts and not has_usual)
