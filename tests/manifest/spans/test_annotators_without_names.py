"""Cells of the column of annotators that name nobody, or several people at once."""

import pytest


def notices_of(import_files, annotator):
    """Import a span by AB and one by CD, with a third one between them by `annotator`; return the notices."""
    content = f"movie,start_s,end_s,level,annotator\nf,1,2,S,AB\nf,3,4,EN,{annotator}\nf,5,6,S,CD\n"
    clips, notices = import_files({"t.csv": content})
    assert [clip.annotator for clip in clips] == ["AB", annotator, "CD"]
    return notices


@pytest.mark.parametrize("nobody", ["-", "?", ".", "NA", "unknown", "k.A.", "s/o", "keine Angabe", "不明"])
def test_a_word_for_nobody_is_said_to_be_taken_as_a_person(import_files, nobody):
    """The annotator of a row is not known, and its cell says so: it stays a name, as somebody may have it."""
    assert f"annotator {nobody!r} taken as a" in notices_of(import_files, nobody)


@pytest.mark.parametrize("several", ["both", "Beide", "tous", "entrambi", "consensus", "全員"])
def test_a_word_for_several_people_as_an_annotator_is_noted_as_taken_for_one_person(import_files, several):
    """AB, CD and "both" judged a span each: "both" surely means that AB and CD judged theirs together.

    It is kept as an annotator's name, and would count in agreement as a third person. The notice says so, so
    that the person can correct it.
    """
    notices = notices_of(import_files, several)
    assert f"annotator {several!r} taken as one person beside 'AB', 'CD'" in notices


def test_a_word_for_several_people_is_not_noted_where_it_is_the_only_annotator(import_files):
    """The only row of a table is by "all". No other annotators are there who could be meant by it.

    So it is taken as a name without a notice.
    """
    _, notices = import_files({"t.csv": "movie,start_s,end_s,level,annotator\nf,1,2,S,all\n"})
    assert "one person" not in notices


def test_a_film_called_unknown_gets_no_notice_as_an_annotator_would(import_files):
    """Unknown is a film of 2011. As the name of an annotator, the word would say that nobody is named."""
    _, notices = import_files({"t.csv": "movie,start_s,end_s,level\nUnknown,1,2,S\n"})
    assert "taken as" not in notices


def test_a_column_of_video_files_is_not_proposed_as_annotators(refusal_of):
    """`Nom du document` may be a name of people by its heading; its cells are files of films.

    The film is given by --movie, so that nobody needs the column.
    """
    table = "Nom du document,Début,Fin,Niveau\na.mp4,1,2,S\na.mp4,3,4,EN\n"
    message = str(refusal_of({"t.csv": table}, movie="f"))
    assert "--column 'start_s=Début'" in message
    assert "annotator" not in message
