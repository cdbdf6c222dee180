"""A name in an edited table that is another spelling of a judge's name: one person would be two judges."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_film.workspace.decisions import JUDGEMENTS
from tests.film.workspace.deciding import judge_blindly, reopen


@pytest.mark.parametrize("spelling", ["ab", "\uff21B", "A\u200bB"])
def test_another_spelling_of_a_name_is_refused_with_its_line(decisions, spelling):
    """AB is a judge of the film. A row is copied for "ab": one person would count as two judges."""
    judge_blindly(decisions, "calm", annotator="AB")
    table = decisions.folder / JUDGEMENTS
    head, row = table.read_text("utf-8").splitlines()
    edited = f"{head}\n{row}\n" + row.replace(",AB,", f",{spelling},") + "\n"
    table.write_text(edited, "utf-8")

    with pytest.raises(ManifestError, match=r"line 3: annotator .* are one name"):
        reopen(decisions)

    assert table.read_text("utf-8") == edited  # it waits to be mended


def test_two_spellings_in_a_table_without_a_ledger_are_refused(decisions, scored_tt1):
    """A film has a table with one judgement by Éva and one by Eva, and no ledger yet.

    Names that differ by an accent alone are taken for one name, typed in two ways. No ledger says which one
    is right: the message names both, Eva in line 3 of the table and Éva in line 2.
    """
    (scored_tt1.folder / JUDGEMENTS).write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n"
        "a,tt1,,0,8,calm,,\u00c9va,1\nb,tt1,,8,16,violent,,Eva,1\n",
        "utf-8",
    )

    with pytest.raises(
        ManifestError, match=r"line 3: annotator 'Eva' and '\u00c9va' \(line 2\) are one name"
    ):
        reopen(decisions)
