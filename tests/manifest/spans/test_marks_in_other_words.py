"""Below a concept's heading people write yes and no in words and signs of their own, and may explain any."""

import pytest

from obygaze_features.errors import ManifestError

BODY_AND_LOOK_ARE_CONCEPTS = {"concepts": ["Body", "Look"]}
"""The option that says of the columns Body and Look that they hold marks: whether a clip has the concept."""


def table_of_marks(yes, no):
    """Write a table in which the first clip has Body, the second has Look, and the third has neither."""
    return f"movie;start_s;end_s;level;Body;Look\nf;0;1;S;{yes};{no}\nf;1;2;EN;{no};{yes}\nf;2;3;HN;{no};\n"


OTHER_WORDS = [("是", "否"), ("Jawohl", "nö"), ("s", "n"), ("2", "0"), ("+++", "---"), ("there", "not there")]
"""What says yes, and what says no; `s` is Spanish for yes, and a spelling of the level S elsewhere."""


@pytest.mark.parametrize(("yes", "no"), OTHER_WORDS)
@pytest.mark.parametrize("meaning_of_no", ["no", ""], ids=["no", "no label"])
def test_marks_are_what_the_person_says(import_files, yes, no, meaning_of_no):
    """Below the headings Body and Look stand marks in words of the annotator's own, such as 是 and 否.

    The first clip has Body, the second Look, and the third neither. The person says which word means yes;
    that the other means "no", or "" for no label, comes to the same.
    """
    table = table_of_marks(yes, no)

    clips, notices = import_files(
        {"t.csv": table}, columns=BODY_AND_LOOK_ARE_CONCEPTS, words={yes: "yes", no: meaning_of_no}
    )

    assert [clip.concepts for clip in clips] == [("Body",), ("Look",), ()]
    assert "no label in the files" not in notices


def test_a_mark_that_stands_alone_is_what_the_person_says(import_files):
    """The first clip is marked 是 below Body, the second below Look. Other cells are empty.

    The person says that 是 means yes.
    """
    table = table_of_marks(yes="是", no="")

    clips, _ = import_files({"t.csv": table}, columns=BODY_AND_LOOK_ARE_CONCEPTS, words={"是": "yes"})

    assert [clip.concepts for clip in clips] == [("Body",), ("Look",), ()]


def test_columns_with_marks_that_the_person_explained_are_proposed_as_concepts(import_files):
    """The columns Body and Look have the marks s and n, and the person says that these are yes and no.

    S is a level of the codebook, and s may be read as one. But the columns are not proposed as those of
    annotators called Body and Look: the refusal says by which options they are read as concepts.
    """
    with pytest.raises(ManifestError, match="give --column concepts=Body --column concepts=Look"):
        import_files({"t.csv": table_of_marks(yes="s", no="n")}, words={"s": "yes", "n": "no"})


def test_a_column_whose_cells_are_no_marks_says_what_to_type(import_files):
    """Below the headings Body and Look stands 是 or 否, and nobody said what these words mean."""
    _, said = import_files({"t.csv": table_of_marks("是", "否")})

    assert "column 'Body' is headed as Body and not read: its cells are no marks ('否', '是')" in said
    assert "--word MARK=yes, --word MARK=no" in said


@pytest.mark.parametrize(("heading", "option"), [("Body", "concepts=Body"), ("S", "level=S")])
def test_an_unread_column_of_marks_is_noticed_with_its_option_and_without_a_question(
    import_files, heading, option
):
    """A table has levels and concepts, and beside them a column "Body", or "S", with the marks 1 and 0.

    That column is not read. A notice says which option reads it, and does not say that 1 and 0 are no marks,
    as it would of words whose meaning the person has to explain.
    """
    rows = ["f,0,1,EN,Look,1", "f,1,2,S,,0", "f,2,3,EN,,1"]
    table = "\n".join([f"movie,start_s,end_s,level,concepts,{heading}", *rows, ""])

    _, notices = import_files({"t.csv": table})

    assert f"columns headed by labels are not read ('{heading}'): --column {option}" in notices
    assert "no marks" not in notices
