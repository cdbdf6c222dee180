"""An export has what people decided under a codebook of their own, and names that, not the model's."""

import pytest

from obygaze_features.manifest import codebook_of_text, import_spans
from obygaze_film.exchange import export
from obygaze_film.workspace.decisions import Decisions, read_decided
from tests.film.workspace.deciding import judge

OWN_CODEBOOK = 'name = "own"\nversion = "1"\nlevels = ["low", "middle", "high"]\nconcepts = ["Gun"]\n'
"""A codebook of another name than the model's, with other levels."""


def exported_after_judging_under(book, level, *, scored, start_s=40):
    """Let AB judge eight seconds of a scored film under a codebook, and see the concept Gun there.

    Return what an export gets of all decisions on the film, with notices on what it does not get.
    """
    folder, film = scored.folder, scored.timeline
    decisions = Decisions(folder, film, book)
    judge(decisions, start_s, start_s + 8, level, annotator="AB", concepts=["Gun"])
    decisions.ledger.close()
    return read_decided(folder, film)


@pytest.mark.parametrize("tiers", [("people",), ("people", "segments")])
def test_an_export_for_elan_offers_the_levels_of_the_codebook_that_people_decided_under(
    scored_tt1, tmp_path, tiers
):
    """A model was trained with the codebook "violence"; AB decides "high" under "own": low, middle, high.

    The document for ELAN names "own". Its list of levels to choose from (`CVE_VALUE`) has all levels of "own"
    and none of the model's. Read back under "own", AB's level and the concept Gun are as they were.
    """
    book = codebook_of_text(OWN_CODEBOOK)
    decided = exported_after_judging_under(book, "high", scored=scored_tt1).decided

    document = export(scored_tt1.timeline, "eaf", people=decided, tiers=tiers)

    assert scored_tt1.timeline.model().codebook == "violence"
    assert 'codebook">own</PROPERTY>' in document
    assert "levels of own" in document
    for level_to_choose in ("low", "middle", "high"):
        assert f">{level_to_choose}</CVE_VALUE>" in document
    for level_of_model in ("calm", "violent"):
        assert f">{level_of_model}</CVE_VALUE>" not in document

    path = tmp_path / "decided.eaf"
    path.write_text(document, encoding="utf-8")
    (clip,) = import_spans([path], tmp_path, codebook=book).manifest
    assert clip.level == "high"
    assert clip.concepts == ("Gun",)


def test_an_export_for_elan_names_the_models_codebook_if_people_decided_under_it(scored_tt1):
    """The model was trained with the codebook "violence", and AB decides under it."""
    decided = exported_after_judging_under(scored_tt1.codebook, "violent", scored=scored_tt1).decided
    document = export(scored_tt1.timeline, "eaf", people=decided, tiers=("people",))
    assert 'codebook">violence</PROPERTY>' in document
    assert "levels of violence" in document


def test_an_export_for_elan_names_the_models_codebook_if_nobody_decided_anything(scored_tt1):
    """The model was trained with the codebook "violence"."""
    assert 'codebook">violence</PROPERTY>' in export(scored_tt1.timeline, "eaf")


def test_decisions_under_a_codebook_of_another_name_are_exported(scored_tt1):
    """AB decides under the codebook "own", though the model has another, "violence"."""
    decided, notices = exported_after_judging_under(codebook_of_text(OWN_CODEBOOK), "high", scored=scored_tt1)

    assert [(span.annotator, span.level, span.concepts) for span in decided] == [("AB", "high", ("Gun",))]
    assert notices == []


def test_an_export_of_decisions_under_two_codebooks_has_those_under_the_models(scored_tt1):
    """AB decides "violent" under the model's codebook, and then "high" under "own" in the same ledger.

    An export is under one codebook, the model's where anything was decided under it. A notice says which
    level that codebook does not know.
    """
    exported_after_judging_under(scored_tt1.codebook, "violent", scored=scored_tt1)

    decided, notices = exported_after_judging_under(
        codebook_of_text(OWN_CODEBOOK), "high", scored=scored_tt1, start_s=60
    )

    assert [span.level for span in decided] == ["violent"]
    assert any("unknown level 'high'" in notice for notice in notices)
    assert not any("nobody decided" in notice for notice in notices)
