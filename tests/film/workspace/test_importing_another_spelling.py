"""A person who is in the ledger is not imported under another spelling of their name: they would be two."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_film.workspace.importing import read_annotations
from tests.film.workspace.deciding import judge

HEADER = "movie,start_s,end_s,level,concepts,annotator,seen_score\n"


def import_judgement(decisions, annotator):
    """Import a table with one judgement, in sight of the score, by an annotator; return the results."""
    table = decisions.folder / "own.csv"
    table.write_text(f"{HEADER}tt1,60,68,calm,,{annotator},1\n", encoding="utf-8")
    file = read_annotations(table, decisions.codebook, movie="tt1")
    return decisions.import_annotations(file, is_blind=None)


@pytest.mark.parametrize("spelling", ["ab", "Ab", "AB\u200b"])
def test_another_spelling_of_a_name_in_the_ledger_is_refused(decisions, spelling):
    """AB has judged a span. A table has a judgement by "ab", or by "AB" with an invisible space (U+200B).

    They are one name, so the import is refused with a message, and AB stays the only annotator.
    """
    judge(decisions, start=40, end=48, level="violent", annotator="AB")

    with pytest.raises(ManifestError, match="are one name: spell both alike"):
        import_judgement(decisions, spelling)

    assert decisions.annotators == ("AB",)


@pytest.mark.parametrize("name", ["AB", "CD"])
def test_a_table_by_an_annotator_of_the_ledger_or_by_somebody_else_is_imported(decisions, name):
    """AB has judged a span at the desk. A table is by AB, in the same spelling, or by CD, another person.

    Only another spelling of AB, such as "ab", would be refused.
    """
    judge(decisions, start=40, end=48, level="violent", annotator="AB")

    (result,) = import_judgement(decisions, name)

    assert result.annotator == name
    assert set(decisions.annotators) == {"AB", name}
