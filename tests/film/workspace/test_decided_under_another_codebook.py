"""Labels that were imported with a codebook of their own are exported, though the model has another one."""

import shutil

import pytest

from obygaze_features.manifest import codebook_of_text
from obygaze_film.workspace.decisions import Decisions, read_decided
from tests.film.workspace.deciding import judge
from tests.planted_models import codebook

OWN = 'name = "own"\nversion = "1"\nlevels = ["low", "high"]\nconcepts = ["Gun"]\n'
"""A codebook of another name than the model's, with other levels."""


@pytest.fixture
def copy_of_scored(tmp_path, scored_once):
    """A copy of a scored film's folder, in which nobody decided anything, and its timeline."""
    folder, film = scored_once
    return shutil.copytree(folder, tmp_path / folder.name), film


def test_decisions_under_a_codebook_of_another_name_are_exported(copy_of_scored):
    # Given a passage that AB judged under a codebook of their own
    folder, film = copy_of_scored
    decisions = Decisions(folder, film, codebook_of_text(OWN))
    judge(decisions, 40, 48, "high", annotator="AB", concepts=["Gun"])
    decisions.ledger.close()

    # When people's decisions are read for an export
    decided, notices = read_decided(folder, film)

    # Then it is there, and nothing says that nobody decided
    assert [(span.annotator, span.level, span.concepts) for span in decided] == [("AB", "high", ("Gun",))]
    assert notices == []


def test_decisions_under_the_models_codebook_come_first(copy_of_scored, tmp_path):
    """A ledger of both is read under the model's codebook, and what that lacks is named."""
    folder, film = copy_of_scored
    of_model = Decisions(folder, film, codebook(tmp_path))
    judge(of_model, 40, 48, "violent", annotator="AB")
    of_model.ledger.close()
    own = Decisions(folder, film, codebook_of_text(OWN))
    judge(own, 60, 68, "high", annotator="AB")
    own.ledger.close()

    decided, notices = read_decided(folder, film)

    assert [span.level for span in decided] == ["violent"]
    assert any("unknown level 'high'" in notice for notice in notices)
    assert not any("nobody decided" in notice for notice in notices)
