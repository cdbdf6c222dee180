"""An ELAN document names the codebook under which people decided, which need not be the model's."""

import shutil

import pytest

from obygaze_features.manifest import codebook_of_text, import_spans
from obygaze_film.exchange import export
from obygaze_film.workspace.decisions import Decisions, read_decided
from tests.film.workspace.deciding import judge
from tests.planted_models import codebook

OWN = 'name = "own"\nversion = "1"\nlevels = ["low", "middle", "high"]\nconcepts = ["Gun"]\n'
"""A codebook of another name than the model's, with other levels."""


@pytest.fixture
def copy_of_scored(tmp_path, scored_once):
    """A copy of a scored film's folder, in which nobody decided anything, and its timeline."""
    folder, film = scored_once
    return shutil.copytree(folder, tmp_path / folder.name), film


def decide_under(folder, film, book, level):
    """Let AB judge a passage under a codebook, and return what an export gets of it."""
    decisions = Decisions(folder, film, book)
    judge(decisions, 40, 48, level, annotator="AB", concepts=["Gun"])
    decisions.ledger.close()
    return read_decided(folder, film).decided


@pytest.mark.parametrize("tiers", [("people",), ("people", "segments")])
def test_decisions_under_a_codebook_of_ones_own_name_it(copy_of_scored, tmp_path, tiers):
    """All of its levels may be chosen in ELAN, and none of the model's, which it does not have."""
    folder, film = copy_of_scored
    book = codebook_of_text(OWN)
    decided = decide_under(folder, film, book, "high")

    document = export(film, "eaf", people=decided, tiers=tiers)

    assert film.model().codebook == "violence"
    assert 'codebook">own</PROPERTY>' in document
    assert "levels of own" in document
    for level in ("low", "middle", "high"):
        assert f">{level}</CVE_VALUE>" in document
    for level in ("calm", "violent"):
        assert f">{level}</CVE_VALUE>" not in document

    # and the document is read back under that codebook
    path = tmp_path / "decided.eaf"
    path.write_text(document, encoding="utf-8")
    (clip,) = import_spans([path], tmp_path, codebook=book).manifest
    assert (clip.level, clip.concepts) == ("high", ("Gun",))


def test_decisions_under_the_models_codebook_name_that(copy_of_scored, tmp_path):
    folder, film = copy_of_scored
    decided = decide_under(folder, film, codebook(tmp_path), "violent")
    document = export(film, "eaf", people=decided, tiers=("people",))
    assert 'codebook">violence</PROPERTY>' in document
    assert "levels of violence" in document


def test_without_decisions_it_is_the_models(copy_of_scored):
    _, film = copy_of_scored
    assert 'codebook">violence</PROPERTY>' in export(film, "eaf")
