"""A ledger keeps its lines: names and notes whose letters are guessed do not enter it."""

import pytest

from obygaze_film.errors import FilmError
from obygaze_film.workspace.importing import read_annotations
from tests.command import obygaze
from tests.film.workspace.deciding import judge, levels_in_force

HEADER = "movie,start_s,end_s,level,annotator,seen_score,note\n"


def imported(decisions, path):
    """Take a file into the ledger; return annotator and level of each judgement and passage that stands."""
    file = read_annotations(path, decisions.codebook, movie=decisions.film.movie)
    decisions.import_annotations(file)
    clips = [*decisions.clips_by_kind["judgement"], *decisions.clips_by_kind["passage"]]
    return {(clip.annotator, clip.level) for clip in clips}


@pytest.mark.parametrize(
    "row", ["tt1,0,8,calm,Zoë Ünal,1,\n", "tt1,0,8,calm,AB,1,déjà vu\n"], ids=["name", "note"]
)
def test_a_table_whose_letters_are_guessed_is_refused(decisions, tmp_path, row):
    """Excel saves tables in the encoding of its country: Zoë Ünal was read as a third person, Zoл Ьnal."""
    table = tmp_path / "of-excel.csv"
    table.write_bytes((HEADER + row).encode("cp1252"))

    with pytest.raises(FilmError, match=r"its letters are a guess.*save it as UTF-8.*--encoding"):
        read_annotations(table, decisions.codebook, movie="tt1")


def test_a_table_in_cp1252_enters_the_ledger_after_a_command_has_made_a_manifest_of_it(decisions, tmp_path):
    """Excel wrote a table in cp1252, with the name Zoë Ünal. A ledger refuses it, as its letters are a guess.

    Its user knows the encoding, and does what the refusal advises: `manifest import spans --encoding cp1252`
    makes a manifest, in UTF-8. The ledger takes that, and the name is right.
    """
    table_in_cp1252 = tmp_path / "of-excel.csv"
    table_in_cp1252.write_bytes((HEADER + "tt1,0,8,calm,Zoë Ünal,1,\n").encode("cp1252"))
    manifest = tmp_path / "own.csv"
    options = ["--encoding", "cp1252", "--codebook", tmp_path / "violence.codebook.toml"]

    assert obygaze("manifest", "import", "spans", table_in_cp1252, *options, "--out", manifest) == 0

    assert imported(decisions, manifest) == {("Zoë Ünal", "calm")}


def test_a_table_in_a_guessed_encoding_is_imported_if_its_accents_are_in_no_column_that_is_kept(
    decisions, tmp_path
):
    """Excel wrote a table in cp1252, which can only be guessed. Its "é" and "à" stand in a comment.

    A ledger does not keep that column. What it keeps, as the annotator CD and the level calm, is of plain
    letters, which are the same in all encodings: no wrong letter can come into the ledger.
    """
    judge(decisions, start=20, end=28, level="violent", annotator="AB")
    table = tmp_path / "of-excel.csv"
    header = HEADER.replace("note", "comment on the scene")
    table.write_bytes((header + "tt1,0,8,calm,CD,1,déjà vu\n").encode("cp1252"))

    assert ("CD", "calm") in imported(decisions, table)
    assert ("AB", "violent") in levels_in_force(decisions)
