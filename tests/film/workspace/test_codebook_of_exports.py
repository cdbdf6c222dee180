"""An export has what people decided under a codebook of their own, and names that, not the model's."""

import pytest

from obygaze_features.manifest import codebook_of_text, import_spans
from obygaze_film.exchange import export
from obygaze_film.workspace.decisions import Decisions, read_decided
from tests.film.workspace.deciding import judge

OWN = 'name = "own"\nversion = "1"\nlevels = ["low", "middle", "high"]\nconcepts = ["Gun"]\n'
"""A codebook of another name than the model's, with other levels."""


def decide_under(folder, film, book, level, start_s=40):
    """Let AB judge eight seconds under a codebook, and return what an export gets of all decisions."""
    decisions = Decisions(folder, film, book)
    judge(decisions, start_s, start_s + 8, level, annotator="AB", concepts=["Gun"])
    decisions.ledger.close()
    return read_decided(folder, film)


@pytest.mark.parametrize("tiers", [("people",), ("people", "segments")])
def test_decisions_under_a_codebook_of_ones_own_name_it(scored_tt1, tmp_path, tiers):
    """A model was trained with the codebook "violence"; a person decides under "own": low, middle, high.

    In the export for ELAN (eaf) one may choose all levels of "own", and none of the model's. The document is
    read back under that codebook.
    """
    book = codebook_of_text(OWN)
    decided = decide_under(scored_tt1.folder, scored_tt1.timeline, book, "high").decided

    document = export(scored_tt1.timeline, "eaf", people=decided, tiers=tiers)

    assert scored_tt1.timeline.model().codebook == "violence"
    assert 'codebook">own</PROPERTY>' in document
    assert "levels of own" in document
    for level in ("low", "middle", "high"):
        assert f">{level}</CVE_VALUE>" in document
    for level in ("calm", "violent"):
        assert f">{level}</CVE_VALUE>" not in document

    path = tmp_path / "decided.eaf"
    path.write_text(document, encoding="utf-8")
    (clip,) = import_spans([path], tmp_path, codebook=book).manifest
    assert clip.level == "high"
    assert clip.concepts == ("Gun",)


def test_decisions_under_the_models_codebook_name_that(scored_tt1):
    decided = decide_under(scored_tt1.folder, scored_tt1.timeline, scored_tt1.codebook, "violent").decided
    document = export(scored_tt1.timeline, "eaf", people=decided, tiers=("people",))
    assert 'codebook">violence</PROPERTY>' in document
    assert "levels of violence" in document


def test_without_decisions_it_is_the_models(scored_tt1):
    assert 'codebook">violence</PROPERTY>' in export(scored_tt1.timeline, "eaf")


def test_decisions_under_a_codebook_of_another_name_are_exported(scored_tt1):
    """Labels that were imported with a codebook of their own are exported, though the model has another."""
    decided, notices = decide_under(scored_tt1.folder, scored_tt1.timeline, codebook_of_text(OWN), "high")

    assert [(span.annotator, span.level, span.concepts) for span in decided] == [("AB", "high", ("Gun",))]
    assert notices == []


def test_decisions_under_the_models_codebook_come_first(scored_tt1):
    """A ledger of both is read under the model's codebook, and what that lacks is named."""
    decide_under(scored_tt1.folder, scored_tt1.timeline, scored_tt1.codebook, "violent")

    decided, notices = decide_under(
        scored_tt1.folder, scored_tt1.timeline, codebook_of_text(OWN), "high", start_s=60
    )

    assert [span.level for span in decided] == ["violent"]
    assert any("unknown level 'high'" in notice for notice in notices)
    assert not any("nobody decided" in notice for notice in notices)
